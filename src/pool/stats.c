/* SPDX-License-Identifier: MIT */
/*
 * stats.c - the public functions that report the state of a pool: figures, one line of text, a dump
 *
 * The functions read everything without a lock, so that they work for a pool that hangs. The
 * figures are read with relaxed loads: each figure was right at some moment during the call, but
 * not all figures at the same moment. If no thread changes the pool during the call, all figures
 * are right. The records of the common pool are read within a hold (sched/hold.h). If the common
 * pool stops, so that a hold is refused, all figures are 0 and its state is TERMINATED.
 */
#include <stdio.h>
#include <string.h>

#include "pool/common_pool.h"
#include "sched/hold.h"

/* Returns p, or the common pool if p is NULL. Creates the common pool if it does not exist. Returns
 * NULL if there is no memory for the common pool. */
static const fj_pool *stats_pool(const fj_pool *p)
{
    return p != NULL ? p : fj_common_pool();
}

/* Adds the figures of record w to *s. */
static void stats_worker(const fji_worker *w, fj_stats *s)
{
    uint32_t alive = fji_load_relaxed(&w->alive), park = fji_load_relaxed(&w->park);

    s->steals += fji_load_relaxed(&w->steals) - FJI_START_64;
    s->parks += fji_load_relaxed(&w->parks) - FJI_START_64;
    s->openings += fji_load_relaxed(&w->q.openings) - FJI_START_64;
    s->barriers += fji_load_relaxed(&w->q.barriers) - FJI_START_64;
    if (alive == FJI_ALIVE_NO || alive == FJI_ALIVE_ORPHANED) return;
    s->queued += fji_queue_count(&w->q);
    if (alive == FJI_ALIVE_GUEST) return;
    if (park == FJI_PARK_IDLE || park == FJI_PARK_PARKED)
        s->idle++;
    else if (fji_load_relaxed(&w->blocked) != 0)
        s->blocked++;
    else
        s->running++;
}

static enum fj_pool_state stats_state(uint32_t run)
{
    if ((run & FJI_RUN_TERMINATED) != 0) return FJ_POOL_STATE_TERMINATED;
    if ((run & FJI_RUN_STOP) != 0) return FJ_POOL_STATE_STOPPING;
    return (run & FJI_RUN_SHUTDOWN) != 0 ? FJ_POOL_STATE_SHUTDOWN : FJ_POOL_STATE_RUNNING;
}

/* Called within a hold (sched/hold.h): sets the figures of *s that come from the control word and
 * the parallelism. */
static void stats_read_ctl(const fj_pool *p, fj_stats *s)
{
    uint64_t c = fji_load_relaxed(&p->ctl);

    s->parallelism = fji_load_relaxed(&p->parallelism);
    s->threads = fji_ctl_total(c);
    s->active = fji_ctl_deficit(c) + s->parallelism;
    if (s->active < 0) s->active = 0;
}

/* Called within a hold (sched/hold.h): sets s->threads to the number of records of workers. */
static void stats_read_limit(const fj_pool *p, fj_stats *s)
{
    s->threads = (int)fji_load_relaxed(&p->workers);
}

/* Called within a hold (sched/hold.h): sets all figures of *s, which the caller has zeroed. */
static void stats_read_all(const fj_pool *p, fj_stats *s)
{
    uint32_t n = fji_load_relaxed(&p->workers);

    stats_read_ctl(p, s);
    s->state = (int)stats_state(fji_load_relaxed(&p->run));
    s->started = fji_load_relaxed(&p->started) - FJI_START_64;
    for (uint32_t i = 0; i < n; i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) stats_worker(w, s);
    }
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        const fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q != NULL) s->submitted += fji_submission_queue_count(q);
    }
}

typedef void stats_reader(const fj_pool *p, fj_stats *s);

/* Fills *s: calls `read` within a hold. If p is the common pool and stops, all figures are 0 and
 * the state is TERMINATED. */
static void stats_fill(const fj_pool *p, stats_reader *read, fj_stats *s)
{
    memset(s, 0, sizeof *s);
    s->state = FJ_POOL_STATE_TERMINATED;
    if (!fji_pool_hold(p)) return;
    read(p, s);
    fji_pool_drop_hold(p);
}

int fj_pool_stats(const fj_pool *pool, fj_stats *s)
{
    if (s == NULL) return FJ_EINVAL;
    const fj_pool *p = stats_pool(pool);
    if (p == NULL) return FJ_ENOMEM;
    stats_fill(p, stats_read_all, s);
    return FJ_OK;
}

/* Returns the figures of the pool, or of the common pool if `pool` is NULL. Only those that `read`
 * sets are valid. If there is no memory for the common pool, or if the common pool stops, all
 * figures are 0. */
static fj_stats stats_of(const fj_pool *pool, stats_reader *read)
{
    fj_stats s;
    const fj_pool *p = stats_pool(pool);

    memset(&s, 0, sizeof s);
    if (p != NULL) stats_fill(p, read, &s);
    return s;
}

int fj_pool_parallelism(const fj_pool *pool)
{
    return stats_of(pool, stats_read_ctl).parallelism;
}

int fj_pool_thread_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_ctl).threads;
}

