/* SPDX-License-Identifier: MIT */
/*
 * future.c - tasks that anybody may wait for, cancel or complete
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
#include "pool.h"

#define FUTURE_NUMBERED 0x80000000u

/* The allocated kind: fn(arg). */
struct future_call {
    fj_future future;
    fj_call_fn *call;
    fj_action_fn *action;
    void *arg;
};

/* ---- The end ---------------------------------------------------------------------------------------- */

/* The address of a task, by that of its word. */
static const void *future_of(const uint32_t *word)
{
    return (const char *)word - offsetof(fj_task, state);
}

void fji_future_unref(fj_future *f)
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
    uint32_t n = fji_add_relaxed(&failures, 1);                /* relaxed: only a number */
    fji_store_relaxed(&f->task.fail_seq, FUTURE_NUMBERED | n); /* relaxed: DONE comes after it */
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

void fji_future_finish(fj_future *f, int code)
{
    uint32_t *word = &f->task.state;
    void (*released)(fj_future *) = future_released(f);
    bool allocated = (f->flags & FJI_FUTURE_ALLOCATED) != 0;
    bool signalled;

    if ((f->flags & FJI_FUTURE_LIMIT) != 0 && code != FJ_PENDING) (void)fji_timer_remove(f);
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
    if (allocated) fji_future_unref(f);
}

