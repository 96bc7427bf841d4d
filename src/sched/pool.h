/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the records of a pool and of a worker, and accessors for their shared words
 *
 * The members of both records are grouped by the threads that write them. Each group begins on its
 * own pair of cache lines, so a write to one group does not slow down the readers of another.
 *
 * Worker records are freed only with the pool. A thief may have a pointer to a record whose thread
 * has exited; the thief then finds the queue of that record empty. A thread that starts later uses
 * the record again.
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
#include "plat/memory.h"
#include "plat/plat.h"
#include "queue/queue.h"
#include "queue/submission_queue.h"
#include "sched/ctl.h"
#include "task/task.h"
#include "task/token.h"

typedef struct fji_worker fji_worker;

/* ---- Words of the records ------------------------------------------------------------------- */

/* fji_worker.park */
#define FJI_PARK_ACTIVE 0u /* the worker or guest searches, runs a task, or is blocked in one */
#define FJI_PARK_IDLE 1u   /* the worker is on the idle stack, or about to push itself */
/* As IDLE, but the worker sleeps or is about to sleep, so waking it needs a system call. */
#define FJI_PARK_PARKED 2u
/* The worker or guest waits until the pool is quiescent, or it is a guest that sleeps while it
 * waits for a task. A guest also sets QUIET in the other records of its thread in the same pool. */
#define FJI_PARK_QUIET 3u

/* fji_worker.alive */
#define FJI_ALIVE_NO 0u /* no thread uses the record */
#define FJI_ALIVE_WORKER 1u
#define FJI_ALIVE_GUEST 2u    /* an outside thread that works in the pool for one call */
#define FJI_ALIVE_ORPHANED 3u /* in a child process: the record is never used again */

/* fji_worker.blocked */
#define FJI_BLOCKED_NO 0u
#define FJI_BLOCKED_YES 1u /* the worker waits and does not count as active */

/* fji_worker.syscall */
#define FJI_SYSCALL_ENTERED 1u   /* a canceller may send the thread of the worker a signal */
#define FJI_SYSCALL_SIGNALLED 2u /* a canceller has sent the signal, or is about to */
/* Each canceller adds this to `syscall` before it sends the signal, and subtracts it afterwards.
 * The worker waits in fji_syscall_end() until every canceller has subtracted it. So the thread of
 * the worker does not exit while a signal is being sent to it. */
#define FJI_SYSCALL_PIN 4u

/* fji_worker.call. Any other value is the number of the broadcast that the record is called to. */
#define FJI_CALL_NONE 0u /* the thread that uses the record, if there is one, is not called */
#define FJI_CALL_GONE 1u /* a worker has given the record back, or is about to */

/* fj_pool.run */
/* pool/shutdown.c explains the bits. */
#define FJI_RUN_SHUTDOWN 1u   /* the pool accepts no further submissions */
#define FJI_RUN_STOP 2u       /* queued tasks are cancelled, and workers exit */
#define FJI_RUN_TERMINATED 4u /* the control word counts no thread, and no guest is left */
#define FJI_RUN_CLOSING 8u    /* fj_common_shutdown() checks whether the common pool is quiescent */

/* fj_pool.starts */
#define FJI_STARTS_UNDER_WAY 0x0000ffffu /* mask: how many threads are being started */
#define FJI_STARTS_REFUSED 0x00010000u   /* added for each refused start: bits 16 to 31 count */

/* fj_pool.nsearching */
#define FJI_WAKE_DEFERRED 0x80000000u /* a producer has left its wake-up to the searching workers */

/* ---- Worker ---------------------------------------------------------------------------------- */

/* fji_scope.from of scope_none[1], the entry that a worker uses if there is no memory to make its
 * array of scopes longer. The value is above the address of every cell. It is even, because an odd
 * `from` has a meaning of its own (scope.h). */
#define FJI_SCOPE_NO_MEMORY (UINTPTR_MAX - 1)

/* One scope of a worker: tasks that the worker forks into the cell with the address `from`, or into
 * a cell above it, run with `token`. See scope.h. */
typedef struct fji_scope {
    const fj_token *token;
    uintptr_t from;
} fji_scope;

struct fji_worker {
    fji_queue q; /* first: a pointer to its first member, q.fast, also points to this record */

    /* The idle protocol. Written by the worker and by the threads that wake it. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t park; /* the park word, FJI_PARK_... */
    uint32_t next_idle;  /* number of the worker below it on the idle stack, + 1; 0: none */
    uint32_t rescanning; /* 1: it is becoming idle, and its rescan may still wake a worker */
    bool searching;      /* it has a searching slot; the waking thread may hand it one */

