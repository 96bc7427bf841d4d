/* SPDX-License-Identifier: MIT */
/*
 * interrupt.c - interruptible waits, and how a cancel ends them
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
 * Edges             from                              to                             carries
 *   cancel.wait     full fence, interruptible_begin() full fence, fji_token_set()    bucket against token
 *   cancel.bucket   acq_rel add, wait_bucket.c        acquire load, the waiter       what changed
 *   cancel.syscall  acq_rel, syscall_interrupt()      acq_rel CAS, fji_syscall_end() the signal was sent
 *   pool.thread     release, worker_main()            acquire, fji_pool_interrupt()  the thread handle
 */

#include "sched/interrupt.h"

#include "sched/registry.h"
#include "sched/scope.h"

bool fji_interrupted(const fji_worker *w)
{
    return fji_pool_stopping(w->pool) || fji_token_has(fji_scope_token(w), FJI_TOKEN_INTERRUPT);
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

static void pool_wake_interruptible(fj_pool *p, void *only)
{
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) wake_interruptible(w, only);
    }
}

void fji_wake_interruptible(const fj_token *only)
{
    fji_registry_each(pool_wake_interruptible, (void *)(uintptr_t)only);
}

void fji_pool_interrupt(fj_pool *p)
{
    int signal = p->options.interrupt_signal;

    /* [cancel.wait] run above, the naps below; partner: fji_interruptible_begin(). */
    fji_fence_full();
    pool_wake_interruptible(p, NULL);
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

/* ---- Public calls ------------------------------------------------------------------------------------- */

void fj_token_cancel(fj_token *token)
{
    if (token == NULL) return;
    fji_token_set(token, FJI_TOKEN_CANCELLED | FJI_TOKEN_INTERRUPT);
    fji_wake_interruptible(token);
}

int fj_is_cancelled(void)
{
    const fji_worker *w = fji_worker_self();

    if (w == NULL) return 0;
    return fji_token_has(fji_scope_token(w), FJI_TOKEN_CANCELLED) || fji_pool_stopping(w->pool);
}

const fj_token *fj_current_token(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL ? fji_scope_token(w) : NULL;
}
