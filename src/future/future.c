/* SPDX-License-Identifier: MIT */
/*
 * future.c - the state word of a future: outcome and release; also its references
 *
 * Any thread may complete, fail or cancel a future while a worker runs its body. The outcome must
 * be set exactly once and must not change after a thread has read it. The memory of the future must
 * not be freed while the library uses it. One word decides both: the state word, fj_task.state. It
 * is also the state word of a submitted task that is not a future (task.h). Its bits:
 *
 *   DONE          the outcome is written: waiters return
 *   COMPLETING    a resolving thread (see below) is writing the outcome
 *   CANCELLED, FAILED   with DONE: the kind of outcome; neither: success
 *   EXTERNAL      with DONE: the outcome is in `external` and `external_code`, where the resolving
 *                 thread wrote it, not in `result` and `code` of the body
 *   RELEASED      the library has no pointer to the future any more, except that a limit may still
 *                 be in the wheel, with a reference of its own. Of a root: no queue has the root
 *                 any more, but its body may still run. A completer with a parent never gets this
 *                 bit
 *   DISCARDED     a thread took the future out of a queue and cancels it instead of running it
 *   SIGNALLABLE   the member `runner` is the worker or guest that runs the body; only in a pool
 *                 with an interrupt_signal
 *   REPORTED      of a completer: its failure was reported to its parent, or is about to be. With
 *                 COMPLETING: the outcome is set, with the bits for its kind, and the resolving
 *                 thread may be in on_error. That thread holds the future (fji_held) and sees it as
 *                 done. All other threads see the future as done when on_error has returned.
 *   LISTING, LISTENED, CALLED   of the functions to call when the future is done: see listen.c
 *   WAITING       a thread sleeps on the word, or has done so
 *   OBSERVED      a thread sleeps on the wait bucket of the future, or has done so
 *   OBSERVED_ANY  a thread waits for one of several futures, or has done so, and this future is one
 *                 of them
 *   low 16 bits   index of the worker or guest that runs the body, + 1 (task.h)
 *
 *     unresolved --(finishing thread: CAS)--> DONE | RELEASED
 *         |
 *         +--(resolving thread: CAS)--> COMPLETING --(resolving thread: xor)--> DONE
 *                                       DONE --(finishing thread: CAS)--> DONE | RELEASED
 *
 *   finishing thread
 *             The thread that runs the body, or that has taken the future out of a queue or out of
 *             the wheel in order not to run it. If the code of the body is not FJ_OK, it writes the
 *             code. Then one CAS sets DONE and RELEASED. If the word is DONE already, or if the
 *             body returned FJ_PENDING, the CAS sets RELEASED only. If the word is COMPLETING, the
 *             finishing thread first waits until the word is DONE. In a pool with an
 *             interrupt_signal, a worker stores itself in `runner` and sets SIGNALLABLE before it
 *             runs the body. If the word is DONE or COMPLETING at that moment, it does not run the
 *             body. A completer has no finishing thread: only calls resolve it (completer.c).
 *   resolving thread
 *             Any thread whose CAS sets COMPLETING. It writes `external` and `external_code`. If
 *             the future is a timer or has a limit, and this is in the wheel, it takes it out. It
 *             cancels the token, so that the body sees that its result is discarded. It does not
 *             cancel the token if no body can see that (future_token_bits()), or if the body itself
 *             completes or fails its future, on its own thread. If it interrupts, it also wakes the
 *             interruptible waits that this token concerns, in all pools. If it interrupts and the
 *             word is SIGNALLABLE and not RELEASED, it also sends the interrupt_signal to the
 *             worker in `runner`, but not to a guest or to itself. Then one xor clears COMPLETING
 *             and sets DONE; if the thread took a timer out of the wheel, also RELEASED, because
 *             the timer then has no finishing thread. LAST TOUCH of the future, unless it has
 *             listeners: then the thread calls them (listen.c).
 *
 * Invariants
 *   - Only one thread changes the word from neither DONE nor COMPLETING to one of them. That
 *     thread sets the outcome.
 *   - After DONE the outcome and the bits DONE, CANCELLED, FAILED and EXTERNAL do not change any
 *     more, unless fj_future_reinit() makes the future new again.
 *   - The finishing thread does not finish while COMPLETING is set. So the resolving thread may use
 *     the record of the worker in `runner`, and sends the signal before that worker begins another
 *     task.
 *   - A future that was never queued has the `cell` NULL and is not in use, even if RELEASED is not
 *     set.
 *
 * Edges            from                                   to                           carries
 *   task.done      acq_rel CAS, fji_future_finish()       acquire, readers and waiters  outcome
 *   task.done      acq_rel xor, future_publish()          acquire, readers and waiters  outcome
 *   future.runner  acq_rel or, future_body_signallable()  acq_rel CAS, future_claim()   `runner`
 *   future.listen  acq_rel xor, listen_add()              acq_rel CAS of this file      listeners
 *   future.refs    acq_rel add, fji_future_drop()         acq_rel add, the last caller  accesses
 *
 * Model: test/model/future.pml.
 */

