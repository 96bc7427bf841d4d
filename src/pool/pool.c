/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the public functions that create, resize and end a pool, and those about the calling
 * thread
 *
 * The functions check their arguments and call those of create.c, shutdown.c and quiesce.c. Their
 * contracts are in forkjoin.h. For most of them, NULL means the common pool.
 */

#include "plat/wait.h"
#include "pool/atfork.h"
#include "pool/common_pool.h"
#include "pool/create.h"
#include "pool/quiesce.h"
#include "pool/shutdown.h"

/* ---- Creating and resizing ------------------------------------------------------------------- */

int fj_pool_create(fj_pool **pool, const fj_pool_options *options)
{
    fj_pool_options o;
    int err = fji_options_read(&o, options);

    if (pool == NULL) return FJ_EINVAL;
    if (err != FJ_OK) return err;
    if (o.parallelism == 0) o.parallelism = fj_available_parallelism();
    if (o.max_threads != 0 && o.max_threads < o.parallelism) return FJ_EINVAL;
    fji_atfork_prepare(NULL);
    return fji_pool_make(pool, &o);
}

int fj_pool_set_parallelism(fj_pool *pool, int n)
{
    fj_pool *p = fji_pool_or_common(pool);
    int err;

    if (p == NULL) return FJ_ENOMEM;
    /* FJ_EREJECTED: p is the common pool and ends. Then the next common pool is resized. */
    while ((err = fji_pool_resize(p, n)) == FJ_EREJECTED)
        if ((err = fji_common_again(p)) != FJ_OK) return err;
    return err;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static int pool_shutdown(fj_pool *p, bool now)
{
    if (p == NULL) return FJ_EINVAL;
    if (p->is_common) return FJ_ENOTSUP;
    fji_pool_shutdown(p, now);
    return FJ_OK;
}

int fj_pool_shutdown(fj_pool *pool)
{
    return pool_shutdown(pool, false);
}

int fj_pool_shutdown_now(fj_pool *pool)
{
    return pool_shutdown(pool, true);
}

int fj_pool_await_termination(fj_pool *pool, int64_t timeout_ns)
{
    fj_pool *p = fji_pool_or_common(pool);

    if (p == NULL) return FJ_ENOMEM;
    if (p->is_common) {
        (void)fji_quiesce_await(p, fji_deadline(timeout_ns));
        return FJ_ETIMEDOUT;
    }
    if (fji_pool_is_own_thread(p)) return FJ_EDEADLK;
    return fji_pool_await_end(p, fji_deadline(timeout_ns)) ? FJ_OK : FJ_ETIMEDOUT;
}

int fj_pool_close(fj_pool *pool)
{
    if (pool == NULL) return FJ_EINVAL;
    if (pool->is_common) return FJ_ENOTSUP;
    if (fji_pool_is_own_thread(pool)) return FJ_EDEADLK;
    fji_pool_close(pool);
    return FJ_OK;
}

int fj_pool_destroy(fj_pool *pool)
{
    if (pool == NULL) return FJ_OK;
    int err = fj_pool_close(pool);
    if (err != FJ_OK) return err;
    fji_pool_join(pool);
    fji_pool_free(pool);
    return FJ_OK;
}

/* Returns the run state of `pool`, or of the common pool if `pool` is NULL. Returns 0 if `pool` is
 * NULL and the common pool does not exist. */
static uint32_t pool_run(const fj_pool *pool)
{
    const fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    /* [pool.end] acquire <- release in fji_pool_shutdown(), fji_pool_end_if_over() and
     * fji_pool_make_common(): what the thread that changed the run state did before. */
    return p != NULL ? fji_load_acquire(&p->run) : 0;
}

int fj_pool_is_shutdown(const fj_pool *pool)
{
    return (pool_run(pool) & FJI_RUN_SHUTDOWN) != 0;
}

int fj_pool_is_terminating(const fj_pool *pool)
{
    return (pool_run(pool) & (FJI_RUN_STOP | FJI_RUN_TERMINATED)) == FJI_RUN_STOP;
}

int fj_pool_is_terminated(const fj_pool *pool)
{
    return (pool_run(pool) & FJI_RUN_TERMINATED) != 0;
}

/* ---- Quiescence ------------------------------------------------------------------------------ */

int fj_pool_is_quiescent(fj_pool *pool)
{
    fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    return p == NULL || fji_quiesce_now(p);
}

int fj_pool_await_quiescence(fj_pool *pool, int64_t timeout_ns)
{
    fj_pool *p = fji_pool_or_common(pool);

    return p != NULL ? fji_quiesce_await(p, fji_deadline(timeout_ns)) : FJ_OK;
}

void fj_help_quiesce(void)
{
    fji_worker *w = fji_worker_self();

    (void)!fj_pool_await_quiescence(w != NULL ? w->pool : NULL, FJ_FOREVER);
}

/* ---- The calling thread ---------------------------------------------------------------------- */

fj_pool *fj_current_pool(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL ? w->pool : NULL;
}

int fj_current_worker(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL ? (int)w->index : -1;
}

int fj_is_stopping(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && fji_pool_stopping(w->pool);
}

size_t fj_stack_left(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), low;
    size_t bytes;

    return fji_plat_stack(&low, &bytes) && here > low ? here - low : SIZE_MAX;
}
