/* SPDX-License-Identifier: MIT */
/*
 * safepoint.c - a broadcast: a function that every worker of a pool runs while no task runs
 *
 * The process has at most one broadcast at a time. Its state is in `every`, under every.lock. The
 * phase of the broadcast is in fji_asked, together with its number:
 *
 *     0 --asker--> ARRIVE --the last thread arrives or leaves--> RUN --the last fn returns--> 0
 *
 * The asker is the thread that has called fj_broadcast(). A participant is a thread with a record in
 * the pool, as a worker or as a guest. The asker may be a participant.
 *
 *     asker                                     participant, at its next safepoint
 *     1 ARRIVE; call every record of the pool   1 hide the tasks of its queue (queue/hide.c)
 *     2 wake the idle and sleeping workers,     2 arrive: call = NONE, due - 1
 *       again and again, until RUN              3 wait for RUN
 *     3 take part, or wait for the end          4 fn(arg); left - 1
 *                                               5 until the end: run tasks forked in the broadcast
 *                                               6 show the tasks again; wake a worker for them
 *
 * The word `call` of a record
 *     GONE -> NONE      a thread takes the record, under the lock of the pool
 *     NONE -> number    the asker calls the record, by CAS, under the lock of the pool, if `alive`
 *                       says that a thread uses the record
 *     number -> NONE    the thread arrives; or a guest leaves, see below
 *     any -> GONE       a worker leaves, by a swap: it runs no further task and gives the record back.
 *                       If the word was a number, it subtracts itself from `due`
 *
 * A guest gives its record back without the lock, by a store to `alive`, and takes the lock of the
 * pool after that to leave. If the asker has called it between the two, it finds the number and
 * subtracts itself (guest_remove()). No thread takes a record whose `call` is a number.
 *
 * Who takes part. The asker sets ARRIVE before it takes the lock of the pool to call the records. A
 * thread that takes a record before that is called, and arrives or leaves. A thread that takes a
 * record afterwards sees ARRIVE or RUN and waits for the end, before it runs anything
 * (fji_safepoint_enter()). So:
 *   E1  `due` is the number of called records, in the phase ARRIVE: of the records whose `call` is
 *       the number.
 *   E2  In the phase RUN no thread runs a task of the pool that was queued before: every thread with
 *       a record has arrived, waits in fji_safepoint_enter(), or has left.
 *   E3  In the phase RUN the queues of the workers hold only tasks that were forked in the
 *       broadcast: each participant has hidden its older tasks before it arrived.
 *
 * A thread may have several records in the pool (guest.c). It hides the tasks of all of them,
 * arrives for all of them, and calls fn once, with the innermost one as fji_self.
 *
 * Waking. A participant that sleeps in a wait of the library publishes the address of the word that
 * it sleeps on (`sleeps_on`), and the asker wakes that address. The word belongs to a task, which may
 * be freed by then; a wake-up uses only the address. The participant may begin its sleep just after
 * the wake-up, because the value of the word has not changed. It may also become idle just after the
 * asker has looked at the idle stack. So the asker repeats both, with pauses from 20 us to 1 ms,
 * until all threads have arrived. Therefore the store of sleeps_on needs no fence.
 *
 * After the end. A participant that shows its tasks again is like a producer of these tasks: another
 * participant may have become idle meanwhile, and has not seen them. So it executes a full fence and
 * wakes a worker if one is wanted.
 *
 * Edges           from                                 to                              carries
 *   every.phase   release store, every_set_phase()     acquire load, every_phase()     all writes
 *   every.call    acq_rel CAS, every_call()            acq_rel, fji_safepoint_leave(); the number,
 *                                                      acquire, enter_is_called()      earlier fn
 *   idle.dekker   full fence, safepoint_show()         heavy fence, idle_lead()        base, ctl
 *
 * Model: test/model/every.pml. Explained in docs/design/safepoint.md.
 */

#include "sched/safepoint.h"

#include "plat/wait.h"
#include "sched/lifetime.h"
#include "sched/run.h"
#include "sched/scope.h"
#include "sched/steal.h"
#include "sched/wake.h"
#include "task/fork_generation.h"

/* fji_asked: the number of the broadcast, a multiple of 4 and not 0, plus its phase; or 0. */
#define EVERY_ARRIVE 1u /* participants arrive */
#define EVERY_RUN 2u    /* all have arrived; they run fn */

uint32_t fji_asked;

/* The broadcast in progress. Protected by the lock, but fji_request is constant in the phase RUN. */
static struct {
    fji_lock lock;
    uint32_t number;      /* of the last broadcast that was asked for */
    fji_request *request; /* in the frame of the asker */
    uint32_t due;         /* called records whose threads have neither arrived nor left */
    uint32_t left;        /* threads that have arrived and have not returned from fn */
} every = {.number = FJI_START_32 & ~3u};

