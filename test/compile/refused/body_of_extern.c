/* SPDX-License-Identifier: MIT */
/* refused: follows non-static declaration */
#include <forkjoin.h>

FJ_TASK_EXTERN(int, sum, int, a, int, b);

FJ_TASK_BODY(int, sum, int, a, int, b)
{
    return a + b;
}