    /* Written by the worker and read by other threads. Cancellers also write `syscall`. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t alive; /* which kind of thread uses it: FJI_ALIVE_... */
    uint32_t blocked;                           /* FJI_BLOCKED_...: whether the worker is blocked */
    fj_cell *joining; /* the cell of its queue whose stolen task it joins, or NULL */
    uint64_t steals;  /* statistic: tasks taken from other queues; see steal.h */
    uint64_t parks;   /* statistic: how often it has gone to sleep while idle */
    fji_scope *scope; /* the current entry of its array of scopes; see scope.h */
    /* During an interruptible wait: the wait bucket on which the thread sleeps, or &syscall if the
     * thread waits in a system call. Otherwise NULL. */
    uint32_t *wait_bucket;
    uint32_t syscall; /* FJI_SYSCALL_..., or 0 outside a system call that a signal ends */
    /* If wait_bucket is not NULL: the token of the waiting task, NULL if the task has none, or
     * any_token if that token has a parent (interrupt.c). */
    const fj_token *wait_token;
    uint32_t call; /* FJI_CALL_..., or the number of a broadcast; see safepoint.c */
    /* During a wait that a broadcast may interrupt: the word on which the thread sleeps or is about
     * to sleep. Otherwise NULL. */
    uint32_t *sleeps_on;

    /* Used by the worker, and by the thread that takes the record for it (fji_record_take()). Other
     * threads read only pool, index, scope_base, scope_none, thread and signallable. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_pool *pool; /* the pool that the record belongs to */
    fj_worker *outer;      /* of a guest: fji_self of its thread before it became the guest */
    fji_scope *scope_base; /* the lowest entry of the scopes, which has no token */
    fji_scope *scope_end; /* the address behind the array of scopes, or NULL if there is no array */
    fji_scope *scope_limit; /* fj_future_join() may push an entry itself if scope < scope_limit */
    /* [0]: the lowest entry of the scopes while there is no array. [1]: the current entry while
     * there is no memory for a longer array. */
    fji_scope scope_none[2];
    uint32_t tenure; /* how often the record was taken; protected by the lock of the pool */
    uint32_t index;  /* number of the worker: fji_pool_worker(pool, index) */
    uint32_t random; /* the last fji_worker_random(), or its seed; never 0 */
    /* Calls of fork_may_wake() (wake.c) in a row for which starts of threads were being refused and
     * no worker was idle. */
    uint32_t forks_since_spawn_try;
    uint32_t ranked_takes;    /* tasks taken while the pool has ranked queues; see steal.c */
    bool awaiting_first_task; /* the thread was started and has not found a task yet */
    bool rescan_owed;         /* it was woken before its rescan; see idle.h */
    /* NULL until code that is compiled with FJ_CHECKED forks a task on this worker. Then the
     * function that removes the tasks which a body has forked and not joined. from: the position of
     * the boundary when the body began. */
    void (*check_body)(fji_worker *w, uint32_t from);
    /* Middle of the thread's stack, 0 if the system does not report it, or UINTPTR_MAX until the
     * first use. The worker does not help while its stack pointer is below this address. */
    uintptr_t stack_half;
    fji_thread thread;    /* handle of the worker's thread; a guest does not set it */
    uint32_t has_thread;  /* 1: `thread` is set, and that thread has not exited */
    uint32_t signallable; /* 1: interrupt_signal may be sent to `thread`, which has not exited */
    /* Protected by the lock of the pool. true: the thread that ends the pool joins `thread`
     * (shutdown_join_worker()). */
    bool awaited;
    fj_cell *overflow_cells; /* free overflow cells of this worker; see overflow.h */
};

/* In a thread that works for no pool, fji_self points to this object. */
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

/* Returns the record that the thread of guest w used before it became this guest. Returns NULL if
 * the thread worked for no pool, or if w is not a guest. */
static inline fji_worker *fji_worker_outer(const fji_worker *w)
{
    return w->alive == FJI_ALIVE_GUEST ? fji_worker_of(w->outer) : NULL;
}

/* Called by w: returns the boundary of its queue. If the queue has no free cell, this is the cell
 * with the item END after the last one. */
static inline fj_cell *fji_worker_boundary(fji_worker *w)
{
    if (!fji_queue_in_typed(&w->q)) return w->q.fast.top;
    return fji_queue_boundary(&w->q, w->q.typed_hint);
}

/* Called by w: returns the position of the boundary of its queue. */
static inline uint32_t fji_worker_position(fji_worker *w)
{
    return fji_queue_position(&w->q, fji_worker_boundary(w));
}

