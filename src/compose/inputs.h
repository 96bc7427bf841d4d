/* SPDX-License-Identifier: MIT */
/*
 * inputs.h - which futures another future can follow from
 */
#ifndef FJI_INPUTS_H
#define FJI_INPUTS_H

#include <forkjoin.h>
#include <stdbool.h>

/* Returns whether f is a future that fj_future_listen() accepts: not NULL, and not a completer with
 * a parent. */
static inline bool fji_input_ok(const fj_future *f)
{
    if (f == NULL) return false;
    bool completer = (f->flags & FJI_FUTURE_COMPLETER) != 0;
    return !completer || fj_completer_parent((const fj_completer *)(const void *)f) == NULL;
}

#endif /* FJI_INPUTS_H */
