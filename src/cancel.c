/* SPDX-License-Identifier: MIT */
/*
 * cancel.c - tokens, which task sees which, and breaking the waits of a cancelled one
 *
 * Scopes. Every task runs with a token, or none. A worker keeps those of the tasks on its
 * stack in an array: {from, token}, where `from` is the cell of its queue at which the tasks
 * forked under that token begin; the lowest entry is {NULL, NULL}. A fork therefore costs
 * nothing, and a thief finds the token of a task it has taken out of cell p: that of the last
 * entry with from <= p. This may be read while the owner goes on: until the stolen task is
 * done its forker cannot leave the frame that forked it, so the entries with from <= p stay as
 * they are, and those that come and go above them have from > p, as cell p is not given back
 * before the join. The array never moves: addresses are reserved, memory comes as it grows.
 *
 * A thread that waits for a future finds its runner in the same arrays: the worker that has an entry
 * with the future's own token, `from` being where the tasks of the body begin. Between two reads the
 * runner may be through and use the entry for something else; but then the future is done, and the
 * waiter checks that before it takes a task.
 *
 * That is so for tasks that are joined through their cell. Actions and submitted tasks have no
 * token of their forker's, futures their own.
 *
 * Interrupts. The request is in the token, never in the thread, so it cannot reach another
 * task. What has to reach the thread is only a wake-up. A wait that may be interrupted sleeps
 * in a lot, a word of the library's own that only ever counts up, and its worker says in
 * which (nap). Whoever cancels sets the token, then bumps the lots of all that nap:
 *
 *     sleeper    nap = lot; fence; seen = *lot; token? done?; sleep while *lot == seen
 *     canceller  token; fence; nap?; ++*lot; wake
 *
 * Either the sleeper sees the token, or the canceller sees the nap; and then either the
 * sleeper read the lot before it was bumped and does not sleep, or after, and the token
 * before that. Whoever decides a future bumps its lot in the same way, if somebody is there.
 *
 * The sleeper also says with which token it naps, so that the canceller of one future wakes only
 * those that it concerns. A token with a parent may concern any canceller. The canceller cannot
 * find out: the parents of another thread's token may be gone by the time it looks. So the
 * sleeper says `any` instead, every canceller wakes it, and it looks at its own tokens.
 *
 * Who waits for a file naps in its own word `call` instead of a lot, and is sent the signal of its
 * pool. The signal must not reach the next task of that thread. So the canceller first adds a pin
 * to the word, if the sleeper is in, and takes it off after it has sent the signal; the sleeper
 * does not leave while there is a pin. Then it makes a system call, in which the signal arrives.
 *
 * Whose body. An entry of the array is either of the body that the worker runs itself, or of a
 * task that belongs to a body elsewhere: a stolen one, or a completer below its root. The latter
 * has an odd `from`, one below its cell, which compares with cells as the cell does. So a thread
 * that decides a future can tell whether it is the one that runs its body.
 *
 * Edges             from                            to                          carries
 *   cancel.scope    release store, fji_scope_push()  acquire, fji_scope_of_stolen()     the entries
 *   cancel.runner   release stores, fji_scope_push() acquire, scope_find()       which run it is
 *   cancel.token    release or, fji_token_set()     acquire, token_has()        why
 *   cancel.bucket      acq_rel add, fji_wait_bucket_notify()     acquire load, the sleeper   what changed
 *   cancel.syscall     acq_rel, syscall_interrupt()          acq_rel CAS, fji_syscall_end() that it is sent
 */
#include "pool.h"

/* ---- Scopes --------------------------------------------------------------------------------------- */

