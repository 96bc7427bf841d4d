/* SPDX-License-Identifier: MIT */
/* refused: pass a pointer */
#include <forkjoin.h>

struct large {
    char bytes[49];
};

FJ_TASK(int, look, struct large, it)
{
    (void)fj_w;
    (void)fj_p;
    return it.bytes[0];
}

int main(void)
{
    int r;
    struct large it = {{0}};
    return look_invoke(NULL, &r, it);
}
