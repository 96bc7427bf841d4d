/* SPDX-License-Identifier: MIT */
/*
 * idle.c - going idle, being woken, leaving for lack of work
 *
 * The handshake between a producer and a worker about to sleep:
 *
 *     producer                            worker
 *     1 cell = task                       1 park = IDLE; CAS ctl: push self, active-1
 *     2 light fence (or a lock's RMW)     2 heavy fence
 *     3 ctl < 0: signal                   3 rescan all queues; a task: signal
 *                                         4 park: IDLE -> PARKED, sleep while it is
 *
 * Either the producer's 3 sees the worker's 1, or the worker's 3 sees the producer's 1: the
 * heavy fence falls before or after the producer's light one. A queue that cannot be judged
 * (LOCKED, or base moving) counts as a task.
 *
 * The heavy fence interrupts every core that runs a thread of the process, so one serves all who
 * have gone idle before it began, and while others run the next begins only after a while:
 *
 *     goes idle: push; full fence; n = begun; until done > n:
 *                    made active: goes on
 *                    it is time, and the CAS on `next` gives it to this worker: begun+1,
 *                    heavy fence, done = that number
 *
 * A worker that waits for it is on the stack, and is woken without a system call.
 *
 * signal: one CAS takes the top of the idle stack or reserves a new thread, so one signal
 * wakes one worker, whoever that is: a worker that finds a task in its rescan signals like
 * everybody else and then waits for its own park word. Whoever takes a task and sees more
 * in the same queue signals again; no signal is dropped because its task seems gone. So of
 * those who go idle after tasks were queued that had no signal, each signals once, and as many
 * are woken as went idle or as there are tasks. One that is woken before its rescan owes that
 * signal: it looks at all queues after it has found a task, and at the latest in the rescan
 * when it goes idle again.
 *
 * permits: in a large pool the signals of all who push at once would meet in the control word,
 * and a thread outside would do little but wake. So whoever is woken, or has found nothing and
 * searches on, has a permit, and `search` counts them. A signal that would wake needs one and
 * hands it to the worker that it wakes. If enough are out it wakes nobody and leaves WAIVED:
 *
 *     signal, having seen one idle        worker with a permit
 *     1 full fence                        found:  WAIVED: wakes the next one, with its permit
 *     2 CAS search: enough: WAIVED                else: search-1
 *       (or it is there already)          idle:   search-1; push and fences as above;
 *       else +1: wake                             WAIVED: clear it, full fence;
 *                                                 rescan; a task: WAIVED as it was, signal
 *
 * All of it is in one word, so "a permit is out" and WAIVED are seen in one moment.
 *   P1  search == permits that are out; each is of one worker that is awake and will scan all
 *       queues, or of one signal under way. It is given back before a task or a hook runs.
 *   P2  A task that is queued while somebody is idle and wanted has a signal of its own, or WAIVED
 *       is set and a permit is out, or somebody is between clearing WAIVED and the end of a
 *       rescan that sees the task.
 * P2 holds since a permit that is given back with WAIVED set passes the duty on:
 *   - found: the next one is woken, with the same permit. If nobody can be, the permit goes and
 *     ctl is looked at once more, for a signal that has seen somebody idle after the first look;
 *   - idle: the rescan sees the task, by the fence in 1 against the one after the push; and so
 *     does the look that is owed by one that is woken before.
 * and since WAIVED is cleared only before a rescan that sees every task waived before (1 against
 * the fence after clearing). If that finds any it is set again: so while tasks are left, whoever
 * finds one wakes the next, until one has found nothing. A thread that is started has no permit,
 * since a hook runs first; but whoever started it may have had one, and left the rest to it: so
 * with its first task, unless it signals anyway, it looks at all queues, and signals.
 *
 * looks: a signal of a rescan may come late, when others have done what was seen. So a worker
 * counts as quiet only after it: a pool that was quiet stays so until it is given work.
 *
 * park: ACTIVE -> IDLE by the worker, -> PARKED by the worker, -> ACTIVE by whoever has
 * popped it from the stack, who calls the system only if it was PARKED.
 *
 * trim: the worker on top of the stack sleeps with a limit if the pool has nothing to do or
 * too many threads. If it is still on top at the end of it, one CAS takes it off the stack
 * and it leaves; the next one then follows soon. Nobody else has a limit, so an idle pool
 * makes one timed sleep in all. A leaving worker is counted until its last hook was called,
 * and a task that came meanwhile could neither wake nor replace it: so it looks once more
 * after it has given its count back.
 *
 * Edges         from                      to                         carries
 *   idle.dekker light fence in fj_fork()  heavy fence in fji_idle_wait()   cell against ctl
 *   ctl.idle    acq_rel CAS, idle_push()  acq_rel CAS, fji_wake_one()   next_idle, park
 *   idle.fence  full fence, idle_fence()  acq_rel add, idle_lead()   the push against begun
 *   idle.park   acq_rel swap, unpark      acquire load, idle_sleep()  what the waker did, permit
 *   idle.rescan  release store, fji_idle_wait()  acquire, quiesce_worker()  the rescan's signal
 *   idle.defer  full fence, search_slot_take()  full fences of who gives one back  task against WAIVED
 *
 * Model: test/model/idle.pml, test/model/idle_aba.pml.
 */
