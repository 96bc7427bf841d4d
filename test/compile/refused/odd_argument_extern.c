/* SPDX-License-Identifier: MIT */
/* refused: separated by a comma */
#include <forkjoin.h>

FJ_TASK_EXTERN(int, look, void);
