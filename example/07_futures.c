/* SPDX-License-Identifier: MIT */
/*
 * 07_futures.c - futures: any thread may wait for them, with a time limit, or cancel them
 *
 * Three searches for the same number run at the same time. When the first search succeeds,
 * fj_future_invoke_any() cancels the others, which call fj_is_cancelled() and return. Then a thread
 * waits for a slow future with a limit of 5 ms, and cancels it.
 */
#include <forkjoin.h>
#include <forkjoin/block.h>
#include <stdio.h>

struct search {
    fj_future future; /* first */
    long from, step, wanted, found;
};

static int search_run(fj_task *t)
{
    struct search *s = (struct search *)t;

    for (long i = s->from;; i += s->step) {
        if (i * i == s->wanted) {
            s->found = i;
            return FJ_OK;
        }
        if (fj_is_cancelled()) return FJ_ECANCELED;
        if (i * i > s->wanted) return 1; /* not found */
    }
}

static int sleep_long(void *arg, void **result)
{
    (void)arg;
    (void)result;
    /* A cancel ends the sleep with FJ_ECANCELED. */
    return fj_sleep_ns(3600 * (int64_t)1000000000);
}

int main(void)
{
    struct search s[3];
    fj_future *all[3], *slow;
    size_t which;

    for (int i = 0; i < 3; i++) {
        s[i] = (struct search){.from = i, .step = 3, .wanted = 1234321};
        fj_future_init(&s[i].future, search_run);
        all[i] = &s[i].future;
    }
    int err = fj_future_invoke_any(NULL, all, 3, FJ_FOREVER, &which);
    if (err != FJ_OK) return 1;
    printf("search %zu has found %ld\n", which, s[which].found);
    for (int i = 0; i < 3; i++) fj_future_fini(all[i]); /* waits for the cancelled ones */

    if (fj_submit_call(NULL, sleep_long, NULL, &slow) != FJ_OK) return 1;
    err = fj_future_get(slow, 5000000, NULL);
    printf("after 5 ms: %s\n", fj_strerror(err));
    if (err != FJ_ETIMEDOUT || !fj_future_cancel(slow, 1)) return 1;
    fj_future_unref(slow);
    return s[which].found != 1111;
}
