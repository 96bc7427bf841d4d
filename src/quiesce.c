/* SPDX-License-Identifier: MIT */
/*
 * quiesce.c - whether a pool has nothing to do, and waiting for that
 *
 * Quiet means that at one moment every thread counted in ctl was idle, every guest was
 * quiet or gone, and every queue was empty. One sweep over the records shows it, if ctl and
 * `moves` are the same after as before:
 *
 *   - a worker that goes idle changes ctl (version), and so does whoever takes one off the
 *     stack; so with ctl unchanged nobody ran anything in between, and the queue of an idle
 *     worker does not change. But one that was taken off before the sweep may be told only
 *     during it: it still looks idle, then takes a task from a queue that is then found empty.
 *     So the park words are looked at once more after the queues: whoever took a task by
 *     then is active, and can be seen to be, or has gone idle again and changed ctl;
 *   - a guest that comes or goes, a worker in fj_help_quiesce() that turns from quiet to active
 *     or back, and a guest that sleeps because it has joined a task and has none itself, changes
 *     `moves`. Such a guest has to count as quiet: the task that it has joined may itself wait for
 *     the pool to be quiescent;
 *   - a thread that is being started is counted in ctl and not yet found idle;
 *   - submissions can only be added meanwhile: what was empty when looked at was empty at the
 *     start too, and then that is the moment.
 *
 * At the end of a pool nothing may be added any more: the sweep then takes the lock of
 * every submission queue, under which submitters look whether the pool still takes work.
 *
 * Edges          from                         to                          carries
 *   pool.alive   release store of alive       acquire in fji_pool_quiescent()  park, the queue
 *   pool.activity   acq_rel add                  acquire in fji_pool_quiescent()  a guest's coming
 *   idle.rescan   release in fji_idle_wait()   acquire in quiesce_worker()  its rescan's signal
 *   ctl.idle     acq_rel CAS in idle_push()   acquire in fji_pool_quiescent()  an empty queue
 */
#include "pool.h"

/* Whether record w does nothing; *idle counts it if it is a worker. One that is quiet goes on
 * with its task afterwards, so it keeps a pool from ending. */
static bool quiesce_worker(fji_worker *w, bool ending, int *idle)
{
    /* [pool.alive] acquire <- release in worker_take_record(). */
    uint32_t alive = fji_load_acquire(&w->alive);

    if (alive != FJI_ALIVE_WORKER && alive != FJI_ALIVE_GUEST) return true;
    /* [idle.park] acquire <- whoever set it; moves and ctl are compared afterwards. */
    uint32_t park = fji_load_acquire(&w->park);
    if (alive == FJI_ALIVE_WORKER) ++*idle;
    if (park == FJI_PARK_ACTIVE || (ending && park == FJI_PARK_QUIET)) return false;
    /* [idle.rescan] acquire <- release in fji_idle_wait(): whom it has woken. */
    return fji_load_acquire(&w->rescanning) == 0;
}

/* A lock of the common pool that is held is not waited for: a submission is on its way, and its
 * callbacks may wait for the lock under which the end of the common pool is looked for. */
static bool quiesce_lock(const fj_pool *p, fji_submission_queue *q)
{
    if (p->is_common) return fji_lock_try(&q->lock);
    fji_lock_take(&q->lock);
    return true;
}

static bool quiesce_submissions(fj_pool *p, bool ending)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        if (q == NULL) continue;
        if (ending && !quiesce_lock(p, q)) return false;
        bool more = fji_submission_queue_maybe(q);
        if (ending) fji_lock_drop(&q->lock);
        if (more) return false;
    }
    return true;
}

/* Whether all who are counted in ctl, and all guests, do nothing; `queues`: nor have anything. */
static bool quiesce_workers(fj_pool *p, uint64_t ctl, bool ending, bool queues)
{
    int idle = 0;
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL) continue;
        if (!quiesce_worker(w, ending, &idle) || (queues && fji_queue_maybe(&w->q))) return false;
    }
    return idle == fji_ctl_total(ctl);
}

static bool quiesce_sweep(fj_pool *p, uint64_t ctl, bool ending)
{
    return quiesce_workers(p, ctl, ending, true) && quiesce_submissions(p, ending) &&
           quiesce_workers(p, ctl, ending, false);
}

