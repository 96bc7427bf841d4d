/* SPDX-License-Identifier: MIT */
/*
 * help.h - a waiting worker runs tasks that belong to the awaited task; help.c explains which
 */
#ifndef FJI_HELP_H
#define FJI_HELP_H

#include "sched/pool.h"

/* The awaited task. */
typedef struct fji_awaited {
    const uint32_t *state;      /* its state word */
    const uint32_t *child_base; /* the position in its runner's queue at which its forks begin */
    const fj_token *token;      /* the token of a future; NULL for another task */
    void *root;                 /* the root of a completer; NULL for another task */
} fji_awaited;

/*
 * Runs at most one task that belongs to the awaited one. Called by w. s: the state word of the
 * awaited task as just read, without DONE. `from`: the boundary of w's queue when the wait began.
 * Returns SUCCESS if it ran a task, EMPTY if there is none that w may run, and RETRY if there may
 * be one.
 */
fji_steal_result fji_help_once(fji_worker *w, const fji_awaited *a, uint32_t s, fj_cell *from);

/* Runs at most one queued task with this root. Called by w. Returns as fji_help_once(). */
fji_steal_result fji_help_root(fji_worker *w, uintptr_t root);

#endif /* FJI_HELP_H */
