/* SPDX-License-Identifier: MIT */
/*
 * lifetime.c - threads that exit, guests that are counted, and the last step of a pool's end
 *
 * pool/shutdown.c explains the run state and the end of a pool. The threads of workers are counted
 * in the control word. Guests, timer threads, and threads that are just submitting a future with a
 * limit are counted in fj_pool.guests, under the lock of the pool. The pool has ended when STOP is
 * set and both numbers are 0.
 *
 * A worker thread or timer thread that exits joins the thread of the pool that exited before it,
 * and stores its own handle in last_exited. So at most one exited thread of a pool is not joined.
 * fji_pool_join() joins it. A worker whose record is `awaited` does not store its handle: the thread
 * that closes the pool joins it.
 *
 * Edges        from                                    to                                carries
 *   pool.end   release or, fji_pool_end_if_over()      acquire, fji_pool_await_end()     all writes
 *   pool.end   full fence, fji_pool_maybe_terminate()  full fence, fji_pool_shutdown()   park, run
 */

#include "sched/lifetime.h"

bool fji_pool_end_if_over(fj_pool *p)
{
    /* relaxed: STOP and TERMINATED are set under the lock of p, which the caller holds. */
    uint32_t run = fji_load_relaxed(&p->run);
    int total = fji_ctl_total(fji_pool_ctl(p));

    if ((run & (FJI_RUN_STOP | FJI_RUN_TERMINATED)) != FJI_RUN_STOP) return false;
    if (total != 0 || p->guests != 0) return false;
    /* [pool.end] release -> acquire in fji_pool_await_end() and fji_pool_end_common(): all writes
     * of the threads and guests of p. */
    fji_or_release(&p->run, FJI_RUN_TERMINATED);
    return true;
}

void fji_pool_maybe_terminate(fj_pool *p)
{
    /* [pool.end] the caller's change of park, of ctl or of a guest's record above; the run state
     * below; partners: the fences in fji_pool_shutdown() and shutdown_stopped(). Either the
     * other thread sees that change, or this thread sees SHUTDOWN, which is set no later than
     * STOP. */
    fji_fence_full();
    /* relaxed: the full fence above orders this load after the caller's change. */
    if ((fji_load_relaxed(&p->run) & FJI_RUN_SHUTDOWN) != 0) p->hooks->try_terminate(p, false);
}

bool fji_pool_last_thread(fj_pool *p, bool awaited, fji_thread *before)
{
    bool join = p->has_last_exited;

    if (p->leavers_detach) {
        fji_plat_thread_detach(fji_plat_thread_self());
        return false;
    }
    if (join) *before = p->last_exited;
    p->has_last_exited = !awaited;
    if (!awaited) p->last_exited = fji_plat_thread_self();
    return join;
}

void fji_pool_add_guest(fj_pool *p)
{
    fji_count(&p->guests, 1); /* not ++: fj_pool_dump() reads it without the lock */
}

void fji_pool_remove_guest(fj_pool *p)
{
    fji_lock_take(&p->lock);
    fji_pool_uncount_guest(p);
}

void fji_pool_uncount_guest(fj_pool *p)
{
    fji_count(&p->guests, (uint32_t)-1); /* not --: fj_pool_dump() reads it without the lock */
    bool over = fji_pool_end_if_over(p);
    /* LAST TOUCH of *p: a thread that destroys p takes the lock before it frees p. */
    fji_lock_drop(&p->lock);
    if (over) fji_plat_wake_all(&p->run);
}

void fji_pool_leave(fj_pool *p)
{
    fji_thread before;

    fji_lock_take(&p->lock);
    bool join = fji_pool_last_thread(p, false, &before);
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(before);
    fji_pool_remove_guest(p);
}
