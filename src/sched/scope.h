/* SPDX-License-Identifier: MIT */
/*
 * scope.h - which token a task runs with
 *
 * Scopes. Every task runs with a token, or none. A worker keeps those of the tasks on its
 * stack in an array: {from, token}, where `from` is the cell of its queue at which the tasks
 * forked under that token begin; the lowest entry is {NULL, NULL}. A fork therefore costs
 * nothing, and a thief finds the token of a task it has taken out of cell p: that of the last
 * entry with from <= p. This may be read while the owner goes on: until the stolen task is
 * done its forker cannot leave the frame that forked it, so the entries with from <= p stay as
 * they are, and those that come and go above them have from > p, as cell p is not given back
 * before the join. The array never moves: addresses are reserved, memory comes as it grows.
 *
 * A thread that waits for a future finds its runner in the same arrays: the worker that has an entry
 * with the future's own token, `from` being where the tasks of the body begin. Between two reads the
 * runner may be through and use the entry for something else; but then the future is done, and the
 * waiter checks that before it takes a task.
 *
 * That is so for tasks that are joined through their cell. Actions and submitted tasks have no
 * token of their forker's, futures their own.
 *
 * Whose body. An entry of the array is either of the body that the worker runs itself, or of a
 * task that belongs to a body elsewhere: a stolen one, or a completer below its root. The latter
 * has an odd `from`, one below its cell, which compares with cells as the cell does. So a thread
 * that decides a future can tell whether it is the one that runs its body.
 *
 * Edges            from                             to                              carries
 *   cancel.scope   release store, fji_scope_push()  acquire, fji_scope_of_stolen()  the entries
 *   cancel.runner  release stores, fji_scope_push() acquire, scope_find()           which run it is
 */

#ifndef FJI_SCOPE_H
#define FJI_SCOPE_H

#include "sched/pool.h"

/* What a worker had before it entered a scope. */
typedef struct fji_scope_saved {
    fji_scope *scope;
    fji_scope *limit;
    const fj_token *token;
} fji_scope_saved;

/* What w forks from now on, at cell c or above, runs with this token. `scope` is the present entry, and
 * the array has an entry above it. */
static inline void fji_scope_push(fji_worker *w, fji_scope *scope, const fj_token *token,
                                  const fj_cell *c)
{
    /* [cancel.runner] release -> acquire in scope_find(): the end of what used the entry before. */
    fji_store_release(&scope[1].from, (uintptr_t)c);
    /* [cancel.runner] release -> acquire in scope_find(): `from`. */
    fji_store_release(&scope[1].token, token);
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the entry. */
    fji_store_release(&w->scope, scope + 1);
}

/* The token of the task that w runs, or NULL. Called by w. */
static inline const fj_token *fji_scope_token(const fji_worker *w)
{
    return w->scope->token;
}

/* Between two tasks, with none on the stack: tasks run without a token from now on. */
static inline void fji_scope_reset(fji_worker *w)
{
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the array, if it is new. */
    fji_store_release(&w->scope, w->scope_base);
}

/* w runs the body that has this token. */
fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token);

/* w runs a task that belongs to a body which another worker runs. */
fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token);

void fji_scope_leave(fji_worker *w, fji_scope_saved saved);

/* With no task on the stack: whatever w forks from now on, at any cell, runs with this token. The tasks
 * that are already queued have no scope, and the queue may become shorter before the next fork. */
void fji_scope_replace(fji_worker *w, const fj_token *token);

/* Whether w itself runs the body with this token, and the present task belongs to it. Called by w. */
bool fji_scope_runs(const fji_worker *w, const fj_token *token);

/* The token of a task that was stolen from `victim` and is not done. */
const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken);

/*
 * A worker of p other than `except` that runs the body with this token, and the position in its queue at
 * which the forks of that body begin; NULL if there is none. The result is valid until the task is done,
 * which the caller has to check afterwards.
 */
fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *except, const fj_token *token,
                             uint32_t *from);

/* Frees the array. */
void fji_scope_fini(fji_worker *w);

#endif /* FJI_SCOPE_H */
