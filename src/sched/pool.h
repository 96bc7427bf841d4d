/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the records of a pool and of a worker, and accessors for their shared words
 *
 * The members of both records are grouped by the thread that writes them. Each group begins on its
 * own pair of cache lines, so a writer of one group does not slow down the readers of another.
 *
 * Worker records are freed only with the pool. A thief may hold a pointer to a record whose thread
 * has exited; it finds an empty queue there. A later thread uses the record again.
 *
 * A lower module calls a higher one on a cold path only through the pointers in fji_pool_hooks.
 *
 * Edges            from                              to                        carries
 *   pool.record    release store, record_new()       acquire, the accessors    the worker's record
 *   pool.record    release store, submissions.c      acquire, the accessors    the submission queue
 *   ctl.idle       acq_rel CAS, fji_ctl_cas()        acquire, fji_pool_ctl()   next_idle, park
 *   submit.lazy    release, fji_pool_note_lazy()     acq_rel, fji_wake_for_lazy()  the queued task
 */
#ifndef FJI_POOL_H
#define FJI_POOL_H

#include "plat/config.h"
#include "plat/plat.h"
#include "queue/queue.h"
#include "queue/submission_queue.h"
#include "sched/ctl.h"
#include "task/task.h"
#include "task/token.h"

typedef struct fji_worker fji_worker;

/* ---- Words of the records ------------------------------------------------------------------- */

/* fji_worker.park */
#define FJI_PARK_ACTIVE 0u
#define FJI_PARK_IDLE 1u   /* on the idle stack, or about to be */
#define FJI_PARK_PARKED 2u /* the same, and asleep: waking it needs a system call */
#define FJI_PARK_QUIET 3u  /* it waits for quiescence and has found no task */

/* fji_worker.alive */
#define FJI_ALIVE_NO 0u
#define FJI_ALIVE_WORKER 1u
#define FJI_ALIVE_GUEST 2u    /* an outside thread that works in the pool for one call */
#define FJI_ALIVE_ORPHANED 3u /* in the child of fork(): the record is never used again */

/* fji_worker.blocked */
#define FJI_BLOCKED_NO 0u
#define FJI_BLOCKED_YES 1u /* it waits, and does not count as active */

/* fji_worker.syscall */
#define FJI_SYSCALL_ENTERED 1u   /* a canceller may send the thread a signal */
#define FJI_SYSCALL_SIGNALLED 2u /* a canceller has sent one */
#define FJI_SYSCALL_PIN 4u       /* counts the cancellers that are about to send one */

/* fj_pool.run */
#define FJI_RUN_SHUTDOWN 1u
#define FJI_RUN_STOP 2u
#define FJI_RUN_TERMINATED 4u
#define FJI_RUN_CLOSING 8u /* of the common pool: submitters wait until its end is decided */

/* fj_pool.starts */
#define FJI_STARTS_UNDER_WAY 0x0000ffffu
#define FJI_STARTS_REFUSED 0x00010000u /* one refused start */

/* fj_pool.nsearching */
#define FJI_WAKE_DEFERRED 0x80000000u /* a producer left its wake-up to the searching workers */

/* ---- Worker ----------------------------------------------------------------------------------- */

/* Tasks that the worker forks at the cell `from` or above run with this token; see scope.h. */
typedef struct fji_scope {
    const fj_token *token;
    uintptr_t from;
} fji_scope;

struct fji_worker {
    fji_queue q; /* first, so that an fj_worker pointer is a pointer to this record */

    /* The idle protocol. Written by the threads that wake the worker. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t park;
    uint32_t next_idle;  /* the worker below it on the idle stack, + 1; fixed while it is there */
    uint32_t rescanning; /* it is on the idle stack, or about to be, and may still wake a worker */
    bool searching;      /* it holds a searching slot; its waker writes this while it is idle */

    /* What other threads read. Written by the worker. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t alive;
    uint32_t blocked;
    fj_cell *joining; /* the stolen cell that it waits for, or NULL */
    uint64_t steals;
    uint64_t parks;
    fji_scope *scope;           /* the entry of the running task; see scope.h */
    uint32_t *wait_bucket;      /* the bucket of its interruptible wait, or NULL */
    uint32_t syscall;           /* it waits in a system call that a signal ends: FJI_SYSCALL_... */
    const fj_token *wait_token; /* the token of the task that waits there */

    /* What only the worker uses. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_pool *pool;
    fj_worker *outer;       /* of a guest: what fji_self was before */
    fji_scope *scope_base;  /* the lowest entry, which has no token */
    fji_scope *scope_end;   /* end of the array, or NULL if there is no array */
    fji_scope *scope_limit; /* below it, the next scope can be entered without a check */
    fji_scope
        scope_none[2]; /* the lowest entry while there is no array; the entry without memory */
    uint32_t index;
    uint32_t random;
    uint32_t forks_since_spawn_try; /* forks since the system began to refuse threads */
    bool awaiting_first_task;       /* the thread was started and has not found a task yet */
    bool rescan_owed;               /* it was woken before its rescan; see idle.h */
    void (*check_body)(fji_worker *w, uint32_t from); /* set by code that has FJ_CHECKED, or NULL */
    uintptr_t stack_low;
    uintptr_t stack_half;    /* if the stack pointer is below this, the worker does not help */
    fji_thread thread;       /* of a worker, not of a guest */
    uint32_t signalable;     /* `thread` is valid and has not exited */
    fj_cell *overflow_cells; /* free overflow cells of this worker; see tier/overflow.h */
};

