/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - waiting until a pool has nothing to do
 *
 * sched/quiescent.c decides whether it has. A waiter without a deadline helps, if it may work for the pool; all
 * others check again and again, with growing pauses.
 */

#include "pool/quiesce.h"

#include "pool/create.h"
#include "sched/compensate.h"
#include "sched/guest.h"
#include "sched/hold.h"
#include "sched/quiescent.h"
#include "sched/run.h"
#include "sched/steal.h"
#include "sched/threadless.h"
#include "sched/wake.h"

bool fji_quiesce_now(fj_pool *p)
{
    if (fji_pool_stopping(p) || !fji_pool_hold(p)) return true;
    bool quiet = fji_pool_quiescent(p, false);
    fji_pool_drop_hold(p);
    return quiet;
}

/* A task from anywhere, the own queue as a thief would: its joiner must find it done. */
static fji_steal_result quiesce_find(fji_worker *w, fji_taken *taken)
{
    fji_steal_result got = fji_queue_steal(&w->q, taken);
    return got == FJI_STEAL_EMPTY ? fji_steal_any(w, taken) : got;
}

/* Sleeps a little, longer each time, at most until the deadline. */
static void quiesce_pause(uint32_t *word, int *turn, int64_t deadline)
{
    int64_t pause = *turn < 10 ? 20000 : *turn < 50 ? 100000 : 1000000;
    int64_t until = fji_plat_now() + pause;

    if (*turn < 50) ++*turn;
    if (until > deadline) until = deadline;
    fji_plat_wait(word, fji_load_relaxed(word), until); /* relaxed: only a place to sleep */
}

/*
 * Runs whatever there is until the pool is quiet apart from those who do the same. While it
 * has nothing it counts as idle (QUIET); it turns active before it takes anything.
 */
static void quiesce_help(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;
    int turn = 0;

    for (;;) {
        fji_steal_result got = quiesce_find(w, &taken);
        if (got == FJI_STEAL_SUCCESS) {
            fji_run_taken(p, w, &taken);
            turn = 0;
            continue;
        }
        fji_quiesce_turn(w, FJI_PARK_QUIET);
        bool quiet = got == FJI_STEAL_EMPTY &&
                     (fji_pool_stopping(p) || fji_pool_quiescent(p, false));
        if (!quiet) quiesce_pause(&w->park, &turn, FJ_FOREVER);
        fji_quiesce_turn(w, FJI_PARK_ACTIVE);
        if (quiet) return;
    }
}

/* What was queued lazily has woken nobody. */
static void quiesce_wake(fj_pool *p)
{
    if (!fji_pool_hold(p)) return;
    if (fji_pool_has_work(p)) fji_wake_one(p);
    fji_pool_drop_hold(p);
}

/* Only looks, and sleeps in between. A worker of the pool itself counts as quiet meanwhile, and is
 * blocked. */
static bool quiesce_watch(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    bool own = w != NULL && w->pool == p, may_run = deadline == FJ_FOREVER, quiet;
    int turn = 0;
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    int64_t pause = 0;

    if (!may_run) fji_pool_needs_worker(p);
    if (own) fji_quiesce_turn(w, FJI_PARK_QUIET);
    while (!(quiet = fji_quiesce_now(p)) && fji_plat_now() < deadline) {
        quiesce_wake(p);
        fji_run_threadless(p, may_run);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        quiesce_pause(own ? &w->park : &p->run, &turn, retry < deadline ? retry : deadline);
    }
    if (own) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    if (w != NULL) fji_compensate_end(w, c);
    return quiet;
}

int fji_quiesce_await(fj_pool *p, int64_t deadline)
{
    fji_worker *w = fji_worker_self();

    if (deadline != FJ_FOREVER) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    if (w != NULL && w->pool == p) {
        quiesce_help(w);
        return FJ_OK;
    }
    fji_worker *g = w == NULL && p->caller_helps ? fji_guest_enter(p, true, NULL) : NULL;
    if (g == NULL) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    quiesce_help(g);
    fji_guest_leave(g);
    return FJ_OK;
}