#include "check.h"
#include "pool.h"

/* ---- Permits ------------------------------------------------------------------------------------ */

/* How many who search are enough for the caller. */
static uint32_t search_slot_limit(const fj_pool *p, uint64_t c)
{
    const fji_worker *w = fji_worker_self();
    /* relaxed: a limit, not a count. */
    int half = (fji_ctl_deficit(c) + fji_load_relaxed(&p->parallelism)) / 2;

    if (w == NULL || w->pool != p) return 1; /* it has better things to do than to wake */
    if (half < FJI_SEARCH_MIN) return FJI_SEARCH_MIN;
    return (uint32_t)(half < FJI_SEARCH_MAX ? half : FJI_SEARCH_MAX);
}

/* A permit to wake somebody; false: the signal is left to those who have one. */
static bool search_slot_take(fj_pool *p, uint64_t c)
{
    uint32_t most = search_slot_limit(p, c);

    /* [idle.defer] the task and ctl above, `search` below; partners: idle_rescan(), idle_fence(),
     * wake_with_slot(). */
    fji_fence_full();
    uint32_t s = fji_load_relaxed(&p->nsearching); /* relaxed: the fence, or the CAS */
    for (;;) {
        bool enough = (s & ~FJI_WAKE_DEFERRED) >= most;
        if (enough && (s & FJI_WAKE_DEFERRED) != 0) return false; /* the line is left alone */
        /* [idle.defer] acq_rel: as every change of it. */
        if (fji_cas_acq_rel_32(&p->nsearching, &s, enough ? s | FJI_WAKE_DEFERRED : s + 1))
            return !enough;
    }
}

/* True: a signal may have been left to it. */
static bool search_slot_return(fj_pool *p)
{
    /* [idle.defer] acq_rel: as every change of it. */
    return (fji_add_acq_rel(&p->nsearching, (uint32_t)-1) & FJI_WAKE_DEFERRED) != 0;
}

bool fji_search_begin(fji_worker *w)
{
    fj_pool *p = w->pool;

    if (w->searching) return true;
    /* relaxed: the limit only saves waste. */
    if ((fji_load_relaxed(&p->nsearching) & ~FJI_WAKE_DEFERRED) >= p->max_spinners) return false;
    /* [idle.defer] acq_rel: as every change of it. */
    fji_add_acq_rel(&p->nsearching, 1u);
    return w->searching = true;
}

void fji_search_end(fji_worker *w)
{
    if (w->searching) (void)search_slot_return(w->pool); /* nothing is looked for any more */
    w->searching = false;
}

/* ---- The control word ---------------------------------------------------------------------------- */

void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures)
{
    fji_worker *w = fji_worker_self();
    uint32_t most = 4u << (++*failures < 10 ? *failures : 10);

    /* relaxed: a limit, not a count. */
    if (*failures == 1 || fji_load_relaxed(&p->parallelism) <= FJI_UNTHROTTLED_WORKERS || w == NULL)
        return;
    for (uint32_t n = fji_worker_random(w) % most; n > 0; n--) fji_pause();
    *c = fji_load_acquire(&p->ctl); /* [ctl.idle] acquire <- the CAS of whoever changed it last */
}

