/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - starting threads, and what happens if a start is refused; see spawn.h
 */

#include "sched/spawn.h"

#include "sched/quiescent.h"

bool fji_spawn_allowed(const fj_pool *p, uint64_t c)
{
    /* relaxed: hints; an old value only makes one start more or less. */
    if (fji_load_relaxed(&p->failed_starts) >= FJI_FAILED_STARTS &&
        fji_plat_now() < fji_load_relaxed(&p->failed_retry_ns)) /* relaxed: a hint */
        return false;
    fji_sizes sizes = fji_pool_sizes(p);
    return fji_ctl_may_spawn(c, &sizes);
}

/* Called after an attempt to start a thread; `started` is whether it succeeded. Records how many
 * starts in a row were refused, and when the first of these was refused. */
static void spawn_note(fj_pool *p, bool started)
{
    /* relaxed, as the other accesses here: hints for the threads that try again. */
    uint32_t refused = fji_load_relaxed(&p->spawn_refused);

    if (started && refused != 0) fji_store_relaxed(&p->spawn_refused, 0u); /* relaxed: a hint */
    if (started) return;
    if (refused == 0) fji_store_relaxed(&p->spawn_refused_ns, fji_plat_now()); /* relaxed: a hint */
    fji_add_relaxed(&p->spawn_refused, 1);                                     /* relaxed: a hint */
}

/* Reads the control word into *c, and into *under_way the number of starts under way, which *c may
 * count as active workers. Returns false if a start has begun or ended meanwhile. */
static bool spawn_read(const fj_pool *p, uint64_t *c, int *under_way)
{
    /* [compensate.starts] acquire <- acq_rel in fji_spawn(): the changes of ctl by the starts that
     * ended before. */
    uint32_t before = fji_load_acquire(&p->starts);
    *c = fji_pool_ctl(p);
    /* [compensate.starts] acquire <- acq_rel in fji_spawn(): read after ctl, so that it shows every
     * start that *c counts. */
    uint32_t after = fji_load_acquire(&p->starts);

    *under_way = (int)(after & FJI_STARTS_UNDER_WAY);
    return after == before;
}

bool fji_spawn_is_short(fj_pool *p)
{
    uint64_t c;
    int under_way;
    bool same = spawn_read(p, &c, &under_way);

    return (!same || under_way != 0 || (c & FJI_CTL_WAKE_WANTED) != 0) && fji_pool_has_work(p);
}

bool fji_spawn_is_stuck(fj_pool *p)
{
    int target = fji_pool_parallelism(p); /* relaxed: only the value is used */
    uint64_t c;
    int under_way;
    bool same = spawn_read(p, &c, &under_way);

    return (!same || fji_ctl_deficit(c) + target - under_way <= 0) && fji_spawn_is_short(p);
}

bool fji_spawn(fj_pool *p, uint64_t *c, bool *started)
{
    uint32_t ended = (uint32_t)-1; /* added to `starts`: one start less under way */
    uint32_t generation = fji_fork_generation;

    /* [compensate.starts] acq_rel -> acquire in spawn_read(). This add comes before the change of
     * ctl: a thread that reads ctl with the new worker, and then `starts`, sees this start. */
    fji_add_acq_rel(&p->starts, 1);
    /* [ctl.idle] acq_rel -> acquire in fji_pool_ctl(): the add to `starts` above. */
    bool counted = fji_ctl_cas(p, c, fji_ctl_add_total(fji_ctl_add_active(*c, 1), 1));
    *started = counted && p->hooks->start_worker(p);
    /* In the child process of a callback that has called fork(): the start does not count there. */
    if (generation != fji_fork_generation) return true;
    if (counted) spawn_note(p, *started);
    if (counted && !*started) {
        fji_ctl_add(p, -1, -1); /* the thread that was not started does not count any more */
        ended += FJI_STARTS_REFUSED;
    }
    /* [compensate.starts] acq_rel -> acquire in spawn_read(): ctl, which after a refused start
     * shows again that a worker is missing. */
    fji_add_acq_rel(&p->starts, ended);
    if (counted && !*started) {
        if (fji_spawn_is_stuck(p)) p->hooks->watch(p);
        if (fji_pool_stopping(p)) p->hooks->try_terminate(p, false);
    }
    return counted;
}

void fji_spawn_failed(fj_pool *p)
{
    /* relaxed: both are hints for fji_spawn_allowed(). */
    fji_store_relaxed(&p->failed_retry_ns, fji_plat_now() + FJI_FAILED_WAIT_NS);
    fji_add_relaxed(&p->failed_starts, 1); /* relaxed: a hint */
}
