/* SPDX-License-Identifier: MIT */
/*
 * create.c - creates, resizes and frees a pool
 *
 * A pool starts without threads; the first task starts the first worker. Creating a pool reserves
 * one worker record. If the system refuses every thread, a waiting thread has to run the tasks of
 * the pool, and the reserved record is the one that it uses.
 *
 * The common pool is different in one point. Its record is static and is filled again after each
 * end (common_pool.c), while other threads may hold one of its locks and read its run state. So the
 * members that such a thread reads before it holds a lock are set once (pool_set_for_good()). All
 * other members are written before the bits of the run state are cleared.
 *
 * Edges        from                                     to                      carries
 *   pool.end   release store, fji_pool_make_common()    acquire, pool_run()     the new common pool
 *                                                         and fji_pool_hold()
 */

#include "pool/create.h"

#include <stdio.h>
#include <string.h>

#include "pool/atfork.h"
#include "pool/shutdown.h"
#include "pool/timers.h"
#include "sched/record.h"
#include "sched/registry.h"
#include "sched/submissions.h"
#include "sched/wake.h"
#include "sched/worker.h"

static const fji_pool_hooks pool_hooks = {
    .start_worker = fji_worker_start,
    .watch = fji_timers_watch,
    .try_terminate = fji_pool_try_terminate,
};

/* ---- Options --------------------------------------------------------------------------------- */

static int options_check(const fj_pool_options *o)
{
    if (o->parallelism < 0 || o->parallelism > FJ_MAX_WORKERS) return FJ_EINVAL;
    if ((o->flags & ~(FJ_POOL_FIFO | FJ_POOL_CALLER_HELPS | FJ_POOL_SYMMETRIC)) != 0)
        return FJ_EINVAL;
    if (o->max_threads < 0 || o->min_runnable < 0 || o->min_runnable > FJ_MAX_WORKERS)
        return FJ_EINVAL;
    if (o->max_threads != 0 && o->max_threads < o->parallelism) return FJ_EINVAL;
    if (o->max_threads != 0 && o->max_threads < o->min_runnable) return FJ_EINVAL;
    if (o->keep_alive_ns < 0 || o->spin_ns < -1) return FJ_EINVAL;
    if (o->interrupt_signal < 0 || o->cpus_bytes > 65536) return FJ_EINVAL;
    if ((o->allocate == NULL) != (o->release == NULL)) return FJ_EINVAL;
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return FJ_EINVAL;
    return FJ_OK;
}

int fji_options_read(fj_pool_options *o, const fj_pool_options *from)
{
    *o = from != NULL ? *from : (fj_pool_options){0};
    return options_check(o);
}

int fj_available_parallelism(void)
{
    int n = fji_plat_cpus("");
    return n > FJ_MAX_WORKERS ? FJ_MAX_WORKERS : n;
}

/* ---- Creating -------------------------------------------------------------------------------- */

fji_memory fji_memory_common = {.held = FJI_MEMORY_POOL_EXISTS};

/* Returns the number of submission queues for this parallelism: the smallest power of two that is
 * not less than the parallelism, but at least 2 and at most FJI_MAX_SUBMISSION_QUEUES. */
static uint32_t submission_queues_for(int parallelism)
{
    uint32_t n = 2;

    while (n < (uint32_t)parallelism && n < FJI_MAX_SUBMISSION_QUEUES) n *= 2;
    return n;
}

/* Returns how many threads p may have at most if its parallelism is n: max_threads of the options,
 * or n + FJI_SPARES if that option is 0; but at least min_runnable and at most FJ_MAX_WORKERS. */
static int pool_most(const fj_pool *p, int n)
{
    int most = p->options.max_threads != 0 ? p->options.max_threads : n + FJI_SPARES;

    if (most < p->min_runnable) most = p->min_runnable;
    return most < FJ_MAX_WORKERS ? most : FJ_MAX_WORKERS;
}

/* Returns whether pools may use the heavy fence: the system supports it, and the environment
 * variable FORKJOIN_FENCES is not "symmetric". Later calls return the answer of the first call. */
static bool pool_has_barrier(void)
{
    static uint32_t known;                 /* 0: before the first call; 1: yes; 2: no */
    uint32_t k = fji_load_relaxed(&known); /* relaxed: every thread stores the same value */

    if (k == 0) {
        const char *fences = fji_plat_env("FORKJOIN_FENCES");
        bool no = fences != NULL && strcmp(fences, "symmetric") == 0;
        k = !no && fji_plat_has_barrier() ? 1 : 2;
        fji_store_relaxed(&known, k); /* relaxed: as above */
    }
    return k == 1;
}

