/* SPDX-License-Identifier: MIT */
/*
 * common.c - the common pool and the environment
 *
 * The common pool is made under a lock on first use and never freed: at exit its workers
 * are simply ended with the process, and there is nothing left for them to trip over. The
 * shared library is linked so that it is not unloaded.
 *
 * Edges            from                    to                     carries
 *   common.made    release store           acquire load           the pool
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

static fj_pool *common_pool;
static fj_pool_options common_wanted; /* size 0: nothing was configured */
fji_lock fji_common_making;           /* held while it is made, and by fork() */

/* ---- Sizes ------------------------------------------------------------------------------------------ */

int fj_available_parallelism(void)
{
    int n = fji_plat_cpus("");
    return n > FJ_MAX_WORKERS ? FJ_MAX_WORKERS : n;
}

/* A number from the environment; false if absent, not a number or out of range. */
static bool common_number(const char *name, long low, long high, long *value)
{
    const char *text = fji_plat_env(name);
    char *end;

    if (text == NULL || *text == '\0') return false;
    long n = strtol(text, &end, 10);
    if (*end != '\0' || n < low || n > high) return false;
    *value = n;
    return true;
}

/* ---- The pool --------------------------------------------------------------------------------------- */

static void common_options(fj_pool_options *o, bool *fixed)
{
    long n = fj_available_parallelism() - 1;
    long spares = FJI_SPARES, ms = 0, us = 0;

    fj_pool_options_init(o);
    if (common_wanted.size != 0) *o = common_wanted;
    if (n < 1) n = 1;
    if (o->parallelism != 0) n = o->parallelism;
    if (o->max_threads > n) spares = o->max_threads - n;
    *fixed = common_number("FORKJOIN_PARALLELISM", 0, FJ_MAX_WORKERS, &n);
    (void)common_number("FORKJOIN_MAX_SPARES", 0, FJ_MAX_WORKERS, &spares);
    if (common_number("FORKJOIN_KEEP_ALIVE_MS", 1, 1000000000, &ms))
        o->keep_alive_ns = (int64_t)ms * 1000000;
    if (common_number("FORKJOIN_SPIN_US", 0, 1000000, &us)) o->spin_ns = us == 0 ? -1 : us * 1000;
    o->parallelism = (int)n;
    o->max_threads = (int)(n + spares > FJ_MAX_WORKERS ? FJ_MAX_WORKERS : n + spares);
    if (o->max_threads == 0) o->max_threads = 1; /* 0 would mean the default */
}

int fj_common_configure(const fj_pool_options *options)
{
    fj_pool_options o;
    int err = fji_options_read(&o, options);

    if (err != FJ_OK || options == NULL) return FJ_EINVAL;
    fji_pools_prepare();
    fji_lock_take(&fji_common_making);
    if (fji_common_if_made() != NULL)
        err = FJ_EBUSY;
    else
        common_wanted = o;
    fji_lock_drop(&fji_common_making);
    return err;
}

static fj_pool *common_make(void)
{
    fj_pool_options o;
    fj_pool *p = NULL;
    bool fixed;

    common_options(&o, &fixed);
    if (fji_pool_make(&p, &o, true) != FJ_OK) return NULL;
    p->fixed_size = fixed;
    return p;
}

fj_pool *fji_common_if_made(void)
{
    /* [common.made] acquire <- release in fj_common_pool(). */
    return fji_load_acquire(&common_pool);
}

fj_pool *fj_common_pool(void)
{
    fj_pool *p = fji_common_if_made();

    if (p != NULL) return p;
    fji_pools_prepare();
    fji_lock_take(&fji_common_making);
    p = fji_common_if_made();
    if (p == NULL && (p = common_make()) != NULL)
        /* [common.made] release -> acquire in fji_common_if_made(). */
        fji_store_release(&common_pool, p);
    fji_lock_drop(&fji_common_making);
    return p;
}

fj_pool *fji_pool_or_common(const fj_pool *p)
{
    return p != NULL ? (fj_pool *)(uintptr_t)p : fj_common_pool();
}

int fj_common_parallelism(void)
{
    const fj_pool *p = fj_common_pool();

    /* relaxed: a setting. */
    return p != NULL ? fji_load_relaxed(&p->parallelism) : 0;
}

/* ---- Where am I ------------------------------------------------------------------------------------- */

fj_pool *fj_current_pool(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL ? w->pool : NULL;
}

int fj_worker_index(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL ? (int)w->index : -1;
}

int fj_stopping(void)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && fji_pool_stopping(w->pool);
}

size_t fj_stack_left(void)
{
    fji_worker *w = fji_worker_self();
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t low = w != NULL ? w->stack_low : 0;
    size_t bytes;

    if (w == NULL && !fji_plat_stack(&low, &bytes)) return SIZE_MAX;
    return low != 0 && here > low ? here - low : SIZE_MAX;
}