/* Called by w: returns a pseudo-random number, which is not 0. */
static inline uint32_t fji_worker_random(fji_worker *w)
{
    uint32_t x = w->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return w->random = x;
}

/* ---- Pool ------------------------------------------------------------------------------------ */

/* The ranked submission queues, for callbacks with a priority: fji_pool_ranked(). A pool creates
 * them on first use. */
#define FJI_RANK_HIGH 0u
#define FJI_RANK_BACKGROUND 1u
#define FJI_RANKS 2u

/* Number of elements of fj_pool.chunk. Each element points to an array of FJI_CHUNK pointers to
 * worker records. Together they have space for FJ_MAX_WORKERS records. */
#define FJI_CHUNKS ((FJ_MAX_WORKERS + FJI_CHUNK) / FJI_CHUNK)

/* Functions of higher modules that lower modules call, all on cold paths. Installed when the pool
 * is created. */
typedef struct fji_pool_hooks {
    bool (*start_worker)(fj_pool *p); /* starts a thread: fji_worker_start() */
    /* Makes a timer thread wake or start a worker again and again, with pauses, while p is short of
     * a worker: fji_timers_watch(). */
    void (*watch)(fj_pool *p);
    /* Stops p if it is shut down and quiescent and no timer keeps it from ending, or if it is shut
     * down and `now` is true. Ends p if it has stopped and has no thread and no guest any more.
     * This is fji_pool_try_terminate(). */
    void (*try_terminate)(fj_pool *p, bool now);
} fji_pool_hooks;

struct fj_pool {
    /* The control word. Read at every fork. Written when a worker starts, exits, becomes idle, is
     * woken, retires, blocks or continues after that, and when the parallelism changes. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t ctl;

    /* Heavy fences of workers that become idle: see idle.h. */
    FJI_ALIGNAS(FJI_CACHE_PAIR)
    /* Time in ns. If fence_waits is true, the next fence does not begin before this time while a
     * worker is active. */
    uint64_t fence_next;
    uint32_t fence_begun, fence_done; /* number of the last fence that has begun, that has ended */

    /* Searching slots in use, and FJI_WAKE_DEFERRED: see search.h. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t nsearching;
    uint32_t slots_taken; /* how often a thread has taken a slot for a worker that it wakes */

    /* Written when guests enter or leave, when a worker or guest becomes QUIET or ACTIVE again,
     * when a thread is started or its start is refused or fails, when a worker retires or is woken,
     * and at the end of the pool. */
    FJI_ALIGNAS(FJI_CACHE_PAIR)
    uint32_t run; /* FJI_RUN_...; threads that wait for the pool's end sleep on it */
    /* Incremented when a guest enters or leaves, and when a worker or guest becomes QUIET, or
     * ACTIVE after that (fji_quiesce_turn()). If fji_pool_quiescent() finds the pool quiescent, but
     * this number has changed meanwhile, it examines the pool again. */
    uint64_t activity_epoch;
    uint32_t shrinking;       /* 1: a worker has retired and none was woken since; see retire.h */
    uint32_t failed_starts;   /* threads in a row whose on_start callback has returned an error */
    int64_t failed_retry_ns;  /* if failed_starts >= FJI_FAILED_STARTS: no start before this time */
    uint32_t spawn_refused;   /* starts that were refused since the last successful start */
    int64_t spawn_refused_ns; /* time (fji_plat_now()) at which the first of them was refused */
    uint32_t starts;          /* FJI_STARTS_...: starts under way, refused starts; see spawn.h */

    /* Read at every change of the control word, or when queues are searched; written seldom. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) int32_t parallelism; /* how many workers should be active */
    int32_t max_threads;            /* how many worker threads the pool may have at most */
    uint32_t blocked;               /* number of blocked workers */
    uint32_t workers;               /* number of worker records */
    uint32_t nsubmissions;          /* number of ordinary submission queues; a power of two */
    fji_worker **chunk[FJI_CHUNKS]; /* arrays of FJI_CHUNK pointers to worker records each */
    /* The ordinary submission queues, and after them the ranked ones: FJI_RANK_... */
    fji_submission_queue *submissions[FJI_MAX_SUBMISSION_QUEUES + FJI_RANKS];

