/* SPDX-License-Identifier: MIT */
/*
 * parts.h - typed tasks that one file defines and another file uses
 */
#ifndef PARTS_H
#define PARTS_H

#include <forkjoin.h>

#ifndef PARTS_API
#define PARTS_API
#endif

#if defined(__cplusplus) && defined(PARTS_IN_C)
extern "C" {
#endif

PARTS_API FJ_TASK_EXTERN(long, parts_fib, long, n);
PARTS_API FJ_TASK_EXTERN(int, parts_none);
PARTS_API FJ_VOID_TASK_EXTERN(parts_fill, int *, to, int, n, int, value);

/* Two tasks that call each other. */
PARTS_API FJ_TASK_EXTERN(int, parts_even, int, n);
PARTS_API FJ_TASK_EXTERN(int, parts_odd, int, n);

#if defined(__cplusplus) && defined(PARTS_IN_C)
}
#endif

#endif /* PARTS_H */
