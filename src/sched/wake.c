/* SPDX-License-Identifier: MIT */
/*
 * wake.c - waking one idle worker, or starting a thread; see wake.h
 */

#include "sched/wake.h"

#include "sched/hold.h"
#include "sched/quiescent.h"
#include "sched/search.h"
#include "sched/spawn.h"

/* ---- Waking ---------------------------------------------------------------------------------- */

/* Whether the calling thread has woken a sleeping thread or started one since its last call of
 * fji_wake_made(). */
static __thread bool wake_made;

bool fji_wake_made(void)
{
    bool made = wake_made;

    wake_made = false;
    return made;
}

/* Makes w active. The caller has popped w from the idle stack. */
static void worker_unpark(fji_worker *w)
{
    /* [idle.park] acq_rel -> acquire in idle_sleep() and fji_idle_fence(): what the waking thread wrote
     * before, for example w->searching. */
    if (fji_swap_acq_rel(&w->park, FJI_PARK_ACTIVE) != FJI_PARK_PARKED) return;
    fji_plat_wake_one(&w->park);
    wake_made = true;
}

/* Pops the worker on top of the idle stack, stores it in *out and adds `active` to the number of
 * active workers. Returns false, without a change of the pool, if the control word is not *c any
 * more; *c becomes the new value, and *out has no meaning. */
static bool wake_pop(fj_pool *p, uint64_t *c, int active, fji_worker **out)
{
    fji_worker *w = fji_pool_worker(p, fji_ctl_top(*c) - 1);
    if (w == NULL) __builtin_unreachable(); /* every worker on the stack has a record */
    /* relaxed: next_idle does not change while w is on the stack. If w is not on the stack any
     * more, the CAS below fails. */
    uint32_t next = fji_load_relaxed(&w->next_idle);
    uint64_t n = fji_ctl_add_active(fji_ctl_with_top(*c, next), active);

    *out = w;
    /* [ctl.idle] acq_rel <- acq_rel in idle_push(): next_idle and park of the popped worker. */
    return fji_ctl_cas(p, c, n);
}

/*
 * Wakes or starts one worker if fewer are active than the parallelism, or leaves the wake-up to the
 * searching workers. *slot: on entry, whether the caller has a searching slot; on return, whether
 * the caller has one now. If the caller has none, the pool is large and a worker is idle, one is
 * taken here; if enough slots are in use, the wake-up is left to the workers that hold them. A
 * worker that is woken gets the slot of the caller. A thread that is started gets none.
 */
static void wake_try(fj_pool *p, bool *slot)
{
    uint64_t c = fji_pool_ctl(p);
    fji_worker *w;

    for (uint32_t failures = 0; fji_ctl_deficit(c) < 0; fji_ctl_backoff(p, &c, &failures)) {
        if (fji_ctl_top(c) != 0) {
            if (!*slot && fji_pool_is_large(p) && !(*slot = fji_search_slot_take(p, c))) return;
            if (!wake_pop(p, &c, 1, &w)) continue;
            fji_store_relaxed(&p->shrinking, 0u); /* relaxed: a hint */
            w->searching = *slot;
            *slot = false;
            worker_unpark(w);
            return;
        }
        if (!fji_spawn_allowed(p, c)) return;
        bool started;
        if (!fji_spawn(p, &c, &started)) continue;
        wake_made |= started;
        if (started) return;
        failures = 0;
        /* The control word counted the refused thread for a while. If the pool is shut down, this
         * may have kept another thread from stopping the pool. The calling thread cannot test
         * whether the pool is quiescent, because the test takes the locks of the submission queues,
         * and this thread may hold one. So it wakes an idle worker, which makes the test when it
         * becomes idle again. */
        c = fji_pool_ctl(p);
        if (fji_ctl_top(c) == 0) return;
    }
}

/* As wake_try(). `slot`: whether the caller has a searching slot. On return the caller has none:
 * the slot was handed to the woken worker, or given back. If a producer has left its wake-up to the
 * slot that is given back, calls wake_try() once more. */
static void wake_with_slot(fj_pool *p, bool slot)
{
    for (;;) {
        wake_try(p, &slot);
        if (!slot || !fji_search_slot_return(p)) return;
        slot = false;
        /* [idle.defer] nsearching above, ctl below; partner: the fence in fji_search_slot_take().
         * Either the producer there sees that this slot is not in use any more, or this thread sees
         * the idle worker that the producer saw, even if wake_try() did not see it above. */
        fji_fence_full();
    }
}

