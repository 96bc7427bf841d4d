/* SPDX-License-Identifier: MIT */
/* refused: separated by a comma */
#include <forkjoin.h>

FJ_VOID_TASK_BODY(look, void)
{
}
