/* SPDX-License-Identifier: MIT */
/*
 * checked_nothing.c - the inline initialisers check for NULL if FJ_CHECKED is set
 */
#define FJ_CHECKED 1

#include "fjtest.h"

static int run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

FJ_TEST(initialisers_of_nothing_do_nothing, 10)
{
    fj_completer parent;

    fj_future_init(NULL, run);
    fj_future_init(NULL, NULL);
    fj_completer_init(&parent, NULL, 1, run, NULL, NULL);
    fj_completer_init(NULL, &parent, 1, run, NULL, NULL);
    fj_completer_init(NULL, NULL, 0, NULL, NULL, NULL);
    fj_completer_set_pending(NULL, 7);
    CHECK_EQ(fj_completer_pending(&parent), 1);
}
