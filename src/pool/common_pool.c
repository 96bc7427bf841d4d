/* SPDX-License-Identifier: MIT */
/*
 * common_pool.c - creates and ends the common pool, and reads its environment variables
 *
 * The first call that needs the common pool creates it, with fji_common_lock. fj_common_shutdown()
 * ends it. The next call that needs the common pool creates it again:
 *
 *     none -> open -> ending -> none -> ...
 *
 *   none     common_pool is NULL.
 *   open     common_pool is not NULL, and common_ending is 0.
 *   ending   common_ending is 1. fj_common_shutdown() has found the pool quiescent and stopped it
 *            (shutdown.c). The threads of the pool exit and are joined. Then its memory is freed.
 *
 * Other threads may use the common pool in each of these states. Most of their calls are
 * submissions, and a submission must not become slower because the pool may end. So everything that
 * a thread outside the pool accesses before it holds a lock of the pool is static and never freed:
 * the record of the pool, its submission queues without their slots, and the record of its timers.
 * Each common pool is created in these records. The thread checks with a lock whether the pool
 * accepts work: a submitter with the lock of its submission queue, a guest with the lock of the
 * pool, a thread that schedules a timer with the lock of the timers. If the pool does not accept
 * work, the thread waits for the end and creates the next common pool (fji_common_again()).
 *
 * All other memory of the pool is freed at its end, above all the records of workers. A thread
 * outside the pool reads that memory only within a hold (sched/hold.h). The end of the pool waits
 * until no thread has a hold. The calls that need a hold are slow in any case, for example waits,
 * statistics and fj_pool_drain().
 *
 * If a program does not call fj_common_shutdown(), the workers end with the process. The shared
 * library is linked so that it is not unloaded. A plugin that contains the static library calls
 * fj_common_shutdown() before it is unloaded.
 *
 * Edges            from                              to                                carries
 *   common.made    release store, fj_common_pool()   acquire, fji_common_if_made()     the pool
 *   common.ended   release store, common_free()      acquire, common_await_end()       the end
 */

#include "pool/common_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plat/wait.h"
#include "pool/atfork.h"
#include "pool/create.h"
#include "pool/quiesce.h"
#include "pool/shutdown.h"
#include "pool/timers.h"
#include "sched/compensate.h"
#include "sched/guest.h"
#include "sched/hold.h"

static fj_pool common_record;         /* the record in which every common pool is created */
static fj_pool *common_pool;          /* &common_record, or NULL if there is no common pool */
static fj_pool_options common_wanted; /* options of the next common pool; all zero: the default */
static char common_name[9];           /* copy of the configured name, for common_wanted.name */
/* 1 while a thread ends the common pool, otherwise 0. Threads that wait for the end sleep on this
 * word. */
static uint32_t common_ending;
static fji_thread common_ender; /* the thread that ends the common pool, if common_ending is 1 */

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Reads a number from the environment variable `name` and stores it in *value. Returns true then.
 * Returns false, and leaves *value as it is, if the variable is not set, is empty, is not a number,
 * or is less than `low` or greater than `high`. */
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

/* ---- Creation -------------------------------------------------------------------------------- */

/* Returns the default parallelism of the common pool: the number of available CPUs minus 1, but at
 * least 1. One CPU is left to a thread that waits for a task, because it runs tasks meanwhile. */
static int common_default(void)
{
    int n = fj_available_parallelism() - 1;
    return n < 1 ? 1 : n;
}

/* Returns the option max_threads of a common pool with the parallelism n: n plus a number of
 * additional threads, but at least 1 and at most FJ_MAX_WORKERS. The number of additional threads
 * is the environment variable FORKJOIN_MAX_SPARES. If that is not set, or is not a number from 0 to
 * FJ_MAX_WORKERS, it is o->max_threads minus `configured`, the parallelism before
 * FORKJOIN_PARALLELISM was applied. Returns 0, which means the default, if the environment variable
 * gives no number and o->max_threads is 0. */
