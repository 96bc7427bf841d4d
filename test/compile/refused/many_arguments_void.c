/* SPDX-License-Identifier: MIT */
/* refused: at most six arguments */
#include <forkjoin.h>

FJ_VOID_TASK_DECLARE(look, int, a, int, b, int, c, int, d, int, e, int, f, int, g);