bool fji_future_unresolved(const fj_future *f)
{
    /* [task.done] acquire <- acq_rel in fji_future_resolve(). */
    return (fji_load_acquire(&f->task.state) & (FJI_DONE | FJI_COMPLETING)) == 0;
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

/* Runs the body unless the outcome is decided. w: the calling worker, or NULL. */
static void future_execute(fj_future *f, fji_worker *w)
{
    fji_future_finish(f, fji_future_unresolved(f) ? fji_future_body(f, w) : FJ_ECANCELED);
}

/* What the queues call: the body of the task that a future is. */
int fji_future_run(fj_task *t)
{
    fj_future *f = (fj_future *)t;
    fji_worker *w = fji_worker_self();
    uint32_t generation = fji_fork_generation;

    if (w != NULL) fji_worker_claim(w, &t->state, &t->child_base);
    /* relaxed: only by this thread. */
    bool dropped = (fji_load_relaxed(&t->state) & FJI_DISCARDED) != 0;
    bool run = !dropped && fji_future_unresolved(f);
    int code = run ? fji_future_body(f, w) : FJ_ECANCELED;
    if (generation == fji_fork_generation) fji_future_finish(f, code); /* else: see child.c */
    return FJI_COMPLETES_ITSELF;
}

/* ---- The outcome by another hand ---------------------------------------------------------------------- */

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

/* What the body, and all that runs under it, is to see in the token of f. */
static uint32_t future_token_bits(const fj_future *f, uint32_t bits, unsigned how)
{
    const fji_worker *w = fji_worker_self();
    bool limit = (f->flags & FJI_FUTURE_LIMIT) != 0;
    bool interrupt = (how & FJI_RESOLVE_INTERRUPTS) != 0 || (limit && fji_timer_has_expired(f));

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
    if (allocated) fji_future_unref(f);
}

bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how)
{
    uint32_t old, told = future_reported_bits(bits, how);

    if (!future_claim(&f->task.state, told, &old)) return false;
    f->external = result;
    f->external_code = code;
    /* A timer that waits is out of its pool: nobody runs it, and nobody else lets it go. */
    bool timer = (f->flags & (FJI_FUTURE_TIMER | FJI_FUTURE_LIMIT)) != 0;
    bool out = timer && fji_timer_remove(f);
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

/* ---- Looking ------------------------------------------------------------------------------------------ */

/* Whether the calling thread has decided f and is in its on_error. */
static FJI_COLD bool future_is_held(const fj_future *f)
{
    const fji_held *h = future_held_here;

    while (h != NULL && h->future != f) h = h->outer;
    return h != NULL;
}

static uint32_t future_word(const fj_future *f)
{
    /* [task.done] acquire <- acq_rel of whoever has decided: the outcome. */
    uint32_t s = fji_load_acquire(&f->task.state);

    return FJI_UNLIKELY((s & FJI_COMPLETING) != 0) && future_is_held(f) ? s | FJI_DONE : s;
}

int fj_future_is_done(const fj_future *f)
{
    return f != NULL && (future_word(f) & FJI_DONE) != 0;
}

int fj_future_succeeded(const fj_future *f)
{
    if (f == NULL) return 0;
    return (future_word(f) & (FJI_DONE | FJI_FAILED | FJI_CANCELLED)) == FJI_DONE;
}

int fj_future_failed(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = future_word(f);
    return (s & FJI_DONE) != 0 && (s & (FJI_FAILED | FJI_CANCELLED)) != 0;
}

int fj_future_is_cancelled(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = future_word(f);
    return (s & FJI_DONE) != 0 && (s & FJI_CANCELLED) != 0;
}

enum fj_future_state fj_future_state(const fj_future *f)
{
    if (f == NULL) return FJ_FUTURE_RUNNING;
    uint32_t s = future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_FUTURE_RUNNING;
    if ((s & FJI_CANCELLED) != 0) return FJ_FUTURE_CANCELLED;
    return (s & FJI_FAILED) != 0 ? FJ_FUTURE_FAILED : FJ_FUTURE_SUCCESS;
}

/* Of a future that is done. */
static int future_code(const fj_future *f)
{
    uint32_t s = future_word(f);

    if ((s & FJI_CANCELLED) != 0) return FJ_ECANCELED;
    if ((s & FJI_FAILED) == 0) return FJ_OK;
    return (s & FJI_EXTERNAL) != 0 ? f->external_code : f->task.code;
}

int fj_future_result(const fj_future *f, void **result)
{
    if (f == NULL) return FJ_EINVAL;
    uint32_t s = future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_EBUSY;
    int code = future_code(f);
    if (code == FJ_OK && result != NULL)
        *result = (s & FJI_EXTERNAL) != 0 ? f->external : f->result;
    return code;
}

int fj_future_error(const fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    return fj_future_is_done(f) ? future_code(f) : FJ_OK;
}

/* ---- Making and queueing -------------------------------------------------------------------------------- */

void fj_future_set_release_fn(fj_future *f, void (*released)(fj_future *f))
{
    if (f == NULL) return;
    f->released = released;
    f->flags = released != NULL ? f->flags | FJI_FUTURE_RELEASES : f->flags & ~FJI_FUTURE_RELEASES;
}

static bool future_held(const fj_future *f)
{
    /* relaxed: NULL, or put into a queue by now. */
    return fji_load_relaxed(&f->task.cell) != NULL && (future_word(f) & FJI_RELEASED) == 0;
}

static bool future_may_queue(const fj_future *f)
{
    if (f == NULL || f->fn == NULL || f->task.cell != NULL) return false;
    /* relaxed: the caller has it. A body that was run here, and not reinitialised since. */
    return (fji_load_relaxed(&f->task.state) & FJI_RELEASED) == 0;
}

/* While it is queued or runs the library has a reference to an allocated one. */
static int future_queue_in(fj_pool *p, fj_future *f, bool outside, bool wake)
{
    (void)fj_future_ref(f);
    int err = fji_submit_future(p, &f->task, fji_completer_root(f), outside, wake);
    if (err != FJ_OK) fji_future_unref(f);
    return err;
}

static int future_queue(fj_pool *pool, fj_future *f, bool outside, bool wake)
{
    if (!future_may_queue(f)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    return p != NULL ? future_queue_in(p, f, outside, wake) : FJ_ENOMEM;
}

int fj_future_submit(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, false, true);
}

int fj_future_submit_external(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, true, true);
}

int fj_future_submit_lazy(fj_pool *pool, fj_future *f)
{
    return future_queue(pool, f, false, false);
}

/* Apart, as what follows, so that the fast path saves no registers for it. */
static FJI_COLD int future_fork_slow(fj_future *f)
{
    fji_worker *w = fji_worker_self();

    if (w == NULL) return future_queue(NULL, f, false, true);
    if (!future_may_queue(f)) return FJ_EINVAL;
    if (future_queue_in(w->pool, f, false, true) != FJ_OK) {
        (void)fj_future_ref(f);
        fji_task_mark_unqueued(w->pool, &f->task);
        (void)f->task.fn(&f->task); /* no room: at once */
    }
    return FJ_OK;
}