/* The number of the broadcast that the calling thread takes part in, or 0. */
static __thread uint32_t every_attends;

/* ---- The phases ------------------------------------------------------------------------------ */

static uint32_t every_phase(void)
{
    /* [every.phase] acquire <- release in every_set_phase(): what the threads that have arrived
     * wrote before, or what fn wrote. */
    return fji_load_acquire(&fji_asked);
}

/* Called with the lock. */
static void every_set_phase(uint32_t phase)
{
    /* [every.phase] release -> acquire in every_phase(): the writes of all threads that have taken
     * the lock before. */
    fji_store_release(&fji_asked, phase);
    fji_plat_wake_all(&fji_asked);
}

/* Called with the lock, after `due` or `left` has been decremented, or both are set. Begins the next
 * phase if its condition holds. */
static void every_advance(void)
{
    if (every_phase() == (every.number | EVERY_ARRIVE) && every.due == 0)
        every_set_phase(every.number | EVERY_RUN);
    if (every_phase() == (every.number | EVERY_RUN) && every.left == 0) every_set_phase(0);
}

/* Calls every record of p to broadcast `number`. Returns how many were called. The caller holds
 * every.lock and the lock of p. */
static uint32_t every_call(fj_pool *p, uint32_t number)
{
    uint32_t called = 0;

    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        uint32_t none = FJI_CALL_NONE;
        /* [pool.alive] acquire <- release in fji_record_give_back(): what the guest that has left
         * wrote before. */
        if (w == NULL || fji_load_acquire(&w->alive) == FJI_ALIVE_NO) continue;
        /* [every.call] acq_rel <-> acq_rel in fji_safepoint_leave(): either the leaving thread sees
         * the number, or this CAS finds GONE. */
        if (fji_cas_acq_rel_32(&w->call, &none, number)) called++;
    }
    return called;
}

/* Begins a broadcast. Called with every.lock while none is in progress. Returns false if the pool
 * has stopped. */
static bool every_begin(fji_request *r)
{
    fj_pool *p = r->pool;

    every.number += 4;
    if (every.number == 0) every.number = 4;
    every.request = r;
    every.left = 0;
    every_set_phase(every.number | EVERY_ARRIVE);
    fji_lock_take(&p->lock);
    bool stops = fji_pool_stopping(p);
    every.due = stops ? 0 : every_call(p, every.number);
    if (!stops) fji_pool_add_guest(p); /* p does not end before the broadcast */
    fji_lock_drop(&p->lock);
    every_advance(); /* if no record was called, the broadcast ends here */
    return !stops;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

bool fji_safepoint_sleep(fji_worker *w, uint32_t *word, uint32_t value, int64_t deadline)
{
    bool in_time = true;

    for (fji_worker *v = w; v != NULL; v = fji_worker_outer(v))
        fji_store_relaxed(&v->sleeps_on, word); /* relaxed: the asker looks again and again */
    if (!fji_called(w)) in_time = fji_plat_wait(word, value, deadline);
    for (fji_worker *v = w; v != NULL; v = fji_worker_outer(v))
        fji_store_relaxed(&v->sleeps_on, (uint32_t *)NULL); /* relaxed: as above */
    return in_time;
}

/* A pause between two looks at the phase: short at first, because the other threads often run. Every
 * fourth call yields the CPU, because a thread that has not arrived may need it. *turn counts the
 * calls. */
static void every_spin(uint32_t *turn)
{
    fji_spin(turn, *turn < FJI_EVERY_SPINS / 2 ? 1 : 16, 4);
}

/* Called by the asker in the phase ARRIVE: wakes the called workers that are idle or sleep. */
static void every_wake(fj_pool *p, uint32_t number)
{
    uint32_t n = fji_pool_nworkers(p);

    /* After the phase a woken worker may become idle again, and would be woken without end. */
    while (every_phase() == (number | EVERY_ARRIVE) && fji_wake_idle(p)) {}
    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        /* relaxed: a hint; this function is called again and again. */
        if (w == NULL || fji_load_relaxed(&w->call) != number) continue;
        uint32_t *word = fji_load_relaxed(&w->sleeps_on); /* relaxed: only the address is used */
        if (word != NULL) fji_plat_wake_all(word);
    }
}

/* Waits until the phase is not ARRIVE any more. asks: whether the caller is the asker of this
 * broadcast; it wakes the others. */
