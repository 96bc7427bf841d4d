/* SPDX-License-Identifier: MIT */
/*
 * exit.c - saves the coverage counts of a child process, which ends with _exit()
 *
 * The coverage presets link this file into the test programs, with --wrap=_exit.
 */
void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
