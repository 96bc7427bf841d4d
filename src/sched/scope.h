/* SPDX-License-Identifier: MIT */
/*
 * scope.h - finds the token that a task runs with
 *
 * Every task runs with a token or without one. This must not make a fork more expensive, so a fork
 * stores no token. Instead a worker keeps the tokens of the tasks on its stack in an array of
 * entries {from, token}, the scopes. `from` is the address of the cell of its queue at which the
 * tasks forked under that token begin. The lowest entry is {0, NULL}.
 *
 *     scopes of the victim             queue of the victim
 *     {from = cell 5, token B}         cell 6   forked under B
 *     {from = cell 2, token A}         cell 4   forked under A
 *     {from = 0,      NULL   }         cell 1   no token
 *
 * The thief of the task in cell c uses the token of the last entry with from <= c. The thief reads
 * the array while the owner changes it. This is safe: the owner cannot leave the frame that forked
 * the stolen task until the task is done. So the entries with from <= c do not change. The owner
 * adds and removes entries above them, but these have from > c, because cell c is not used again
 * before the join. The array never moves: its addresses are reserved when it is created, and memory
 * is added as the array grows.
 *
 * This applies to tasks that are joined through their cell. A future has its own token. An action
 * or a submitted task does not get the token of the frame that queued it, because it may outlive
 * the frame. Only a plain task that was forked into a full queue, and therefore submitted, takes
 * the token of its forker along (fji_submit_fork()).
 *
 * The worker that runs the body of a future. A thread that waits for a future searches the arrays
 * of all workers for the worker that runs the body of the future: that worker has an entry with the
 * future's own token, and `from` of this entry is where the tasks forked by the body begin. Between
 * two reads of the waiter, that worker may finish the body and use the entry for another body. Then
 * the future is done, and the waiter checks whether it is done before it takes a task.
 *
 * Bodies that run elsewhere. An entry belongs either to a body that the worker runs itself, or to a
 * part of a body that another worker runs: a stolen task, or a completer below its root. An entry
 * of the second kind has an odd `from`, one less than the address of the cell. A comparison of
 * `from` with the address of any cell gives the same result with and without the subtracted 1. So a
 * thread that resolves a future can tell whether it runs the body of that future
 * (fji_scope_runs()).
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

/* The state of w before fji_scope_enter(), which fji_scope_leave() restores. */
typedef struct fji_scope_saved {
    fji_scope *scope;      /* the current entry, fji_worker.scope */
    fji_scope *limit;      /* fji_worker.scope_limit */
    const fj_token *token; /* the token of the entry scope_none[1] */
} fji_scope_saved;

/*
 * Adds an entry: tasks that w forks from now on, into cell c or above, run with this token. `scope`
 * is the current entry of w, and the array has memory for one more entry. Only w may call it.
 */
static inline void fji_scope_push(fji_worker *w, fji_scope *scope, const fj_token *token,
                                  const fj_cell *c)
{
    /* [cancel.runner] release -> acquire in scope_find(): that the body for which the entry was
     * used before is done. */
    fji_store_release(&scope[1].from, (uintptr_t)c);
    /* [cancel.runner] release -> acquire in scope_find(): `from` of this entry. */
    fji_store_release(&scope[1].token, token);
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): `from` and `token` of the
     * entry. */
    fji_store_release(&w->scope, scope + 1);
}

/* Returns the token of the task that w runs, or NULL. Only w may call it. */
static inline const fj_token *fji_scope_token(const fji_worker *w)
{
    return w->scope->token;
}

/* Removes all entries but the lowest: w runs without a token from now on. Called by w while no task
 * on its stack has a token, or by the thread that takes or resets the record of w. */
static inline void fji_scope_reset(fji_worker *w)
{
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the lowest entry, if scope_grow()
     * has just created the array. */
    fji_store_release(&w->scope, w->scope_base);
}

/* Called by w before it runs a body with this token: adds an entry. If there is no memory for an
 * entry, the body still runs with the token, but tasks that are stolen from w during the body have
 * no token. Returns what fji_scope_leave() needs after the body. */
fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token);

/* As fji_scope_enter(), but for a stolen task: marks the entry as one of a body that another worker
 * runs ("Bodies that run elsewhere" above). */
fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token);

/* Called by w after the body: removes the entry of fji_scope_enter() or fji_scope_enter_stolen().
 * `saved` is what that call returned. */
void fji_scope_leave(fji_worker *w, fji_scope_saved saved);

/*
 * Replaces all entries above the lowest by one entry: every task that w forks from now on, into any
 * cell, runs with this token. Only w may call it, and only while w runs no task. `from` of the
 * entry is below cell 0, not at the boundary: w may take tasks from its queue before the next fork,
 * so the next fork may use a lower cell. The entry has no effect on the tasks that are already in
 * the queue, because they are detached, and a detached task gets no token from the scopes.
 */
void fji_scope_replace(fji_worker *w, const fj_token *token);

/* Returns whether the task that w runs at present belongs to the body with this token, and w itself
 * has begun that body: w has not stolen the task from another worker that runs the body. Only w may
 * call it. */
bool fji_scope_runs(const fji_worker *w, const fj_token *token);

/* Returns the token of a task that the caller has stolen from `victim` and not yet completed.
 * Returns NULL if the task has no token, or is detached. */
const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken);

/*
 * Returns a worker of p other than `except` that has an entry with this token, or NULL if there is
 * none. Sets *from to the position in the queue of that worker at which the tasks forked under the
 * entry begin. The result is valid until the body with this token is done. So after this call, and
 * before it uses the result, the caller has to check that the body is not done. Any thread that
 * works for p may call it.
 */
fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *except, const fj_token *token,
                             uint32_t *from);

/* Frees the array of scopes of w. No other thread may use the record of w any more. */
void fji_scope_fini(fji_worker *w);

#endif /* FJI_SCOPE_H */