int fj_pool_worker_limit(const fj_pool *pool)
{
    return stats_of(pool, stats_read_limit).threads;
}

int fj_pool_active_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_ctl).active;
}

int fj_pool_searching_count(const fj_pool *pool)
{
    const fj_pool *p = stats_pool(pool);

    /* Not by stats_of(), which takes longer: fj_for() and the other loops of the algorithms call this
     * function for each chunk. */
    if (p == NULL || !fji_pool_hold(p)) return 0;
    uint32_t n = fji_load_relaxed(&p->nsearching) & ~FJI_WAKE_DEFERRED; /* relaxed: an estimate */
    fji_pool_drop_hold(p);
    return (int)n;
}

int fj_pool_running_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_all).running;
}

int fj_pool_is_fifo(const fj_pool *pool)
{
    const fj_pool *p = stats_pool(pool);

    if (p == NULL || !fji_pool_hold(p)) return 0;
    bool fifo = p->fifo;
    fji_pool_drop_hold(p);
    return fifo;
}

uint64_t fj_pool_steal_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_all).steals;
}

uint64_t fj_pool_queued_task_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_all).queued;
}

uint64_t fj_pool_queued_submission_count(const fj_pool *pool)
{
    return stats_of(pool, stats_read_all).submitted;
}

int fj_pool_has_queued_submissions(const fj_pool *pool)
{
    fj_stats s = stats_of(pool, stats_read_all);
    return s.state < FJ_POOL_STATE_STOPPING && s.submitted != 0;
}

int fj_pool_describe(const fj_pool *pool, char *buf, size_t cap)
{
    static const char *const state[] = {"running", "shut down", "stopping", "terminated"};

    if (buf == NULL && cap != 0) return 0;
    const fj_pool *p = stats_pool(pool);
    fj_stats s = stats_of(pool, stats_read_all);
    char name[sizeof p->name] = "none";

    if (p != NULL && fji_pool_hold(p)) {
        memcpy(name, p->name, sizeof name);
        fji_pool_drop_hold(p);
    }
    return snprintf(buf, cap,
                    "%s: %s, parallelism %d, threads %d, active %d, running %d, blocked %d, "
                    "idle %d, steals %llu, tasks %llu, submissions %llu",
                    name, state[s.state], s.parallelism, s.threads, s.active, s.running, s.blocked,
                    s.idle, (unsigned long long)s.steals, (unsigned long long)s.queued,
                    (unsigned long long)s.submitted);
}

static void dump_worker(const fji_worker *w, void (*line)(const char *, void *), void *arg)
{
    static const char *const alive[] = {"free", "worker", "guest", "orphaned"};
    static const char *const park[] = {"active", "idle", "parked", "quiet"};
    static const char *const state[] = {"closed", "open", "locked", "?"};
    uint64_t b = fji_load_relaxed(&w->q.base);
    const fj_cell *joining = fji_load_relaxed(&w->joining);
    char text[256];

    (void)snprintf(
        text, sizeof text,
        "  %s %u: %s%s%s, queue %s index %u epoch %llu tasks %u, joining %lld "
        "(thief %d), steals %llu",
        alive[fji_load_relaxed(&w->alive) & 3], w->index, park[fji_load_relaxed(&w->park) & 3],
        fji_load_relaxed(&w->blocked) ? ", blocked" : "",
        fji_load_relaxed(&w->call) > FJI_CALL_GONE ? ", called" : "", state[fji_base_state(b)],
        fji_base_index(b), (unsigned long long)fji_base_epoch(b), fji_queue_count(&w->q),
        joining != NULL ? (long long)(joining - w->q.first) : -1,
        joining != NULL ? (int)(fji_load_relaxed(&joining->state) & FJI_THIEF_MASK) - 1 : -1,
        (unsigned long long)(fji_load_relaxed(&w->steals) - FJI_START_64));
    line(text, arg);
}

static void dump_pool(const fj_pool *p, void (*line)(const char *text, void *arg), void *arg)
{
    char text[320];

    fj_pool_describe(p, text, sizeof text);
    line(text, arg);
    uint64_t c = fji_load_relaxed(&p->ctl);
    (void)snprintf(
        text, sizeof text, "  ctl: deficit %d total %d version %u top %d, run %u, guests %u",
        fji_ctl_deficit(c), fji_ctl_total(c), fji_ctl_version(c), (int)fji_ctl_top(c) - 1,
        fji_load_relaxed(&p->run), fji_load_relaxed(&p->guests));
    line(text, arg);
    for (uint32_t i = 0; i < fji_load_relaxed(&p->workers); i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) dump_worker(w, line, arg);
    }
    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        const fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q == NULL) continue;
        (void)snprintf(text, sizeof text, "  submissions %u: index %u, waiting %u, lock %u", i,
                       fji_base_index(fji_load_relaxed(&q->base)), fji_submission_queue_count(q),
                       fji_load_relaxed(&q->lock.word));
        line(text, arg);
    }
}

void fj_pool_dump(const fj_pool *pool, void (*line)(const char *text, void *arg), void *arg)
{
    const fj_pool *p = line != NULL ? stats_pool(pool) : NULL;

    if (p == NULL || !fji_pool_hold(p)) return;
    dump_pool(p, line, arg);
    fji_pool_drop_hold(p);
}
