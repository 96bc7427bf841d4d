/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/group.h - any number of children, which one wait ends
 *
 * A group is for work whose parts are not known in advance: a directory tree, a graph, the requests
 * of a client. Any thread adds children to the group, also the children themselves. One call waits
 * until all of them have finished, and returns the first error.
 *
 *     struct node { struct node *child[4]; int value; };
 *
 *     static int visit(fj_group *g, void *arg) // a child of the group for each node of a tree
 *     {
 *         struct node *n = arg;
 *         for (int i = 0; i < 4; i++) {
 *             int err = n->child[i] != NULL ? fj_group_call(g, visit, n->child[i]) : FJ_OK;
 *             if (err != FJ_OK) return err;
 *         }
 *         return work(n);
 *     }
 *
 *     fj_group g;
 *     int err = fj_group_init(&g, NULL); // NULL: in the pool of the caller
 *     if (err != FJ_OK) return err;
 *     err = fj_group_call(&g, visit, &root);
 *     int first = fj_group_fini(&g); // waits, and returns the first error of a child
 *
 * Two kinds of children
 *   fj_group_call() adds a function and an argument. The group keeps the memory for it, 64 bytes
 *   for a child, and uses the memory again when a child begins to run. So a group allocates only
 *   while the number of its queued children grows, and only if it is more than seven.
 *
 *   fj_group_run() adds an fj_group_task, which is the first member of a struct of the caller. The
 *   group allocates nothing for it. The library does not access the struct after it has called the
 *   body, so the body may free the struct, or add it to a group again.
 *
 * Life of a group
 *   A group is open after fj_group_init(). The first call of fj_group_wait(), fj_group_wait_for()
 *   or fj_group_fini() closes it. A closed group ends when it has no unfinished child and no hold.
 *   It cannot end while it is filled by a thread that may add:
 *
 *     - any thread, until the group is closed;
 *     - a child of the group, also while the group is waited for;
 *     - a thread that has a hold, from fj_group_hold() to fj_group_release().
 *
 *   A call that adds to a group that has ended returns FJ_EREJECTED and changes nothing. An ended
 *   group can be opened again by fj_group_reset(), which keeps the memory for children.
 *
 * Errors and cancelling
 *   A group keeps the first code other than 0 that a child returns. By default the other children
 *   run as if nothing had happened. With `cancel_on_error` the first error cancels the group.
 *
 *   A group has a token, under which its children run. If the token is cancelled, fj_is_cancelled()
 *   returns 1 in the children, and children that have not begun are skipped: their body is not
 *   called, and they count as finished. If a child is skipped and none has failed before, the error
 *   of the group is FJ_ECANCELED. If the pool stops, the children that have not begun are skipped too. A group
 *   ends only when all of its children have finished, whatever their outcomes are.
 *
 * In a child process made by fork(), a group of the parent process may only be waited for. No child
 * of the group begins there. If the group had not ended, fj_group_wait() and fj_group_fini() return
 * the first error until the fork(), or FJ_ECANCELED if there was none.
 */
#ifndef FORKJOIN_GROUP_H
#define FORKJOIN_GROUP_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

typedef struct fj_group fj_group;
typedef struct fj_group_task fj_group_task;

/* The body of a child of fj_group_run(). It returns 0 or an error code. */
typedef int fj_group_task_fn(fj_group_task *t);

/* The function of a child of fj_group_call(). `g` is the group, so that the function can add
 * children. It returns 0 or an error code. */
typedef int fj_group_fn(fj_group *g, void *arg);

/* A child in the caller's memory: the first member of a struct of the caller. The members are
 * private. */
struct fj_group_task {
    fj_task task;
    fj_group *group;
    fj_group_task_fn *fn;
};

