/* SPDX-License-Identifier: MIT */
/*
 * future_call.c - allocated futures, and those that call a function of the caller with one argument
 *
 * The library allocates such a future, and frees it when the last reference to it is dropped. The
 * thread that made the future has one reference, and the library has another while the future is
 * queued or runs (fji_future_queue(), fj_future_run()).
 */

#include "future/future.h"

#include <string.h>

#include "pool/common_pool.h"

struct future_call {
    fj_future future;
    fj_call_fn *call;     /* NULL if `action` is set */
    fj_action_fn *action; /* NULL if `call` is set */
    void *arg;
};

/* The body of the future: calls `action` if it is set and `call` otherwise, and returns the
 * code of that function. */
static int call_run(fj_task *t)
{
    struct future_call *c = (struct future_call *)t;

    if (c->action != NULL) return c->action(c->arg);
    c->future.result = NULL;
    return c->call(c->arg, &c->future.result);
}

/* Allocates a future with one reference, for the caller; the caller then sets `call` or `action`.
 * `result`: the result of the future if `action` is set and succeeds. `interruptible`: a thread
 * outside the pool that waits for the future does not become a guest to run it, because a cancel
 * with interrupt sends no signal to a guest; but it does become a guest if the parallelism of the
 * pool is 0. `memory`: a block for the future, or NULL if there is no memory. Returns NULL then. */
static struct future_call *call_make(void *memory, void *arg, void *result, bool interruptible)
{
    struct future_call *c = memory;

    if (c == NULL) return NULL;
    fj_future_init(&c->future, call_run);
    c->arg = arg;
    c->future.result = result;
    c->future.refs = 1;
    c->future.flags = FJI_FUTURE_ALLOCATED;
    if (interruptible) c->future.flags |= FJI_FUTURE_NOT_BY_CALLERS;
    return c;
}

int fj_future_new(size_t size, fj_task_fn *fn, fj_future **f)
{
    if (f == NULL || size < sizeof(fj_future)) return FJ_EINVAL;
    fj_future *made = fji_block_alloc(NULL, FJI_MEMORY_FUTURES, size);
    if (made == NULL) return FJ_ENOMEM;
    memset(made, 0, size);
    fj_future_init(made, fn);
    made->refs = 1;
    made->flags |= FJI_FUTURE_ALLOCATED;
    *f = made;
    return FJ_OK;
}

/* Allocates a future that belongs to no pool. Returns NULL if there is no memory. */
static void *call_block(void)
{
    return fji_block_alloc(NULL, FJI_MEMORY_FUTURES, sizeof(struct future_call));
}

int fj_future_new_call(fj_call_fn *call, void *arg, int interruptible, fj_future **f)
{
    if (call == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make(call_block(), arg, NULL, interruptible != 0);
    if (c == NULL) return FJ_ENOMEM;
    c->call = call;
    *f = &c->future;
    return FJ_OK;
}

int fj_future_new_action(fj_action_fn *action, void *arg, void *result, int interruptible,
                         fj_future **f)
{
    if (action == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make(call_block(), arg, result, interruptible != 0);
    if (c == NULL) return FJ_ENOMEM;
    c->action = action;
    *f = &c->future;
    return FJ_OK;
}

/* Allocates a future from the memory of `pool`, or of the common pool if `pool` is NULL. As
 * call_make(). */
static struct future_call *call_make_in(fj_pool *pool, void *arg, void *result)
{
    fj_pool *p = fji_pool_or_common(pool);

    if (p == NULL) return NULL;
    void *memory = fji_pool_block(p, FJI_MEMORY_FUTURES, sizeof(struct future_call));
    return call_make(memory, arg, result, fji_worker_self() == NULL);
}

/* Submits `made` to `pool`, or to the common pool if `pool` is NULL, stores it in *f and returns
 * FJ_OK. If the submission fails, frees `made`, leaves *f unchanged and returns the error:
 * FJ_EREJECTED or FJ_ENOMEM. */
static int call_submit(fj_pool *pool, fj_future *made, fj_future **f)
{
    int err = fj_future_submit(pool, made);

    if (err == FJ_OK)
        *f = made;
    else
        fji_future_drop(made);
    return err;
}

int fj_submit_call(fj_pool *pool, fj_call_fn *call, void *arg, fj_future **f)
{
    if (call == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make_in(pool, arg, NULL);
    if (c == NULL) return FJ_ENOMEM;
    c->call = call;
    return call_submit(pool, &c->future, f);
}

int fj_submit_action(fj_pool *pool, fj_action_fn *action, void *arg, void *result, fj_future **f)
{
    if (action == NULL || f == NULL) return FJ_EINVAL;
    struct future_call *c = call_make_in(pool, arg, result);
    if (c == NULL) return FJ_ENOMEM;
    c->action = action;
    return call_submit(pool, &c->future, f);
}