/* ---- Signalling --------------------------------------------------------------------------------- */

/* Pops the top of the idle stack with `active` more; false if *c has changed. */
static bool idle_pop(fj_pool *p, uint64_t *c, int active, fji_worker **out)
{
    fji_worker *w = fji_pool_worker(p, fji_ctl_top(*c) - 1);
    if (w == NULL) __builtin_unreachable(); /* whoever is on the stack has a record */
    /* relaxed: fixed while w is on the stack; if it is not, the CAS fails. */
    uint32_t next = fji_load_relaxed(&w->next_idle);
    uint64_t n = fji_ctl_add_active(fji_ctl_with_top(*c, next), active);

    *out = w;
    /* [ctl.idle] acq_rel: partner is the push in idle_push(). */
    return fji_ctl_cas(p, c, n);
}

/* Whether a thread may be added, and not too many were in vain just now. */
static bool idle_may_spawn(const fj_pool *p, uint64_t c)
{
    /* relaxed: hints against starting in vain without end. */
    if (fji_load_relaxed(&p->failed_starts) >= FJI_FAILED_STARTS &&
        fji_plat_now() < fji_load_relaxed(&p->failed_retry_ns)) /* relaxed: as above */
        return false;
    fji_sizes sizes = fji_pool_sizes(p);
    return fji_ctl_may_spawn(c, &sizes);
}

/* Remembers how many starts of threads were refused, and since when. */
static void idle_note_start(fj_pool *p, bool started)
{
    /* relaxed in all of this: hints for those who try again. */
    uint32_t refused = fji_load_relaxed(&p->spawn_refused);

    if (started && refused != 0) fji_store_relaxed(&p->spawn_refused, 0u); /* relaxed: see above */
    if (started) return;
    if (refused == 0)
        fji_store_relaxed(&p->spawn_refused_ns, fji_plat_now()); /* relaxed: see above */
    fji_add_relaxed(&p->spawn_refused, 1);                       /* relaxed: see above */
}

/* Gives back what was counted for a thread that did not come. */
static void idle_unspawn(fj_pool *p)
{
    /* [ctl.idle] acquire/acq_rel: gives back exactly what was reserved by the caller. */
    uint64_t c = fji_load_acquire(&p->ctl);

    while (!fji_ctl_cas(p, &c, fji_ctl_add_total(fji_ctl_add_active(c, -1), -1))) {}
}

/* Counts a thread and starts it; false: *c has changed, and nothing was done. */
static bool idle_spawn(fj_pool *p, uint64_t *c, bool *started)
{
    uint32_t over = (uint32_t)-1;

    /* [compensate.starts] acq_rel: before ctl hides that a worker is missing; see compensate.c. */
    fji_add_acq_rel(&p->starts, 1);
    /* [ctl.idle] acq_rel: as every change of ctl. */
    bool counted = fji_ctl_cas(p, c, fji_ctl_add_total(fji_ctl_add_active(*c, 1), 1));
    *started = counted && fji_worker_start(p);
    if (counted) idle_note_start(p, *started);
    if (counted && !*started) {
        idle_unspawn(p);
        over += FJI_STARTS_REFUSED;
    }
    /* [compensate.starts] acq_rel: after ctl shows it again. */
    fji_add_acq_rel(&p->starts, over);
    if (counted && !*started) {
        fji_compensate_refused(p);
        if (fji_pool_stopping(p)) fji_pool_try_terminate(p, false);
    }
    return counted;
}

/* Wakes or starts one if one is wanted, or leaves it to those who search. May take a permit; the
 * one that there is goes to whoever it wakes. */
static void wake_try(fj_pool *p, bool *slot)
{
    /* [ctl.idle] acquire <- the CAS in idle_push(). */
    uint64_t c = fji_load_acquire(&p->ctl);
    fji_worker *w;

    for (uint32_t failures = 0; fji_ctl_deficit(c) < 0; fji_ctl_backoff(p, &c, &failures)) {
        if (fji_ctl_top(c) != 0) {
            /* relaxed: a limit, not a count. */
            if (!*slot && fji_load_relaxed(&p->parallelism) > FJI_UNTHROTTLED_WORKERS &&
                !(*slot = search_slot_take(p, c)))
                return;
            if (!idle_pop(p, &c, 1, &w)) continue;
            fji_store_relaxed(&p->shrinking, 0u); /* relaxed: a hint */
            w->searching = *slot;
            *slot = false;
            fji_worker_unpark(w);
            return;
        }
        if (!idle_may_spawn(p, c)) return;
        bool started;
        if (!idle_spawn(p, &c, &started)) continue;
        if (started) return;
        failures = 0;
        /* That may have been what kept a pool that is shut down from its end. It cannot be looked
         * for here, the caller may hold the lock of a queue; whoever is idle does it. */
        c = fji_load_acquire(&p->ctl); /* [ctl.idle] acquire <- the CAS in idle_push() */
        if (fji_ctl_top(c) == 0) return;
    }
}

