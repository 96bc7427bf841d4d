/* SPDX-License-Identifier: MIT */
/*
 * run.h - running and cancelling a task that was taken
 */
#ifndef FJI_RUN_H
#define FJI_RUN_H

#include "sched/pool.h"

/*
 * Runs the task with its token and completes it. w: the calling worker or guest, or NULL if the
 * calling thread works for no pool. p: the pool whose on_error callback gets the code of an action,
 * or NULL.
 */
void fji_run_taken(fj_pool *p, fji_worker *w, const fji_taken *taken);

/* Completes the task with FJ_ECANCELED without running it; discards an action. A typed task has no
 * code that could be FJ_ECANCELED, so it is run. Any thread that has taken the task may call it. */
void fji_cancel_taken(const fji_taken *taken);

/* Runs the body of t and returns its code. w: as above. If code compiled with FJ_CHECKED has forked
 * tasks on w, also reports and removes the tasks that the body has forked and not joined. */
int fji_run_body(fji_worker *w, fj_task *t);

#endif /* FJI_RUN_H */