/* More room for the array of w; the first time, the array. False: there is none. */
static bool scope_grow(fji_worker *w)
{
    size_t all = FJI_SCOPES_RESERVED * sizeof *w->scope, bytes = fji_plat_page();
    bool first = w->scope_end == NULL;
    fji_scope *range = first ? fji_plat_reserve(all) : w->scope_base;

    if (range == NULL) return false;
    if (!first) bytes = 2 * (size_t)(w->scope_end - range) * sizeof *range;
    if (bytes > all || !fji_plat_commit(range, bytes)) {
        if (first) fji_plat_release(range, all);
        return false;
    }
    w->scope_base = range;
    w->scope_end = range + bytes / sizeof *range;
    if (first) fji_scope_reset(w); /* its lowest entry is zero, as the one before */
    if (w->pool->options.interrupt_signal == 0) w->scope_limit = w->scope_end - 1;
    return true;
}

fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token)
{
    bool without = w->scope == &w->scope_none[1];
    bool room = !without && w->scope + 1 < w->scope_end;

    if (!room && !without) room = scope_grow(w);
    fji_scope_saved saved = {w->scope, w->scope_limit, w->scope_none[1].token};
    if (room) {
        fji_scope_push(w, w->scope, token, fji_worker_boundary(w));
    } else {
        /* Without memory: what is stolen from here has no token. */
        w->scope_none[1].token = token;
        w->scope_limit = NULL;
        /* relaxed: what others read of it never changes. */
        fji_store_relaxed(&w->scope, &w->scope_none[1]);
    }
    return saved;
}

fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token)
{
    fji_scope_saved saved = fji_scope_enter(w, token);
    fji_scope *e = w->scope;

    /* relaxed: nothing is forked under it yet. */
    if (e != &w->scope_none[1]) fji_store_relaxed(&e->from, e->from - 1);
    return saved;
}

void fji_scope_replace(fji_worker *w, const fj_token *token)
{
    fji_scope_reset(w);
    (void)fji_scope_enter(w, token);
    /* relaxed: nothing is forked under it yet. */
    if (w->scope != &w->scope_none[1])
        fji_store_relaxed(&w->scope->from, (uintptr_t)w->q.cells - 1);
}

void fji_scope_leave(fji_worker *w, fji_scope_saved saved)
{
    if (w->scope == &w->scope_none[1]) {
        w->scope_none[1].token = saved.token;
        w->scope_limit = saved.limit;
    }
    fji_store_relaxed(&w->scope, saved.scope); /* relaxed: who stole under it is through */
}

const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken)
{
    /* What is not joined through its cell outlives the frame that queued it, and its token. */
    if ((taken->item & FJI_TAG_DETACHED) != 0) return NULL;
    /* [cancel.scope] acquire <- release in fji_scope_push(): the entries. */
    const fji_scope *e = fji_load_acquire(&victim->scope);
    while (fji_load_relaxed(&e->from) > (uintptr_t)taken->cell) e--; /* relaxed: see above */
    return fji_load_relaxed(&e->token);                              /* relaxed: see above */
}

/* The cell at which the tasks begin that v has forked under this token; 0: v does not run with it. */
static uintptr_t scope_find(const fji_worker *v, const fj_token *token)
{
    /* [cancel.scope] acquire <- release in fji_scope_push(): the entries. */
    const fji_scope *e = fji_load_acquire(&v->scope);
    uintptr_t from;

    /* [cancel.runner] acquire <- release in fji_scope_push(). The lowest entry has 0. */
    for (; (from = fji_load_acquire(&e->from)) != 0; e--) {
        /* [cancel.runner] acquire <- release in fji_scope_push(): `from` is read again. */
        if (from == UINTPTR_MAX || fji_load_acquire(&e->token) != token) continue;
        /* [cancel.runner] acquire: of this token, or of a later one, and then the task is done. */
        return fji_load_acquire(&e->from);
    }
    return 0;
}

fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *but, const fj_token *token,
                             uint32_t *from)
{
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        if (v == NULL || v == but) continue;
        uintptr_t cell = scope_find(v, token);
        if (cell == 0) continue;
        *from = fji_queue_position(&v->q, (const fj_cell *)cell);
        return v;
    }
    return NULL;
}