#include "future/future.h"

#include "plat/wait.h"
#include "pool/timers.h"
#include "sched/interrupt.h"
#include "sched/scope.h"

/* ---- Running and finishing ------------------------------------------------------------------- */

/* Returns the address of the future whose state word is *word. Does not access the memory, which
 * may be freed already. */
static const void *future_of(const uint32_t *word)
{
    return (const char *)word - offsetof(fj_task, state);
}

/* Called by the thread that has dropped the last reference to f. Frees f. If f is not done and has
 * listeners, first cancels f, with a reference for that time. */
static void future_free(fj_future *f)
{
    /* relaxed: no other thread uses f. */
    bool open = (fji_load_relaxed(&f->task.state) & (FJI_LISTENED | FJI_DONE)) == FJI_LISTENED;

    if (!open) {
        fji_block_free(f);
        return;
    }
    fji_store_relaxed(&f->refs, 1u); /* relaxed: no other thread uses f */
    (void)fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, 0);
    fji_future_drop(f);
}

void fji_future_drop(fj_future *f)
{
    if ((f->flags & FJI_FUTURE_ALLOCATED) == 0) return;
    /* [future.refs] release -> acquire in the call that drops the last reference and frees f: all
     * accesses to f before this call.
     * [future.refs] both ends are here. */
    if (fji_add_acq_rel(&f->refs, (uint32_t)-1) == 1) future_free(f);
}

/* Called after DONE, RELEASED or CALLED were set in *word, the state word of a future: wakes the
 * threads that wait for the future. `old`: the word before that. Uses only the address of the word,
 * because a waiter may have freed the future already. */
static void future_wake(uint32_t *word, uint32_t old)
{
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(word);
    if ((old & FJI_OBSERVED) != 0) fji_wait_bucket_notify(fji_wait_bucket(future_of(word)));
    if ((old & FJI_OBSERVED_ANY) != 0) fji_wait_bucket_notify(fji_wait_bucket(NULL));
}

/*
 * Called before a failure makes f done, and by the finishing thread also before a cancel does.
 * `old` is the state word before that. If `old` has OBSERVED_ANY, a thread waits for one of several
 * futures, and f is one of them. Then the failure gets the next number of a counter of the process,
 * and the number is stored in fail_seq: fj_future_invoke_any() returns the code of the failure that
 * came last. If `old` does not have OBSERVED_ANY, does nothing.
 */
static void future_number_failure(fj_future *f, uint32_t old)
{
    static uint32_t failures = FJI_START_FAILURES;

    if ((old & FJI_OBSERVED_ANY) == 0) return;
    uint32_t n = fji_add_relaxed(&failures, 1);              /* relaxed: it publishes no data */
    fji_store_relaxed(&f->fail_seq, FJI_FAIL_SEQ_VALID | n); /* relaxed: DONE publishes it */
}

static uint32_t outcome_bits(int code)
{
    if (code == FJ_OK) return 0;
    return code == FJ_ECANCELED ? FJI_CANCELLED : FJI_FAILED;
}

/* Waits while another thread writes the outcome of a future or adds a listener, that is, while its
 * state word *word has one of `bits`: COMPLETING, LISTING or both. Returns the state word after
 * that. Not called with COMPLETING for a completer whose on_error may be running. So the other
 * thread runs no user code meanwhile, and the wait is short. */
static uint32_t future_await_clear(const uint32_t *word, uint32_t bits)
{
    uint32_t s;
    uint32_t turn = 0;

    /* [task.done] acquire <- acq_rel in future_publish(): the outcome. */
    while (((s = fji_load_acquire(word)) & bits) != 0) fji_spin(&turn, 1, 16);
    return s;
}

