/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the records of a pool and of a worker, and accessors for their shared words
 *
 * The members of both records are grouped by the threads that write them. Each group begins on its
 * own pair of cache lines, so a write to one group does not slow down the readers of another.
 *
 * Worker records are freed only with the pool. A thief may have a pointer to a record whose thread
 * has exited; it finds an empty queue there. A thread that starts later uses the record again.
 *
 * A lower module calls a higher one only through the pointers in fji_pool_hooks.
 *
 * Edges          from                            to                            carries
 *   pool.record  release store, record_new()     acquire, fji_pool_worker(),   the worker's record
 *                                                fji_pool_nworkers()
 *   pool.record  release store,                  acquire,                      the submission queue
 *                fji_submissions_get()           fji_pool_submissions()
 *   ctl.idle     acq_rel CAS, fji_ctl_cas()      acquire, fji_pool_ctl()       next_idle, park
 *   submit.lazy  release store,                  acq_rel swap,                 the queued task
 *                fji_pool_note_lazy()            fji_wake_for_lazy()
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
#define FJI_PARK_PARKED 2u /* on the idle stack and asleep: waking it needs a system call */
#define FJI_PARK_QUIET 3u  /* it waits for quiescence and has found no task */

/* fji_worker.alive */
#define FJI_ALIVE_NO 0u
#define FJI_ALIVE_WORKER 1u
#define FJI_ALIVE_GUEST 2u    /* an outside thread that works in the pool for one call */
#define FJI_ALIVE_ORPHANED 3u /* in a child process: the record is never used again */

/* fji_worker.blocked */
#define FJI_BLOCKED_NO 0u
#define FJI_BLOCKED_YES 1u /* it waits and does not count as active */

/* fji_worker.syscall */
#define FJI_SYSCALL_ENTERED 1u   /* a canceller may send the thread a signal */
#define FJI_SYSCALL_SIGNALLED 2u /* a canceller has sent one */
#define FJI_SYSCALL_PIN 4u       /* counts the cancellers that are about to send one */

/* fj_pool.run */
#define FJI_RUN_SHUTDOWN 1u   /* no further submissions; pool/shutdown.c explains the bits */
#define FJI_RUN_STOP 2u       /* queued tasks are cancelled, and workers exit */
#define FJI_RUN_TERMINATED 4u /* no thread and no guest is left */
#define FJI_RUN_CLOSING 8u    /* of the common pool: a thread checks whether it can be stopped */

/* fj_pool.starts */
#define FJI_STARTS_UNDER_WAY 0x0000ffffu /* mask: the number of starts under way */
#define FJI_STARTS_REFUSED 0x00010000u   /* one refused start; the upper 16 bits count them */

/* fj_pool.nsearching */
#define FJI_WAKE_DEFERRED 0x80000000u /* a producer has left its wake-up to the searching workers */

/* ---- Worker ---------------------------------------------------------------------------------- */

/* fji_scope.from of the entry that a worker uses if it has no memory for the array: above every cell,
 * and even. */
#define FJI_SCOPE_NO_MEMORY (UINTPTR_MAX - 1)

/* Tasks that the worker forks at the cell `from` or above run with this token; see scope.h. */
typedef struct fji_scope {
    const fj_token *token;
    uintptr_t from;
} fji_scope;

struct fji_worker {
    fji_queue q; /* first, so that an fj_worker pointer is a pointer to this record */

    /* The idle protocol. Written by the worker and by the threads that wake it. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t park;
    uint32_t next_idle;  /* the worker below it on the idle stack, + 1; fixed while it is there */
    uint32_t rescanning; /* it is becoming idle, and its rescan may still wake a worker */
    bool searching;      /* it has a searching slot; its waker writes this while it is idle */

    /* What other threads read. Written by the worker. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t alive;
    uint32_t blocked;
    fj_cell *joining;           /* the stolen cell that it waits for, or NULL */
    uint64_t steals;            /* statistic */
    uint64_t parks;             /* statistic */
    fji_scope *scope;           /* the entry of the running task; see scope.h */
    uint32_t *wait_bucket;      /* the bucket of its interruptible wait, or NULL */
    uint32_t syscall;           /* it waits in a system call that a signal ends: FJI_SYSCALL_... */
    const fj_token *wait_token; /* the token of the task that waits there */

    /* What only the worker uses. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_pool *pool;
    fj_worker *outer;       /* of a guest: the value of fji_self before */
    fji_scope *scope_base;  /* the lowest entry, which has no token */
    fji_scope *scope_end;   /* end of the array, or NULL if there is no array */
    fji_scope *scope_limit; /* below it, the next scope can be entered without a check */
    /* [0]: the lowest entry while there is no array. [1]: the entry if there is no memory. */
    fji_scope scope_none[2];
    uint32_t index;                 /* of the record in the pool */
    uint32_t random;                /* state of fji_worker_random() */
    uint32_t forks_since_spawn_try; /* forks since the system began to refuse threads */
    bool awaiting_first_task;       /* the thread was started and has not found a task yet */
    bool rescan_owed;               /* it was woken before its rescan; see idle.h */
    void (*check_body)(fji_worker *w, uint32_t from); /* set by code with FJ_CHECKED, or NULL */
    uintptr_t stack_low;                              /* lowest address of the thread's stack */
    uintptr_t stack_half;    /* if the stack pointer is below this, the worker does not help */
    fji_thread thread;       /* of a worker, not of a guest */
    uint32_t signallable;     /* `thread` is valid and has not exited */
    fj_cell *overflow_cells; /* free overflow cells of this worker; see overflow.h */
};