static int common_most(const fj_pool_options *o, long n, long configured)
{
    long spares = o->max_threads - configured;
    bool given = common_number("FORKJOIN_MAX_SPARES", 0, FJ_MAX_WORKERS, &spares);

    if (!given && o->max_threads == 0) return 0;
    if (n + spares > FJ_MAX_WORKERS) return FJ_MAX_WORKERS;
    return n + spares < 1 ? 1 : (int)(n + spares); /* 0 would mean the default */
}

/* Sets *o to the options of the next common pool: the configured options, changed by the
 * environment variables. Sets *fixed to whether FORKJOIN_PARALLELISM sets the parallelism: then the
 * program cannot change it. */
static void common_options(fj_pool_options *o, bool *fixed)
{
    long ms = 0, us = 0;

    *o = common_wanted;
    long n = o->parallelism != 0 ? o->parallelism : common_default(), configured = n;
    *fixed = common_number("FORKJOIN_PARALLELISM", 0, FJ_MAX_WORKERS, &n);
    if (common_number("FORKJOIN_KEEP_ALIVE_MS", 1, 1000000000, &ms))
        o->keep_alive_ns = (int64_t)ms * 1000000;
    if (common_number("FORKJOIN_SPIN_US", 0, 1000000, &us)) o->spin_ns = us == 0 ? -1 : us * 1000;
    o->parallelism = (int)n;
    o->max_threads = common_most(o, n, configured);
}

/* With fji_common_lock: configures the next common pool with the options *o. Copies the memory that
 * `cpus` and `name` of *o point to. Returns FJ_OK, or FJ_ENOMEM if there is no memory for the copy
 * of `cpus`; the configured options are then unchanged. */
static int common_want(const fj_pool_options *o)
{
    bool cpus = o->cpus != NULL && o->cpus_bytes != 0;
    fji_allocator now = fji_allocator_of(o), before = fji_allocator_of(&common_wanted);
    void *copy = cpus ? fji_allocator_alloc(&now, o->cpus_bytes) : NULL;

    if (cpus && copy == NULL) return FJ_ENOMEM;
    if (cpus) memcpy(copy, o->cpus, o->cpus_bytes);
    fji_allocator_free(&before, (void *)(uintptr_t)common_wanted.cpus, common_wanted.cpus_bytes);
    common_wanted = *o;
    common_wanted.cpus = copy;
    if (o->name != NULL) {
        (void)snprintf(common_name, sizeof common_name, "%s", o->name);
        common_wanted.name = common_name;
    }
    return FJ_OK;
}

static void common_in_child(void);

int fj_common_configure(const fj_pool_options *options)
{
    fj_pool_options o;
    int err = fji_options_read(&o, options);

    if (err != FJ_OK || options == NULL) return FJ_EINVAL;
    if (o.parallelism == 0 && o.max_threads != 0 && o.max_threads < common_default())
        return FJ_EINVAL;
    fji_atfork_prepare(common_in_child);
    fji_lock_take(&fji_common_lock);
    err = fji_common_if_made() != NULL ? FJ_EBUSY : common_want(&o);
    fji_lock_drop(&fji_common_lock);
    return err;
}

static fj_pool *common_make(void)
{
    fj_pool_options o;
    bool fixed;

    common_options(&o, &fixed);
    return fji_pool_make_common(&common_record, &o, fixed) ? &common_record : NULL;
}

fj_pool *fji_common_if_made(void)
{
    /* [common.made] acquire <- release in fj_common_pool(): the contents of the common pool. */
    return fji_load_acquire(&common_pool);
}

fj_pool *fj_common_pool(void)
{
    fj_pool *p = fji_common_if_made();

    if (p != NULL) return p;
    fji_atfork_prepare(common_in_child);
    fji_lock_take(&fji_common_lock);
    p = fji_common_if_made();
    if (p == NULL && (p = common_make()) != NULL)
        /* [common.made] release -> acquire in fji_common_if_made(): the contents of the pool. */
        fji_store_release(&common_pool, p);
    fji_lock_drop(&fji_common_lock);
    return p;
}

