/* SPDX-License-Identifier: MIT */
/*
 * future.c - the state word of a future: its outcome, and the calls that set or read it
 *
 * The word is fj_task.state, the same that structured tasks use when they are submitted:
 *
 *   DONE        the outcome is decided and written: waiters return
 *   COMPLETING  somebody who is not the runner is writing the outcome
 *   CANCELLED, FAILED   with DONE: what kind; neither: success
 *   GIVEN       with DONE: the outcome is in `given`, not in what the body left
 *   LET_GO      the library has no pointer to it any more
 *   DROPPED     taken out of a queue in order not to be run
 *   SIGNALLABLE `runner` is known, in a pool with an interrupt_signal
 *   TOLD        of a completer: its failure is known to its on_error and its parents, or is about
 *               to be. With COMPLETING: the outcome is decided, the deciding thread is in on_error
 *               and sees the future as done; all others do so when on_error has returned
 *   WAITING     somebody sleeps on the word
 *   OBSERVED    somebody sleeps in its lot; OBSERVED_ANY: waits for one of several
 *
 *   runner   (one)    body; result, and the code unless it went well; then one CAS: DONE and
 *                     LET_GO. If DONE was there already, or the body says FJ_PENDING: LET_GO
 *                     only. If COMPLETING: waits until it is DONE. With an interrupt_signal it
 *                     first says who it is and ors in SIGNALLABLE, and does not run the body if
 *                     it is DONE or COMPLETING by then.
 *   others   (any)    CAS to COMPLETING: has won. Writes `given`. Sets the token, so that the
 *                     body sees that its result is not wanted, unless it is the body itself that
 *                     decides, on its own thread. To interrupt, it also wakes whoever naps with
 *                     the token, wherever that is, and if the word is SIGNALLABLE and not LET_GO
 *                     signals the runner, which cannot leave meanwhile. Then one xor: COMPLETING
 *                     off, DONE on. LAST TOUCH.
 *
 * So the outcome is decided once, by whoever gets from neither-DONE-nor-COMPLETING to one of
 * them, and nothing of a future is written after DONE but LET_GO, by the runner, and WAITING,
 * OBSERVED. A future that was never queued has no cell, and LET_GO does not matter.
 *
 * A worker that joins the future it has forked last takes it out of its queue and runs it there
 * and then. That is the quick way: nothing but the scope of its token is told to anybody (see
 * cancel.c), and if the word is still 0 after a body that went well, the CAS is all there is to
 * do. Workers of pools with an interrupt_signal have no quick scopes and go the other way.
 *
 * Edges          from                                   to                       carries
 *   task.done    acq_rel, fji_future_finish(), fji_future_resolve()  acquire, everywhere  the outcome
 *   future.runner  acq_rel or, future_body_signallable()   acq_rel CAS, fji_future_resolve()  the runner
 *
 * Model: test/model/future.pml.
 */

#include "future/future.h"

#include "pool/timers.h"
#include "sched/interrupt.h"
#include "sched/scope.h"

/* ---- The end ------------------------------------------------------------------------------------------ */

/* The address of a task, by that of its word. */
static const void *future_of(const uint32_t *word)
{
    return (const char *)word - offsetof(fj_task, state);
}

void fji_future_drop(fj_future *f)
{
    if ((f->flags & FJI_FUTURE_ALLOCATED) == 0) return;
    /* [future.refs] release -> acquire: the last one frees what the others have left.
     * [future.refs] both ends are here. */
    if (fji_add_acq_rel(&f->refs, (uint32_t)-1) == 1) fji_plat_free(f);
}

/* The word was `old` before it was decided, and its memory may be gone. */
static void future_wake(uint32_t *word, uint32_t old)
{
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(word);
    if ((old & FJI_OBSERVED) != 0) fji_wait_bucket_notify(fji_wait_bucket(future_of(word)));
    if ((old & FJI_OBSERVED_ANY) != 0) fji_wait_bucket_notify(fji_wait_bucket(NULL));
}

