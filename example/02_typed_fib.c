/* SPDX-License-Identifier: MIT */
/*
 * 02_typed_fib.c - Fibonacci numbers with a typed task
 *
 * FJ_TASK defines the function fib and generates fib_task, fib_fork, fib_join, fib_call and
 * fib_invoke. `FJ` passes on the worker that runs the body and its position in its queue. If no
 * other worker has stolen the call, fib_join is an ordinary function call.
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
