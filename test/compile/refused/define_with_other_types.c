/* SPDX-License-Identifier: MIT */
/* refused: conflicting types for */
#include <forkjoin.h>

FJ_TASK_EXTERN(int, sum, int, a, int, b);

FJ_TASK_DEFINE(int, sum, int, a, long, b)
{
    return a + (int)b;
}