/* With the lock of p: sets the members that depend on the options *o, and sets the counters to
 * their initial values. `common`: p is the common pool. cpus: fj_available_parallelism(). */
static void pool_set(fj_pool *p, const fj_pool_options *o, bool common, int cpus)
{
    int n = o->parallelism;
    int64_t keep = o->keep_alive_ns != 0 ? o->keep_alive_ns : FJI_KEEP_ALIVE_NS;

    p->options = *o;
    fji_store_relaxed(&p->parallelism, n); /* relaxed: only this number is used */
    p->min_runnable = o->min_runnable != 0 ? o->min_runnable : 1;
    p->max_threads = pool_most(p, n);
    p->keep_alive_ns = keep < FJI_KEEP_ALIVE_MIN_NS ? FJI_KEEP_ALIVE_MIN_NS : keep;
    p->spin_ns = o->spin_ns != 0 ? o->spin_ns : FJI_SPIN_NS;
    if (p->spin_ns > FJI_SPIN_MAX_NS) p->spin_ns = FJI_SPIN_MAX_NS;
    p->max_spinners = (uint32_t)(cpus / 2);
    p->fence_waits = p->spin_ns > 0 && n <= cpus;
    p->fifo = (o->flags & FJ_POOL_FIFO) != 0;
    p->activity_epoch = p->started = FJI_START_64;
    p->fence_begun = p->fence_done = FJI_START_32;
    p->nsearching = p->slots_taken = p->shrinking = p->failed_starts = p->spawn_refused =
        p->starts = p->blocked = 0;
    fji_sizes sizes = fji_pool_sizes(p);
    p->ctl = fji_ctl_normalize(fji_ctl_add_active(FJI_CTL_NONE, -n), &sizes);
    (void)snprintf(p->name, sizeof p->name, "%s",
                   o->name != NULL ? o->name
                   : common        ? "common"
                                   : "fj");
    p->options.name = p->name;
    p->asymmetric = (o->flags & FJ_POOL_SYMMETRIC) == 0 && pool_has_barrier();
}

/* Sets the members that keep their value when the common pool is created again, because other
 * threads may read them at any time. `common`: p is the common pool. cpus:
 * fj_available_parallelism(). */
static void pool_set_for_good(fj_pool *p, const fj_pool_options *o, bool common, int cpus)
{
    p->caller_helps = common || (o->flags & FJ_POOL_CALLER_HELPS) != 0;
    p->hooks = &pool_hooks;
    p->is_common = common;
    p->nsubmissions = submission_queues_for(common && cpus > o->parallelism ? cpus
                                                                            : o->parallelism);
    for (int i = 0; i < 2; i++) p->submitted_cell[i].item = FJI_END;
    p->submitted_cell[0].kind = FJI_CELL_SUBMITTED;
    memcpy(p->submitted_cell[0].args, &p, sizeof p);
}

static void pool_free_contents(fj_pool *p)
{
    fji_records_free(p);
    fji_memory_free(p->memory, FJI_MEMORY_POOL, p->cpus, p->options.cpus_bytes);
    p->cpus = NULL;
}

/* Fills the record of p with the options *o. `common`: p is the common pool. cpus:
 * fj_available_parallelism(). Returns false if there is no memory; then this function has freed
 * everything that it allocated. */
static bool pool_fill(fj_pool *p, const fj_pool_options *o, bool common, int cpus)
{
    if (o->cpus != NULL && o->cpus_bytes != 0) {
        p->cpus = fji_memory_alloc(p->memory, FJI_MEMORY_POOL, o->cpus_bytes);
        if (p->cpus == NULL) return false;
        memcpy(p->cpus, o->cpus, o->cpus_bytes);
    }
    fji_lock_take(&p->lock);
    pool_set(p, o, common, cpus);
    /* Reserves the first worker record. A thread that has to run the tasks of a pool without
     * threads takes this record, so it needs no memory for one. */
    bool ok = fji_record_reserve(p);
    if (!ok) pool_free_contents(p);
    fji_lock_drop(&p->lock);
    return ok;
}

/* Frees p, the record of a pool other than the common one, and then ends m, its memory record. p may be
 * NULL. */
static void pool_free_record(fji_memory *m, fj_pool *p)
{
    fji_memory_free(m, FJI_MEMORY_POOL, p, sizeof *p);
    fji_memory_end(m);
}