/* fji_self points to it in a thread that works for no pool. */
extern fj_worker fji_outsider;

/* Returns the record of w, or NULL if w is fji_outsider. */
static inline fji_worker *fji_worker_of(fj_worker *w)
{
    return w == &fji_outsider ? NULL : (fji_worker *)(void *)w;
}

/* Returns the record of the calling thread, which may be a guest, or NULL if it works for no
 * pool. */
static inline fji_worker *fji_worker_self(void)
{
    return fji_worker_of(fji_self);
}

/* Returns the record that the thread of guest w had before, or NULL if it worked for no pool. Also
 * returns NULL if w is not a guest. */
static inline fji_worker *fji_worker_outer(const fji_worker *w)
{
    return w->alive == FJI_ALIVE_GUEST ? fji_worker_of(w->outer) : NULL;
}

/* Called by w: returns the first free cell of its queue. */
static inline fj_cell *fji_worker_boundary(fji_worker *w)
{
    if (!fji_queue_in_typed(&w->q)) return w->q.fast.top;
    return fji_queue_boundary(&w->q, w->q.typed_hint);
}

/* Called by w: returns the position of the first free cell of its queue. */
static inline uint32_t fji_worker_position(fji_worker *w)
{
    return fji_queue_position(&w->q, fji_worker_boundary(w));
}

/* Called by w: returns a pseudo-random number. */
static inline uint32_t fji_worker_random(fji_worker *w)
{
    uint32_t x = w->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return w->random = x;
}

/* ---- Pool ------------------------------------------------------------------------------------ */

#define FJI_CHUNKS ((FJ_MAX_WORKERS + FJI_CHUNK) / FJI_CHUNK)

/* Functions of higher modules that lower modules call, all on cold paths. Installed when the pool
 * is created. */
typedef struct fji_pool_hooks {
    bool (*start_worker)(fj_pool *p); /* starts a thread; in worker.c */
    void (*watch)(fj_pool *p);        /* makes the timer thread retry; in pool/timers.c */
    void (*try_terminate)(fj_pool *p, bool now); /* ends the pool if it can; in pool/shutdown.c */
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
    uint32_t run;             /* FJI_RUN_...; threads that wait for the end sleep on it */
    uint64_t activity_epoch;  /* +1 when a guest comes or goes, or a worker turns QUIET or back */
    uint32_t shrinking;       /* a worker has retired, so the next ones retire sooner */
    uint32_t failed_starts;   /* threads in a row whose on_start has returned an error */
    int64_t failed_retry_ns;  /* after FJI_FAILED_STARTS of them: no start before this time */
    uint32_t spawn_refused;   /* starts that were refused since the last successful one */
    int64_t spawn_refused_ns; /* when the first of them was refused */
    uint32_t starts;          /* starts under way, and refused starts; see spawn.h */

    /* Changes rarely. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) int32_t parallelism;
    int32_t max_threads;
    uint32_t blocked;               /* number of blocked workers */
    uint32_t workers;               /* number of worker records */
    uint32_t nsubmissions;          /* number of submission queues; a power of two */
    fji_worker **chunk[FJI_CHUNKS]; /* the worker records, FJI_CHUNK in each chunk */
    fji_submission_queue *submissions[FJI_MAX_SUBMISSION_QUEUES];

    /* Set when the pool is created. */
    const fji_pool_hooks *hooks;
    int32_t min_runnable;
    int64_t keep_alive_ns;
    int64_t spin_ns;
    uint32_t max_spinners;
    bool fifo, caller_helps, asymmetric, is_common, fixed_size;
    bool fence_waits; /* a worker may wait for the heavy fence of another: there are enough CPUs */
    fj_cell submitted_cell[2]; /* `cell` of the tasks that are submitted to this pool */
    fj_pool_options options;   /* callbacks */
    void *cpus;                /* copy of options.cpus, or NULL */
    char name[9];
    uint32_t cancel_delayed;   /* a shutdown cancels waiting timers */
    uint32_t lazy;             /* a task was queued without a wake-up; its waiter wakes a worker */
    struct fji_timers *timers; /* made with the first timer */

    /* Written with the lock, when workers and guests come and go, and at the end of the pool. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    uint32_t guests;
    bool has_last_exited;
    bool leavers_detach;    /* at exit: a thread that exits detaches itself */
    fji_thread last_exited; /* the thread that exited last; it has joined the one before */
    uint64_t started;       /* statistic: threads */
    fj_pool *next, **link;  /* the list of registry.c */
};