bool fji_future_await_resolver(const fj_future *f)
{
    return (future_await_clear(&f->task.state, FJI_COMPLETING) & FJI_DONE) != 0;
}

/* Returns the release function of f, or NULL if f has none or is a completer. */
static void (*future_released(const fj_future *f))(fj_future *)
{
    uint32_t kind = f->flags & (FJI_FUTURE_RELEASES | FJI_FUTURE_COMPLETER);

    return kind == FJI_FUTURE_RELEASES ? f->released : NULL;
}

/* Called by a thread that resolves or finishes f, which is a timer or has a limit. Takes the timer
 * or the limit out of the wheel if it is there. Returns true if f was a timer in the wheel: no
 * queue and no worker has f then, so the caller releases f. Otherwise returns false. If a limit was
 * in the wheel, drops the reference that the limit has to f. */
static bool future_withdraw_timer(fj_future *f)
{
    enum fji_withdrawn got = fji_timers_withdraw(f);

    if (got == FJI_TIMER_LIMIT_WAITED) fji_future_drop(f); /* the limit's reference */
    return got == FJI_TIMER_WAITED;
}

/* The flags of fji_listeners_call(): future_listeners_end() calls the release function; it does so
 * if another thread has set RELEASED before CALLED. */
#define FUTURE_RELEASE 4u
#define FUTURE_MAY_RELEASE 8u

/* Called when the last listener of f has returned, by the thread that has made f DONE. Sets CALLED,
 * calls the release function of f if `flags` say so, and drops a reference. */
static void future_listeners_end(fj_future *f, uint32_t flags)
{
    uint32_t *word = &f->task.state;
    void (*released)(fj_future *) = future_released(f);
    bool allocated = (f->flags & FJI_FUTURE_ALLOCATED) != 0;

    /* [task.done] acq_rel -> acquire in fj_future_fini(): what the listeners did; acq_rel <->
     * acq_rel CAS in fji_future_finish(): the second of the two threads calls the release function.
     * LAST TOUCH of *f, unless f is allocated or this thread calls the release function. */
    uint32_t s = fji_or_acq_rel(word, FJI_CALLED);
    bool later = (flags & FUTURE_MAY_RELEASE) != 0 && (s & FJI_RELEASED) != 0;
    future_wake(word, s);
    if (released != NULL && (later || (flags & FUTURE_RELEASE) != 0)) released(f);
    if (allocated) fji_future_drop(f);
}

void fji_future_finish(fj_future *f, int code)
{
    uint32_t *word = &f->task.state;
    void (*released)(fj_future *) = future_released(f);
    bool allocated = (f->flags & FJI_FUTURE_ALLOCATED) != 0;
    bool signalled;
    uint32_t n;

    if ((f->flags & FJI_FUTURE_LIMIT) != 0 && code != FJ_PENDING) (void)future_withdraw_timer(f);
    if (code != FJ_OK) f->task.code = code;
    /* [task.done] acquire <- acq_rel in future_publish(): the outcome, and FJI_TOKEN_SIGNALLED. */
    uint32_t s = fji_load_acquire(word);
    for (;;) {
        if ((s & (FJI_COMPLETING | FJI_LISTING)) != 0)
            s = future_await_clear(word, FJI_COMPLETING | FJI_LISTING);
        n = s | FJI_RELEASED;
        if ((s & FJI_DONE) == 0 && code != FJ_PENDING) {
            n |= FJI_DONE | outcome_bits(code);
            if (code != FJ_OK) future_number_failure(f, s);
        }
        /* relaxed: a resolving thread sets SIGNALLED in the token before it sets DONE, so this
         * thread sees SIGNALLED if s has DONE. If a resolving thread sets COMPLETING after s was
         * read, the CAS fails and this thread reads the token again. */
        signalled = (fji_load_relaxed(&f->token.word) & FJI_TOKEN_SIGNALLED) != 0;
        /* [task.done] acq_rel -> acquire in fji_future_word() and the waiters: the outcome.
         * [future.listen] acquire <- release in listen_add(): the list of the listeners.
         * LAST TOUCH of *f, unless f is allocated, or has a release function or listeners. */
        if (fji_cas_acq_rel_32(word, &s, n)) break;
    }
    future_wake(word, s);
    /* The signal that was sent to this thread is delivered during this system call at the latest.
     * So it does not interrupt the next task. */
    if (signalled) fji_plat_yield();
    if (FJI_UNLIKELY((s & FJI_LISTENED) != 0)) {
        if (((s ^ n) & FJI_DONE) != 0) { /* this thread has made f DONE */
            fji_listeners_call(f->listeners, FUTURE_RELEASE, future_listeners_end);
            return;
        }
        /* If a resolving thread still calls listeners, it calls the release function. */
        if ((s & (FJI_DONE | FJI_CALLED)) == FJI_DONE) released = NULL;
    }
    if (released != NULL) released(f);
    if (allocated) fji_future_drop(f);
}

