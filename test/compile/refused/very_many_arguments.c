/* SPDX-License-Identifier: MIT */
/* refused: at most six arguments */
#include <forkjoin.h>

FJ_TASK(long, look, int, a, int, b, int, c, int, d, int, e, int, f, int, g, int, h, int, i, int, j,
        int, k)
{
    return 0;
}