/* The same, and no permit is left over. */
static void wake_with_slot(fj_pool *p, bool slot)
{
    for (;;) {
        wake_try(p, &slot);
        if (!slot || !search_slot_return(p)) return;
        slot = false;
        /* [idle.defer] `search` above, ctl below; partner: the fence in search_slot_take(). Whoever
         * left a signal to this permit may have seen somebody idle whom we have not. */
        fji_fence_full();
    }
}

void fji_wake_one(fj_pool *p)
{
    wake_with_slot(p, false);
}

/* Whether a fork of w that sees the pool short of a worker signals. While starts of threads are
 * refused not every fork asks for one: its joiner runs the task anyway. Submissions always ask. */
static bool fork_may_wake(fji_worker *w)
{
    const fj_pool *p = w->pool;

    /* relaxed: hints. */
    if (fji_load_relaxed(&p->spawn_refused) == 0 || fji_ctl_top(fji_load_relaxed(&p->ctl)) != 0) {
        w->forks_since_spawn_try = 0;
        return true;
    }
    uint32_t n = ++w->forks_since_spawn_try;
    return (n & (n - 1)) == 0 || n % FJI_SPAWN_RETRY_EVERY == 0;
}

void fji_wake_slow(fj_worker *fast)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return;
    /* [idle.dekker] without a heavy fence on the other side this must be a full one. */
    if (!w->pool->asymmetric) fji_fence_full();
    if (!fork_may_wake(w)) return;
    fji_wake_one(w->pool);
}

void fji_search_succeeded(fji_worker *w, bool more)
{
    fj_pool *p = w->pool;
    bool slot = w->searching, owed = w->rescan_owed && fji_pool_has_work(p);

    if (w->awaiting_first_task && !more) more = fji_pool_has_work(p);
    w->searching = w->rescan_owed = w->awaiting_first_task = false;
    /* relaxed: it is looked at again when the permit is given back. */
    if (slot && !more && (fji_load_relaxed(&p->nsearching) & FJI_WAKE_DEFERRED) == 0) {
        slot = false;
        more = search_slot_return(p);
    } else if (slot) {
        more = true;
    }
    if (more) wake_with_slot(p, slot);
    if (owed) wake_with_slot(p, false);
}

void fji_idle_release_all(fj_pool *p)
{
    /* [ctl.idle] acquire <- the CAS in idle_push(). */
    uint64_t c = fji_load_acquire(&p->ctl);
    fji_worker *w;

    while (fji_ctl_top(c) != 0) {
        if (!idle_pop(p, &c, 1, &w)) continue;
        fji_worker_unpark(w);
        /* [ctl.idle] acquire <- the CAS in idle_push(). */
        c = fji_load_acquire(&p->ctl);
    }
}

/* ---- Going idle ---------------------------------------------------------------------------------- */

static void idle_push(fji_worker *w)
{
    fj_pool *p = w->pool;
    /* [ctl.idle] acquire <- the CAS of whoever changed it last. */
    uint64_t c = fji_load_acquire(&p->ctl);
    uint32_t failures = 0;

    fji_check(p, fji_ctl_total(c) > 0 && fji_ctl_total(c) <= FJ_MAX_WORKERS);
    fji_store_relaxed(&w->rescanning, 1u); /* relaxed: published by the next store */
    /* [idle.rescan] release -> acquire in quiesce_worker(): looks. */
    fji_store_release(&w->park, FJI_PARK_IDLE);
    for (;; fji_ctl_backoff(p, &c, &failures)) {
        fji_store_relaxed(&w->next_idle, fji_ctl_top(c)); /* relaxed: published by the CAS */
        uint64_t n = fji_ctl_add_active(fji_ctl_with_top(c, w->index + 1), -1);
        /* [ctl.idle] acq_rel -> acq_rel in idle_pop(): next_idle, park. */
        if (fji_ctl_cas(p, &c, fji_ctl_new_version(n))) return;
    }
}

