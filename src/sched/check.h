/* SPDX-License-Identifier: MIT */
/*
 * check.h - checks of the library's own invariants, in FJI_CHECKED builds
 *
 * A check that fails shows a bug of the library, not of the program. fji_check() then passes the
 * name of the calling function and the text of the condition to the log callback of the pool, and
 * traps. Without FJI_CHECKED the condition is compiled but not evaluated.
 */
#ifndef FJI_CHECK_H
#define FJI_CHECK_H

#include "sched/pool.h"

/* In a FJI_CHECKED build: traps if cond is false. p: the pool whose log callback is called before
 * the trap. */
#define fji_check(p, cond)                             \
    do {                                               \
        if (FJI_CHECKED && !(cond)) {                  \
            fji_pool_log((p), FJ_LOG_ERROR, __func__); \
            fji_pool_log((p), FJ_LOG_ERROR, #cond);    \
            __builtin_trap();                          \
        }                                              \
    } while (0)

#endif /* FJI_CHECK_H */