/* ---- End ------------------------------------------------------------------------------------- */

/* Returns whether the calling thread is the one that ends the common pool. Called while
 * common_ending is 1, with fji_common_lock or in the child process after fork(). */
static bool common_is_ender(void)
{
    return common_ender.handle == fji_plat_thread_self().handle;
}

/* Returns whether the end of the common pool would wait for the calling thread: the thread has a
 * hold, or is a worker, a guest or a timer thread of the common pool. */
static bool common_has_self(void)
{
    return fji_hold_is_mine() || fji_inside(&common_record) ||
           fji_timers_is_own_thread(&common_record);
}

/* Waits while another thread ends the common pool. A worker of another pool that calls this counts
 * as blocked meanwhile. Returns false if the deadline passes first, otherwise true. */
static bool common_await_end(int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    bool in_time = true;

    /* [common.ended] acquire <- release in common_free(): that the memory is freed. */
    while (fji_load_acquire(&common_ending) != 0 && in_time)
        in_time = fji_plat_wait(&common_ending, 1, deadline);
    if (w != NULL) fji_compensate_end(w, c);
    return in_time;
}

int fji_common_again(const fj_pool *p)
{
    if (p != &common_record) return FJ_EREJECTED; /* p may be freed; only its address is used */
    /* A thread that tries to stop p holds this lock, so this call waits for the outcome. */
    fji_lock_take(&fji_common_lock);
    bool ending = common_ending != 0, mine = ending && common_is_ender();
    fji_lock_drop(&fji_common_lock);
    if (ending) {
        /* If the calling thread ends the pool itself, belongs to the pool, or has a hold, the pool
         * cannot end before this call returns. So this thread must not wait for the end. */
        if (mine || common_has_self()) return FJ_EREJECTED;
        (void)common_await_end(FJ_FOREVER);
    }
    return fj_common_pool() != NULL ? FJ_OK : FJ_ENOMEM;
}

/* Called after the last thread of the common pool p has exited: waits until no thread has a hold,
 * frees the memory of p that is not static, resets the configured options, sets common_pool to NULL
 * and common_ending to 0, and wakes the threads that wait for the end. */
static void common_free(fj_pool *p)
{
    fji_hold_await_none();
    fji_lock_take(&fji_common_lock);
    /* [common.made] release -> acquire in fji_common_if_made(): that the pool has ended. */
    fji_store_release(&common_pool, (fj_pool *)NULL);
    fji_pool_free_common(p);
    (void)common_want(&(fj_pool_options){0}); /* cannot fail: it allocates nothing */
    /* [common.ended] release -> acquire in common_await_end(): that the memory is freed. */
    fji_store_release(&common_ending, 0u);
    fji_lock_drop(&fji_common_lock);
    fji_plat_wake_all(&common_ending);
}

/*
 * Makes one attempt to stop the common pool. Returns
 *   FJ_OK       there is no common pool; the configured options were reset;
 *   FJ_EBUSY    the common pool is not quiescent;
 *   1           the caller has stopped the common pool, and has to end and free it;
 *   2           another thread ends the common pool;
 *   FJ_EDEADLK  the calling thread is already ending the common pool, and a callback that runs
 *               during that end has called this function.
 */
static int common_stop(void)
{
    int state = FJ_OK;

    fji_lock_take(&fji_common_lock);
    fj_pool *p = fji_common_if_made();
    if (p == NULL) {
        (void)common_want(&(fj_pool_options){0}); /* cannot fail: it allocates nothing */
    } else if (common_ending != 0) {
        state = common_is_ender() ? FJ_EDEADLK : 2; /* a callback of the ender may call this */
    } else if (!fji_pool_stop_common(p)) {
        state = FJ_EBUSY;
    } else {
        state = 1;
        common_ender = fji_plat_thread_self();
        fji_store_relaxed(&common_ending, 1u); /* relaxed: the lock orders it */
    }
    fji_lock_drop(&fji_common_lock);
    return state;
}

