/* SPDX-License-Identifier: MIT */
/*
 * run.h - running and cancelling a task that was taken
 */
#ifndef FJI_RUN_H
#define FJI_RUN_H

#include "sched/pool.h"

/*
 * Runs the task, with its token, and completes it. w: the calling worker, or NULL if the thread works for
 * no pool; then p is the pool whose on_error callback gets the code of an action, or NULL.
 */
void fji_run_taken(fj_pool *p, fji_worker *w, const fji_taken *taken);

/* Completes the task as cancelled without running it. A typed task is run, because it has no code. */
void fji_cancel_taken(const fji_taken *taken);

/* Runs the body of t. If the calling code was compiled with FJ_CHECKED, reports tasks that the body has
 * forked and not joined. */
int fji_run_body(fji_worker *w, fj_task *t);

#endif /* FJI_RUN_H */