/* Called by the worker or guest w, whose pool has an interrupt_signal: runs the body of f and
 * returns its code. Sets SIGNALLABLE in the state word of f, so that a thread that cancels f with
 * interrupt can signal w. If f is resolved already, or another thread is resolving it, does not run
 * the body and returns FJ_ECANCELED. */
static int future_body_signallable(fj_future *f, fji_worker *w)
{
    f->runner = w;
    /* [future.runner] release -> acquire in future_claim(): the member `runner`.
     * [task.done] acquire <- acq_rel in future_claim(), future_publish(): what the thread that
     * resolves f did before. */
    uint32_t s = fji_or_acq_rel(&f->task.state, FJI_SIGNALLABLE);
    return (s & (FJI_DONE | FJI_COMPLETING)) == 0 ? f->fn(&f->task) : FJ_ECANCELED;
}

int fji_future_body(fj_future *f, fji_worker *w)
{
    if (w == NULL) return f->fn(&f->task);
    fji_scope_saved saved = fji_scope_enter(w, &f->token);
    bool signallable = w->pool->options.interrupt_signal != 0;
    int code = signallable ? future_body_signallable(f, w) : f->fn(&f->task);
    fji_scope_leave(w, saved);
    return code;
}

int fji_future_execute(fj_future *f, fji_worker *w)
{
    fj_task *t = &f->task;

    if (w != NULL) fji_task_claim(&t->state, &t->child_base, w->index, fji_worker_position(w));
    /* relaxed: only the thread that took f out of its queue sets DISCARDED, and that is this
     * thread. */
    bool discarded = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    return !discarded && fji_task_is_unresolved(t) ? fji_future_body(f, w) : FJ_ECANCELED;
}

int fji_future_run(fj_task *t)
{
    fj_future *f = (fj_future *)t;
    uint32_t generation = fji_fork_generation;
    int code = fji_future_execute(f, fji_worker_self());

    /* If the body has called fork() and this is the child process, f must not be accessed any more:
     * its memory may belong to a thread that exists only in the parent process (pool/atfork.c). */
    if (generation == fji_fork_generation) fji_future_finish(f, code);
    return FJI_COMPLETES_ITSELF;
}

/* ---- The outcome set by a call --------------------------------------------------------------- */

/* Sends the interrupt_signal to the worker that runs the body of f, unless that worker is the
 * calling thread or a guest. If it sends the signal, sets SIGNALLED in the token of f:
 * fji_future_finish() then makes sure that the signal arrives before the next task. Called
 * by the resolving thread while COMPLETING is set, so the worker cannot finish f meanwhile. */
static void future_signal(fj_future *f)
{
    const fji_worker *w = f->runner;
    int signal = w->pool->options.interrupt_signal;

    if (w == fji_worker_self() || w->alive != FJI_ALIVE_WORKER) return;
    fji_or_relaxed(&f->token.word, FJI_TOKEN_SIGNALLED); /* relaxed: DONE publishes it */
    fji_plat_thread_signal(w->thread, signal);
}

/* The list of the futures that the calling thread has resolved with FJI_RESOLVE_HOLDS and not made
 * DONE yet, the newest first. NULL if there is none. */
static __thread fji_held *future_held_here;

/* Returns the bits that the resolving thread sets in the state word together with COMPLETING.
 * `bits` and `how` are those of fji_future_resolve(). With FJI_RESOLVE_REPORTS these are REPORTED
 * and all bits of the outcome, because other threads do not wait for DONE then. Otherwise 0. */