void fji_wake_one(fj_pool *p)
{
    wake_with_slot(p, false);
}

/* Called by w after it has pushed a task into its own queue: returns whether w calls
 * fji_wake_one(). This is true unless the last start of a thread was refused and no worker is idle.
 * In that case it is true in the first, second, fourth, eighth ... call in a row, and in every call
 * whose number is a multiple of FJI_SPAWN_RETRY_EVERY. A start is expensive, and w runs the task
 * itself if no thief takes it. A thread that pushes into a submission queue does not call this
 * function; it calls fji_wake_one() for each task that is not lazy. */
static bool fork_may_wake(fji_worker *w)
{
    const fj_pool *p = w->pool;

    /* relaxed: hints; an old value only makes one attempt more or less. */
    if (fji_load_relaxed(&p->spawn_refused) == 0 || fji_ctl_top(fji_pool_ctl_hint(p)) != 0) {
        w->forks_since_spawn_try = 0;
        return true;
    }
    uint32_t n = ++w->forks_since_spawn_try;
    return (n & (n - 1)) == 0 || n % FJI_SPAWN_RETRY_EVERY == 0;
}

/* Called by a worker or guest after it has pushed a task into its own queue and executed the light
 * fence. fast: fji_self of the calling thread; does nothing if this is &fji_outsider. If a worker
 * is wanted, wakes an idle worker, or starts a thread if no worker is idle. While the system
 * refuses threads and no worker is idle, only some calls try to start a thread (fork_may_wake()).
 * The fast path of a fork calls this function only if it sees the wake-up bit, but in a pool
 * without the heavy fence it always calls it. */
void fji_wake_slow(fj_worker *fast)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return;
    /* [idle.dekker] the task above, ctl below; partner: the full fence in fji_idle_fence(). Either this
     * thread sees that a worker is idle, or the rescan of that worker sees the task. In a pool with
     * the heavy fence, the light fence of the caller is sufficient. */
    if (!w->pool->asymmetric) fji_fence_full();
    if (!fork_may_wake(w)) return;
    fji_wake_one(w->pool);
}

void fji_wake_after_find(fji_worker *w, bool more)
{
    fj_pool *p = w->pool;
    bool slot = w->searching, owed = w->rescan_owed && fji_pool_has_work(p);

    if (w->awaiting_first_task && !more) more = fji_pool_has_work(p);
    w->searching = w->rescan_owed = w->awaiting_first_task = false;
    /* If w has seen more tasks, it keeps its searching slot and hands it to the worker that it wakes.
     * Otherwise w gives the slot back, unless a producer has left its wake-up to this slot alone. */
    if (slot && !more) {
        slot = !fji_search_slot_return_unless_last(p);
        more = slot;
    }
    if (more) wake_with_slot(p, slot);
    if (owed) wake_with_slot(p, false); /* a second wake-up: "Each rescan counts" in idle.h */
}

bool fji_wake_idle(fj_pool *p)
{
    uint64_t c = fji_pool_ctl(p);
    fji_worker *w;

    while (fji_ctl_top(c) != 0) {
        if (!wake_pop(p, &c, 1, &w)) continue;
        worker_unpark(w);
        return true;
    }
    return false;
}

void fji_wake_all_idle(fj_pool *p)
{
    while (fji_wake_idle(p)) {}
}

void fji_wake_for_lazy(fj_pool *p)
{
    /* relaxed: if this reads 0, another thread makes the wake-up for all tasks queued before, or
     * there is no such task. */
    if (fji_load_relaxed(&p->lazy) == 0 || !fji_pool_hold(p)) return;
    /* [submit.lazy] acq_rel <- release in fji_pool_note_lazy(): the task that was queued. */
    if (fji_swap_acq_rel(&p->lazy, 0u) != 0) {
        /* [idle.dekker] the task above, ctl below; partner: the heavy fence in idle_lead(), or in a
         * pool without the heavy fence the full fence in fji_idle_fence(). Either this thread sees that
         * a worker is idle, or the rescan of that worker sees the task. */
        fji_fence_full();
        fji_wake_one(p);
    }
    fji_pool_drop_hold(p);
}