/*
 * Numbers failures that somebody counts, for whoever wants to know the last. In `mark`, which is
 * of no use any more: it is where the tasks begin that a waiter may help with, and this is
 * beyond all of them.
 */
static void future_number(fj_future *f, uint32_t old)
{
    static uint32_t failures = FJI_START_FAILURES;

    if ((old & FJI_OBSERVED_ANY) == 0) return;
    uint32_t n = fji_add_relaxed(&failures, 1);                   /* relaxed: only a number */
    fji_store_relaxed(&f->task.fail_seq, FJI_FAIL_SEQ_VALID | n); /* relaxed: DONE comes after it */
}

static uint32_t outcome_bits(int code)
{
    if (code == FJ_OK) return 0;
    return code == FJ_ECANCELED ? FJI_CANCELLED : FJI_FAILED;
}

/* Somebody else decides at the moment: soon done. */
static uint32_t future_await_resolution(const uint32_t *word)
{
    uint32_t s;
    unsigned turn = 0;

    /* [task.done] acquire <- acq_rel in fji_future_resolve(). */
    while (((s = fji_load_acquire(word)) & FJI_COMPLETING) != 0) {
        fji_pause();
        if (++turn % 16 == 0) fji_plat_yield();
    }
    return s;
}

static void (*future_released(const fj_future *f))(fj_future *)
{
    return (f->flags & FJI_FUTURE_RELEASES) != 0 ? f->released : NULL;
}

/* f, which has a timer, is being resolved: takes the timer out of the wheel. Returns true if no queue and no
 * worker has f, so that the caller releases it. */
static bool future_withdraw_timer(fj_future *f)
{
    enum fji_withdrawn got = fji_timers_withdraw(f);

    if (got == FJI_TIMER_LIMIT_WAITED) fji_future_drop(f); /* the reference of the limit */
    return got == FJI_TIMER_WAITED;
}

void fji_future_finish(fj_future *f, int code)
{
    uint32_t *word = &f->task.state;
    void (*released)(fj_future *) = future_released(f);
    bool allocated = (f->flags & FJI_FUTURE_ALLOCATED) != 0;
    bool signalled;

    if ((f->flags & FJI_FUTURE_LIMIT) != 0 && code != FJ_PENDING) (void)future_withdraw_timer(f);
    if (code != FJ_OK) f->task.code = code;
    uint32_t s = fji_load_relaxed(word); /* relaxed: the CAS decides */
    for (;;) {
        if ((s & FJI_COMPLETING) != 0) s = future_await_resolution(word);
        uint32_t n = s | FJI_RELEASED;
        if ((s & FJI_DONE) == 0 && code != FJ_PENDING) {
            n |= FJI_DONE | outcome_bits(code);
            if (code != FJ_OK) future_number(f, s);
        }
        /* relaxed: whoever has signalled has decided before. */
        signalled = (fji_load_relaxed(&f->token.word) & FJI_TOKEN_SIGNALLED) != 0;
        /* [task.done] acq_rel -> acquire in whoever waits: the outcome. */
        if (fji_cas_acq_rel_32(word, &s, n)) break; /* LAST TOUCH unless it is kept for us. */
    }
    future_wake(word, s);
    if (signalled) fji_plat_yield(); /* a system call: the signal comes now, not in the next task */
    if (released != NULL) released(f);
    if (allocated) fji_future_drop(f);
}

/* Where there is a signal: so that whoever cancels it knows whom to send it to. */
static int future_body_signallable(fj_future *f, fji_worker *w)
{
    f->runner = w;
    /* [future.runner] release -> acquire in fji_future_resolve(): the runner.
     * [task.done] acquire <- acq_rel of whoever has decided. */
    uint32_t s = fji_or_acq_rel(&f->task.state, FJI_SIGNALLABLE);
    return (s & (FJI_DONE | FJI_COMPLETING)) == 0 ? f->fn(&f->task) : FJ_ECANCELED;
}