    /* Set when the pool is created. The common pool sets most of them again each time it is created
     * again. Otherwise only cancel_delayed, lazy and timers change later. */
    const fji_pool_hooks *hooks;
    fji_memory *memory;    /* what the pool allocates comes from here */
    int32_t min_runnable;  /* if fewer would stay active: asks allow_saturation (compensate.h) */
    int64_t keep_alive_ns; /* the keep-alive time: how long a worker is idle before it retires */
    int64_t spin_ns;       /* how long a worker without a task searches; 0 or less: not at all */
    uint32_t max_spinners; /* a worker takes no slot to spin if this many or more are in use */
    bool fifo, caller_helps, asymmetric, is_common, fixed_size;
    bool fence_waits; /* a worker waits for the heavy fence of another worker; see idle.h */
    fj_cell submitted_cell[2]; /* `cell` of each task submitted to this pool points to [0] */
    fj_pool_options options;   /* a copy of the caller's options, with the callbacks */
    void *cpus;                /* copy of options.cpus, or NULL */
    char name[9];              /* the names of the threads begin with it */
    uint32_t cancel_delayed;   /* 1: a shutdown also cancels timers that run once */
    uint32_t lazy;             /* 1: a task was queued without a wake-up; see fji_wake_for_lazy() */
    struct fji_timers *timers; /* NULL until a timer is scheduled or the hook `watch` needs it */

    /* Written with the lock, when threads start and exit, when guests enter and leave, and at the
     * end of the pool. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    /* Number of guests, plus the timer threads, plus the threads that are just submitting a future
     * with a limit (timeout_prepare()). The pool does not end before this is 0. */
    uint32_t guests;
    bool has_last_exited;   /* last_exited holds a thread that is not joined yet */
    bool leavers_detach;    /* at exit of the process: an exiting thread detaches itself */
    fji_thread last_exited; /* the thread that exited last and is not joined yet */
    uint64_t started;       /* statistic: worker threads that were started */
    /* Position in the list of registry.c: the next pool, and the pointer that points to this
     * one. */
    fj_pool *next, **link;
};

/* ---- Accessors of shared words --------------------------------------------------------------- */

/* Returns the control word, for a thread that then changes it, or reads what its writers have
 * published. */
static inline uint64_t fji_pool_ctl(const fj_pool *p)
{
    /* [ctl.idle] acquire <- acq_rel in fji_ctl_cas(): next_idle and park of the idle workers. */
    return fji_load_acquire(&p->ctl);
}

/* Returns the control word, for a thread that uses only the value of the word and reads nothing
 * that its writers have published. */
static inline uint64_t fji_pool_ctl_hint(const fj_pool *p)
{
    return fji_load_relaxed(&p->ctl); /* relaxed: only the value is used */
}

/* Returns the parallelism. The value may be old: a thread that changes the parallelism first stores
 * the new value and then changes the control word, which sets or clears the wake-up bit for the new
 * value. */
static inline int fji_pool_parallelism(const fj_pool *p)
{
    return fji_load_relaxed(&p->parallelism); /* relaxed: only the value is used */
}

/* Returns whether p is large: its parallelism is above FJI_UNTHROTTLED_WORKERS. In a large pool a
 * thread needs a searching slot to wake an idle worker (search.h), but none to start a thread. A
 * worker or guest pauses after repeated failures of its CAS on the control word of a large pool
 * (fji_ctl_backoff()). */
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
    /* [pool.record] acquire <- release in record_new(): the records with smaller numbers. */
    return fji_load_acquire(&p->workers);
}

/* Returns the record of worker number i, or NULL if it does not exist yet. */
static inline fji_worker *fji_pool_worker(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in record_new(): the array of pointers to records. */
    fji_worker **c = fji_load_acquire(&p->chunk[i / FJI_CHUNK]);
    /* [pool.record] acquire <- release in record_new(): the record's contents. */
    return c != NULL ? fji_load_acquire(&c[i % FJI_CHUNK]) : NULL;
}

/* Returns the number of all submission queues, with the ranked ones. */
static inline uint32_t fji_pool_nqueues(const fj_pool *p)
{
    return p->nsubmissions + FJI_RANKS;
}

/* Returns the number of the ranked submission queue `rank`, FJI_RANK_HIGH or FJI_RANK_BACKGROUND.
 * Workers take from the first before all other queues, and from the second after all others
 * (steal.c). */
static inline uint32_t fji_pool_ranked(const fj_pool *p, uint32_t rank)
{
    return p->nsubmissions + rank;
}

/* Returns whether p has a ranked submission queue. A worker that misses a new queue finds it in its
 * rescan, which looks at the queues themselves. */
static inline bool fji_pool_has_ranked(const fj_pool *p)
{
    fji_submission_queue *const *q = &p->submissions[p->nsubmissions];

    /* relaxed: the pointers are only compared */
    return fji_load_relaxed(&q[FJI_RANK_HIGH]) != NULL ||
           fji_load_relaxed(&q[FJI_RANK_BACKGROUND]) != NULL; /* relaxed: as above */
}

