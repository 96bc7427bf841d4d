/* SPDX-License-Identifier: MIT */
/*
 * scope.h - finds the token that a task runs with
 *
 * Every task runs with a token or without one. A fork must not pay for this, so it stores nothing.
 * A worker keeps the tokens of the tasks on its stack in an array of entries {from, token}, the
 * scopes. `from` is the cell of its queue at which the tasks forked under that token begin. The
 * lowest entry is {0, NULL}.
 *
 *     scopes of the victim             queue of the victim
 *     {from = cell 5, token B}         cell 6   forked under B
 *     {from = cell 2, token A}         cell 4   forked under A
 *     {from = 0,      NULL   }         cell 1   no token
 *
 * The thief of the task in cell c uses the token of the last entry with from <= c. It reads the
 * array while the owner changes it, and this is safe: the forker of the stolen task cannot leave
 * the frame that forked it until the task is done. So the entries with from <= c do not change. The
 * owner adds and removes entries above them, but these have from > c, because cell c is not used
 * again before the join. The array never moves: addresses are reserved, and memory is added as the
 * array grows.
 *
 * This holds for tasks that are joined through their cell. A future has its own token. An action or
 * a submitted task does not get the token of the frame that queued it, because it may outlive the
 * frame. Only a plain task that was forked into a full queue, and therefore submitted, takes the
 * token of its forker along (fji_submit_fork()).
 *
 * The runner of a future. A thread that waits for a future finds the worker that runs its body in
 * the same arrays: that worker has an entry with the future's own token, and `from` is where the
 * tasks forked by the body begin. Between two reads of the waiter the runner may finish the body
 * and use the entry again. Then the future is done, and the waiter checks that before it takes a
 * task.
 *
 * Bodies that run elsewhere. An entry belongs either to a body that the worker runs itself, or to a
 * part of a body that another worker runs: a stolen task, or a completer below its root. An entry
 * of the second kind has an odd `from`, one less than the address of the cell; compared with the
 * address of any cell, both give the same result. So a thread that resolves a future can tell
 * whether it runs the body of that future (fji_scope_runs()).
 *
 * No memory. If the array cannot grow, the worker uses one entry outside the array, scope_none[1].
 * Its `from` is above every cell, so a thief passes over it and finds no token.
 *
 * Edges            from                              to                              carries
 *   cancel.scope   release store, fji_scope_push()   acquire, fji_scope_of_stolen()  the entries
 *   cancel.runner  release stores, fji_scope_push()  acquire, scope_find()           which body
 */

#ifndef FJI_SCOPE_H
#define FJI_SCOPE_H

#include "sched/pool.h"

/* What fji_scope_leave() restores. */
typedef struct fji_scope_saved {
    fji_scope *scope;
    fji_scope *limit;
    const fj_token *token;
} fji_scope_saved;

/*
 * Adds an entry: tasks that w forks from now on, at cell c or above, run with this token. `scope`
 * is the current entry of w, and the array has memory for one more. Only w may call it.
 */
static inline void fji_scope_push(fji_worker *w, fji_scope *scope, const fj_token *token,
                                  const fj_cell *c)
{
    /* [cancel.runner] release -> acquire in scope_find(): the body that used the entry before is
     * done. */
    fji_store_release(&scope[1].from, (uintptr_t)c);
    /* [cancel.runner] release -> acquire in scope_find(): `from`. */
    fji_store_release(&scope[1].token, token);
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the entry. */
    fji_store_release(&w->scope, scope + 1);
}

/* Returns the token of the task that w runs, or NULL. Only w may call it. */
static inline const fj_token *fji_scope_token(const fji_worker *w)
{
    return w->scope->token;
}

/* Removes all entries: w runs without a token from now on. Called by w while no task on its stack
 * has a token, or by the thread that takes or resets the record of w. */
static inline void fji_scope_reset(fji_worker *w)
{
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the array, if it is new. */
    fji_store_release(&w->scope, w->scope_base);
}

/* Called by w before it runs a body with this token. Without memory for an entry, tasks that are
 * stolen from w during the body have no token. Returns what fji_scope_leave() needs. */
fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token);

/* The same, before w runs a task that belongs to a body which another worker runs. */
fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token);

/* Called by w after the body: removes the entry. */
void fji_scope_leave(fji_worker *w, fji_scope_saved saved);

/*
 * Replaces all entries by one: every task that w forks from now on, at any cell, runs with this
 * token. Only w may call it, and only while it has no task on its stack. The entry begins below
 * cell 0, because the queue may become shorter before the next fork. It does not concern the tasks
 * that are already queued: they are detached.
 */
void fji_scope_replace(fji_worker *w, const fj_token *token);

/* Returns whether w itself runs the body with this token, and its current task belongs to that
 * body. Only w may call it. */
bool fji_scope_runs(const fji_worker *w, const fj_token *token);

/* Returns the token of a task that the caller has stolen from `victim` and not yet completed; NULL
 * if the task has none, or is detached. */
const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken);

/*
 * Returns a worker of p other than `except` that has an entry with this token, or NULL. Sets *from
 * to the position in its queue at which the tasks forked under that entry begin. The result is
 * valid until the body with this token is done; the caller has to check afterwards that it is not.
 * Any thread that works for p may call it.
 */
fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *except, const fj_token *token,
                             uint32_t *from);

/* Frees the array. No thread may use the record of w any more. */
void fji_scope_fini(fji_worker *w);

#endif /* FJI_SCOPE_H */