void fji_scope_fini(fji_worker *w)
{
    if (w->scope_end != NULL)
        fji_plat_release(w->scope_base, FJI_SCOPES_RESERVED * sizeof *w->scope);
}

/* ---- Tokens --------------------------------------------------------------------------------------- */

static bool token_has(const fj_token *t, uint32_t bits)
{
    for (; t != NULL; t = t->parent) /* [cancel.token] acquire <- release in fji_token_set(). */
        if ((fji_load_acquire(&t->word) & bits) != 0) return true;
    return false;
}

static bool token_is_below(const fj_token *t, const fj_token *above)
{
    while (t != NULL && t != above) t = t->parent;
    return t != NULL;
}

bool fji_scope_runs(const fji_worker *w, const fj_token *token)
{
    const fji_scope *e = w->scope;

    if (e == &w->scope_none[1]) return token_is_below(e->token, token); /* without memory */
    /* What lies between is entered by fj_invoke_token(), with tokens below this one. */
    for (; e > w->scope_base && token_is_below(e->token, token); e--)
        if (e->token == token) return e->from % 2 == 0;
    return false;
}

void fji_token_set(fj_token *t, uint32_t bits)
{
    /* [cancel.token] release -> acquire in token_has(): what the canceller did before. */
    fji_or_release(&t->word, bits);
    /* [cancel.wait] the token above, who naps below; partner: fji_interruptible_begin(). */
    fji_fence_full();
}

bool fji_interrupted(const fji_worker *w)
{
    return fji_pool_stopping(w->pool) || token_has(fji_scope_token(w), FJI_TOKEN_INTERRUPT);
}

void fj_token_init(fj_token *token, const fj_token *parent)
{
    if (token == NULL) return;
    token->word = 0;
    token->parent = parent;
}

void fj_token_cancel(fj_token *token)
{
    if (token == NULL) return;
    fji_token_set(token, FJI_TOKEN_CANCELLED | FJI_TOKEN_INTERRUPT);
    fji_wake_interruptible(token);
}

int fj_token_is_cancelled(const fj_token *token)
{
    return token_has(token, FJI_TOKEN_CANCELLED);
}

int fj_is_cancelled(void)
{
    const fji_worker *w = fji_worker_self();

    if (w == NULL) return 0;
    return token_has(fji_scope_token(w), FJI_TOKEN_CANCELLED) || fji_pool_stopping(w->pool);
}

const fj_token *fj_current_token(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL ? fji_scope_token(w) : NULL;
}

/* ---- Lots and naps -------------------------------------------------------------------------------- */

static struct {
    FJI_ALIGNAS(FJI_LINE) uint32_t word;
} wait_buckets[FJI_WAIT_BUCKETS + 1] = {[0 ... FJI_WAIT_BUCKETS] = {FJI_START_32}};

uint32_t *fji_wait_bucket(const void *future)
{
    uint64_t hash = (uint64_t)(uintptr_t)future * 0x9e3779b97f4a7c15u;

    return &wait_buckets[future != NULL ? (hash >> 32) % FJI_WAIT_BUCKETS : FJI_WAIT_BUCKETS].word;
}

void fji_wait_bucket_notify(uint32_t *bucket)
{
    /* [cancel.bucket] acq_rel -> acquire in whoever sleeps there: what was changed before. */
    fji_add_acq_rel(bucket, 1);
    fji_plat_wake_all(bucket);
}

/* For `napper`: every canceller may concern it. */
static const fj_token any_token;

void fji_interruptible_begin(fji_worker *w, uint32_t *bucket)
{
    const fj_token *token = fji_scope_token(w);

    if (token != NULL && token->parent != NULL) token = &any_token;
    fji_store_relaxed(&w->wait_token, token);   /* relaxed: the fence */
    fji_store_relaxed(&w->wait_bucket, bucket); /* relaxed: the fence */
    /* [cancel.wait] the nap above, the token below; partner: fji_token_set(). */
    fji_fence_full();
}

