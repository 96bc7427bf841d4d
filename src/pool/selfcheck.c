/* SPDX-License-Identifier: MIT */
/*
 * selfcheck.c - see selfcheck.h
 *
 * Everything is read as the sleeping workers have left it: they have written it before they
 * changed ctl, or `alive`, which are read first. If a worker wakes meanwhile ctl is another one
 * afterwards, and nothing was learnt.
 *
 * Edges          from                         to                              carries
 *   ctl.idle     acq_rel CAS in idle_push()   acquire in fji_pool_check_at_rest()  the record
 *   pool.alive   release store of alive       acquire in selfcheck_worker()        the record
 */
#include "pool/selfcheck.h"

#if FJI_CHECKED

/* Nothing of the task it ran last is left. */
static const char *selfcheck_cleared(const fji_worker *w)
{
    /* relaxed: all of these were written before it went idle, or left. */
    if (fji_load_relaxed(&w->joining) != NULL) return "a worker at rest joins";
    if (fji_load_relaxed(&w->blocked) != FJI_BLOCKED_NO) return "a worker at rest is blocked";
    if (fji_load_relaxed(&w->wait_bucket) != NULL) return "a worker at rest naps"; /* relaxed */
    if (fji_load_relaxed(&w->scope) != w->scope_base) return "a scope was entered and not left";
    if (w->q.fast.top < w->q.cells) return "a worker at rest is in typed code";
    return NULL;
}

static const char *selfcheck_queue(const fji_worker *w, bool fifo)
{
    if (!fji_queue_valid(&w->q)) return "a queue is not valid";
    if (fji_queue_maybe(&w->q)) return "a queue is not empty";
    /* In FIFO order, and where others have emptied it, dead cells stay until there is no room. */
    if (!fifo && w->q.fast.top == w->q.cells && w->q.tombstones != 0) return "a tomb is left";
    return NULL;
}

static const char *selfcheck_worker(const fji_worker *w, bool fifo, int *count)
{
    /* [pool.alive] acquire <- release in worker_take_record(), worker_exit(). */
    uint32_t alive = fji_load_acquire(&w->alive);
    /* [idle.park] acquire <- whoever set it. */
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

/* The stack holds `idle` workers, each of them once: so it ends after that many steps, and what
 * is on it is alive and idle. Twice the same would be a ring. */
static const char *selfcheck_stack(fj_pool *p, uint64_t c, int idle)
{
    uint32_t at = fji_ctl_top(c);

    for (int n = 0; n < idle; n++) {
        if (at == 0) return "an idle worker is not on the stack";
        fji_worker *w = fji_pool_worker(p, at - 1);
        if (w == NULL) return "the stack leads to nobody";
        /* [pool.alive] acquire <- release in worker_take_record(). */
        if (fji_load_acquire(&w->alive) != FJI_ALIVE_WORKER) return "the stack holds one who left";
        at = fji_load_relaxed(&w->next_idle); /* relaxed: fixed while it is there */
    }
    return at != 0 ? "the stack holds more than there are" : NULL;
}

static const char *selfcheck_ctl(fj_pool *p, uint64_t c, int alive)
{
    fji_sizes s = fji_pool_sizes(p);

    if (fji_ctl_total(c) != alive) return "total is not the number of threads";
    if (s.blocked != 0) return "a worker counts as blocked";
    if (fji_ctl_deficit(c) + s.parallelism != 0) return "active is not 0";
    if (fji_ctl_normalize(c, &s) != c) return "call is not settled";
    return selfcheck_stack(p, c, alive);
}

static const char *selfcheck_submissions(fj_pool *p)
{
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *q = fji_load_acquire(&p->submissions[i]);
        if (q == NULL) continue;
        if (fji_submission_queue_maybe(q)) return "a submission queue is not empty";
        /* relaxed: nobody is there. */
        if (fji_load_relaxed(&q->lock.word) != 0) return "a submission queue is locked";
        if (fji_load_relaxed(&q->lock.waiters) != 0) return "somebody waits for its lock";
    }
    return NULL;
}

static const char *selfcheck_counts(fj_pool *p)
{
    /* The threads of the timers are guests: one that keeps the wheel, and a spare one. */
    uint32_t timers = fji_load_relaxed(&p->timers) != NULL ? 2 : 0; /* relaxed: nobody is there */

    /* relaxed: as above */
    if ((fji_load_relaxed(&p->nsearching) & ~FJI_WAKE_DEFERRED) != 0) return "somebody searches";
    if (fji_load_relaxed(&p->guests) > timers) return "a guest is counted"; /* relaxed: as above */
    if (fji_load_relaxed(&p->lock.word) != 0) return "the pool is locked";  /* relaxed: as above */
    /* relaxed: as above. */
    if (fji_load_relaxed(&p->lock.waiters) != 0) return "somebody waits for the lock of the pool";
    return NULL;
}

const char *fji_pool_check_at_rest(fj_pool *p)
{
    int alive = 0;
    const char *wrong = NULL;
    /* [ctl.idle] acquire <- the CAS in idle_push(): the records of idle workers. */
    uint64_t c = fji_load_acquire(&p->ctl);
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n && wrong == NULL; i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) wrong = selfcheck_worker(w, p->fifo, &alive);
    }
    if (wrong == NULL) wrong = selfcheck_ctl(p, c, alive);
    if (wrong == NULL) wrong = selfcheck_submissions(p);
    if (wrong == NULL) wrong = selfcheck_counts(p);
    /* [ctl.idle] acquire: all of the above was read before this. */
    if (wrong == NULL && fji_load_acquire(&p->ctl) != c) wrong = "the pool moves";
    return wrong;
}

#else

typedef int selfcheck_is_empty; /* a file has to have something in it */

#endif
