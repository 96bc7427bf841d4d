/* SPDX-License-Identifier: MIT */
/* refused: fj_pool */
#include <forkjoin.h>

int main(void)
{
    return (int)sizeof(fj_pool);
}
