/* SPDX-License-Identifier: MIT */
/*
 * interrupt.c - interruptible waits, and how a cancel ends them
 *
 * The problem. A cancel with interrupt has to end the waits of all tasks that run with a token. If
 * the canceller reads which thread runs such a task and then interrupts that thread, the thread may
 * already run another task.
 *
 * The idea. The request to end the wait is stored in the token, never in the record of a worker.
 * The canceller only wakes the waiting worker. The worker then reads the token of its own task and
 * decides whether its wait ends.
 *
 * Waits in the library. An interruptible wait sleeps on a wait bucket (task/wait_bucket.h), a word
 * that is only incremented. The waiting worker stores the address of the bucket in `wait_bucket` of
 * its record. The canceller sets the token and then notifies the buckets of all waiting workers:
 *
 *     waiting worker                               canceller
 *     1 wait_bucket = bucket                       1 token |= CANCELLED | INTERRUPT
 *     2 full fence                                 2 full fence
 *     3 seen = *bucket                             3 for each worker with a wait_bucket:
 *     4 token cancelled, or future done: return        *bucket + 1, wake all sleepers on it
 *     5 sleep while *bucket == seen
 *
 * Either the worker sees in step 4 that the token is cancelled, or the canceller sees `wait_bucket`
 * in its step 3. In the second case the canceller increments the bucket. If the worker has read the
 * bucket before that, it does not fall asleep in step 5, or it is woken. If the worker reads the
 * bucket after that, it sees the cancelled token in step 4.
 *
 * A thread that resolves a future also notifies the bucket of the future, if a waiter has set
 * OBSERVED in the state word of the future. A stop of the pool ends interruptible waits by the same
 * protocol, with the run state in place of the token (fji_pool_interrupt()).
 *
 * The worker also stores the token of its task in `wait_token`, so that a cancel of one token wakes
 * only the workers that wait with this token. A token with a parent is also cancelled by a cancel
 * of the parent. The canceller cannot follow the parents of another thread's token, because they
 * may be freed already. So a worker whose token has a parent stores `any_token` instead. Every
 * canceller wakes such a worker, and the worker checks its own token and the parents of this token.
 *
 * Waits in a system call. If the pool has an interrupt_signal, a worker that waits for a file
 * sleeps in a system call, and the canceller sends that signal to the thread of the worker. The
 * worker stores the address of the word `syscall` of its own record in `wait_bucket`. The signal
 * must not arrive while the thread runs its next task. So a canceller adds the constant PIN to
 * `syscall` before it sends the signal and subtracts it afterwards, and the worker waits until
 * every PIN is subtracted:
 *
 *     waiting worker                               canceller (syscall_interrupt)
 *     syscall = ENTERED; wait_bucket = &syscall    CAS syscall, if ENTERED: | SIGNALLED, + PIN
 *     full fence; token cancelled: return          sends the signal
 *     ppoll(), the signal unblocked inside it      syscall - PIN
 *     waits until there is no PIN; CAS syscall
 *     to 0; SIGNALLED: one more system call,
 *     in which a pending signal is delivered
 *
 * Invariants
 *   - A canceller sets the token before it wakes a waiting worker.
 *   - `syscall` becomes 0 only when no canceller is about to send a signal to the thread.
 *
 * Edges             from                              to                              carries
 *   cancel.wait     full fence,                       full fence, fji_token_set()     wait_bucket
 *                     fji_interruptible_begin()         and fji_pool_interrupt()      against token
 *   cancel.bucket   acq_rel, fji_wait_bucket_notify() acquire load, the waiter        what changed
 *   cancel.syscall  acq_rel, syscall_interrupt()      acq_rel CAS, fji_syscall_end()  signal sent
 *   pool.thread     release, worker_main()            acquire, fji_pool_interrupt()   the handle
 */

#include "sched/interrupt.h"

#include "sched/registry.h"
#include "sched/scope.h"

bool fji_interrupted(const fji_worker *w)
{
    return fji_pool_stopping(w->pool) || fji_token_has(fji_scope_token(w), FJI_TOKEN_INTERRUPT);
}

/* The address of this token in wait_token means: a cancel of any token may concern the worker. */
static const fj_token any_token;

void fji_interruptible_begin(fji_worker *w, uint32_t *bucket)
{
    const fj_token *token = fji_scope_token(w);

    if (token != NULL && token->parent != NULL) token = &any_token;
    fji_store_relaxed(&w->wait_token, token);   /* relaxed: the fence orders it */
    fji_store_relaxed(&w->wait_bucket, bucket); /* relaxed: the fence orders it */
    /* [cancel.wait] wait_bucket above, the token and the run state in fji_interrupted() below;
     * partners: the fences in fji_token_set() and fji_pool_interrupt(). Either w sees the cancel or
     * the stop, or the other thread sees wait_bucket and wakes w. */
    fji_fence_full();
}

