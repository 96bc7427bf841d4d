/* SPDX-License-Identifier: MIT */
/*
 * 09_timers.c - work at a later time, and periodic work
 */
#include <forkjoin.h>
#include <stdio.h>

#define MS ((int64_t)1000000)

struct heart {
    fj_timer timer; /* first */
    int beats;
};

static int heart_run(fj_task *t)
{
    struct heart *h = (struct heart *)t;

    return ++h->beats < 5 ? FJ_OK : 1; /* a code other than 0 ends the series */
}

static int greet(void *arg)
{
    printf("%s\n", (const char *)arg);
    return FJ_OK;
}

int main(void)
{
    struct heart heart = {.beats = 0};
    fj_future *later, *never;

    fj_timer_init(&heart.timer, heart_run);
    if (fj_schedule_at_fixed_rate(NULL, &heart.timer, 0, 2 * MS) != FJ_OK) return 1;
    if (fj_schedule_action(NULL, greet, "later", 5 * MS, &later) != FJ_OK) return 1;
    if (fj_schedule_action(NULL, greet, "never", 3600 * 1000 * MS, &never) != FJ_OK) return 1;

    int code = fj_future_join(&heart.timer.future);
    printf("%d beats, ended with %d\n", heart.beats, code);
    fj_future_fini(&heart.timer.future);
    if (fj_future_join(later) != FJ_OK) return 1;
    fj_future_unref(later);
    printf("%lld ms left for the other\n",
           (long long)(fj_timer_remaining(never) / MS) / 1000 * 1000);
    fj_future_cancel(never, 0);
    fj_future_unref(never);
    return heart.beats != 5 || code != 1;
}