int fj_future_fork(fj_future *f)
{
    /* relaxed: the caller has it. */
    bool quick = f != NULL && f->flags == 0 && f->task.cell == NULL &&
                 fji_load_relaxed(&f->task.state) == 0;

    if (FJI_LIKELY(quick && fji_push_future(&f->task, 0))) return FJ_OK;
    return future_fork_slow(f);
}

int fj_future_reinit(fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    if (!fj_future_is_done(f) || future_held(f) || future_is_held(f)) return FJ_EBUSY;
    f->task.cell = NULL;
    f->tag = 0;
    if (!fji_completer_is_child(f)) f->token.word = 0;
    fji_store_relaxed(&f->task.state, 0u); /* relaxed: the caller alone has it */
    return FJ_OK;
}

/* ---- Waiting ------------------------------------------------------------------------------------------- */

#define FUTURE_ONLY_LOOKS INT64_MIN

static int64_t future_deadline(int64_t timeout_ns)
{
    if (timeout_ns == FJ_FOREVER) return FJ_FOREVER;
    int64_t now = fji_plat_now();
    if (timeout_ns <= 0) return FUTURE_ONLY_LOOKS;
    return timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
}

static fj_pool *future_pool(const fj_future *f)
{
    fj_cell *submitted = fji_load_relaxed(&f->task.cell); /* relaxed: pools come before it */
    return submitted != NULL ? *(fj_pool **)(void *)submitted->args : NULL;
}

/* Takes f out of the queue it is in, if this thread may and nobody has it, and runs it. */
static void future_take_back(fj_pool *p, fj_future *f)
{
    if (fji_submit_take_back(p, &f->task, FJI_TAG_FUTURE)) (void)f->task.fn(&f->task);
}

/* Lost with the threads of the parent process: nobody else decides it. */
static void future_orphan(fj_future *f)
{
    (void)fji_future_resolve(f, FJI_CANCELLED, NULL, FJ_ECANCELED, 0);
    fji_or_relaxed(&f->task.state, FJI_RELEASED); /* relaxed: as good as alone */
}

/* Waits in p, which has f, and may run tasks meanwhile: f itself if no thread has it yet. */
static int future_await_working(fj_pool *p, fj_future *f, const fji_wait *how)
{
    fji_worker *w = fji_worker_self();
    int err = FJ_OK;
    bool own = w != NULL && w->pool == p;
    bool helps = p->caller_helps && (f->flags & FJI_FUTURE_NOT_BY_CALLERS) == 0;
    bool works = fji_submit_caller_works(p, helps);
    fji_worker *g = works && !own ? fji_guest_enter(p, true) : NULL;
    bool may_run = own || (g != NULL && !fji_pool_stopping(p));

    if (may_run && fji_load_relaxed(&f->task.cell) != NULL) /* relaxed: pools come before it */
        future_take_back(p, f);
    if ((future_word(f) & how->done) == 0) { /* its body may have left it open */
        fji_wait as = *how;
        as.guest = g != NULL;
        fji_wake_for_lazy(p);
        err = fji_await_task(g != NULL ? g : w, p, &f->task, &as);
    }
    if (g != NULL) fji_guest_leave(g);
    return err;
}

/* The same with a limit: the caller runs nothing, since it could not stop when its time is over. */
static int future_await_idly(fj_pool *p, fj_future *f, const fji_wait *how)
{
    fji_pool_needs_worker(p); /* no caller may run it */
    fji_wake_for_lazy(p);
    return fji_await_task(fji_worker_self(), p, &f->task, how);
}

/* Until one of the `done` bits is there. */
static int future_await(fj_future *f, const fji_wait *how)
{
    fji_worker *w = fji_worker_self();
    fji_wait as = *how;

    if ((future_word(f) & how->done) != 0) return FJ_OK;
    /* The pool that it was in is only known to be there while it has it. */
    fj_pool *p = how->root != NULL || future_held(f) ? future_pool(f) : NULL;
    if (p != NULL && fji_task_is_orphaned(&f->task)) {
        future_orphan(f);
        return FJ_OK;
    }
    /* What was not queued itself: its tasks are in the pool of whoever has run it. */
    if (p == NULL && how->root != NULL) p = w != NULL ? w->pool : fji_common_if_made();
    if (how->interruptible && w != NULL && fji_interrupted(w)) return FJ_ECANCELED;
    if (how->deadline == FUTURE_ONLY_LOOKS) return FJ_ETIMEDOUT;
    if (w == NULL) as.interruptible = false; /* no task: a guest of a pool that stops waits on */
    as.token = &f->token;
    if (p == NULL) return fji_await_task(w, w != NULL ? w->pool : NULL, &f->task, &as);
    int err = fji_wait_may_run(how) ? future_await_working(p, f, &as)
                                    : future_await_idly(p, f, &as);
    if (err == FJ_OK && (future_word(f) & how->done) == 0) future_orphan(f);
    return err;
}