static uint32_t future_early_bits(uint32_t bits, unsigned how)
{
    return (how & FJI_RESOLVE_REPORTS) != 0 ? FJI_REPORTED | FJI_EXTERNAL | bits : 0;
}

/* Tries to set COMPLETING and the bits `reported` (of future_early_bits()) in *word, the state word
 * of a future. Returns true if it did. Then the calling thread is the resolving thread, and *old is
 * the word before. Returns false if the future is resolved already. If another thread is resolving
 * the future, waits for DONE first, except in the case explained below. */
static bool future_claim(uint32_t *word, uint32_t reported, uint32_t *old)
{
    /* [task.done] acquire <- acq_rel in fji_future_finish(), future_publish(): the outcome. */
    uint32_t s = fji_load_acquire(word);

    for (;;) {
        if (FJI_LIKELY((s & (FJI_DONE | FJI_COMPLETING | FJI_LISTING)) == 0)) {
            *old = s;
            /* [task.done] acq_rel: of all threads that resolve or finish the future, only one
             * changes the word from unresolved. The finishing thread waits until COMPLETING is
             * cleared.
             * [future.listen] acquire <- release in listen_add(): the list of the listeners.
             * [future.runner] acquire <- release in future_body_signallable(): `runner`. */
            if (fji_cas_acq_rel_32(word, &s, s | FJI_COMPLETING | reported)) return true;
            continue;
        }
        if ((s & FJI_DONE) != 0) return false;
        /* If both bits are set, a thread has resolved the future, which is a completer. That thread
         * may be in on_error, which is user code and may take any time; it may also be this thread.
         * So this thread does not wait for DONE. */
        if ((s & (FJI_COMPLETING | FJI_REPORTED)) == (FJI_COMPLETING | FJI_REPORTED)) return false;
        s = future_await_clear(word, s & (FJI_COMPLETING | FJI_LISTING));
    }
}

/* Returns whether f has a limit that has expired. Then every call that resolves f also interrupts
 * its body. */
static bool future_limit_expired(const fj_future *f)
{
    /* relaxed: this thread has called fji_timers_withdraw() before. That call has either taken
     * fji_timers.lock, with which `kind` is changed, or found that `kind` changes no more. */
    return (f->flags & FJI_FUTURE_LIMIT) != 0 &&
           fji_load_relaxed(&((const fj_timer *)f)->kind) == FJI_TIMER_EXPIRED;
}

/* Returns the bits that the resolving thread sets in the token of f: CANCELLED, and INTERRUPT if
 * `how` has FJI_RESOLVE_INTERRUPTS or the limit of f has expired. The body of f, and the tasks that
 * are forked below it, run with this token. `bits` and `how` are those of fji_future_resolve().
 * Returns 0, that is, the token is not changed, if f is not cancelled and one of these is true:
 * `how` has FJI_RESOLVE_QUIETLY; f has no body and is not a completer; or the calling thread runs
 * the body of f. */
static uint32_t future_token_bits(const fj_future *f, uint32_t bits, unsigned how)
{
    const fji_worker *w = fji_worker_self();
    bool interrupt = (how & FJI_RESOLVE_INTERRUPTS) != 0 || future_limit_expired(f);

    if ((bits & FJI_CANCELLED) == 0) {
        uint32_t kind = f->flags & (FJI_FUTURE_NO_BODY | FJI_FUTURE_COMPLETER);
        if ((how & FJI_RESOLVE_QUIETLY) != 0 || kind == FJI_FUTURE_NO_BODY) return 0;
        if (w != NULL && fji_scope_runs(w, &f->token)) return 0; /* called by the body */
    }
    return FJI_TOKEN_CANCELLED | (interrupt ? FJI_TOKEN_INTERRUPT : 0);
}

/* Sets token_bits in the token of f. If they contain INTERRUPT, also wakes the interruptible waits
 * of tasks that run with the token, and calls future_signal() if `old` has SIGNALLABLE and not
 * RELEASED. `old`: the state word before COMPLETING was set. Does nothing if token_bits is 0. */
static void future_notify_body(fj_future *f, uint32_t old, uint32_t token_bits)
{
    bool runs = (old & (FJI_SIGNALLABLE | FJI_RELEASED)) == FJI_SIGNALLABLE;

    if (token_bits == 0) return;
    fji_token_set(&f->token, token_bits);
    if ((token_bits & FJI_TOKEN_INTERRUPT) == 0) return;
    fji_wake_interruptible(&f->token);
    if (runs) future_signal(f);
}