/* Returns submission queue number i, or NULL if it does not exist yet. */
static inline fji_submission_queue *fji_pool_submissions(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in fji_submissions_get(): the queue's contents. */
    return fji_load_acquire(&p->submissions[i]);
}

/* Returns whether the bit STOP is set in the run state of p. */
static inline bool fji_pool_stopping(const fj_pool *p)
{
    /* relaxed: a thread may see STOP late, because the thread that has set it cancels the queued
     * tasks, and the pool does not end before its threads have exited */
    return (fji_load_relaxed(&p->run) & FJI_RUN_STOP) != 0;
}

/* Returns the numbers that limit the threads of p. They may be old: a thread that changes one of
 * them then changes the control word, and so sets or clears the wake-up bit for the new number. */
static inline fji_sizes fji_pool_sizes(const fj_pool *p)
{
    return (fji_sizes){
        .parallelism = fji_pool_parallelism(p),
        .blocked = (int)fji_load_relaxed(&p->blocked), /* relaxed: only the value is used */
        .most = fji_load_relaxed(&p->max_threads),     /* relaxed: only the value is used */
    };
}

/*
 * Changes the control word from *c, a value that the caller has read before, to n. Sets or clears
 * WAKE_WANTED in the new value as invariant C4 in ctl.h requires it for the present sizes. Returns
 * false if another thread has changed the word meanwhile; *c is then the value that the word has.
 */
static inline bool fji_ctl_cas(fj_pool *p, uint64_t *c, uint64_t n)
{
    fji_sizes sizes = fji_pool_sizes(p);

    /* [ctl.idle] acq_rel -> acquire in fji_pool_ctl(), acq_rel here: what the caller wrote before.
     * Every change of ctl of a pool that other threads can use is made here. */
    return fji_cas_acq_rel_64(&p->ctl, c, fji_ctl_normalize(n, &sizes));
}

/*
 * Called after fji_ctl_cas() has failed. Adds 1 to *failures, the number of failures in a row. If p
 * is large, this is at least the second failure, and the calling thread is a worker or guest of any
 * pool, it also pauses for a random time, whose bound doubles with each failure up to the tenth,
 * and then reads the control word into *c again.
 */
void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures);

/* Adds `active` to the number of active workers and `total` to the number of threads in the control
 * word. Both may be negative. Any thread may call it. */
void fji_ctl_add(fj_pool *p, int active, int total);

/* Returns whether the calling thread works for p, as a worker or as a guest. A thread that has
 * become a guest of another pool on top of its work for p still works for p. */
static inline bool fji_inside(const fj_pool *p)
{
    const fji_worker *w = fji_worker_self();

    while (w != NULL && w->pool != p) w = fji_worker_outer(w);
    return w != NULL;
}

/* Returns fji_worker_self() if that record belongs to p, otherwise NULL. So returns NULL for a
 * worker of p that is a guest of another pool at present. */
static inline fji_worker *fji_worker_in(const fj_pool *p)
{
    fji_worker *w = fji_worker_self();
    return w != NULL && w->pool == p ? w : NULL;
}

/* Called by a thread that has queued a task of p without a wake-up: sets `lazy` of p to 1. The next
 * thread that waits for a task of p makes the wake-up (fji_wake_for_lazy()). */
static inline void fji_pool_note_lazy(fj_pool *p)
{
    /* [submit.lazy] release -> acq_rel in fji_wake_for_lazy(): the task in its queue. */
    fji_store_release(&p->lazy, 1u);
}

/* Executes the heavy fence. In a pool without the heavy fence (`asymmetric` is false), executes a
 * full fence; every partner of this fence then also executes a full fence. */
static inline void fji_pool_barrier(const fj_pool *p)
{
    /* [idle.dekker] what the caller has written above, what it reads below; partners: the light
     * fences of the producers, such as the one in fj_fork(). In an asymmetric pool the heavy fence
     * has its effect even if the system has begun to refuse membarrier: see plat.h. */
    if (!p->asymmetric || !fji_plat_barrier()) fji_fence_full();
}

/* Passes the text to the log callback of p, if there is one. Any thread may call it. */
static inline void fji_pool_log(const fj_pool *p, int level, const char *text)
{
    if (p->options.log != NULL) p->options.log(level, text, p->options.arg);
}

/* Passes the code to the on_error callback of p, if there is one and the code is not FJ_OK. Any
 * thread may call it. */
static inline void fji_pool_report(fj_pool *p, int code)
{
    const fj_pool_options *o = &p->options;

    if (code != FJ_OK && o->on_error != NULL) o->on_error(p, code, o->arg);
}

#endif /* FJI_POOL_H */