/* What fji_self points to in a thread that works for no pool. */
extern fj_worker fji_outsider;

static inline fji_worker *fji_worker_of(fj_worker *w)
{
    return w == &fji_outsider ? NULL : (fji_worker *)(void *)w;
}

/* The worker or guest that the calling thread is, or NULL. */
static inline fji_worker *fji_worker_self(void)
{
    return fji_worker_of(fji_self);
}

/* If w is a guest: what its thread was before; NULL if it worked for no pool. */
static inline fji_worker *fji_worker_outer(const fji_worker *w)
{
    return w->alive == FJI_ALIVE_GUEST ? fji_worker_of(w->outer) : NULL;
}

/* The first free cell of the worker's queue. */
static inline fj_cell *fji_worker_boundary(fji_worker *w)
{
    if (!fji_queue_in_typed(&w->q)) return w->q.fast.top;
    return fji_queue_boundary(&w->q, w->q.typed_hint);
}

static inline uint32_t fji_worker_position(fji_worker *w)
{
    return fji_queue_position(&w->q, fji_worker_boundary(w));
}

/* A pseudo-random number. */
static inline uint32_t fji_worker_random(fji_worker *w)
{
    uint32_t x = w->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return w->random = x;
}

/* ---- Pool ------------------------------------------------------------------------------------- */

#define FJI_CHUNKS ((FJ_MAX_WORKERS + FJI_CHUNK) / FJI_CHUNK)

/* Calls from lower modules to higher ones, all on cold paths. Installed when the pool is created. */
typedef struct fji_pool_hooks {
    bool (*start_worker)(fj_pool *p);            /* spawn.c -> worker.c */
    void (*watch)(fj_pool *p);                   /* spawn.c -> pool/timers.c */
    void (*try_terminate)(fj_pool *p, bool now); /* lifetime.c -> pool/shutdown.c */
} fji_pool_hooks;

struct fj_pool {
    /* Read at every fork. Written when a worker starts, exits, idles or is woken. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t ctl;

    /* Heavy fences of workers that become idle: see idle.h. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t fence_next; /* ns: the next one begins no earlier */
    uint32_t fence_begun, fence_done;                /* numbers of the last ones */

    /* Searching slots in use, and FJI_WAKE_DEFERRED: see search.h. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t nsearching;

    /* Written when guests come and go, and when threads are started. */
    FJI_ALIGNAS(FJI_CACHE_PAIR)
    uint32_t run;             /* run state; threads that await the end sleep on it */
    uint64_t activity_epoch;  /* +1 if a guest comes or goes, or a worker turns QUIET or back */
    uint32_t shrinking;       /* a worker has retired: the others follow soon */
    uint32_t failed_starts;   /* started threads in a row that on_start has ended */
    int64_t failed_retry_ns;  /* after FJI_FAILED_STARTS of them: no start before this time */
    uint32_t spawn_refused;   /* starts that were refused since the last successful one */
    int64_t spawn_refused_ns; /* when the first of them was refused */
    uint32_t starts;          /* starts under way, and refused starts; see spawn.h */

    /* Changes rarely. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) int32_t parallelism;
    int32_t max_threads;
    uint32_t blocked;      /* number of blocked workers */
    uint32_t workers;      /* number of worker records */
    uint32_t nsubmissions; /* number of submission queues; a power of two */
    fji_worker **chunk[FJI_CHUNKS];
    fji_submission_queue *submissions[FJI_MAX_SUBMISSION_QUEUES];

    /* Set when the pool is created. */
    const fji_pool_hooks *hooks;
    int32_t min_runnable;
    int64_t keep_alive_ns;
    int64_t spin_ns;
    uint32_t max_spinners;
    bool fifo, caller_helps, asymmetric, is_common, fixed_size;
    bool fence_waits; /* there are CPUs enough to wait for the heavy fence of another worker */
    fj_cell submitted_cell[2]; /* `cell` of the tasks that are submitted to this pool */
    fj_pool_options options;   /* callbacks */
    void *cpus;                /* copy of options.cpus, or NULL */
    char name[9];
    uint32_t cancel_delayed;   /* a shutdown cancels waiting timers */
    uint32_t lazy;             /* a task was queued without a wake-up, which its waiter makes */
    struct fji_timers *timers; /* made with the first timer */

    /* Under the lock: workers and guests that come and go, the end. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    uint32_t guests;
    bool has_last_exited;
    bool leavers_detach;    /* at exit: a thread that exits detaches itself */
    fji_thread last_exited; /* the thread that exited last; it has joined the one before */
    uint64_t started;
    fj_pool *next, **link; /* the list of registry.c */
};