/* Clears COMPLETING, sets DONE and `bits` in *word, and wakes the waiters. Returns the old word. */
static uint32_t future_set_done(uint32_t *word, uint32_t bits)
{
    /* [task.done] acq_rel -> acquire in fji_future_word() and the waiters: the outcome.
     * LAST TOUCH of the future, unless it has listeners, or this thread releases it, and it is
     * allocated or has a release function. */
    uint32_t s = fji_xor_acq_rel(word, FJI_COMPLETING | FJI_DONE | bits);
    future_wake(word, s);
    return s;
}

/* The last step of the resolving thread: calls future_set_done(), and releases f if it has to.
 * `bits`: the bits of the outcome that are not in the state word yet. `release`: f is a timer that
 * this thread has taken out of the wheel. Then no finishing thread will release f, so this thread
 * does. */
static void future_publish(fj_future *f, uint32_t bits, bool release)
{
    void (*released)(fj_future *) = release ? future_released(f) : NULL;
    bool allocated = release && (f->flags & FJI_FUTURE_ALLOCATED) != 0;

    (void)future_set_done(&f->task.state, release ? bits | FJI_RELEASED : bits);
    if (released != NULL) released(f);
    if (allocated) fji_future_drop(f);
}

/* Does the same for a future that had LISTENED when this thread set COMPLETING, and calls the
 * listeners in the list `last`. The calling thread has a reference to f. */
static void future_publish_listened(fj_future *f, fj_listener *last, uint32_t bits, bool release)
{
    bool allocated = release && (f->flags & FJI_FUTURE_ALLOCATED) != 0;
    uint32_t s = future_set_done(&f->task.state, release ? bits | FJI_RELEASED : bits);
    /* If RELEASED was set before DONE, the finishing thread has called the release function. */
    uint32_t flags = (s & FJI_RELEASED) == 0 ? FUTURE_MAY_RELEASE : 0;
    fji_listeners_call(last, release ? FUTURE_RELEASE : flags, future_listeners_end);
    if (allocated) fji_future_drop(f); /* the reference of the library */
}

/* The last step of the resolving thread for a completer that it has resolved with
 * FJI_RESOLVE_REPORTS: the same as future_publish(). Another thread may have added listeners since
 * COMPLETING was set, and may be adding one. */
static void future_publish_reported(fj_future *f)
{
    uint32_t *word = &f->task.state;
    uint32_t s;

    do {
        s = future_await_clear(word, FJI_LISTING);
        /* [task.done] acq_rel -> acquire in fji_future_word() and the waiters: the outcome.
         * [future.listen] acquire <- release in listen_add(): the list of the listeners.
         * LAST TOUCH of *f, unless f has listeners. */
    } while (!fji_cas_acq_rel_32(word, &s, (s & ~FJI_COMPLETING) | FJI_DONE));
    future_wake(word, s);
    if ((s & FJI_LISTENED) != 0) fji_listeners_call(f->listeners, 0, future_listeners_end);
}

/* Writes the outcome of f, except `external`, and tells the body. old: the state word before
 * COMPLETING was set. The other parameters are those of fji_future_resolve(). Returns true if f is a
 * timer that this thread has taken out of the wheel: no other thread runs or releases f, so this
 * thread has to. If f has a limit, the limit is taken out of the wheel, but the result is false,
 * because f may be queued or running. */
static inline bool future_set_outcome(fj_future *f, uint32_t bits, int code, unsigned how,
                                      uint32_t old)
{
    f->external_code = code;
    bool timer = (f->flags & (FJI_FUTURE_TIMER | FJI_FUTURE_LIMIT)) != 0;
    bool withdrawn = timer && future_withdraw_timer(f);
    /* The body of a timer that was in the wheel does not run, so the token is not set. A completer
     * with a parent has no token of its own. */
    if (!withdrawn && !fji_completer_is_child(f))
        future_notify_body(f, old, future_token_bits(f, bits, how));
    if ((bits & FJI_FAILED) != 0) future_number_failure(f, old);
    return withdrawn;
}

