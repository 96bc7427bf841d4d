/* SPDX-License-Identifier: MIT */
/* refused: look_join */
#include <forkjoin.h>

FJ_TASK(int, look, int, n)
{
    if (n == 0) return 0;
    return look_join(FJ, n);
}

int main(void)
{
    int r;
    return look_invoke(NULL, &r, 1);
}
