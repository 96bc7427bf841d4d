/* SPDX-License-Identifier: MIT */
/*
 * help.h - a waiting worker runs tasks that the awaited task waits for
 */
#ifndef FJI_HELP_H
#define FJI_HELP_H

#include "sched/pool.h"

/* The task that is waited for. */
typedef struct fji_awaited {
    const uint32_t *state;      /* its word */
    const uint32_t *child_base; /* where its forks begin in its runner's queue */
    const fj_token *token;      /* of a future, or NULL */
    void *root;                 /* of a completer: its root, or NULL */
} fji_awaited;

/* Runs one task that belongs to the awaited one. s: its word as just read, not done. `from`: the boundary
 * of w's queue when the wait began. RETRY: there may be one. */
fji_steal_result fji_help_once(fji_worker *w, const fji_awaited *a, uint32_t s, fj_cell *from);

/* Runs one queued task with this root. */
fji_steal_result fji_help_root(fji_worker *w, uintptr_t root);

#endif /* FJI_HELP_H */