/* ---- Accessors of shared words ------------------------------------------------------------------ */

/* The control word, for a thread that goes on to change it or to use what it published. */
static inline uint64_t fji_pool_ctl(const fj_pool *p)
{
    /* [ctl.idle] acquire <- the last fji_ctl_cas(): next_idle and park of the idle workers. */
    return fji_load_acquire(&p->ctl);
}

/* The control word as a hint: the caller acts on nothing but the value. */
static inline uint64_t fji_pool_ctl_hint(const fj_pool *p)
{
    return fji_load_relaxed(&p->ctl); /* relaxed: a hint */
}

/* The parallelism. A thread that changes it changes the control word afterwards. */
static inline int fji_pool_parallelism(const fj_pool *p)
{
    return fji_load_relaxed(&p->parallelism); /* relaxed: a limit, not a count */
}

/* How many workers the control word c counts as active. */
static inline int fji_pool_active(const fj_pool *p, uint64_t c)
{
    return fji_ctl_deficit(c) + fji_pool_parallelism(p);
}

/* The number of worker records. */
static inline uint32_t fji_pool_nworkers(const fj_pool *p)
{
    /* [pool.record] acquire <- release in record_new(): the records. */
    return fji_load_acquire(&p->workers);
}

/* Worker record i, or NULL if it does not exist yet. */
static inline fji_worker *fji_pool_worker(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in record_new(): the chunk's contents. */
    fji_worker **c = fji_load_acquire(&p->chunk[i / FJI_CHUNK]);
    /* [pool.record] acquire <- release in record_new(): the record's contents. */
    return c != NULL ? fji_load_acquire(&c[i % FJI_CHUNK]) : NULL;
}

/* Submission queue i, or NULL if it does not exist yet. */
static inline fji_submission_queue *fji_pool_submissions(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in fji_submissions_get(): the queue's contents. */
    return fji_load_acquire(&p->submissions[i]);
}

static inline bool fji_pool_stopping(const fj_pool *p)
{
    /* relaxed: a thread may see it late; cancelling queued tasks and the joins decide. */
    return (fji_load_relaxed(&p->run) & FJI_RUN_STOP) != 0;
}

/* The sizes at this moment. A thread that changes one of them changes the control word afterwards. */
static inline fji_sizes fji_pool_sizes(const fj_pool *p)
{
    return (fji_sizes){
        .parallelism = fji_pool_parallelism(p),
        .blocked = (int)fji_load_relaxed(&p->blocked), /* relaxed: see above */
        .most = fji_load_relaxed(&p->max_threads),     /* relaxed: see above */
    };
}

/*
 * Changes the control word from *c, which the caller has read before, to n with the bit WAKE_WANTED
 * as the sizes require it. Returns false if another thread has changed the word; *c is then the new
 * value. The sizes are read after *c.
 */
static inline bool fji_ctl_cas(fj_pool *p, uint64_t *c, uint64_t n)
{
    fji_sizes sizes = fji_pool_sizes(p);

    /* [ctl.idle] acq_rel: every change of ctl is one of these. */
    return fji_cas_acq_rel_64(&p->ctl, c, fji_ctl_normalize(n, &sizes));
}

/* Whether the calling thread works for p, as a worker or as a guest, in its present role or in one
 * that it had before it became a guest of another pool. */
static inline bool fji_inside(const fj_pool *p)
{
    const fji_worker *w = fji_worker_self();

    while (w != NULL && w->pool != p) w = fji_worker_outer(w);
    return w != NULL;
}

/* The worker that the calling thread is, if it works for p in its present role; otherwise NULL. */
static inline fji_worker *fji_worker_in(const fj_pool *p)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && w->pool == p ? w : NULL;
}

/* The caller has queued a task of p without a wake-up. */
static inline void fji_pool_note_lazy(fj_pool *p)
{
    /* [submit.lazy] release -> acq_rel in fji_wake_for_lazy(): the task in its queue. */
    fji_store_release(&p->lazy, 1u);
}

/* The heavy fence; on a pool without it, a full fence, because its other side fences fully too. */
static inline void fji_pool_barrier(const fj_pool *p)
{
    /* [idle.dekker] the heavy half. If the system promised it, it works, even if the system has begun
     * to refuse it: see plat.h. */
    if (!p->asymmetric || !fji_plat_barrier()) fji_fence_full();
}

/* Passes the text to the log callback, if there is one. */
static inline void fji_pool_log(const fj_pool *p, int level, const char *text)
{
    if (p->options.log != NULL) p->options.log(level, text, p->options.arg);
}

/* Passes the error code of an action to the on_error callback, if there is one. */
static inline void fji_pool_report(fj_pool *p, int code)
{
    const fj_pool_options *o = &p->options;

    if (code != FJ_OK && o->on_error != NULL) o->on_error(p, code, o->arg);
}

#endif /* FJI_POOL_H */
