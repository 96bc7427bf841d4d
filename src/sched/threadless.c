/* SPDX-License-Identifier: MIT */
/*
 * threadless.c - running the tasks of a pool that has no threads
 *
 * A pool may have no threads: the system refuses to start them, the on_start callback returns an
 * error in each of them, or all workers have just retired. A thread that waits for a task of such a
 * pool asks for a thread. If no thread starts, the waiting thread runs the queued tasks itself as a
 * guest. If no record for a guest can be created, it runs the submitted tasks without a record. A
 * fork in one of these tasks then goes to the pool that the thread works for. If it works for no
 * pool, the fork is submitted to the common pool, or is run at once.
 */

#include "sched/threadless.h"

#include "sched/guest.h"
#include "sched/hold.h"
#include "sched/quiescent.h"
#include "sched/run.h"
#include "sched/steal.h"
#include "sched/wake.h"

/* Runs the submitted tasks of p in the calling thread, which has no record of p. */
static void threadless_run_without_worker(fj_pool *p)
{
    fji_taken taken;

    for (uint32_t i = 0; i < fji_pool_nqueues(p); i++) {
        fji_submission_queue *q = fji_pool_submissions(p, i);
        while (q != NULL && fji_submission_queue_steal(q, &taken) == FJI_STEAL_SUCCESS)
            fji_run_taken(p, NULL, &taken);
    }
}

static void threadless_run(fj_pool *p, bool may_run)
{
    fji_taken taken;

    /* relaxed: a hint; the waiting thread calls this function again later. */
    if (fji_ctl_total(fji_pool_ctl_hint(p)) != 0 || fji_pool_quiescent(p, false)) return;
    /* Asks for no thread if on_start has returned an error in the thread that was started last. */
    if (fji_load_relaxed(&p->failed_starts) == 0) fji_wake_one(p);    /* relaxed: a hint */
    if (fji_ctl_total(fji_pool_ctl_hint(p)) != 0 || !may_run) return; /* relaxed: a hint */
    fji_worker *g = fji_guest_enter(p, true, NULL);
    if (g == NULL) {
        /* No record for a guest is free or can be created, or p stops. If p stops, its queued tasks
         * are cancelled and must not be run. */
        if (!fji_pool_stopping(p)) threadless_run_without_worker(p);
        return;
    }
    while (!fji_pool_stopping(p) && fji_steal_any(g, &taken) == FJI_STEAL_SUCCESS)
        fji_run_taken(p, g, &taken);
    fji_guest_leave(g);
}

void fji_run_threadless(fj_pool *p, bool may_run)
{
    if (!fji_pool_hold(p)) return;
    threadless_run(p, may_run);
    fji_pool_drop_hold(p);
}