int fji_future_body(fj_future *f, fji_worker *w)
{
    if (w == NULL) return f->fn(&f->task);
    fji_scope_saved saved = fji_scope_enter(w, &f->token);
    bool tell = w->pool->options.interrupt_signal != 0;
    int code = tell ? future_body_signallable(f, w) : f->fn(&f->task);
    fji_scope_leave(w, saved);
    return code;
}

int fji_future_execute(fj_future *f, fji_worker *w)
{
    fj_task *t = &f->task;

    if (w != NULL) fji_task_claim(&t->state, &t->child_base, w->index, fji_worker_position(w));
    /* relaxed: only this thread sets DISCARDED. */
    bool discarded = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    return !discarded && fji_task_is_unresolved(t) ? fji_future_body(f, w) : FJ_ECANCELED;
}

int fji_future_run(fj_task *t)
{
    fj_future *f = (fj_future *)t;
    uint32_t generation = fji_fork_generation;
    int code = fji_future_execute(f, fji_worker_self());

    if (generation == fji_fork_generation) fji_future_finish(f, code); /* see pool/atfork.c */
    return FJI_COMPLETES_ITSELF;
}

/* ---- The outcome set by a call ------------------------------------------------------------------------ */

static void future_signal(fj_future *f)
{
    const fji_worker *w = f->runner;
    int signal = w->pool->options.interrupt_signal;

    if (w == fji_worker_self() || w->alive != FJI_ALIVE_WORKER) return;
    fji_or_relaxed(&f->token.word, FJI_TOKEN_SIGNALLED); /* relaxed: DONE comes after it */
    fji_plat_thread_signal(w->thread, signal);
}

/* Futures that the calling thread has decided and not yet shown to others: see TOLD. */
static __thread fji_held *future_held_here;

/* What of `held` is put into the word before DONE. */
static uint32_t future_reported_bits(uint32_t bits, unsigned how)
{
    uint32_t told = (how & FJI_RESOLVE_REPORTS) != 0 ? FJI_REPORTED : 0;

    return (how & FJI_RESOLVE_HOLDS) != 0 ? told | FJI_EXTERNAL | bits : told;
}

/* False: it is decided. Else COMPLETING is set, by this call alone; *old: the word before. */
static bool future_claim(uint32_t *word, uint32_t told, uint32_t *old)
{
    /* [task.done] acquire <- acq_rel of whoever has decided. */
    uint32_t s = fji_load_acquire(word);

    for (;;) {
        /* Not to be waited for in the code of the user, on_error: the outcome is known. */
        if ((s & (FJI_COMPLETING | FJI_REPORTED)) == (FJI_COMPLETING | FJI_REPORTED)) return false;
        if ((s & FJI_COMPLETING) != 0) s = future_await_resolution(word);
        if ((s & FJI_DONE) != 0) return false;
        /* [task.done] acq_rel: one alone gets here; the runner waits for DONE.
         * [future.runner] acquire <- release in future_body_signallable(): the runner. */
        if (fji_cas_acq_rel_32(word, &s, s | FJI_COMPLETING | told)) break;
    }
    *old = s;
    return true;
}

/* Whether the limit of f, which has one, has expired. Then a call that resolves f interrupts its body. */
static bool future_limit_expired(const fj_future *f)
{
    /* relaxed: set before the action of the limit is called, and the action leads to this call. */
    return (f->flags & FJI_FUTURE_LIMIT) != 0 &&
           fji_load_relaxed(&((const fj_timer *)f)->kind) == FJI_TIMER_EXPIRED;
}

/* What the body, and all that runs under it, is to see in the token of f. */
static uint32_t future_token_bits(const fj_future *f, uint32_t bits, unsigned how)
{
    const fji_worker *w = fji_worker_self();
    bool interrupt = (how & FJI_RESOLVE_INTERRUPTS) != 0 || future_limit_expired(f);

    if ((bits & FJI_CANCELLED) == 0) {
        uint32_t kind = f->flags & (FJI_FUTURE_NO_BODY | FJI_FUTURE_COMPLETER);
        if ((how & FJI_RESOLVE_QUIETLY) != 0 || kind == FJI_FUTURE_NO_BODY) return 0;
        if (w != NULL && fji_scope_runs(w, &f->token)) return 0; /* the body itself */
    }
    return FJI_TOKEN_CANCELLED | (interrupt ? FJI_TOKEN_INTERRUPT : 0);
}