/* ---- Accessors of shared words --------------------------------------------------------------- */

/* Returns the control word, for a thread that then changes it, or reads what its writers have
 * published. */
static inline uint64_t fji_pool_ctl(const fj_pool *p)
{
    /* [ctl.idle] acquire <- the last fji_ctl_cas(): next_idle and park of the idle workers. */
    return fji_load_acquire(&p->ctl);
}

/* Returns the control word as a hint: the caller uses only the value. */
static inline uint64_t fji_pool_ctl_hint(const fj_pool *p)
{
    return fji_load_relaxed(&p->ctl); /* relaxed: a hint */
}

/* Returns the parallelism. A thread that changes it changes the control word afterwards. */
static inline int fji_pool_parallelism(const fj_pool *p)
{
    return fji_load_relaxed(&p->parallelism); /* relaxed: a limit, not a count */
}

/* Whether p is large: a wake-up then needs a searching slot, and a failed CAS on the control word is
 * followed by a pause. */
static inline bool fji_pool_is_large(const fj_pool *p)
{
    return fji_pool_parallelism(p) > FJI_UNTHROTTLED_WORKERS;
}

/* Returns how many workers the control word c counts as active. */
static inline int fji_pool_active(const fj_pool *p, uint64_t c)
{
    return fji_ctl_deficit(c) + fji_pool_parallelism(p);
}

/* Returns the number of worker records. */
static inline uint32_t fji_pool_nworkers(const fj_pool *p)
{
    /* [pool.record] acquire <- release in record_new(): the records. */
    return fji_load_acquire(&p->workers);
}

/* Returns worker record i, or NULL if it does not exist yet. */
static inline fji_worker *fji_pool_worker(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in record_new(): the chunk's contents. */
    fji_worker **c = fji_load_acquire(&p->chunk[i / FJI_CHUNK]);
    /* [pool.record] acquire <- release in record_new(): the record's contents. */
    return c != NULL ? fji_load_acquire(&c[i % FJI_CHUNK]) : NULL;
}

/* Returns submission queue i, or NULL if it does not exist yet. */
static inline fji_submission_queue *fji_pool_submissions(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in fji_submissions_get(): the queue's contents. */
    return fji_load_acquire(&p->submissions[i]);
}

/* Returns whether STOP is set. */
static inline bool fji_pool_stopping(const fj_pool *p)
{
    /* relaxed: it does not matter if a thread sees STOP late: the queued tasks are cancelled, and
     * the end of the pool waits for its threads */
    return (fji_load_relaxed(&p->run) & FJI_RUN_STOP) != 0;
}

/* Returns the present sizes. A thread that changes one of them changes the control word
 * afterwards. */
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

/*
 * Called after a failed fji_ctl_cas(). Adds 1 to *failures, the number of failures in a row. From
 * the second failure on, a worker of a large pool pauses for a random time, whose bound doubles
 * with each failure, and reads the control word into *c again.
 */
void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures);

/* Adds `active` to the count of active workers and `total` to the count of threads in the control
 * word. Any thread may call it. */
void fji_ctl_add(fj_pool *p, int active, int total);

/* Returns whether the calling thread works for p, as a worker or as a guest, in its present role or
 * in one that it had before it became a guest of another pool. */
static inline bool fji_inside(const fj_pool *p)
{
    const fji_worker *w = fji_worker_self();

    while (w != NULL && w->pool != p) w = fji_worker_outer(w);
    return w != NULL;
}

/* Returns the record of the calling thread if it works for p in its present role; otherwise
 * NULL. */
static inline fji_worker *fji_worker_in(const fj_pool *p)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && w->pool == p ? w : NULL;
}

/* Called after a task of p was queued without a wake-up. */
static inline void fji_pool_note_lazy(fj_pool *p)
{
    /* [submit.lazy] release -> acq_rel in fji_wake_for_lazy(): the task in its queue. */
    fji_store_release(&p->lazy, 1u);
}

/* Executes the heavy fence. In a pool without it, executes a full fence; the other side then also
 * executes a full fence. */
static inline void fji_pool_barrier(const fj_pool *p)
{
    /* [idle.dekker] the heavy half. In an asymmetric pool it works even if the system has begun to
     * refuse it: see plat.h. */
    if (!p->asymmetric || !fji_plat_barrier()) fji_fence_full();
}

/* Any thread. Passes the text to the log callback, if there is one. */
static inline void fji_pool_log(const fj_pool *p, int level, const char *text)
{
    if (p->options.log != NULL) p->options.log(level, text, p->options.arg);
}

/* Any thread. Passes the code to the on_error callback, if there is one and the code is not
 * FJ_OK. */
static inline void fji_pool_report(fj_pool *p, int code)
{
    const fj_pool_options *o = &p->options;

    if (code != FJ_OK && o->on_error != NULL) o->on_error(p, code, o->arg);
}

#endif /* FJI_POOL_H */