/* The rest of fji_future_resolve() if f has listeners, or if `how` has FJI_RESOLVE_REPORTS. In the
 * second case f fails and has no result, and other threads may still add listeners. */
static FJI_COLD void future_resolve_slow(fj_future *f, uint32_t bits, void *result, int code,
                                         unsigned how, uint32_t old)
{
    if ((how & FJI_RESOLVE_REPORTS) != 0) {
        (void)future_set_outcome(f, bits, code, how, old);
        if ((how & FJI_RESOLVE_HOLDS) == 0) future_publish_reported(f);
        return;
    }
    fj_listener *last = f->listeners;
    (void)fj_future_ref(f); /* future_listeners_end() drops this reference */
    f->external = result;
    bool withdrawn = future_set_outcome(f, bits, code, how, old);
    future_publish_listened(f, last, FJI_EXTERNAL | bits, withdrawn);
}

bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how)
{
    uint32_t old, early = future_early_bits(bits, how);

    if (!future_claim(&f->task.state, early, &old)) return false;
    if (FJI_UNLIKELY(early != 0 || (old & FJI_LISTENED) != 0)) {
        future_resolve_slow(f, bits, result, code, how, old);
        return true;
    }
    f->external = result;
    bool withdrawn = future_set_outcome(f, bits, code, how, old);
    future_publish(f, FJI_EXTERNAL | bits, withdrawn);
    return true;
}

void fji_future_hold(fj_future *f, fji_held *held)
{
    *held = (fji_held){f, future_held_here};
    future_held_here = held;
}

void fji_future_publish_held(fji_held *held)
{
    future_held_here = held->outer;
    future_publish_reported(held->future);
}

bool fji_future_claim_report(fj_future *f)
{
    uint32_t s = fji_future_word(f);

    if ((s & FJI_DONE) == 0 || (s & (FJI_FAILED | FJI_CANCELLED)) == 0) return false;
    /* [task.done] acq_rel: if several threads set REPORTED, only the first finds it not set. */
    return (fji_or_acq_rel(&f->task.state, FJI_REPORTED) & FJI_REPORTED) == 0;
}

int fj_future_complete(fj_future *f, void *result)
{
    return f != NULL && fji_future_resolve(f, 0, result, FJ_OK, 0);
}

int fj_future_complete_quietly(fj_future *f)
{
    if (f == NULL) return 0;
    /* `result` is not read if f is resolved, because its body may still run and write it. */
    if (!fji_task_is_unresolved(&f->task)) return 0;
    /* relaxed: the contract of this function says that the body does not write `result` at the same
     * time. */
    return fji_future_resolve(f, 0, fji_load_relaxed(&f->result), FJ_OK, 0);
}

int fj_future_fail(fj_future *f, int code)
{
    if (code == FJ_ECANCELED) return fj_future_cancel(f, 0);
    return f != NULL &&
           fji_future_resolve(f, FJI_FAILED, NULL, code != FJ_OK ? code : FJ_EFAILED, 0);
}

int fj_future_cancel(fj_future *f, int interrupt)
{
    unsigned how = interrupt != 0 ? FJI_RESOLVE_INTERRUPTS : 0;

    if (f == NULL) return 0;
    if (fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, how)) return 1;
    /* If CANCELLED is set without DONE, f is a completer that another thread has cancelled, and
     * that thread may be in on_error. This counts as cancelled too. */
    return (fji_future_word(f) & FJI_CANCELLED) != 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

FJI_COLD bool fji_future_is_held(const fj_future *f)
{
    const fji_held *h = future_held_here;

    while (h != NULL && h->future != f) h = h->outer;
    return h != NULL;
}

uint32_t fji_future_word(const fj_future *f)
{
    /* [task.done] acquire <- acq_rel in fji_future_finish(), future_publish(): the outcome. */
    uint32_t s = fji_load_acquire(&f->task.state);

    return FJI_UNLIKELY((s & FJI_COMPLETING) != 0) && fji_future_is_held(f) ? s | FJI_DONE : s;
}

/* ---- References and release ------------------------------------------------------------------ */

void fj_future_unref(fj_future *f)
{
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_future_drop(f);
}

fj_future *fj_future_ref(fj_future *f)
{
    /* relaxed: the caller has a reference, so no other thread drops the last one and frees f
     * meanwhile. */
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_add_relaxed(&f->refs, 1);
    return f;
}
