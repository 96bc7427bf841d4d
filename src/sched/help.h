/* SPDX-License-Identifier: MIT */
/*
 * help.h - a waiting worker runs certain tasks instead of sleeping; help.c explains which
 */
#ifndef FJI_HELP_H
#define FJI_HELP_H

#include "sched/pool.h"

/* The awaited task. */
typedef struct fji_awaited {
    const uint32_t *state;      /* its state word, in the task or in its cell */
    const uint32_t *child_base; /* where its forks begin in the queue of the worker that runs it */
    const fj_token *token;      /* of a future: its token; otherwise NULL */
    void *root;                 /* of a completer: its root; otherwise NULL */
} fji_awaited;

/*
 * Called by w. Runs at most one task: a detached task, but no action, in w's own queue, in the cell
 * `from` or above; or a task with the root a->root; or, if a->root is NULL, a descendant of the
 * awaited task *a (help.c). s: the value of *a->state, read with acquire and without DONE. `from`:
 * the boundary of w's queue when the wait began. Returns SUCCESS if w has run a task, EMPTY if it
 * has found none that it may run or half of its stack is used, and RETRY if it has run none but
 * there may be one.
 */
fji_steal_result fji_help_once(fji_worker *w, const fji_awaited *a, uint32_t s, fj_cell *from);

/* Called by w. Runs at most one queued task with this root, which is the root of a completer and
 * not 0. Returns as fji_help_once(). */
fji_steal_result fji_help_root(fji_worker *w, uintptr_t root);

#endif /* FJI_HELP_H */