static void every_await_run(fj_pool *p, uint32_t number, bool asks)
{
    uint32_t phase = number | EVERY_ARRIVE, turn = 0;
    int64_t pause = FJI_EVERY_PAUSE_MIN_NS;

    while (every_phase() == phase) {
        if (asks && turn == 0) every_wake(p, number);
        if (turn < FJI_EVERY_SPINS) {
            every_spin(&turn);
            continue;
        }
        (void)fji_plat_wait(&fji_asked, phase, asks ? fji_plat_now() + pause : FJ_FOREVER);
        if (!asks || every_phase() != phase) continue;
        if (pause < FJI_EVERY_PAUSE_MAX_NS) pause *= 2;
        every_wake(p, number);
    }
}

/* Takes and runs one task that a participant has forked in fn, but no action. `running`: fji_asked
 * and its value in the phase RUN. fji_queue_steal_for() checks the phase after it has read the cell
 * of the task. If the task was shown again, the phase had ended before that, so the check fails.
 * Returns whether w has run a task. */
static bool every_help(fji_worker *w, const fji_link *running)
{
    uint32_t n = fji_pool_nworkers(w->pool), first = fji_worker_random(w) % n;
    fji_taken taken;

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(w->pool, (first + i) % n);
        if (v == NULL || v == w) continue;
        if (fji_steal_descendant(w, v, 0, running, 1, &taken) != FJI_STEAL_SUCCESS) continue;
        fji_run_taken(w->pool, w, &taken);
        return true;
    }
    return false;
}

/* Waits until the phase is not RUN any more. w, a participant that has returned from fn, runs the
 * tasks that other participants have forked in fn. If it finds none it sleeps, and looks again after
 * pauses that grow. If w is NULL, the calling thread only waits. */
static void every_await_end(fji_worker *w, uint32_t number)
{
    uint32_t phase = number | EVERY_RUN, turn = 0;
    int64_t pause = FJI_EVERY_PAUSE_MIN_NS;
    const fji_link running = {&fji_asked, phase};

    while (every_phase() == phase) {
        if (w != NULL && every_help(w, &running)) {
            turn = 0;
            pause = FJI_EVERY_PAUSE_MIN_NS;
        } else if (turn < FJI_EVERY_SPINS) {
            every_spin(&turn);
        } else {
            (void)fji_plat_wait(&fji_asked, phase, w != NULL ? fji_plat_now() + pause : FJ_FOREVER);
            if (pause < FJI_EVERY_PAUSE_MAX_NS) pause *= 2;
        }
    }
}

/* ---- Taking part ----------------------------------------------------------------------------- */

/* Calls fn of the broadcast on w. */
static int every_call_fn(fji_worker *w, const fji_request *r)
{
    uint32_t from = fji_worker_position(w);
    int code = r->fn(r->arg);

    if (w->check_body != NULL && !fji_queue_in_typed(&w->q)) w->check_body(w, from);
    return code;
}

/* Steps 2 to 5 of the head of this file, for the thread of w, which has hidden its tasks. records:
 * how many of its records are called. */
static void every_attend(fji_worker *w, uint32_t number, uint32_t records, bool asks)
{
    fj_worker *self = fji_self;

    fji_self = &w->q.fast;
    every_attends = number;
    fji_scope_saved saved = fji_scope_enter(w, NULL);
    fji_lock_take(&every.lock);
    every.due -= records;
    every.left++;
    every_advance();
    fji_lock_drop(&every.lock);
    every_await_run(w->pool, number, asks);
    if (every_phase() == (number | EVERY_RUN)) { /* not in a child process after fork() */
        int code = every_call_fn(w, every.request);
        fji_lock_take(&every.lock);
        if (every_phase() == (number | EVERY_RUN)) { /* as above: fn may have called fork() */
            if (every.request->code == FJ_OK) every.request->code = code;
            every.left--;
            every_advance();
        }
        fji_lock_drop(&every.lock);
    }
    every_await_end(w, number);
    fji_scope_leave(w, saved);
    every_attends = 0;
    fji_self = self;
}

/* Shows the tasks of w again: step 6 of the head of this file. */
static void safepoint_show(fji_worker *w, const fji_hidden *h)
{
    if (!fji_queue_show(&w->q, h)) return;
    /* [idle.dekker] base above, ctl below; partner: the heavy fence in idle_lead(). Either this
     * thread sees that a worker is idle, or the rescan of that worker sees the task. */
    fji_fence_full();
    /* relaxed: the fence orders it. */
    if ((fji_pool_ctl_hint(w->pool) & FJI_CTL_WAKE_WANTED) != 0) fji_wake_one(w->pool);
}

/* Takes part with the called records from v outwards. innermost: the innermost called record of the
 * thread, or NULL if v is it. records: how many records were hidden before. */
