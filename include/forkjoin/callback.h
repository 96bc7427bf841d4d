/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/callback.h - calls with a priority, for schedulers on top of a pool
 *
 * Included by <forkjoin.h>. A callback is like an action (fj_execute()), with three differences. It
 * is a struct in the memory of the caller, so that queueing it needs no other memory. It has a
 * priority. The library also calls it if the pool stops before its turn has come, so that a module
 * that keeps a queue of its own can cancel what is in that queue. Lanes (forkjoin/lane.h) consist of
 * such a queue and a callback; most programs use lanes.
 *
 *     struct pump { fj_callback turn; struct queue *queue; };
 *
 *     static void pump_turn(fj_callback *c, int err)
 *     {
 *         struct pump *p = (struct pump *)c;
 *         if (err != FJ_OK) queue_cancel_all(p->queue); // the pool stops
 *         else if (queue_run_one(p->queue)) (void)fj_callback_submit(NULL, c, FJ_PRIORITY_NORMAL);
 *     }
 *
 * Priorities
 *   A worker that looks for work takes callbacks of high priority before all other work, and
 *   callbacks of background priority only if it finds no other work: no task in the queues of the
 *   pool, no submission and no other callback. Actions, tasks and futures have normal priority. A
 *   priority decides only which call begins next; it does not stop a running task, and a worker that
 *   waits in a join takes no callback.
 *
 *   No priority waits forever: at least one of 64 tasks that a worker takes from the submission
 *   queues is of background priority, and one is of normal priority, if there are such tasks.
 *
 *   Callbacks of high priority begin in the order of submission. So do those of background
 *   priority. Callbacks of normal priority are in the order of other submissions.
 */
#ifndef FORKJOIN_CALLBACK_H
#define FORKJOIN_CALLBACK_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

FJI_EXTERN_C_BEGIN

/* The priority of a callback or a lane. */
enum fj_priority {
    FJ_PRIORITY_NORMAL = 0,           /* as actions, tasks and futures */
    FJ_PRIORITY_HIGH = 0x100000,      /* before all other work */
    FJ_PRIORITY_BACKGROUND = 0x200000 /* only if there is no other work */
};

typedef struct fj_callback fj_callback;

/*
 * The function of a callback. `err` is FJ_OK if a worker of the pool, or another thread that runs
 * tasks of the pool, makes the call. `err` is FJ_ECANCELED if the pool stops; then the thread that
 * stops the pool or a worker of it makes the call.
 *
 * When the library calls the function, it does not use `c` any more. The function may submit `c`
 * again, or free it.
 */
typedef void fj_callback_fn(fj_callback *c, int err);

/* A callback. Initialise it with fj_callback_init(). The members are private. */
struct fj_callback {
    fj_task task;
    fj_callback_fn *fn;
};

/* Initialises `c` as a callback with the function `fn`. */
FJ_API void fj_callback_init(fj_callback *c, fj_callback_fn *fn);

/*
 * Queues `c` in `pool` (NULL: the common pool), always in a submission queue. The library calls the
 * function of `c` once. If the common pool has no workers, the caller makes the call before
 * fj_callback_submit() returns.
 *
 *   order    everything that the caller did before the call happens before the function is called.
 *   owns     the library owns `c` until it calls the function.
 *   returns  FJ_OK; FJ_EINVAL if `c` is NULL or has no function, or if `priority` is not a value of
 *            enum fj_priority; FJ_EREJECTED if the pool is shut down and the caller is not one of
 *            its workers, or if the pool stops; FJ_ENOMEM if there is no memory. On an error the
 *            function is not called.
 *   misuse   The behaviour is undefined if `c` is queued already.
 */
FJ_API FJ_NODISCARD int fj_callback_submit(fj_pool *pool, fj_callback *c,
                                           enum fj_priority priority);

/*
 * Returns 1 if work that goes before `priority` waits in `pool` (NULL: the common pool), otherwise
 * 0. Before FJ_PRIORITY_NORMAL go callbacks of high priority. Before FJ_PRIORITY_BACKGROUND go also
 * submissions, and tasks in the queue of the calling worker. A callback with a long list of work
 * uses the call to end early. The answer may be out of date.
 */
FJ_API int fj_pool_has_work_before(const fj_pool *pool, enum fj_priority priority);

/* Internal, for modules that keep actions in queues of their own. */

/* Passes the code of an action to `on_error` of the pool that the calling thread works for. Does
 * nothing if the code is FJ_OK or the thread works for no pool. */
FJ_API void fji_report(int code);

/* Returns how many calls of fork() lie between the process and its first ancestor. */
FJ_API uint32_t fji_generation(void);

FJI_EXTERN_C_END

#endif /* FORKJOIN_CALLBACK_H */
