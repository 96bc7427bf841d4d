/* SPDX-License-Identifier: MIT */
/*
 * lifetime.c - threads that exit, guests that are counted, and the last step of a pool's end
 *
 * pool/shutdown.c explains the run state and the end of a pool. Threads are counted in the control
 * word, guests in `guests` under the lock of the pool. The pool has ended when it was stopped and
 * both counts are 0.
 *
 * A thread that exits joins the thread that exited before it, and leaves its own handle as
 * last_exited. So at most one exited thread of a pool waits to be joined. fji_pool_join() joins it.
 *
 * Edges        from                                    to                                carries
 *   pool.end   release or, fji_pool_end_if_over()      acquire, fji_pool_await_end()     all writes
 *   pool.end   full fence, fji_pool_maybe_terminate()  full fence, fji_pool_shutdown()   state, run
 */

#include "sched/lifetime.h"

void fji_pool_end_if_over(fj_pool *p)
{
    /* relaxed: the lock orders it. */
    uint32_t run = fji_load_relaxed(&p->run);
    int total = fji_ctl_total(fji_pool_ctl(p));

    if ((run & (FJI_RUN_STOP | FJI_RUN_TERMINATED)) != FJI_RUN_STOP) return;
    if (total != 0 || p->guests != 0) return;
    /* [pool.end] release -> acquire in fji_pool_await_end() and fji_pool_end_common(). */
    fji_or_release(&p->run, FJI_RUN_TERMINATED);
    fji_plat_wake_all(&p->run);
}

void fji_pool_maybe_terminate(fj_pool *p)
{
    /* [pool.end] what the caller has changed above, run below; partner: the fence in
     * fji_pool_shutdown(). Either the shutdown finds the pool quiescent, or this thread sees the
     * shutdown. */
    fji_fence_full();
    /* relaxed: the fence orders it. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) p->hooks->try_terminate(p, false);
}

bool fji_pool_last_thread(fj_pool *p, fji_thread *before)
{
    bool join = p->has_last_exited;

    if (p->leavers_detach) {
        fji_plat_thread_detach(fji_plat_thread_self());
        return false;
    }
    if (join) *before = p->last_exited;
    p->has_last_exited = true;
    p->last_exited = fji_plat_thread_self();
    return join;
}

void fji_pool_add_guest(fj_pool *p)
{
    fji_count(&p->guests, 1); /* under the lock; fj_pool_dump() reads it without the lock */
}

void fji_pool_remove_guest(fj_pool *p)
{
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock); /* LAST TOUCH of *p: a thread that destroys p takes the lock first. */
}

void fji_pool_leave(fj_pool *p)
{
    fji_thread before;

    fji_lock_take(&p->lock);
    bool join = fji_pool_last_thread(p, &before);
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(before);
    fji_pool_remove_guest(p);
}
