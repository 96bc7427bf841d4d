/* SPDX-License-Identifier: MIT */
/*
 * 02_typed_fib.c - the same on the typed tier
 *
 * FJ_TASK makes of the function below it a handle, a fork, a join, a call and an invoke. `FJ`
 * hands the worker on; without a thief the join is a direct call.
 */
#include <forkjoin.h>
#include <stdio.h>

FJ_TASK(long, fib, long, n)
{
    if (n < 2) return n;

    fib_task a;
    fib_fork(FJ, &a, n - 1);
    long y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

int main(void)
{
    long result = 0;

    int err = fib_invoke(NULL, &result, 30);
    if (err != FJ_OK) {
        fprintf(stderr, "fib: %s\n", fj_strerror(err));
        return 1;
    }
    printf("fib(30) = %ld\n", result);
    return result == 832040 ? 0 : 1;
}
