/* SPDX-License-Identifier: MIT */
/*
 * 04_errors.c - how the joining thread gets the error of a task
 *
 * A body returns 0 or a positive error code of its own. The join returns that code.
 * fj_invoke_all() waits for all its tasks, even after an error, and returns the first error in the
 * order of its array.
 */
#include <forkjoin.h>
#include <stdio.h>

enum { NOT_A_DIGIT = 1, EMPTY = 2 };

struct number {
    fj_task task;
    const char *text;
    long value;
};

static int number_run(fj_task *t)
{
    struct number *n = (struct number *)t;

    if (n->text[0] == '\0') return EMPTY;
    for (const char *p = n->text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') return NOT_A_DIGIT;
        n->value = n->value * 10 + (*p - '0');
    }
    return FJ_OK;
}

static struct number number(const char *text)
{
    struct number n = {.text = text};
    fj_task_init(&n.task, number_run);
    return n;
}

/* With fork and join the caller decides what to do with each code. Here it counts the errors. */
static int count_bad(void)
{
    struct number a = number("12"), b = number("1x");

    fj_fork(&a.task);
    fj_fork(&b.task);
    int bad = fj_join(&b.task) != FJ_OK;
    bad += fj_join(&a.task) != FJ_OK;
    return bad;
}

int main(void)
{
    struct number n[] = {number("2026"), number(""), number("4z"), number("7")};
    fj_task *all[] = {&n[0].task, &n[1].task, &n[2].task, &n[3].task};

    int err = fj_invoke_all(all, 4);
    printf("the first error is %d (%s), of \"%s\"\n", err, fj_error_name(err), n[1].text);
    if (err != EMPTY) return 1;
    if (n[0].value != 2026 || n[3].value != 7) return 1; /* the other tasks were run too */

    int bad = count_bad();
    printf("%d of two could not be read\n", bad);
    if (bad != 1) return 1;

    err = fj_invoke(NULL, NULL);
    printf("the library's own codes are negative: %s, %s\n", fj_error_name(err), fj_strerror(err));
    return err == FJ_EINVAL ? 0 : 1;
}