static void future_notify_body(fj_future *f, uint32_t old, uint32_t says)
{
    bool runs = (old & (FJI_SIGNALLABLE | FJI_RELEASED)) == FJI_SIGNALLABLE;

    if (says == 0) return;
    fji_token_set(&f->token, says);
    if ((says & FJI_TOKEN_INTERRUPT) == 0) return;
    fji_wake_interruptible(&f->token);
    if (runs) future_signal(f);
}

/* The last step of whoever has won. `bits` are those that are not in the word yet. */
static void future_publish(fj_future *f, uint32_t bits, bool out)
{
    uint32_t *word = &f->task.state;
    void (*released)(fj_future *) = out ? future_released(f) : NULL;
    bool allocated = out && (f->flags & FJI_FUTURE_ALLOCATED) != 0;

    if (out) bits |= FJI_RELEASED;
    /* [task.done] acq_rel -> acquire in whoever waits: the outcome. */
    uint32_t s = fji_xor_acq_rel(word, FJI_COMPLETING | FJI_DONE | bits); /* LAST TOUCH */
    future_wake(word, s);
    if (released != NULL) released(f);
    if (allocated) fji_future_drop(f);
}

bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how)
{
    uint32_t old, told = future_reported_bits(bits, how);

    if (!future_claim(&f->task.state, told, &old)) return false;
    f->external = result;
    f->external_code = code;
    /* A timer that waits is out of its pool: nobody runs it, and nobody else lets it go. */
    bool timer = (f->flags & (FJI_FUTURE_TIMER | FJI_FUTURE_LIMIT)) != 0;
    bool out = timer && future_withdraw_timer(f);
    /* Whatever waits in no queue has nobody who could look at its token; a completer below
     * another has none, but its root's. */
    if (!out && !fji_completer_is_child(f))
        future_notify_body(f, old, future_token_bits(f, bits, how));
    if ((bits & FJI_FAILED) != 0) future_number(f, old);
    if ((how & FJI_RESOLVE_HOLDS) == 0) future_publish(f, FJI_EXTERNAL | bits, out);
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
    future_publish(held->future, 0, false);
}

bool fji_future_claim_report(fj_future *f)
{
    if (!fj_future_failed(f)) return false;
    /* [task.done] acq_rel: one alone passes it on. */
    return (fji_or_acq_rel(&f->task.state, FJI_REPORTED) & FJI_REPORTED) == 0;
}

int fj_future_complete(fj_future *f, void *result)
{
    return f != NULL && fji_future_resolve(f, 0, result, FJ_OK, 0);
}

int fj_future_complete_quietly(fj_future *f)
{
    if (f == NULL) return 0;
    /* relaxed: what the body has set so far, if it is the body's thread that asks. */
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
    return fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, how) ||
           fj_future_is_cancelled(f);
}

/* ---- Reading ------------------------------------------------------------------------------------------ */

/* Whether the calling thread has decided f and is in its on_error. */
FJI_COLD bool fji_future_is_held(const fj_future *f)
{
    const fji_held *h = future_held_here;

    while (h != NULL && h->future != f) h = h->outer;
    return h != NULL;
}

uint32_t fji_future_word(const fj_future *f)
{
    /* [task.done] acquire <- acq_rel of whoever has decided: the outcome. */
    uint32_t s = fji_load_acquire(&f->task.state);

    return FJI_UNLIKELY((s & FJI_COMPLETING) != 0) && fji_future_is_held(f) ? s | FJI_DONE : s;
}

int fj_future_is_done(const fj_future *f)
{
    return f != NULL && (fji_future_word(f) & FJI_DONE) != 0;
}

