/* SPDX-License-Identifier: MIT */
/* refused: separated by a comma */
#include <forkjoin.h>

FJ_TASK(long, look, long, n, long)
{
    return 0;
}
