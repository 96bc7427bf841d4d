/* SPDX-License-Identifier: MIT */
/*
 * run.h - running and cancelling a task that was taken
 */
#ifndef FJI_RUN_H
#define FJI_RUN_H

#include "sched/pool.h"

/*
 * Runs the taken task with its token and completes it. w: the calling worker or guest, or NULL if
 * the calling thread has no record in the pool of the task; a waiter then cannot find out which
 * thread runs the task, and the task, unless it is a future, runs without its token. p: the pool
 * whose on_error callback gets the code of an action; NULL if the code is discarded.
 */
void fji_run_taken(fj_pool *p, fji_worker *w, const fji_taken *taken);

/* Completes the taken task with FJ_ECANCELED without running its body; resolves a future as
 * cancelled; discards an action. A typed task has no code that could be FJ_ECANCELED, so its body
 * is run. A plain task that its owner has taken back (taken->cell is NULL) is left as it is,
 * because no thread waits for it. Called by the thread that has taken the task. */
void fji_cancel_taken(const fji_taken *taken);

/* Runs the body of t and returns its code. w: the calling worker or guest, or NULL if the calling
 * thread works for no pool. If code that is compiled with FJ_CHECKED has ever forked a task on w,
 * also logs and removes the tasks that the body has forked and not joined, except while typed code
 * is on the stack of w. */
int fji_run_body(fji_worker *w, fj_task *t);

#endif /* FJI_RUN_H */