int fj_future_succeeded(const fj_future *f)
{
    if (f == NULL) return 0;
    return (fji_future_word(f) & (FJI_DONE | FJI_FAILED | FJI_CANCELLED)) == FJI_DONE;
}

int fj_future_failed(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = fji_future_word(f);
    return (s & FJI_DONE) != 0 && (s & (FJI_FAILED | FJI_CANCELLED)) != 0;
}

int fj_future_is_cancelled(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = fji_future_word(f);
    return (s & FJI_DONE) != 0 && (s & FJI_CANCELLED) != 0;
}

enum fj_future_state fj_future_state(const fj_future *f)
{
    if (f == NULL) return FJ_FUTURE_RUNNING;
    uint32_t s = fji_future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_FUTURE_RUNNING;
    if ((s & FJI_CANCELLED) != 0) return FJ_FUTURE_CANCELLED;
    return (s & FJI_FAILED) != 0 ? FJ_FUTURE_FAILED : FJ_FUTURE_SUCCESS;
}

/* Of a future that is done. */
int fji_future_code(const fj_future *f)
{
    uint32_t s = fji_future_word(f);

    if ((s & FJI_CANCELLED) != 0) return FJ_ECANCELED;
    if ((s & FJI_FAILED) == 0) return FJ_OK;
    return (s & FJI_EXTERNAL) != 0 ? f->external_code : f->task.code;
}

int fj_future_result(const fj_future *f, void **result)
{
    if (f == NULL) return FJ_EINVAL;
    uint32_t s = fji_future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_EBUSY;
    int code = fji_future_code(f);
    if (code == FJ_OK && result != NULL)
        *result = (s & FJI_EXTERNAL) != 0 ? f->external : f->result;
    return code;
}

int fj_future_error(const fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    return fj_future_is_done(f) ? fji_future_code(f) : FJ_OK;
}

/* ---- References and release --------------------------------------------------------------------------- */

void fj_future_set_release_fn(fj_future *f, void (*released)(fj_future *f))
{
    if (f == NULL) return;
    f->released = released;
    f->flags = released != NULL ? f->flags | FJI_FUTURE_RELEASES : f->flags & ~FJI_FUTURE_RELEASES;
}

bool fji_future_is_in_use(const fj_future *f)
{
    /* relaxed: NULL, or put into a queue by now. */
    return fji_load_relaxed(&f->task.cell) != NULL && (fji_future_word(f) & FJI_RELEASED) == 0;
}

void fj_future_unref(fj_future *f)
{
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_future_drop(f);
}

fj_future *fj_future_ref(fj_future *f)
{
    /* relaxed: whoever has one may give another. */
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_add_relaxed(&f->refs, 1);
    return f;
}

/* Lost with the threads of the parent process: nobody else decides it. */
void fji_future_orphan(fj_future *f)
{
    (void)fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, 0);
    fji_or_relaxed(&f->task.state, FJI_RELEASED); /* relaxed: as good as alone */
}

/* ---- Tags --------------------------------------------------------------------------------------------- */

int16_t fj_future_tag(const fj_future *f)
{
    if (f == NULL) return 0;
    /* [future.tag] acquire <- release of whoever set it. */
    return (int16_t)(uint16_t)fji_load_acquire(&f->tag);
}

int16_t fj_future_set_tag(fj_future *f, int16_t tag)
{
    if (f == NULL) return 0;
    /* [future.tag] acq_rel: a tag may be used as a mark that something was done. */
    return (int16_t)(uint16_t)fji_swap_acq_rel(&f->tag, (uint32_t)(uint16_t)tag);
}

int fj_future_cas_tag(fj_future *f, int16_t expected, int16_t tag)
{
    uint32_t old = (uint16_t)expected;

    if (f == NULL) return 0;
    /* [future.tag] acq_rel: as above. */
    return fji_cas_acq_rel_32(&f->tag, &old, (uint16_t)tag);
}
