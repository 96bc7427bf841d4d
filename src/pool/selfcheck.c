/* SPDX-License-Identifier: MIT */
/*
 * selfcheck.c - checks of a pool that has nothing to do; see selfcheck.h
 *
 * The check reads ctl before all records, and `alive` of a record before its other members. An idle
 * worker wrote its record before it changed ctl, and an exited worker before it changed `alive`. So
 * the check sees the record as the worker left it. The check reads ctl again at the end. If ctl has
 * changed, a worker was active during the check, and the check fails.
 *
 * Edges          from                         to                                     carries
 *   ctl.idle     acq_rel CAS in idle_push()   acquire in fji_pool_check_at_rest()    the record
 *   pool.alive   release store of alive       acquire in selfcheck_worker()          the record
 */
#include "pool/selfcheck.h"

#if FJI_CHECKED

/* Checks that the last task of w has left nothing in w's record. Returns NULL or the text of the
 * first violation, as all functions of this file do. */
static const char *selfcheck_cleared(const fji_worker *w)
{
    /* relaxed: w wrote all these members before it became idle or exited. */
    if (fji_load_relaxed(&w->joining) != NULL) return "a worker at rest waits in a join";
    if (fji_load_relaxed(&w->blocked) != FJI_BLOCKED_NO) return "a worker at rest is blocked";
    if (fji_load_relaxed(&w->wait_bucket) != NULL)
        return "a worker at rest is in an interruptible wait";
    if (fji_load_relaxed(&w->scope) != w->scope_base) return "a scope was entered and not left";
    if (fji_queue_in_typed(&w->q)) return "a worker at rest is in typed code";
    return NULL;
}

/* Checks the queue of w. */
static const char *selfcheck_queue(const fji_worker *w, bool fifo)
{
    if (!fji_queue_valid(&w->q)) return "a queue is not valid";
    if (fji_queue_maybe(&w->q)) return "a queue is not empty";
    /* Tombstones are checked only if the boundary is cell 0. In a FIFO queue, and in a queue that
     * thieves have emptied, the cells of taken tasks stay in use until the queue is full. */
    if (!fifo && w->q.fast.top == w->q.cells && w->q.tombstones != 0) return "a tombstone is left";
    return NULL;
}

/* Checks the record w. Adds 1 to *count if the record belongs to a worker. `fifo`: the pool is
 * FIFO. */
static const char *selfcheck_worker(const fji_worker *w, bool fifo, int *count)
{
    /* [pool.alive] acquire <- release in fji_record_take(), fji_record_give_back(): the record. */
    uint32_t alive = fji_load_acquire(&w->alive);
    /* [idle.park] acquire <- release or acq_rel of the thread that set the park word: the
     * record. */
    uint32_t park = fji_load_acquire(&w->park);

    if (alive == FJI_ALIVE_GUEST) return "a guest is inside";
    if (alive == FJI_ALIVE_WORKER) {
        ++*count;
        if (park != FJI_PARK_IDLE && park != FJI_PARK_PARKED) return "a worker is not idle";
    }
    if (alive == FJI_ALIVE_ORPHANED) return NULL;
    const char *wrong = selfcheck_cleared(w);
    return wrong != NULL ? wrong : selfcheck_queue(w, fifo);
}

/* Checks that the idle stack of control word c holds `idle` workers, each of them once. If a worker
 * was on the stack twice, the stack would be a cycle and not end after `idle` steps. */
static const char *selfcheck_stack(fj_pool *p, uint64_t c, int idle)
{
    uint32_t at = fji_ctl_top(c);

    for (int n = 0; n < idle; n++) {
        if (at == 0) return "an idle worker is not on the stack";
        fji_worker *w = fji_pool_worker(p, at - 1);
        if (w == NULL) return "the stack leads to no worker";
        /* [pool.alive] acquire <- release in fji_record_take(): the record. */
        if (fji_load_acquire(&w->alive) != FJI_ALIVE_WORKER)
            return "the stack holds a worker that has ended";
        at = fji_load_relaxed(&w->next_idle); /* relaxed: constant while w is on the idle stack */
    }
    return at != 0 ? "the stack holds more workers than are idle" : NULL;
}

/* Checks the control word c. alive: the number of records that belong to a worker. */
static const char *selfcheck_ctl(fj_pool *p, uint64_t c, int alive)
{
    fji_sizes s = fji_pool_sizes(p);

    if (fji_ctl_total(c) != alive) return "total is not the number of threads";
    if (s.blocked != 0) return "a worker counts as blocked";
    if (fji_ctl_deficit(c) + s.parallelism != 0) return "active is not 0";
    if (fji_ctl_normalize(c, &s) != c) return "wake_wanted is not normalized";
    return selfcheck_stack(p, c, alive);
}

/* Checks that the submission queues are empty and not locked. */
static const char *selfcheck_submissions(fj_pool *p)
{
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        if (fji_submission_queue_maybe(q)) return "a submission queue is not empty";
        /* relaxed: no thread uses the queue during the check. */
        if (fji_load_relaxed(&q->lock.word) != 0) return "a submission queue is locked";
        if (fji_load_relaxed(&q->lock.waiters) != 0)
            return "a thread waits for the lock of a submission queue";
    }
    return NULL;
}

/* Checks the searching slots, the guests and the lock of the pool. */
static const char *selfcheck_counts(fj_pool *p)
{
    /* A pool at rest has at most two timer threads, the keeper and the spare thread. Each counts as
     * a guest.
     * relaxed: no thread changes p->timers or the members below during the check. */
    uint32_t timers = fji_load_relaxed(&p->timers) != NULL ? 2 : 0;

    /* relaxed: as above */
    if ((fji_load_relaxed(&p->nsearching) & ~FJI_WAKE_DEFERRED) != 0) return "a worker searches";
    if (fji_load_relaxed(&p->guests) > timers) return "a guest is counted"; /* relaxed: as above */
    if (fji_load_relaxed(&p->lock.word) != 0) return "the pool is locked";  /* relaxed: as above */
    /* relaxed: as above. */
    if (fji_load_relaxed(&p->lock.waiters) != 0) return "a thread waits for the lock of the pool";
    return NULL;
}

const char *fji_pool_check_at_rest(fj_pool *p)
{
    int alive = 0;
    const char *wrong = NULL;
    /* [ctl.idle] acquire <- the CAS in idle_push(): the records of the idle workers. */
    uint64_t c = fji_load_acquire(&p->ctl);
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n && wrong == NULL; i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) wrong = selfcheck_worker(w, p->fifo, &alive);
    }
    if (wrong == NULL) wrong = selfcheck_ctl(p, c, alive);
    if (wrong == NULL) wrong = selfcheck_submissions(p);
    if (wrong == NULL) wrong = selfcheck_counts(p);
    /* [ctl.idle] acquire <- the CAS in idle_push(). If this load returns c, no worker has changed
     * ctl since the first load. */
    if (wrong == NULL && fji_load_acquire(&p->ctl) != c) wrong = "the pool has changed meanwhile";
    return wrong;
}

#else

typedef int selfcheck_is_empty; /* C does not allow an empty translation unit */

#endif
