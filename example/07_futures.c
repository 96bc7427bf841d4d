/* SPDX-License-Identifier: MIT */
/*
 * 07_futures.c - results that anybody may wait for, with a limit, and that may be cancelled
 *
 * Three searches for the same thing run at once. The first that finds it wins; the others see
 * fj_is_cancelled() and give up. A future that takes too long is not waited for.
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
        if (i * i > s->wanted) return 1; /* not here */
    }
}

static int sleep_long(void *arg, void **result)
{
    (void)arg;
    (void)result;
    return fj_sleep_ns(3600 *
                       (int64_t)1000000000); /* ends with FJ_ECANCELED when it is cancelled */
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
    for (int i = 0; i < 3; i++) fj_future_fini(all[i]); /* the cancelled ones may still run */

    if (fj_submit_call(NULL, sleep_long, NULL, &slow) != FJ_OK) return 1;
    err = fj_future_get(slow, 5000000, NULL);
    printf("after 5 ms: %s\n", fj_strerror(err));
    if (err != FJ_ETIMEDOUT || !fj_future_cancel(slow, 1)) return 1;
    fj_future_unref(slow);
    return s[which].found != 1111;
}