void fji_interruptible_end(fji_worker *w)
{
    /* relaxed: a needless notification does no harm. */
    fji_store_relaxed(&w->wait_bucket, (uint32_t *)NULL);
}

void fji_syscall_begin(fji_worker *w)
{
    /* A guest's thread is the caller's own, and is sent nothing. */
    if (w->pool->options.interrupt_signal == 0 || w->alive != FJI_ALIVE_WORKER) return;
    /* relaxed: the fence in fji_interruptible_begin() orders it. */
    fji_store_relaxed(&w->syscall, FJI_SYSCALL_ENTERED);
    fji_interruptible_begin(w, &w->syscall);
}

void fji_syscall_end(fji_worker *w)
{
    if (fji_load_relaxed(&w->syscall) == 0) return; /* relaxed: only w leaves 0 */
    fji_interruptible_end(w);
    for (;;) {
        /* [cancel.syscall] acquire <- acq_rel in syscall_interrupt(): the signal is sent. */
        uint32_t s = fji_load_acquire(&w->syscall);
        if (s >= FJI_SYSCALL_PIN) {
            fji_plat_yield();
            continue;
        }
        /* [cancel.syscall] acq_rel: no canceller gets in from here on. */
        if (!fji_cas_acq_rel_32(&w->syscall, &s, 0)) continue;
        if ((s & FJI_SYSCALL_SIGNALLED) != 0) fji_plat_yield(); /* a system call: it comes now */
        return;
    }
}

static void syscall_interrupt(fji_worker *w)
{
    /* [cancel.syscall] acquire <- release in fji_syscall_end(). */
    uint32_t s = fji_load_acquire(&w->syscall);

    do {
        if ((s & FJI_SYSCALL_ENTERED) == 0) return;
        /* [cancel.syscall] acq_rel -> acquire in fji_syscall_end(): it stays until the pin is off. */
    } while (!fji_cas_acq_rel_32(&w->syscall, &s, (s | FJI_SYSCALL_SIGNALLED) + FJI_SYSCALL_PIN));
    /* [pool.thread] acquire <- release in worker_main(): the handle. */
    if (fji_load_acquire(&w->signalable) != 0)
        fji_plat_thread_signal(w->thread, w->pool->options.interrupt_signal);
    /* [cancel.syscall] acq_rel -> acquire in fji_syscall_end(): the signal is sent. */
    fji_add_acq_rel(&w->syscall, 0u - FJI_SYSCALL_PIN);
}

static void wake_interruptible(fji_worker *w, const fj_token *only)
{
    /* relaxed: the fence in fji_token_set() orders it. */
    uint32_t *bucket = fji_load_relaxed(&w->wait_bucket);

    if (bucket == NULL) return;
    const fj_token *wait_token = fji_load_relaxed(&w->wait_token); /* relaxed: as above */
    if (only != NULL && wait_token != only && wait_token != &any_token) return;
    if (bucket == &w->syscall)
        syscall_interrupt(w);
    else
        fji_wait_bucket_notify(bucket);
}

void fji_pool_wake_interruptible(fj_pool *p, const fj_token *only)
{
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) wake_interruptible(w, only);
    }
}

void fji_pool_interrupt(fj_pool *p)
{
    int signal = p->options.interrupt_signal;

    /* [cancel.wait] run above, the naps below; partner: fji_interruptible_begin(). */
    fji_fence_full();
    fji_pool_wake_interruptible(p, NULL);
    if (signal == 0) return;
    /* With the lock no thread leaves that is counted as alive here. */
    fji_lock_take(&p->lock);
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        /* [pool.thread] acquire <- release in worker_main(): the handle. */
        if (w != NULL && w != fji_worker_self() && fji_load_acquire(&w->signalable) != 0)
            fji_plat_thread_signal(w->thread, signal);
    }
    fji_lock_drop(&p->lock);
}