static int future_wait_for(fj_future *f, int64_t timeout_ns, bool interruptible, uintptr_t root)
{
    fji_wait how = {.done = FJI_DONE,
                    .interruptible = interruptible,
                    .deadline = future_deadline(timeout_ns),
                    .root = (void *)root};

    return future_await(f, &how);
}

int fj_future_wait(fj_future *f, int64_t timeout_ns)
{
    return f != NULL ? future_wait_for(f, timeout_ns, true, fji_completer_root(f)) : FJ_EINVAL;
}

int fj_future_wait_quietly(fj_future *f, int64_t timeout_ns)
{
    return f != NULL ? future_wait_for(f, timeout_ns, false, fji_completer_root(f)) : FJ_EINVAL;
}

static FJI_COLD int future_join_slow(fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    (void)future_wait_for(f, FJ_FOREVER, false, fji_completer_root(f));
    return future_code(f);
}

/* Taken out of the own queue, its outcome not as simple as it mostly is. */
static FJI_COLD int future_join_finish(fj_future *f, int code)
{
    fji_future_finish(f, code);
    return fj_future_is_done(f) ? future_code(f) : future_join_slow(f); /* left open */
}

static FJI_COLD int future_join_popped(fj_future *f)
{
    bool run = fji_future_unresolved(f);

    if (f->task.fn != fji_future_run) {
        (void)f->task.fn(&f->task); /* a completer */
        return future_join_slow(f);
    }
    return future_join_finish(f, run ? fji_future_body(f, fji_worker_self()) : FJ_ECANCELED);
}

int fj_future_join(fj_future *f)
{
    fj_worker *fast = fji_self;
    fji_worker *w = (fji_worker *)(void *)fast; /* not if this thread works for no pool */
    uint32_t s = 0;                             /* nobody waits, nobody decides */

    /* The task is its first member, also of none: NULL is in no queue. */
    if (!fji_pop_future(fast, (fj_task *)(void *)f)) return future_join_slow(f);
    /* [task.done] acquire <- acq_rel of whoever has decided. */
    bool quick = fji_load_acquire(&f->task.state) == 0 && f->flags == 0;
    fji_scope *scope = w->scope;
    if (FJI_UNLIKELY(!quick || scope >= w->scope_limit)) return future_join_popped(f);
    fji_scope_push(w, scope, &f->token, fast->top);
    int code = f->fn(&f->task);
    fji_store_relaxed(&w->scope, scope); /* relaxed: who stole under this scope is through */
    /* [task.done] acq_rel -> acquire in whoever waits: the outcome. LAST TOUCH. */
    bool plain = code == FJ_OK && fji_cas_acq_rel_32(&f->task.state, &s, FJI_DONE | FJI_RELEASED);
    return FJI_LIKELY(plain) ? FJ_OK : future_join_finish(f, code);
}

int fj_future_get(fj_future *f, int64_t timeout_ns, void **result)
{
    int err = fj_future_wait(f, timeout_ns);

    return err != FJ_OK ? err : fj_future_result(f, result);
}

int fj_future_run(fj_future *f)
{
    if (f == NULL || (f->fn == NULL && !fj_future_is_done(f))) return FJ_EINVAL;
    if (f->task.cell == NULL && !fj_future_is_done(f)) {
        (void)fj_future_ref(f);
        if (f->task.fn == fji_future_run)
            future_execute(f, fji_worker_self());
        else
            (void)f->task.fn(&f->task);
    }
    return fj_future_join(f);
}

int fj_future_invoke(fj_pool *pool, fj_future *f)
{
    fji_worker *w = fji_worker_self();

    if (!future_may_queue(f)) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    if (w != NULL && w->pool == p) return fj_future_run(f);
    if (fji_submit_caller_works(p, p->caller_helps)) {
        fji_worker *g = fji_guest_enter(p, false);
        if (g != NULL) {
            int code = fj_future_run(f);
            fji_guest_leave(g);
            return code;
        }
    }
    int err = future_queue(p, f, true, true);
    return err != FJ_OK ? err : fj_future_join(f);
}