int fji_pool_make(fj_pool **out, const fj_pool_options *o)
{
    int cpus = fj_available_parallelism();
    fji_allocator from = fji_allocator_of(o);
    fji_memory *m = fji_memory_make(&from);
    fj_pool *p = m != NULL ? fji_memory_alloc(m, FJI_MEMORY_POOL, sizeof *p) : NULL;

    if (p != NULL) {
        p->memory = m;
        pool_set_for_good(p, o, false, cpus);
    }
    if (p == NULL || !pool_fill(p, o, false, cpus)) {
        if (m != NULL) pool_free_record(m, p);
        return FJ_ENOMEM;
    }
    fji_registry_add(p);
    *out = p;
    return FJ_OK;
}

/* Sets p->memory of the common pool: a new record if the options have functions for memory, otherwise
 * the static one. Returns false if there is no memory. */
static bool common_memory_begin(fj_pool *p, const fj_pool_options *o)
{
    fji_allocator from = fji_allocator_of(o);
    fji_memory *m = from.allocate != NULL ? fji_memory_make(&from) : &fji_memory_common;

    if (m == NULL) return false;
    fji_store_relaxed(&p->memory, m); /* relaxed: see fji_pool_block() */
    return true;
}

/* Ends what common_memory_begin() has begun. No thread has a hold. */
static void common_memory_end(fj_pool *p)
{
    fji_memory *m = p->memory;

    fji_store_relaxed(&p->memory, &fji_memory_common); /* relaxed: as above */
    if (m != &fji_memory_common) fji_memory_end(m);
}

/*
 * A thread that has found the previous common pool stopped may hold one of the locks in p: the lock
 * of a submission queue, of the timers or of the pool. So this function takes each of these locks,
 * and writes what the lock protects before it releases the lock. It clears the bits of `run` last.
 * A thread that reads `run` with one of the locks, and finds the bits cleared, then also sees what
 * that lock protects.
 */
bool fji_pool_make_common(fj_pool *p, const fj_pool_options *o, bool fixed_size)
{
    int cpus = fj_available_parallelism();

    if (!p->is_common) pool_set_for_good(p, o, true, cpus);
    if (!common_memory_begin(p, o)) return false;
    if (!pool_fill(p, o, true, cpus)) {
        common_memory_end(p);
        return false;
    }
    if (!fji_submissions_renew(p)) {
        pool_free_contents(p);
        common_memory_end(p);
        return false;
    }
    fji_timers_renew(p);
    /* The lock of the pool is taken after all other locks: a guest reads `run` with the lock of the
     * pool and then searches all submission queues, so it must see those as well. */
    fji_lock_take(&p->lock);
    p->fixed_size = fixed_size;
    fji_lock_drop(&p->lock);
    fji_registry_add(p);
    /* [pool.end] release -> acquire in pool_run() and fji_pool_hold(), which read `run`: the
     * contents of the new common pool. */
    fji_store_release(&p->run, 0u);
    return true;
}

void fji_pool_free(fj_pool *p)
{
    fji_registry_remove(p);
    pool_free_contents(p);
    fji_submissions_free(p);
    fji_timers_free(p);
    pool_free_record(p->memory, p);
}

void fji_pool_free_common(fj_pool *p)
{
    fji_registry_remove(p);
    pool_free_contents(p);
    fji_submissions_clear(p);
    common_memory_end(p);
}

/* ---- Resizing -------------------------------------------------------------------------------- */

int fji_pool_resize(fj_pool *p, int n)
{
    fji_lock_take(&p->lock);
    /* The common pool ends, and the next one would not have the parallelism n. */
    if (p->is_common && fji_pool_stopping(p)) {
        fji_lock_drop(&p->lock);
        return FJ_EREJECTED;
    }
    int old = p->parallelism;
    if (p->fixed_size)
        old = FJ_ENOTSUP;
    else if (n < 1 || n > FJ_MAX_WORKERS || n > pool_most(p, n))
        old = FJ_EINVAL;
    if (old < 0) {
        fji_lock_drop(&p->lock);
        return old;
    }
    /* relaxed: only the value of the limit is used; the control word is changed afterwards. */
    fji_store_relaxed(&p->max_threads, pool_most(p, n));
    fji_store_relaxed(&p->parallelism, n); /* relaxed: as above */
    fji_ctl_add(p, old - n, 0);
    fji_lock_drop(&p->lock);
    return old;
}

void fji_pool_needs_worker(fj_pool *p)
{
    if (fji_pool_parallelism(p) != 0) return; /* relaxed: it does not become 0 later */
    fji_lock_take(&p->lock);
    if (p->parallelism == 0 && !fji_pool_stopping(p)) {
        fji_store_relaxed(&p->parallelism, 1); /* relaxed: only this number is used */
        fji_ctl_add(p, -1, 0);
    }
    fji_lock_drop(&p->lock);
}
