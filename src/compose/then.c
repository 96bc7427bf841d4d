/* SPDX-License-Identifier: MIT */
/*
 * then.c - a future that follows from one other future
 *
 * The derived future is the first member of a struct then, which also contains the listener of the
 * input. The struct is freed with the last reference to the derived future:
 *
 *     made       references: the caller, the listener
 *     input done, by the thread that calls the listener, then_ready()
 *                  stores the outcome of the input in the struct
 *                  the input has succeeded, or `when` is ALWAYS: queues the derived future; its
 *                    body is then_run()
 *                  otherwise: gives the derived future the code of the input
 *                  drops the reference of the listener; the queue has its own
 *
 * Until then_ready() runs, no queue has the derived future. Any thread may cancel, complete or fail
 * it meanwhile, and then_ready() finds it done and does not queue it. If another thread does so
 * later, the worker that takes it out of the queue does not run the body.
 *
 * `code` and `value` are written by then_ready() before it queues the derived future and are read by
 * the body, so the queue orders the accesses.
 *
 * The derived future is adopted by its pool (fji_future_adopt()) until then_ready() runs. So a
 * thread that waits for it can run the tasks of a pool that has no thread.
 */
#include <forkjoin/then.h>

#include "compose/inputs.h"

struct then {
    fj_future next; /* the derived future; the first member */
    fj_listener listener;
    fj_pool *pool; /* NULL: the common pool */
    fj_then_fn *fn;
    void *arg;
    void *value; /* the outcome of the input, see above */
    int code;
    enum fj_then_when when;
};

/* The body of the derived future. */
static int then_run(fj_task *t)
{
    struct then *n = (struct then *)t;

    return n->fn(n->code, n->value, n->arg, &n->next.result);
}

/* The listener of the input f. */
static void then_ready(fj_future *f, void *arg)
{
    struct then *n = arg;
    fj_future *next = fj_future_ref(&n->next);
    int err = n->code = fj_future_result(f, &n->value);

    fji_future_disown(next);
    if (err == FJ_OK || n->when == FJ_THEN_ALWAYS)
        err = fj_future_is_done(next) ? FJ_OK : fj_future_submit(n->pool, next);
    if (err != FJ_OK) (void)fj_future_fail(next, err); /* FJ_ECANCELED: a cancel */
    fj_future_unref(next);
}

int fj_future_then_in(fj_pool *pool, fj_future *f, enum fj_then_when when, fj_then_fn *fn,
                      void *arg, fj_future **next)
{
    fj_future *made;

    if (!fji_input_ok(f) || fn == NULL || next == NULL) return FJ_EINVAL;
    if (when != FJ_THEN_SUCCESS && when != FJ_THEN_ALWAYS) return FJ_EINVAL;
    int err = fj_future_new(sizeof(struct then), then_run, &made);
    if (err != FJ_OK) return err;
    struct then *n = (struct then *)made;
    n->pool = pool;
    n->fn = fn;
    n->arg = arg;
    n->when = when;
    err = fji_future_adopt(pool, made);
    if (err != FJ_OK) {
        fj_future_unref(made);
        return err;
    }
    *next = made; /* fn() may run before this call returns */
    return fj_future_listen(f, &n->listener, then_ready, n); /* FJ_OK: see fji_input_ok() */
}

int fj_future_then(fj_future *f, fj_then_fn *fn, void *arg, fj_future **next)
{
    return fj_future_then_in(fj_current_pool(), f, FJ_THEN_SUCCESS, fn, arg, next);
}

int fj_future_handle(fj_future *f, fj_then_fn *fn, void *arg, fj_future **next)
{
    return fj_future_then_in(fj_current_pool(), f, FJ_THEN_ALWAYS, fn, arg, next);
}

/* ---- Forwarding ------------------------------------------------------------------------------ */

/* The listener of the input: arg is the future that gets its outcome. */
static void forward_ready(fj_future *f, void *arg)
{
    void *value = NULL;
    int code = fj_future_result(f, &value);

    if (code == FJ_OK)
        (void)fj_future_complete(arg, value);
    else
        (void)fj_future_fail(arg, code); /* FJ_ECANCELED: a cancel */
    fj_future_unref(arg);
}

int fj_future_forward(fj_future *f, fj_future *to)
{
    if (!fji_input_ok(f) || !fji_input_ok(to) || f == to) return FJ_EINVAL;
    (void)fj_future_ref(to);
    int err = fj_future_on_done(f, forward_ready, to);
    if (err != FJ_OK) fj_future_unref(to);
    return err;
}