void fj_future_fini(fj_future *f)
{
    fji_wait how = {.done = FJI_RELEASED, .deadline = FJ_FOREVER};

    if (f == NULL || (f->flags & FJI_FUTURE_ALLOCATED) != 0) return;
    if (future_held(f) && !fji_completer_is_child(f)) (void)future_await(f, &how);
}

void fj_future_unref(fj_future *f)
{
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_future_unref(f);
}

fj_future *fj_future_ref(fj_future *f)
{
    /* relaxed: whoever has one may give another. */
    if (f != NULL && (f->flags & FJI_FUTURE_ALLOCATED) != 0) fji_add_relaxed(&f->refs, 1);
    return f;
}

/* ---- Tags ----------------------------------------------------------------------------------------------- */

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

/* ---- fn(arg) -------------------------------------------------------------------------------------------- */

static int call_run(fj_task *t)
{
    struct future_call *c = (struct future_call *)t;

    if (c->action != NULL) return c->action(c->arg);
    c->future.result = NULL;
    return c->call(c->arg, &c->future.result);
}

static struct future_call *call_make(void *arg, void *result, bool interruptible)
{
    struct future_call *c = fji_plat_alloc(sizeof *c);

    if (c == NULL) return NULL;
    fj_future_init(&c->future, call_run);
    c->arg = arg;
    c->future.result = result;
    c->future.refs = 1;
    c->future.flags = FJI_FUTURE_ALLOCATED;
    if (interruptible) c->future.flags |= FJI_FUTURE_NOT_BY_CALLERS;
    return c;
}

