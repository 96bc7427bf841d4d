/* SPDX-License-Identifier: MIT */
/* refused: sum_has_no_FJ_TASK_EXTERN */
#include <forkjoin.h>

FJ_TASK_DECLARE(int, sum, int, a, int, b);

FJ_TASK_DEFINE(int, sum, int, a, int, b)
{
    return a + b;
}