/* The options of a group. For every member 0 means the default. */
typedef struct fj_group_options {
    /* The pool that runs the children. NULL: the pool of the calling task; outside a pool, the
     * common pool. */
    fj_pool *pool;
    /* The group also counts as cancelled when this token is cancelled. The token must outlive the
     * group. Pass fj_current_token() to cancel the group together with the calling task. NULL: no
     * token. */
    const fj_token *token;
    /* If it is not 0, the first error of a child cancels the group. */
    int cancel_on_error;
    int reserved_int; /* 0 */
    /* The library calls on_skip(child, arg) in place of the body of a child that is skipped, for
     * example to free its memory. `child` is the fj_group_task of fj_group_run(), or the argument
     * of fj_group_call(). NULL: no callback. */
    void (*on_skip)(void *child, void *arg);
    void *arg;            /* the last argument of on_skip() */
    uint64_t reserved[2]; /* 0 */
} fj_group_options;

/* Internal: the memory of a child of fj_group_call(). */
struct fji_group_cell;

/*
 * A group, in the caller's memory. The members are private. They are in the order of the threads
 * that use them: all threads read the first ones, the threads that add and finish children write
 * `count`, and only the thread that has called fj_group_init() uses `own`. `first` is the memory of
 * the first children.
 */
struct fj_group {
    fj_completer root;
    void (*on_skip)(void *child, void *arg);
    void *arg;
    uint64_t owner;
    int32_t cancel_on_error;
    int32_t code;
    unsigned char gap0[64];
    uint32_t count;
    uint32_t holds;
    uint32_t waits;
    uint32_t generation;
    uint32_t lock[2];
    struct fji_group_cell *cells;
    struct fji_group_cell *block;
    struct fji_group_cell *next;
    struct fji_group_cell *end;
    unsigned char gap1[64];
    struct fji_group_cell *own;
    uint64_t first[8 * 8];
};

/*
 * Initialises `g` as an open group without children. `options` may be NULL.
 *
 *   owns     the caller owns `g`. It must not move, and it must stay valid until fj_group_fini()
 *            has returned.
 *   returns  FJ_OK. FJ_EINVAL if `g` is NULL or a reserved option is not 0. FJ_ENOMEM if there is
 *            no memory for the common pool.
 */
FJ_API FJ_NODISCARD int fj_group_init(fj_group *g, const fj_group_options *options);

/* Internal: the function by which the queues run a child of fj_group_run(). */
FJ_API int fji_group_run_task(fj_task *t);

/* Initialises `t` as a child with the body `fn`. One call is enough, even if `t` is added several
 * times. */
FJI_INLINE void fj_group_task_init(fj_group_task *t, fj_group_task_fn *fn)
{
    if (t == 0) return;
    t->task.fn = fji_group_run_task;
    t->task.cell = 0;
    t->group = 0;
    t->fn = fn;
}

/*
 * Returns the group that `t` was added to; NULL if `t` was never added. The body of `t` uses it to
 * add more children.
 */
FJI_INLINE fj_group *fj_group_of(const fj_group_task *t)
{
    return t != 0 ? t->group : 0;
}

/*
 * Adds the child `t`: a worker of the pool calls its body later.
 *
 * A worker of the pool puts the child into its own queue. If there is no memory for one more queued
 * task, the worker runs the child before the call returns.
 *
 *   from     a thread that may add to the group; see the head of this file.
 *   order    what the caller did before the call happens before the body.
 *   owns     the library owns `t` until it calls the body of `t`, or on_skip().
 *   returns  FJ_OK. FJ_EINVAL if `g` or `t` is NULL, or if `t` has no body or is queued.
 *            FJ_EREJECTED if the group has ended, or if the pool is shut down and the caller is not
 *            one of its workers. FJ_ENOMEM if there is no memory, or if 2^30 children are
 *            unfinished. After an error the child was not added.
 */
FJ_API FJ_NODISCARD int fj_group_run(fj_group *g, fj_group_task *t);

/*
 * Adds the child fn(g, arg). If there is no memory for one more child, a worker of the pool runs
 * the child before the call returns.
 *
 *   from     as fj_group_run().
 *   order    what the caller did before the call happens before fn().
 *   memory   64 bytes for a child that is queued. The group allocates them in blocks, uses them
 *            again, and frees them in fj_group_fini().
 *   returns  as fj_group_run(). FJ_EINVAL if `g` or `fn` is NULL.
 */
