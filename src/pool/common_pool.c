/* SPDX-License-Identifier: MIT */
/*
 * common_pool.c - the common pool and the environment
 *
 * The common pool is made under a lock on first use:
 *
 *     none -> open -> ending -> none -> ...
 *
 *   open     common_pool is set.
 *   ending   by fj_common_shutdown(), which has found the pool quiescent and stopped it. Its
 *            threads leave and are joined, then its memory is freed.
 *
 * A program that does not call fj_common_shutdown() leaves the pool as it is at exit: the workers
 * end with the process. The shared library is linked so that it is not unloaded; a plugin that
 * contains the static library calls fj_common_shutdown() before it is unloaded.
 *
 * Other threads may use the common pool during all of this, and what they do most, submission,
 * must not pay for it. So what a thread outside touches before it holds a lock of the pool is
 * never freed: the record of the pool, its submission queues without their slots, the record of
 * its timers. All of these are static, and each pool that follows is made in them. A submitter
 * holds the lock of its queue when it looks whether the pool takes work, a guest that of the pool,
 * whoever schedules a timer that of the timers. If the answer is no it waits for the end and makes
 * the next pool (fji_common_again()).
 *
 * What is freed, the records of workers above all, is looked at by threads outside only within a
 * hold: a count that the end waits for. Those are slow calls: waits, statistics, draining.
 *
 * Edges            from                    to                                 carries
 *   common.made    release store           acquire, fji_common_if_made()      the pool
 *   common.ended   release, common_free()  acquire, common_await_end()        the end
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

static fj_pool common_record; /* of the common pool, and of each that follows it */
static fj_pool *common_pool;
static fj_pool_options common_wanted; /* all zero: nothing was configured */
static char common_name[9];           /* what common_wanted.name points to */
static uint32_t common_ending;        /* waited on; changes with the lock */
static fji_thread common_ender;       /* while it is not 0 */

/* ---- Sizes -------------------------------------------------------------------------------------------- */

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

/* ---- The pool ----------------------------------------------------------------------------------------- */

/* Its workers, unless something else is wanted: callers help. */
static int common_default(void)
{
    int n = fj_available_parallelism() - 1;
    return n < 1 ? 1 : n;
}

/* Most threads, if n workers are wanted and the environment or the program has said how many more;
 * else 0, the default. */
static int common_most(const fj_pool_options *o, long n, long configured)
{
    long spares = o->max_threads - configured;
    bool given = common_number("FORKJOIN_MAX_SPARES", 0, FJ_MAX_WORKERS, &spares);

    if (!given && o->max_threads == 0) return 0;
    if (n + spares > FJ_MAX_WORKERS) return FJ_MAX_WORKERS;
    return n + spares == 0 ? 1 : (int)(n + spares); /* 0 would mean the default */
}

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

/* With the lock: the next common pool is made with *o. What it points to is copied. */
static int common_want(const fj_pool_options *o)
{
    bool cpus = o->cpus != NULL && o->cpus_bytes != 0;
    void *copy = cpus ? fji_plat_alloc(o->cpus_bytes) : NULL;

    if (cpus && copy == NULL) return FJ_ENOMEM;
    if (cpus) memcpy(copy, o->cpus, o->cpus_bytes);
    fji_plat_free((void *)(uintptr_t)common_wanted.cpus);
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
    /* [common.made] acquire <- release in fj_common_pool(). */
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
        /* [common.made] release -> acquire in fji_common_if_made(). */
        fji_store_release(&common_pool, p);
    fji_lock_drop(&fji_common_lock);
    return p;
}

/* ---- Its end ------------------------------------------------------------------------------------------ */

static bool common_is_ender(void)
{
    return common_ender.handle == fji_plat_thread_self().handle;
}

/* Whether the calling thread works for the common pool, or looks at it: it would wait for itself. */
static bool common_has_self(void)
{
    return fji_hold_is_mine() || fji_inside(&common_record) ||
           fji_timers_is_own_thread(&common_record);
}

/* Until the pool that ends has ended; false: the deadline came first. */
static bool common_await_end(int64_t deadline)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED;
    bool in_time = true;

    /* [common.ended] acquire <- release in common_free(). */
    while (fji_load_acquire(&common_ending) != 0 && in_time)
        in_time = fji_plat_wait(&common_ending, 1, deadline);
    if (w != NULL) fji_compensate_end(w, c);
    return in_time;
}

int fji_common_again(const fj_pool *p)
{
    if (p != &common_record) return FJ_EREJECTED; /* another may be gone by now */
    fji_lock_take(&fji_common_lock);              /* an attempt to stop it is over then */
    bool ending = common_ending != 0, mine = ending && common_is_ender();
    fji_lock_drop(&fji_common_lock);
    if (ending) {
        /* A callback of the pool that ends: the end waits for it. */
        if (mine || common_has_self()) return FJ_EREJECTED;
        (void)common_await_end(FJ_FOREVER);
    }
    return fj_common_pool() != NULL ? FJ_OK : FJ_ENOMEM;
}

/* The last thread has gone: frees what is not static. The next use makes it again. */
static void common_free(fj_pool *p)
{
    fji_hold_await_none();
    fji_lock_take(&fji_common_lock);
    /* [common.made] release: partner as in fj_common_pool(). */
    fji_store_release(&common_pool, (fj_pool *)NULL);
    fji_pool_free_common(p);
    (void)common_want(&(fj_pool_options){0}); /* asks for no memory */
    /* [common.ended] release -> acquire in common_await_end(). */
    fji_store_release(&common_ending, 0u);
    fji_lock_drop(&fji_common_lock);
    fji_plat_wake_all(&common_ending);
}

/*
 * Looks once. FJ_OK: there is no common pool. FJ_EBUSY: it has work. 1: the caller has stopped it
 * and has to free it. 2: another thread does. FJ_EDEADLK: the caller does, further up its stack.
 */
static int common_stop(void)
{
    int state = FJ_OK;

    fji_lock_take(&fji_common_lock);
    fj_pool *p = fji_common_if_made();
    if (p == NULL) {
        (void)common_want(&(fj_pool_options){0}); /* asks for no memory */
    } else if (common_ending != 0) {
        state = common_is_ender() ? FJ_EDEADLK : 2; /* in a callback of what it cancels */
    } else if (!fji_pool_stop_common(p)) {
        state = FJ_EBUSY;
    } else {
        state = 1;
        common_ender = fji_plat_thread_self();
        fji_store_relaxed(&common_ending, 1u); /* relaxed: the lock */
    }
    fji_lock_drop(&fji_common_lock);
    return state;
}

/* Helps until the pool looks quiescent, then a little longer each time: what is left is a timer,
 * or a thread on its way out. */
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

/* Runs when the process ends, or when the program unloads the library. The thread that left last is
 * joined here; it has only to return. Threads that leave later detach themselves, because no thread
 * joins them any more, unless fj_common_shutdown() is called after this. Tools report a thread that
 * is neither joined nor detached. The attempts are bounded because the exiting thread may itself
 * hold the lock, further up its stack. */
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

/* In the child of fork(), after the pools of the list. A thread that was ending the common pool is
 * gone, unless it has called fork() itself: then the pool goes on, as if it had not begun. */
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

/* ---- The common pool in place of NULL ----------------------------------------------------------------- */

fj_pool *fji_pool_or_common(const fj_pool *p)
{
    return p != NULL ? (fj_pool *)(uintptr_t)p : fj_common_pool();
}

int fj_common_parallelism(void)
{
    const fj_pool *p = fj_common_pool();

    /* relaxed: a setting. */
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