/* Waits until the common pool is quiescent, and then for *pause ns, but at most until the deadline.
 * Doubles *pause if it is less than FJI_QUIET_PAUSE_MAX_NS. The pause is necessary because a
 * quiescent pool may still have a waiting timer, or a quiet worker or guest. The pool cannot end
 * before these have finished, and without the pause the caller would try again at once. */
static void common_wait_quiet(int64_t deadline, int64_t *pause)
{
    fj_pool *p = &common_record;

    (void)fji_quiesce_await(p, deadline);
    int64_t now = fji_plat_now(), until = now + *pause;
    if (*pause < FJI_QUIET_PAUSE_MAX_NS) *pause *= 2;
    fji_plat_wait(&common_ending, 0, until < deadline ? until : deadline);
}

int fj_common_shutdown(int64_t timeout_ns)
{
    int64_t deadline = fji_deadline(timeout_ns), pause = FJI_QUIET_PAUSE_NS;
    int state;

    fji_atfork_prepare(common_in_child);
    if (common_has_self()) return FJ_EDEADLK;
    while ((state = common_stop()) == FJ_EBUSY) {
        if (fji_plat_now() >= deadline) return FJ_ETIMEDOUT;
        common_wait_quiet(deadline, &pause);
    }
    if (state == 2) return common_await_end(deadline) ? FJ_OK : FJ_ETIMEDOUT;
    if (state != 1) return state;
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    fji_pool_end_common(&common_record);
    common_free(&common_record);
    if (w != NULL) fji_compensate_end(w, c);
    return FJ_OK;
}

/* Runs when the process exits, or when the program unloads the library. Joins the thread of the
 * common pool that exited last. From now on an exiting thread of the common pool detaches itself,
 * because no thread joins it any more, unless fj_common_shutdown() is called after this. The reason
 * for both: tools such as ThreadSanitizer report a thread that is neither joined nor detached. The
 * number of attempts to take the lock of the pool is bounded, because the calling thread may hold
 * that lock itself. */
__attribute__((destructor)) static void common_at_exit(void)
{
    fj_pool *p = fji_common_if_made();
    int attempts = FJI_EXIT_LOCK_ATTEMPTS;

    if (p == NULL) return;
    while (!fji_lock_try(&p->lock)) {
        if (--attempts == 0) return;
        fji_plat_yield();
    }
    bool join = p->has_last_exited;
    fji_thread last = p->last_exited;
    p->has_last_exited = false;
    p->leavers_detach = true;
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(last);
}

/* Called in the child process after all pools are reset. If another thread was ending the common
 * pool, that thread does not exist in the child process, and the pool continues as if its end had
 * not begun. If the forking thread itself was ending the pool, it continues to do so. */
static void common_in_child(void)
{
    fj_pool *p = &common_record;

    fji_hold_in_child();
    if (common_pool == NULL) {
        fji_atfork_reset_common(p);
    } else if (common_ending != 0 && !common_is_ender()) {
        common_ending = 0;
        p->run = 0;
    }
}

/* ---- Use ------------------------------------------------------------------------------------- */

fj_pool *fji_pool_or_common(const fj_pool *p)
{
    return p != NULL ? (fj_pool *)(uintptr_t)p : fj_common_pool();
}

int fj_common_parallelism(void)
{
    const fj_pool *p = fj_common_pool();

    /* relaxed: the caller uses only the number and reads no other memory because of it. */
    return p != NULL ? fji_pool_parallelism(p) : 0;
}

fji_worker *fji_common_guest_enter(fj_pool *p)
{
    bool refused;
    fji_worker *g;

    do {
        g = fji_guest_enter(p, false, &refused);
    } while (g == NULL && refused && fji_common_again(p) == FJ_OK);
    return g;
}