FJ_API FJ_NODISCARD int fj_group_call(fj_group *g, fj_group_fn *fn, void *arg);

/*
 * Takes a hold: the group does not end until fj_group_release(). With a hold, a thread that is not
 * a child may add to a closed group.
 *
 *   from     as fj_group_run(). A thread must not wait for the group while it has a hold, because
 *            the group would not end.
 *   returns  FJ_OK. FJ_EINVAL if `g` is NULL. FJ_EREJECTED if the group has ended. FJ_ENOMEM if
 *            2^30 children are unfinished.
 */
FJ_API FJ_NODISCARD int fj_group_hold(fj_group *g);

/*
 * Drops a hold.
 *
 *   from     any thread, once for each successful fj_group_hold().
 *   order    what the caller did before the call happens before the return of a wait.
 *   owns     the caller must not access `g` afterwards, unless it may do so for another reason.
 *   returns  FJ_OK. FJ_EINVAL if `g` is NULL or has no hold.
 */
FJ_API int fj_group_release(fj_group *g);

/*
 * Closes the group and waits until it has ended.
 *
 * A worker of the pool runs children of the group while it waits, and no other task. If there is
 * none to run, it sleeps, and another worker may run in its place. A thread outside the pool waits
 * as in fj_future_join(). An interrupt of the calling task does not end the wait.
 *
 *   from     any thread that does not run a child of the group. Several threads may wait.
 *   order    everything that the children did happens before the return.
 *   returns  the first error of a child, FJ_OK if there was none. FJ_EDEADLK, and the group is not
 *            closed, if the caller is a child of the group or a task below one; a task that runs
 *            under the token of the group, or under a token below it, counts as such. FJ_EINVAL if
 *            `g` is NULL.
 */
FJ_API int fj_group_wait(fj_group *g);

/*
 * Closes the group and waits at most timeout_ns until it has ended. If timeout_ns is not positive,
 * the call only looks. A thread that waits with a limit runs no children.
 *
 *   from, order  as fj_group_wait().
 *   returns  as fj_group_wait(). FJ_ETIMEDOUT if the group has not ended after timeout_ns; the
 *            group is closed then, and may be waited for again.
 */
FJ_API int fj_group_wait_for(fj_group *g, int64_t timeout_ns);

/*
 * Waits as fj_group_wait() does, and frees the memory that the group has allocated. A wait of
 * another thread that has begun before also returns before this call does. The caller may then
 * free `g`, or initialise it again.
 *
 *   from     as fj_group_wait(), but only one thread. No other call on `g` may begin afterwards.
 *   returns  as fj_group_wait(). If the code is FJ_EDEADLK, the group is unchanged.
 */
FJ_API int fj_group_fini(fj_group *g);

/*
 * Opens a group that has ended again, without error and not cancelled. The group keeps its options
 * and its memory for children.
 *
 *   from     a thread that has `g` to itself: no other thread uses `g` during the call.
 *   returns  FJ_OK. FJ_EBUSY if the group has not ended, or if another thread still waits for it.
 *            FJ_EINVAL if `g` is NULL.
 */
FJ_API int fj_group_reset(fj_group *g);

/*
 * Cancels the group: children that have not begun are skipped, and children that run are
 * interrupted (forkjoin/future.h). A cancel can be undone only by fj_group_reset().
 *
 *   from     any thread.
 */
FJ_API void fj_group_cancel(fj_group *g);

/*
 * Returns the token of the group, under which its children run; NULL if `g` is NULL.
 *
 *   owns     the group owns the token. It is valid until fj_group_fini().
 */
FJ_API fj_token *fj_group_token(fj_group *g);

/*
 * Returns the first error of a child until now, without waiting.
 *
 *   returns  the code; FJ_OK if no child has failed yet; FJ_EINVAL if `g` is NULL.
 */
FJ_API int fj_group_error(const fj_group *g);

/*
 * Returns 1 if the group has ended, else 0.
 *
 *   order    if the call returns 1, everything that the children did happens before the return.
 */
FJ_API int fj_group_has_ended(const fj_group *g);

FJI_EXTERN_C_END

#endif /* FORKJOIN_GROUP_H */
