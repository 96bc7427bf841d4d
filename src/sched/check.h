/* SPDX-License-Identifier: MIT */
/*
 * check.h - invariants looked at while the library runs, in FJI_CHECKED builds
 *
 * A broken one is a bug of the library, not of its user: it is told to the log callback and
 * the process is stopped where it stands. Without FJI_CHECKED nothing is looked at.
 */
#ifndef FJI_CHECK_H
#define FJI_CHECK_H

#include "sched/pool.h"

/* p: the pool whose log callback is told. Users include pool.h, which has fji_pool_log(). */
#define fji_check(p, cond)                             \
    do {                                               \
        if (FJI_CHECKED && !(cond)) {                  \
            fji_pool_log((p), FJ_LOG_ERROR, __func__); \
            fji_pool_log((p), FJ_LOG_ERROR, #cond);    \
            __builtin_trap();                          \
        }                                              \
    } while (0)

#endif /* FJI_CHECK_H */