bool fji_pool_has_work(fj_pool *p)
{
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        if (v != NULL && fji_queue_maybe(&v->q)) return true;
    }
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *s = fji_load_acquire(&p->submissions[i]);
        if (s != NULL && fji_submission_queue_maybe(s)) return true;
    }
    return false;
}

/* When to give up waiting: never, unless w is on top and the pool could do without it. */
static int64_t idle_deadline(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint64_t c = fji_load_relaxed(&p->ctl);         /* relaxed: trim decides by CAS */
    int target = fji_load_relaxed(&p->parallelism); /* relaxed: a limit, not a count */

    if (p->keep_alive_ns == FJ_FOREVER || fji_ctl_top(c) != w->index + 1) return FJ_FOREVER;
    if (fji_ctl_deficit(c) + target > 0 && fji_ctl_total(c) <= target) return FJ_FOREVER;
    /* relaxed: a hint. */
    int64_t wait = fji_load_relaxed(&p->shrinking) != 0 ? FJI_RETIRE_NEXT_NS : p->keep_alive_ns;
    int64_t now = fji_plat_now();
    return wait > FJ_FOREVER - 1 - now ? FJ_FOREVER : now + wait;
}

/* w may be on top now: it looks how long it may sleep, though it is about to sleep for ever. */
static void idle_reconsider_deadline(fji_worker *w)
{
    uint32_t parked = FJI_PARK_PARKED;

    /* [idle.retire] ctl above, park below; partner: idle_sleep(). Either it sees itself on top, or
     * we see it parked, and then its wait does not begin or ends. */
    fji_fence_full();
    /* [idle.park] acq_rel: as every change of park. */
    if (fji_cas_acq_rel_32(&w->park, &parked, FJI_PARK_IDLE)) fji_plat_wake_one(&w->park);
}

/* Off the stack, if still on top; the total follows at its exit. The next is told to look. */
static bool idle_retire(fji_worker *w)
{
    fj_pool *p = w->pool;
    /* [ctl.idle] acquire <- the CAS in idle_push(). */
    uint64_t c = fji_load_acquire(&p->ctl);

    while (fji_ctl_top(c) == w->index + 1) {
        uint32_t next = fji_load_relaxed(&w->next_idle); /* relaxed: our own */
        /* [ctl.idle] acq_rel: as every change of ctl. */
        if (!fji_ctl_cas(p, &c, fji_ctl_with_top(c, next))) continue;
        fji_store_relaxed(&p->shrinking, 1u); /* relaxed: a hint */
        if (next != 0) idle_reconsider_deadline(fji_pool_worker(p, next - 1));
        return true;
    }
    return false;
}

/* Until somebody made w active again (true), or it has left the stack to end (false). */
static bool idle_sleep(fji_worker *w)
{
    for (;;) {
        uint32_t idle = FJI_PARK_IDLE;
        /* [idle.park] acquire <- acq_rel in fji_worker_unpark(). */
        if (!fji_cas_acq_rel_32(&w->park, &idle, FJI_PARK_PARKED) && idle == FJI_PARK_ACTIVE)
            return true;
        /* [idle.retire] park above, ctl in idle_deadline() below; partner: idle_reconsider_deadline(). */
        fji_fence_full();
        fji_count(&w->parks, 1);
        bool in_time = fji_plat_wait(&w->park, FJI_PARK_PARKED, idle_deadline(w));
        /* [idle.park] acquire <- acq_rel in fji_worker_unpark(). */
        if (fji_load_acquire(&w->park) == FJI_PARK_ACTIVE) return true;
        if (!in_time && !fji_pool_stopping(w->pool) && idle_retire(w)) {
            fji_store_relaxed(&w->park, FJI_PARK_ACTIVE); /* relaxed: off the stack, ours */
            return false;
        }
    }
}