bool fji_pool_quiescent(fj_pool *p, bool ending)
{
    /* What fires meanwhile is in a queue before it is no longer counted here. */
    if (ending && fji_timers_wait(p)) return false;
    for (;;) {
        /* [ctl.idle] acquire <- the CAS in idle_push(): the queues of idle workers. */
        uint64_t ctl = fji_load_acquire(&p->ctl);
        /* [pool.activity] acquire <- acq_rel in fji_guest_enter() and fji_quiesce_turn(). */
        uint64_t activity = fji_load_acquire(&p->activity_epoch);
        if (!quiesce_sweep(p, ctl, ending)) return false;
        /* [pool.activity] the sweep above, the second look below; partner: the acq_rel adds. */
        fji_fence_full();
        /* relaxed: the fence orders them. */
        if (fji_load_relaxed(&p->ctl) == ctl && fji_load_relaxed(&p->activity_epoch) == activity)
            return true;
    }
}

int fj_pool_is_quiescent(fj_pool *pool)
{
    fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    if (p == NULL || fji_pool_stopping(p) || !fji_pool_hold(p)) return 1;
    bool quiet = fji_pool_quiescent(p, false);
    fji_pool_drop_hold(p);
    return quiet;
}

/* ---- Waiting for it ------------------------------------------------------------------------------- */

/* Not only w: what this thread was before it became a guest of the same pool again goes on only
 * when w has got what it waits for. */
void fji_quiesce_turn(fji_worker *w, uint32_t park)
{
    fj_pool *p = w->pool;

    for (; w != NULL; w = fji_worker_outer(w))
        if (w->pool == p) /* [idle.park] release -> acquire in quiesce_worker() */
            fji_store_release(&w->park, park);
    /* [pool.activity] acq_rel <-> acquire in fji_pool_quiescent(). */
    fji_add_acq_rel(&p->activity_epoch, 1);
}

/* A task from anywhere, the own queue as a thief would: its joiner must find it done. */
static fji_steal_result quiesce_find(fji_worker *w, fji_taken *taken)
{
    fji_steal_result got = fji_queue_steal(&w->q, taken);
    return got == FJI_STEAL_EMPTY ? fji_worker_scan(w, taken) : got;
}

/* Sleeps a little, longer each time, at most until the deadline. */
static void quiesce_pause(uint32_t *word, int *turn, int64_t deadline)
{
    int64_t nap = *turn < 10 ? 20000 : *turn < 50 ? 100000 : 1000000;
    int64_t until = fji_plat_now() + nap;

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
            fji_worker_run(w, &taken);
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
static void quiesce_signal(fj_pool *p)
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
    int token = w != NULL ? fji_compensate_begin(w) : 0, turn = 0;
    int64_t pause = 0;

    if (!may_run) fji_pool_needs_worker(p);
    if (own) fji_quiesce_turn(w, FJI_PARK_QUIET);
    while (!(quiet = (fj_pool_is_quiescent(p) != 0)) && fji_plat_now() < deadline) {
        quiesce_signal(p);
        fji_run_threadless(p, may_run);
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        quiesce_pause(own ? &w->park : &p->run, &turn, retry < deadline ? retry : deadline);
    }
    if (own) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    if (w != NULL) fji_compensate_end(w, token);
    return quiet;
}

int fj_pool_await_quiescence(fj_pool *pool, int64_t timeout_ns)
{
    fj_pool *p = fji_pool_or_common(pool);
    fji_worker *w = fji_worker_self();
    int64_t deadline = fji_deadline(timeout_ns);

    if (p == NULL) return FJ_OK;
    if (deadline != FJ_FOREVER) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    if (w != NULL && w->pool == p) {
        quiesce_help(w);
        return FJ_OK;
    }
    fji_worker *g = w == NULL && p->caller_helps ? fji_guest_enter(p, true) : NULL;
    if (g == NULL) return quiesce_watch(p, deadline) ? FJ_OK : FJ_ETIMEDOUT;
    quiesce_help(g);
    fji_guest_leave(g);
    return FJ_OK;
}

void fj_help_quiesce(void)
{
    fji_worker *w = fji_worker_self();

    (void)!fj_pool_await_quiescence(w != NULL ? w->pool : NULL, FJ_FOREVER);
}
