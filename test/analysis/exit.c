/* SPDX-License-Identifier: MIT */
/*
 * exit.c - a process that a test forks ends by _exit(): its counts of lines are saved too
 *
 * Linked into the test programs of the coverage presets, with --wrap=_exit.
 */
void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
