/* SPDX-License-Identifier: MIT */
/*
 * 01_fib.c - fork a task, do other work, join the task
 *
 * A task is a struct of the program whose first member is an fj_task. Here it is a local variable
 * of the function that forks it. If no other worker has stolen the task, the join runs its body.
 */
#include <forkjoin.h>
#include <stdio.h>

struct fib {
    fj_task task;
    long n, result;
};

static int fib_run(fj_task *t);

static long fib(long n)
{
    if (n < 2) return n;

    struct fib a;
    fj_task_init(&a.task, fib_run);
    a.n = n - 1;
    fj_fork(&a.task);
    long y = fib(n - 2);
    fj_join_as(&a.task, fib_run); /* fj_join(&a.task) does the same, by an indirect call */
    return a.result + y;
}

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = fib(f->n);
    return FJ_OK;
}

int main(void)
{
    struct fib root = {.n = 30};
    fj_task_init(&root.task, fib_run);

    int err = fj_invoke(NULL, &root.task); /* NULL: the common pool */
    if (err != FJ_OK) {
        fprintf(stderr, "fib: %s\n", fj_strerror(err));
        return 1;
    }
    printf("fib(%ld) = %ld\n", root.n, root.result);
    return root.result == 832040 ? 0 : 1;
}