int fj_future_new_call(fj_call_fn *call, void *arg, int interruptible, fj_future **f)
{
    if (call == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make(arg, NULL, interruptible != 0);
    if (c == NULL) return FJ_ENOMEM;
    c->call = call;
    *f = &c->future;
    return FJ_OK;
}

int fj_future_new_action(fj_action_fn *action, void *arg, void *result, int interruptible,
                         fj_future **f)
{
    if (action == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make(arg, result, interruptible != 0);
    if (c == NULL) return FJ_ENOMEM;
    c->action = action;
    *f = &c->future;
    return FJ_OK;
}

static int call_submit(fj_pool *pool, fj_future *made, fj_future **f)
{
    int err = fj_future_submit(pool, made);

    if (err == FJ_OK)
        *f = made;
    else
        fji_future_unref(made);
    return err;
}

int fj_submit_call(fj_pool *pool, fj_call_fn *call, void *arg, fj_future **f)
{
    fj_future *made = NULL;

    if (f == NULL) return FJ_EINVAL;
    int err = fj_future_new_call(call, arg, fji_worker_self() == NULL, &made);
    return err != FJ_OK ? err : call_submit(pool, made, f);
}

int fj_submit_action(fj_pool *pool, fj_action_fn *action, void *arg, void *result, fj_future **f)
{
    fj_future *made = NULL;

    if (f == NULL) return FJ_EINVAL;
    int err = fj_future_new_action(action, arg, result, fji_worker_self() == NULL, &made);
    return err != FJ_OK ? err : call_submit(pool, made, f);
}

/* ---- With a token ----------------------------------------------------------------------------------------- */

struct with_token {
    fj_task task;
    fj_task *inner;
    fj_token *token;
};

static int with_token_run(fj_task *t)
{
    struct with_token *with = (struct with_token *)t;
    fji_worker *w = fji_worker_self();

    if (fj_token_is_cancelled(with->token)) return FJ_ECANCELED;
    if (w == NULL) return with->inner->fn(with->inner);
    fji_scope_saved saved = fji_scope_enter(w, with->token);
    int code = with->inner->fn(with->inner);
    fji_scope_leave(w, saved);
    return code;
}

int fj_invoke_token(fj_pool *pool, fj_task *t, fj_token *token)
{
    struct with_token with = {.inner = t, .token = token};

    if (t == NULL || t->fn == NULL || token == NULL) return FJ_EINVAL;
    fj_task_init(&with.task, with_token_run);
    return fj_invoke(pool, &with.task);
}

/* ---- Several -------------------------------------------------------------------------------------------- */

static bool futures_there(fj_future *const *f, size_t n)
{
    if (n != 0 && !fji_array_ok(f, n, sizeof *f, sizeof *f)) return false;
    for (size_t i = 0; i < n; i++)
        if (f[i] == NULL) return false;
    return true;
}

static int all_wait(fj_future *const *f, size_t n, int64_t deadline, bool interruptible)
{
    int err = FJ_OK;

    for (size_t i = 0; i < n && err == FJ_OK; i++) {
        fji_wait how = {.done = FJI_DONE,
                        .interruptible = interruptible,
                        .deadline = deadline,
                        .root = (void *)fji_completer_root(f[i])};
        err = future_await(f[i], &how);
    }
    return err;
}

int fj_future_wait_all(fj_future *const *f, size_t n, int64_t timeout_ns)
{
    if (!futures_there(f, n)) return FJ_EINVAL;
    return all_wait(f, n, future_deadline(timeout_ns), true);
}

/* The first for which `good` holds; n if there is none. */
static size_t any_find(fj_future *const *f, size_t n, int (*good)(const fj_future *))
{
    size_t i = 0;

    while (i < n && !good(f[i])) i++;
    return i;
}

/* Lets the threads of the pools of f run what is queued lazily or stranded. */
static void any_move(fj_future *const *f, size_t n, bool may_run)
{
    for (size_t i = 0; i < n; i++) {
        if ((future_word(f[i]) & FJI_DONE) != 0 || !future_held(f[i])) continue;
        fj_pool *p = future_pool(f[i]);
        fji_wake_for_lazy(p);
        if (!may_run) fji_pool_needs_worker(p);
        fji_run_threadless(p, may_run);
        if (fji_task_is_orphaned(&f[i]->task)) future_orphan(f[i]);
    }
}

static void futures_observe(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        /* [task.done] acq_rel: it is either done by now, or whoever decides sees the bit. */
        (void)fji_or_acq_rel(&f[i]->task.state, FJI_OBSERVED_ANY);
}

/* A worker that nobody stands in for runs one of them itself, or nobody might. */
static bool any_run_own(const fji_worker *w, fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((future_word(f[i]) & FJI_DONE) != 0 || !future_held(f[i])) continue;
        if (future_pool(f[i]) != w->pool) continue;
        if (!fji_submit_take_back(w->pool, &f[i]->task, FJI_TAG_FUTURE)) continue;
        (void)f[i]->task.fn(&f[i]->task);
        return true;
    }
    return false;
}

/* Whether no other worker is active, nor is one being started. */
static bool any_alone(const fj_pool *p)
{
    int target = fji_load_relaxed(&p->parallelism); /* relaxed: looked at again after a while */

    return fji_ctl_deficit(fji_load_relaxed(&p->ctl)) + target <= 0; /* relaxed: as above */
}

/*
 * Until one is good, or all are done. Nobody helps who need not: it would be stuck in one of
 * them when another is done.
 */
static int any_wait(fj_future *const *f, size_t n, int64_t deadline, int (*good)(const fj_future *),
                    size_t *which)
{
    fji_worker *w = fji_worker_self();
    uint32_t *bucket = fji_wait_bucket(NULL);
    bool may_run = deadline == FJ_FOREVER; /* it could not stop when its time is over */
    int err = FJ_OK;

    if ((*which = any_find(f, n, good)) < n) return FJ_OK;
    futures_observe(f, n);
    int token = w != NULL ? fji_compensate_begin(w) : 0;
    bool alone = token != (int)FJI_BLOCKED_YES || any_alone(w->pool);
    int64_t pause = 0;
    if (w != NULL) fji_interruptible_begin(w, bucket);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): what has changed is seen below. */
        uint32_t seen = fji_load_acquire(bucket);
        if ((*which = any_find(f, n, good)) < n) break;
        size_t left = 0;
        for (size_t i = 0; i < n; i++) left += !fj_future_is_done(f[i]);
        if (left == 0) { /* all have come to their end since the look above: it was too early */
            *which = any_find(f, n, good);
            break;
        }
        if (w != NULL && fji_interrupted(w)) {
            err = FJ_ECANCELED;
            break;
        }
        if (w != NULL && alone && may_run && any_run_own(w, f, n)) {
            fji_interruptible_begin(w, bucket); /* it may have napped elsewhere */
            continue;
        }
        any_move(f, n, may_run);
        int64_t now = fji_plat_now();
        if (now >= deadline) {
            err = FJ_ETIMEDOUT;
            break;
        }
        int64_t look = now + FJI_THREADLESS_POLL_NS;
        int64_t retry = w != NULL ? fji_compensate_retry(w, &pause) : FJ_FOREVER;
        int64_t until = retry < look ? retry : look;
        (void)fji_plat_wait(bucket, seen, until < deadline ? until : deadline);
        alone = alone || fji_plat_now() >= look;
    }
    if (w != NULL) fji_interruptible_end(w);
    if (w != NULL) fji_compensate_end(w, token);
    return err;
}