static void safepoint_attend(fji_worker *v, fji_worker *innermost, uint32_t records, bool asks)
{
    uint32_t number = fji_load_relaxed(&v->call); /* relaxed: only this thread changes it now */
    fji_worker *outer = fji_worker_outer(v);
    fji_hidden hidden;

    if (innermost == NULL) innermost = v;
    while (outer != NULL && !fji_worker_called(outer)) outer = fji_worker_outer(outer);
    fji_queue_hide(&v->q, &hidden);
    fji_store_relaxed(&v->call, FJI_CALL_NONE); /* relaxed: the lock in every_attend() orders it */
    if (outer != NULL)
        safepoint_attend(outer, innermost, records + 1, asks);
    else
        every_attend(innermost, number, records + 1, asks);
    safepoint_show(v, &hidden);
}

/* Takes part if a record of the thread of w is called. asks: whether the thread is the asker.
 * Returns whether it took part. */
static bool safepoint_try(fji_worker *w, bool asks)
{
    while (w != NULL && !fji_worker_called(w)) w = fji_worker_outer(w);
    if (w != NULL) safepoint_attend(w, NULL, 0, asks);
    return w != NULL;
}

void fji_safepoint_take(fji_worker *w)
{
    (void)safepoint_try(w, false);
}

void fji_safepoint_slow(void)
{
    fji_safepoint_take(fji_worker_self());
}

fji_compensation fji_safepoint_blocked(fji_worker *w, fji_compensation c)
{
    if (!fji_called(w)) return c;
    fji_compensate_end(w, c);
    fji_safepoint_take(w);
    return fji_compensate_begin(w);
}

/* ---- Threads that come and go ---------------------------------------------------------------- */

/* Returns the number of the broadcast of p that is in progress, or 0. */
static uint32_t every_number_in(const fj_pool *p)
{
    if (every_phase() == 0) return 0;
    fji_lock_take(&every.lock);
    uint32_t number = every_phase() != 0 && every.request->pool == p ? every.number : 0;
    fji_lock_drop(&every.lock);
    return number;
}

/* Returns whether w is called, after the broadcasts that were in progress before have ended. */
static bool enter_is_called(const fji_worker *w)
{
    /* [every.call] acquire <- acq_rel in every_call(): what fn wrote in the broadcasts before the
     * one that w is called to. */
    return fji_load_acquire(&w->call) > FJI_CALL_GONE;
}

void fji_safepoint_enter(fji_worker *w)
{
    uint32_t phase = every_phase();

    if (FJI_LIKELY(phase == 0) || every_attends != 0 || enter_is_called(w)) return;
    uint32_t number = every_number_in(w->pool);
    while (number != 0 && ((phase = every_phase()) & ~3u) == number && !enter_is_called(w)) {
        if (safepoint_try(w, false)) continue; /* with another record of this thread */
        (void)fji_safepoint_sleep(w, &fji_asked, phase, FJ_FOREVER);
    }
}

void fji_safepoint_leave(fji_worker *w)
{
    /* [every.call] acq_rel <-> acq_rel in every_call(): either this thread sees the number, or the
     * asker finds GONE. */
    if (fji_swap_acq_rel(&w->call, FJI_CALL_GONE) > FJI_CALL_GONE) fji_safepoint_uncount();
}

void fji_safepoint_uncount(void)
{
    fji_lock_take(&every.lock);
    every.due--;
    every_advance();
    fji_lock_drop(&every.lock);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Takes every.lock while no broadcast is in progress. If one is, first waits until it has ended, and
 * takes part if the calling thread is called. */
static void every_lock_free(fji_worker *w)
{
    for (;;) {
        fji_lock_take(&every.lock);
        uint32_t phase = every_phase();
        if (phase == 0) return;
        fji_lock_drop(&every.lock);
        if (!safepoint_try(w, false)) (void)fji_safepoint_sleep(w, &fji_asked, phase, FJ_FOREVER);
    }
}

int fji_safepoint_broadcast(fji_request *r)
{
    fji_worker *w = fji_worker_self();
    uint32_t generation = fji_fork_generation;

    if (every_attends != 0) return FJ_EDEADLK;
    every_lock_free(w);
    bool begun = every_begin(r);
    uint32_t number = every.number;
    fji_lock_drop(&every.lock);
    if (!begun) return FJ_EREJECTED;
    if (!safepoint_try(w, true)) {
        every_await_run(r->pool, number, true);
        every_await_end(NULL, number);
    }
    /* In a child process, if fn has called fork(), the pool is reset and does not count this
     * guest. LAST TOUCH of *pool, unless the thread works for it. */
    if (generation == fji_fork_generation) fji_pool_remove_guest(r->pool);
    return FJ_OK;
}

void fji_safepoint_in_child(void)
{
    fji_lock_reset(&every.lock);
    fji_store_relaxed(&fji_asked, 0u); /* relaxed: the process has no other thread */
}

void fji_safepoint_reset(fji_worker *w, bool own)
{
    w->call = own ? FJI_CALL_NONE : FJI_CALL_GONE;
    w->sleeps_on = NULL;
}
