/* SPDX-License-Identifier: MIT */
/*
 * main.c - a program outside the project that uses the installed library
 *
 * With the argument `shared` or `static`, it also checks that it uses that kind of library.
 */
#include <dlfcn.h>
#include <forkjoin.h>
#include <stdio.h>
#include <string.h>

FJ_TASK(long, fib, long, n)
{
    if (n < 2) return n;
    fib_task a;
    fib_fork(FJ, &a, n - 1);
    long y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

int main(int argc, char **argv)
{
    Dl_info where;
    long r = 0;
    int err = fib_invoke(NULL, &r, 25);

    if (err != FJ_OK || r != 75025) {
        printf("fib(25) = %ld, %s\n", r, fj_error_name(err));
        return 1;
    }
    if (fj_version() != FJ_VERSION) {
        printf("header %x, library %x\n", (unsigned)FJ_VERSION, (unsigned)fj_version());
        return 1;
    }
    if (argc > 1) {
        void *f = (void *)(uintptr_t)fj_version;
        int shared = dladdr(f, &where) != 0 && strstr(where.dli_fname, "libforkjoin.so") != NULL;
        if (shared != (strcmp(argv[1], "shared") == 0)) {
            printf("not linked with the %s library\n", argv[1]);
            return 1;
        }
    }
    puts("ok");
    return 0;
}