/* Whether nobody is active: then a heavy fence costs next to nothing. */
static bool idle_none_active(const fj_pool *p)
{
    /* relaxed: hints. */
    int target = fji_load_relaxed(&p->parallelism);
    return fji_ctl_deficit(fji_load_relaxed(&p->ctl)) + target <= 0; /* relaxed: as above */
}

/* Whether the next heavy fence may begin, and is for this worker to make. Not every look is also
 * one at the control word: many may wait here, and its line is wanted by others. */
static bool idle_may_lead(fj_pool *p, uint32_t turn)
{
    uint64_t next = fji_load_relaxed(&p->fence_next); /* relaxed: the CAS decides */
    uint64_t now = (uint64_t)fji_plat_now();

    if (p->fence_waits && now < next && (turn % 16 != 0 || !idle_none_active(p))) return false;
    /* [idle.fence] acq_rel: one leads. */
    return fji_cas_acq_rel_64(&p->fence_next, &next, now + FJI_FENCE_GAP_NS);
}

static void idle_lead(fj_pool *p)
{
    /* [idle.fence] acq_rel <-> the full fence in idle_fence(): who has not seen this number has
     * pushed itself before the fence below. */
    uint32_t number = fji_add_acq_rel(&p->fence_begun, 1) + 1;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    fji_pool_barrier(p);
    uint32_t done = fji_load_relaxed(&p->fence_done); /* relaxed: the CAS decides */
    /* [idle.fence] acq_rel -> acquire in idle_fence(): what the fence has brought. */
    while ((int32_t)(number - done) > 0 && !fji_cas_acq_rel_32(&p->fence_done, &done, number)) {}
}

/* Until a heavy fence has begun and ended since the push of w; false: w was made active. */
static bool idle_fence(fji_worker *w)
{
    fj_pool *p = w->pool;
    uint32_t turn = 0;

    /* [idle.fence] ctl above, the number below; partner: idle_lead(). */
    fji_fence_full();
    uint32_t before = fji_load_relaxed(&p->fence_begun); /* relaxed: the fence */
    if (!p->asymmetric) return true;
    /* [idle.fence] acquire <- acq_rel in idle_lead(). */
    while ((int32_t)(fji_load_acquire(&p->fence_done) - before) <= 0) {
        /* [idle.park] acquire <- acq_rel in fji_worker_unpark(). */
        if (fji_load_acquire(&w->park) == FJI_PARK_ACTIVE) return false;
        if (idle_may_lead(p, turn)) {
            idle_lead(p);
            return true;
        }
        for (int i = 0; i < 8; i++) fji_pause();
        if (++turn % 64 == 0) fji_plat_yield(); /* whoever leads may need the core */
    }
    return true;
}

/* Whether any queue has a task, after the heavy fence. What was waived before is seen too. */
static bool idle_rescan(fj_pool *p)
{
    /* relaxed: idle_fence(). */
    if ((fji_load_relaxed(&p->nsearching) & FJI_WAKE_DEFERRED) == 0) return fji_pool_has_work(p);
    /* [idle.defer] acq_rel: as every change of it. */
    fji_and_acq_rel(&p->nsearching, ~FJI_WAKE_DEFERRED);
    /* [idle.defer] WAIVED above, the queues below; partner: the fence in search_slot_take(). */
    fji_fence_full();
    if (!fji_pool_has_work(p)) return false;
    /* [idle.defer] acq_rel: there may be more than one. */
    fji_or_acq_rel(&p->nsearching, FJI_WAKE_DEFERRED);
    return true;
}

bool fji_idle_wait(fji_worker *w)
{
    fj_pool *p = w->pool;

    fji_check(p, fji_queue_valid(&w->q));
    if (w->searching) (void)search_slot_return(p); /* whoever relied on it is seen below */
    w->searching = false;
    idle_push(w);
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    if (!idle_fence(w)) {
        fji_store_relaxed(&w->rescanning, 0u); /* relaxed: it is active, and will be found so */
        w->rescan_owed = true;
        return true;
    }
    w->rescan_owed = false;
    if (idle_rescan(p)) fji_wake_one(p);
    /* [idle.rescan] release -> acquire in quiesce_worker(): whom the signal has woken. */
    fji_store_release(&w->rescanning, 0u);
    fji_pool_maybe_terminate(p);
    return idle_sleep(w);
}
