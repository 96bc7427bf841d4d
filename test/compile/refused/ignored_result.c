/* SPDX-License-Identifier: MIT */
/* refused: unused-result */
#include <forkjoin.h>

int main(void)
{
    fj_pool *pool;
    fj_pool_create(&pool, NULL);
    return 0;
}