void fji_interruptible_end(fji_worker *w)
{
    /* relaxed: a canceller that still reads the old address notifies that bucket. If w sleeps on
     * the bucket again by then, it wakes up and checks its condition again. If the old address is
     * that of `syscall`, fji_syscall_end() deals with such a canceller. */
    fji_store_relaxed(&w->wait_bucket, (uint32_t *)NULL);
}

void fji_syscall_begin(fji_worker *w)
{
    /* A guest gets no signal, because its thread belongs to the program. */
    if (w->pool->options.interrupt_signal == 0 || w->alive != FJI_ALIVE_WORKER) return;
    /* relaxed: the full fence in fji_interruptible_begin() orders this store before the loads of
     * the token and the run state. */
    fji_store_relaxed(&w->syscall, FJI_SYSCALL_ENTERED);
    fji_interruptible_begin(w, &w->syscall);
}

void fji_syscall_end(fji_worker *w)
{
    /* relaxed: only w changes the word from 0 to another value. */
    if (fji_load_relaxed(&w->syscall) == 0) return;
    fji_interruptible_end(w);
    for (;;) {
        /* [cancel.syscall] acquire <- acq_rel in syscall_interrupt(): if the word is less than
         * FJI_SYSCALL_PIN, every canceller that has set SIGNALLED has sent its signal. */
        uint32_t s = fji_load_acquire(&w->syscall);
        if (s >= FJI_SYSCALL_PIN) {
            fji_plat_yield();
            continue;
        }
        /* [cancel.syscall] acq_rel -> acquire in syscall_interrupt(): w has left the call. A
         * canceller that reads 0 sends no signal. */
        if (!fji_cas_acq_rel_32(&w->syscall, &s, 0)) continue;
        if ((s & FJI_SYSCALL_SIGNALLED) != 0)
            fji_plat_yield(); /* a system call, in which a pending signal is delivered */
        return;
    }
}

/* Sends the interrupt_signal to the thread of w if w is in a system call that the signal ends, that
 * is, between fji_syscall_begin() and fji_syscall_end(). */
static void syscall_interrupt(fji_worker *w)
{
    /* [cancel.syscall] acquire <- acq_rel in fji_syscall_end(): a value of 0 means that w has left
     * the call. */
    uint32_t s = fji_load_acquire(&w->syscall);

    do {
        if ((s & FJI_SYSCALL_ENTERED) == 0) return;
        /* [cancel.syscall] acq_rel -> acquire in fji_syscall_end(): SIGNALLED, and the
         * FJI_SYSCALL_PIN that is added here. w stays in fji_syscall_end() until this thread has
         * subtracted it. */
    } while (!fji_cas_acq_rel_32(&w->syscall, &s, (s | FJI_SYSCALL_SIGNALLED) + FJI_SYSCALL_PIN));
    /* [pool.thread] acquire <- release in worker_main(): the handle w->thread. That thread does not
     * exit before FJI_SYSCALL_PIN is subtracted below, because it waits in fji_syscall_end(). */
    if (fji_load_acquire(&w->signallable) != 0)
        fji_plat_thread_signal(w->thread, w->pool->options.interrupt_signal);
    /* [cancel.syscall] acq_rel -> acquire in fji_syscall_end(): the signal was sent. */
    fji_add_acq_rel(&w->syscall, 0u - FJI_SYSCALL_PIN);
}

/* Wakes w if w is in an interruptible wait that a cancel of the token `only` may concern. If `only`
 * is NULL, wakes w if it is in any interruptible wait. */
static void wake_interruptible(fji_worker *w, const fj_token *only)
{
    /* relaxed: the caller has executed the fence in fji_token_set() or fji_pool_interrupt(). */
    uint32_t *bucket = fji_load_relaxed(&w->wait_bucket);

    if (bucket == NULL) return;
    const fj_token *wait_token = fji_load_relaxed(&w->wait_token); /* relaxed: as above */
    if (only != NULL && wait_token != only && wait_token != &any_token) return;
    if (bucket == &w->syscall)
        syscall_interrupt(w);
    else
        fji_wait_bucket_notify(bucket);
}

/* Calls wake_interruptible() for all workers and guests of p. only: a const fj_token *, or NULL. */
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

    /* [cancel.wait] the run state above, wait_bucket below; partner: the fence in
     * fji_interruptible_begin(). Either this thread sees wait_bucket, or the waiting worker sees
     * STOP. */
    fji_fence_full();
    pool_wake_interruptible(p, NULL);
    if (signal == 0) return;
    /* A thread clears `signallable` under this lock before it exits. So while this thread holds the
     * lock, the handle of a worker with `signallable` is valid. */
    fji_lock_take(&p->lock);
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        /* [pool.thread] acquire <- release in worker_main(): the handle w->thread. */
        if (w != NULL && w != fji_worker_self() && fji_load_acquire(&w->signallable) != 0)
            fji_plat_thread_signal(w->thread, signal);
    }
    fji_lock_drop(&p->lock);
}

/* ---- Public calls ---------------------------------------------------------------------------- */

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