int fj_future_wait_any(fj_future *const *f, size_t n, int64_t timeout_ns, size_t *which)
{
    size_t found;

    if (n == 0 || which == NULL || !futures_there(f, n)) return FJ_EINVAL;
    int err = any_wait(f, n, future_deadline(timeout_ns), fj_future_is_done, &found);
    if (err == FJ_OK) *which = found;
    return err;
}

static void futures_cancel(fj_future *const *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_done(f[i])) (void)fj_future_cancel(f[i], 1);
}

/* Youngest first, so that a worker that joins in order finds them in its own queue. */
static int futures_submit(fj_pool *pool, fj_future *const *f, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        int err = fj_future_submit(pool, f[i]);
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}

static bool futures_new(fj_future *const *f, size_t n)
{
    if (!futures_there(f, n)) return false;
    for (size_t i = 0; i < n; i++)
        if (!future_may_queue(f[i])) return false;
    return true;
}

static int invoke_all(fj_pool *pool, fj_future *const *f, size_t n, int64_t deadline,
                      bool interruptible)
{
    if (!futures_new(f, n)) return FJ_EINVAL;
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = all_wait(f, n, deadline, interruptible);
    if (err != FJ_OK) futures_cancel(f, n);
    /* One that was completed by hand may still run. */
    for (size_t i = 0; i < n; i++)
        if (!fj_future_is_cancelled(f[i])) fj_future_fini(f[i]);
    return err;
}

int fj_future_invoke_all(fj_pool *pool, fj_future *const *f, size_t n, int64_t timeout_ns)
{
    int err = invoke_all(pool, f, n, future_deadline(timeout_ns), true);

    for (size_t i = 0; i < n && err == FJ_OK; i++) err = fj_future_error(f[i]);
    return err;
}

int fj_future_invoke_all_quietly(fj_pool *pool, fj_future *const *f, size_t n)
{
    return invoke_all(pool, f, n, FJ_FOREVER, false);
}

/* The code of the last that failed, rather than of one that was cancelled. */
static int any_code(fj_future *const *f, size_t n)
{
    const fj_future *last = NULL;

    for (size_t i = 0; i < n; i++) {
        if (fj_future_state(f[i]) != FJ_FUTURE_FAILED) continue;
        uint32_t a = fji_load_relaxed(&f[i]->task.fail_seq); /* relaxed: it is done */
        uint32_t b = last != NULL ? fji_load_relaxed(&last->task.fail_seq) : 0; /* relaxed: same */
        bool later = (b & FUTURE_NUMBERED) == 0 ||
                     ((a & FUTURE_NUMBERED) != 0 && (int32_t)((a - b) << 1) > 0);
        if (last == NULL || later) last = f[i];
    }
    return last != NULL ? future_code(last) : FJ_ECANCELED;
}

int fj_future_invoke_any(fj_pool *pool, fj_future *const *f, size_t n, int64_t timeout_ns,
                         size_t *which)
{
    size_t found = n;
    int64_t deadline = future_deadline(timeout_ns);

    if (n == 0 || which == NULL || !futures_new(f, n)) return FJ_EINVAL;
    futures_observe(f, n); /* before the first can fail: which was the last is to be known */
    int err = futures_submit(pool, f, n);
    if (err == FJ_OK) err = any_wait(f, n, deadline, fj_future_succeeded, &found);
    futures_cancel(f, n);
    if (err != FJ_OK) return err;
    if (found == n) return any_code(f, n);
    *which = found;
    return FJ_OK;
}
