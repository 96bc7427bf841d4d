/* SPDX-License-Identifier: MIT */
/*
 * pool.h - pool and worker: what they consist of, and the calls between the modules
 *
 * Both records are grouped by who writes: a line apart, so that a writer of one group
 * does not disturb the readers of another. Worker records are never freed before the
 * pool: a scanner may hold a pointer to one whose thread has left, and finds its queue
 * empty. A record is used again by a later thread.
 */
#ifndef FJI_POOL_H
#define FJI_POOL_H

#include "ctl.h"
#include "queue.h"

typedef struct fji_worker fji_worker;

/* ---- Words that are waited on ------------------------------------------------------------- */

/* fj_cell.state and fj_task.state */
#define FJI_DONE 0x80000000u
#define FJI_WAITING 0x40000000u
#define FJI_ORPHANED 0x20000000u /* with DONE, in the child of fork(): its thief is no more */
/* The same word of a future: see future.c */
#define FJI_RELEASED 0x10000000u
#define FJI_COMPLETING 0x08000000u
#define FJI_CANCELLED 0x04000000u
#define FJI_FAILED 0x02000000u
#define FJI_EXTERNAL 0x01000000u
#define FJI_OBSERVED 0x00800000u     /* somebody sleeps in its lot */
#define FJI_OBSERVED_ANY 0x00400000u /* or waits for one of several */
#define FJI_DISCARDED 0x00200000u    /* taken out of its queue in order not to be run */
#define FJI_SIGNALLABLE 0x00100000u  /* `runner` is there and may be sent a signal */
#define FJI_REPORTED 0x00080000u     /* of a completer: see future.c */
#define FJI_THIEF_MASK 0x0000ffffu   /* index of whoever runs it, + 1 */

/* fji_worker.park */
#define FJI_PARK_ACTIVE 0u
#define FJI_PARK_IDLE 1u   /* on the idle stack, or about to be */
#define FJI_PARK_PARKED 2u /* the same, asleep: a waker has to call the system */
#define FJI_PARK_QUIET 3u  /* in fj_help_quiesce(), has found nothing */

/* fj_pool.run */
#define FJI_RUN_SHUTDOWN 1u
#define FJI_RUN_STOP 2u
#define FJI_RUN_TERMINATED 4u
#define FJI_RUN_CLOSING 8u /* of the common pool: whoever gives it work waits for the outcome */

/* fji_worker.alive */
#define FJI_ALIVE_NO 0u
#define FJI_ALIVE_WORKER 1u
#define FJI_ALIVE_GUEST 2u    /* an outside thread that works for one call */
#define FJI_ALIVE_ORPHANED 3u /* in the child of fork(): never used again */

/* fj_pool.starts */
#define FJI_STARTS_UNDER_WAY 0x0000ffffu
#define FJI_STARTS_REFUSED 0x00010000u /* one */

/* fj_pool.search */
#define FJI_WAKE_DEFERRED 0x80000000u /* a signal was left to those who search */

/* What tasks that complete themselves (FJI_TAG_FUTURE) return to the queues, which ignore it: every
 * int may be the code of a body, so none of them can say so. */
#define FJI_COMPLETES_ITSELF FJ_OK

/* fji_worker.blocked */
#define FJI_BLOCKED_NO 0u
#define FJI_BLOCKED_YES 1u     /* waits, and is not counted as active */
#define FJI_BLOCKED_REFUSED 2u /* an answer only: the saturation callback does not want it */

/* fji_worker.call */
#define FJI_SYSCALL_ENTERED 1u   /* a canceller may signal it */
#define FJI_SYSCALL_SIGNALLED 2u /* one has */
#define FJI_SYSCALL_PIN 4u       /* for each that is about to */

/* fj_token.word */
#define FJI_TOKEN_CANCELLED 1u
#define FJI_TOKEN_INTERRUPT 2u /* waits are broken too */
#define FJI_TOKEN_SIGNALLED 4u /* a signal was sent to the runner */

/* Tasks forked at `from` or above run with this token. */
typedef struct fji_scope {
    const fj_token *token;
    uintptr_t from; /* a cell; odd: one below it, and the token's body runs elsewhere */
} fji_scope;

/* What a worker had before it entered one. */
typedef struct fji_scope_saved {
    fji_scope *scope;
    fji_scope *limit;
    const fj_token *token;
} fji_scope_saved;

/* ---- Worker ----------------------------------------------------------------------------------- */

struct fji_worker {
    fji_queue q; /* first: fj_worker, the public part, is at its head */

    /* The idle protocol; wakers write. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t park;
    uint32_t next_idle;  /* fixed while it is on the idle stack */
    uint32_t rescanning; /* it is on the idle stack, or about to be, and may still signal */
    bool searching;      /* it is counted in `search`; while it is idle, its waker's to set */

    /* What others want to know; the worker writes. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t alive;
    uint32_t blocked;
    fj_cell *joining; /* the stolen cell it waits for, NULL: none */
    uint64_t steals;
    uint64_t parks;
    fji_scope *scope; /* the last one entered; see cancel.c */

    uint32_t *wait_bucket; /* the lot it sleeps in while it may be interrupted, or NULL */
    uint32_t syscall; /* it waits in a system call that a signal ends: FJI_SYSCALL_ENTERED, ... */
    const fj_token *wait_token; /* then: the token of its task, or that any may concern it */

    /* Its own. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fj_pool *pool;
    fj_worker *outer;        /* guest: what this thread was before */
    fji_scope *scope_base;   /* the lowest one: none */
    fji_scope *scope_end;    /* of the array, NULL without one */
    fji_scope *scope_limit;  /* below it the next one can be entered without a question */
    fji_scope scope_none[2]; /* the lowest while there is no array; one without memory */
    uint32_t index;
    uint32_t random;
    uint32_t forks_since_spawn_try; /* forks since starts of threads are refused */
    bool checks;                    /* it has run code that was compiled with FJ_CHECKED */
    bool awaiting_first_task;       /* it was started and has not found a task yet, see idle.c */
    bool rescan_owed; /* a look at all queues: it was woken before it had made it, see idle.c */
    uintptr_t stack_low;
    uintptr_t stack_half;    /* below this it no longer helps */
    fji_thread thread;       /* of a worker, not of a guest */
    uint32_t signalable;     /* `thread` is there and has not left */
    fj_cell *overflow_cells; /* cells for results of typed tasks run at their fork, not in use */
};

/* The thread-local of a thread that works for no pool. */
extern fj_worker fji_outsider;

/*
 * What a task's `cell` points to when it is not simply in its forker's queue: a pair of
 * cells that say END, so that the fast paths leave it alone, and in `mark` say why.
 */
#define FJI_CELL_SUBMITTED 1u   /* submitted: completes in its own state; `home`: which queue */
#define FJI_CELL_UNDER_TYPED 2u /* forked under typed code: `home` is its position */
#define FJI_CELL_RAN 3u         /* run at its fork: `code` is there */
extern fj_cell fji_cell_under_typed[2];
extern fj_cell fji_cell_ran[2];

static inline fji_worker *fji_worker_of(fj_worker *w)
{
    return w == &fji_outsider ? NULL : (fji_worker *)(void *)w;
}

static inline fji_worker *fji_worker_self(void)
{
    return fji_worker_of(fji_self);
}

/* Of a guest: what its thread was before, NULL if it worked for no pool. */
static inline fji_worker *fji_worker_outer(const fji_worker *w)
{
    return w->alive == FJI_ALIVE_GUEST ? fji_worker_of(w->outer) : NULL;
}

/* ---- Pool ------------------------------------------------------------------------------------- */

#define FJI_CHUNKS ((FJ_MAX_WORKERS + FJI_CHUNK) / FJI_CHUNK)

struct fj_pool {
    /* Everybody reads it at every fork; written when workers come, go, idle or wake. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t ctl;

    /* Heavy fences of workers that go idle: see idle.c. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint64_t fence_next; /* ns: not before */
    uint32_t fence_begun, fence_done;                /* numbers of the last ones */

    /* Who searches without having found: permits that are out, and WAIVED; see idle.c. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t nsearching;

    FJI_ALIGNAS(FJI_CACHE_PAIR) uint32_t run; /* waited on for the end */
    uint64_t activity_epoch;  /* +1 when a guest comes or goes, or a worker turns quiet or back */
    uint32_t shrinking;       /* one has left for lack of work: the others follow soon */
    uint32_t failed_starts;   /* starts in a row that on_start has ended */
    int64_t failed_retry_ns;  /* when the next is tried, after some of these */
    uint32_t spawn_refused;   /* starts of threads that were refused since one was not */
    int64_t spawn_refused_ns; /* when the first of them was */
    uint32_t starts;          /* starts under way, and how many were refused; see compensate.c */

    /* Changes rarely. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) int32_t parallelism;
    int32_t max_threads;
    uint32_t blocked;      /* workers that are blocked */
    uint32_t workers;      /* records ever made */
    uint32_t nsubmissions; /* power of two */
    fji_worker **chunk[FJI_CHUNKS];
    fji_submission_queue *submissions[FJI_MAX_SUBMISSION_QUEUES];

    /* Set once. */
    int32_t min_runnable;
    int64_t keep_alive_ns;
    int64_t spin_ns;
    uint32_t max_spinners;
    bool fifo, caller_helps, asymmetric, is_common, fixed_size;
    bool fence_waits; /* workers may wait for each other's heavy fences: there are cores for it */
    fj_cell submitted_cell[2]; /* `cell` of tasks submitted to this pool: leads back here */
    fj_pool_options options;   /* callbacks */
    void *cpus;                /* copy of options.cpus, or NULL */
    char name[9];
    uint32_t cancel_delayed;   /* a shutdown cancels timers that wait */
    uint32_t lazy;             /* a task was queued without a signal, which its waiter makes */
    struct fji_timers *timers; /* made with the first timer */

    /* Under the lock: registration of workers and guests, the end. */
    FJI_ALIGNAS(FJI_CACHE_PAIR) fji_lock lock;
    uint32_t guests;
    bool has_last_exited;
    bool leavers_detach;    /* at exit: a thread that leaves detaches itself */
    fji_thread last_exited; /* the last thread that left; it has joined the one before */
    uint64_t started;
    fj_pool *next, **link; /* list of all pools, for fork() */
};

/* Record i, NULL if there is none yet. */
static inline fji_worker *fji_pool_worker(const fj_pool *p, uint32_t i)
{
    /* [pool.record] acquire <- release in worker_new_record(): the record's contents. */
    fji_worker **c = fji_load_acquire(&p->chunk[i / FJI_CHUNK]);
    /* [pool.record] acquire <- release in worker_new_record(). */
    return c != NULL ? fji_load_acquire(&c[i % FJI_CHUNK]) : NULL;
}

static inline bool fji_pool_stopping(const fj_pool *p)
{
    /* relaxed: seen sooner or later; the sweep and the joins decide. */
    return (fji_load_relaxed(&p->run) & FJI_RUN_STOP) != 0;
}

/* The sizes as they are now. Whoever changes one of them changes the control word afterwards. */
static inline fji_sizes fji_pool_sizes(const fj_pool *p)
{
    return (fji_sizes){
        .parallelism = fji_load_relaxed(&p->parallelism), /* relaxed: see above */
        .blocked = (int)fji_load_relaxed(&p->blocked),    /* relaxed: see above */
        .most = fji_load_relaxed(&p->max_threads),        /* relaxed: see above */
    };
}

/*
 * Moves the control word from *c, as read before, to n; false: it has changed, and *c is the new
 * one. The sizes are read after *c was.
 */
static inline bool fji_ctl_cas(fj_pool *p, uint64_t *c, uint64_t n)
{
    fji_sizes sizes = fji_pool_sizes(p);

    /* [ctl.idle] acq_rel: every change of ctl is one of these. */
    return fji_cas_acq_rel_64(&p->ctl, c, fji_ctl_normalize(n, &sizes));
}

/* idle.c: after a failure of it, the lost-th in a row. In a large pool many may be at it: each lets
 * some others go first, and looks again. */
void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures);

/* The heavy fence, or a full one on both sides where there is none. */
void fji_pool_barrier(fj_pool *p);

/* Whether n structs of `stride` bytes, each with a member of `least` bytes at its head, can lie one
 * after the other from `first` on. */
static inline bool fji_array_ok(const void *first, size_t n, size_t stride, size_t least)
{
    size_t bytes;

    if (first == NULL || stride < least || stride % _Alignof(void *) != 0) return false;
    if (__builtin_mul_overflow(n, stride, &bytes)) return false;
    return bytes <= PTRDIFF_MAX && bytes <= UINTPTR_MAX - (uintptr_t)first;
}

/* Tells the log callback, if there is one. */
void fji_pool_log(const fj_pool *p, int level, const char *text);

/* NULL stands for the common pool, which may be NULL if there is no memory. */
fj_pool *fji_pool_or_common(const fj_pool *p);

/* Whether the calling thread works for p, as a worker or as a guest, perhaps as what it was before
 * it became a guest of another pool. */
static inline bool fji_inside(const fj_pool *p)
{
    const fji_worker *w = fji_worker_self();

    while (w != NULL && w->pool != p)
        w = w->alive == FJI_ALIVE_GUEST ? fji_worker_of(w->outer) : NULL;
    return w != NULL;
}

/* The moment timeout_ns from now: now if it is not positive. */
static inline int64_t fji_deadline(int64_t timeout_ns)
{
    int64_t now = fji_plat_now();

    if (timeout_ns <= 0) return now;
    return timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
}

/* common.c */
fj_pool *fji_common_if_made(void);
extern fj_pool fji_common_record;  /* of the common pool, of each after the other */
extern fji_lock fji_common_making; /* held while the common pool is made, stopped or freed */
void fji_common_in_child(void);    /* after fork() */
/*
 * p takes no work. If it is the common pool, and its end is not waiting for the caller, waits for
 * the end and makes the next one. FJ_OK: it takes work again; FJ_EREJECTED; FJ_ENOMEM.
 */
int fji_common_again(const fj_pool *p);
/*
 * Around looks by threads that may be outside at what a pool frees with itself: the records of
 * workers, the slots of submission queues. The common pool is not freed meanwhile; others are kept
 * by those who use them. False: it stops, and there is nothing to look at.
 */
bool fji_pool_hold(const fj_pool *p);
void fji_pool_drop_hold(const fj_pool *p);

/* child.c: fork() of the process */
void fji_atfork_prepare(void);
void fji_registry_add(fj_pool *p);
void fji_registry_remove(fj_pool *p);
void fji_wake_interruptible(const fj_token *only); /* see fji_pool_wake_interruptible() */
extern uint32_t fji_fork_generation; /* this process and those before it were made by fork() */
/* For fj_task.location of what is put into a queue now. */
static inline uint32_t fji_location_stamp(void)
{
    return (fji_fork_generation & FJI_LOCATION_GENERATION) << FJI_LOCATION_GENERATION_SHIFT;
}
/* Whether t, submitted and not done, was left behind with the threads of the parent. */
static inline bool fji_task_is_orphaned(const fj_task *t)
{
    /* relaxed: only this part matters, and it is written before anybody can wait. */
    return ((fji_load_relaxed(&t->location) >> FJI_LOCATION_GENERATION_SHIFT) &
            FJI_LOCATION_GENERATION) != (fji_fork_generation & FJI_LOCATION_GENERATION);
}

/* The caller has queued a task of p without a signal. */
static inline void fji_pool_note_lazy(fj_pool *p)
{
    /* [submit.lazy] release -> acq_rel in fji_wake_for_lazy(): the task in its queue. */
    fji_store_release(&p->lazy, 1u);
}

/* pool.c */
int fji_options_read(fj_pool_options *o, const fj_pool_options *from);
/* In fji_common_record; false: no memory. */
bool fji_pool_make_common(const fj_pool_options *o, bool fixed_size);
/* Stops it if it has nothing to do; false: it is as before. Then the rest: waits for its threads,
 * joins them, and frees what is not static. */
bool fji_pool_stop_common(fj_pool *p);
void fji_pool_end_common(fj_pool *p);
void fji_pool_free_common(fj_pool *p);
void fji_pool_common_in_child(fj_pool *p); /* in the child of fork(), while it is not there */
/* A worker was ended by on_start. */
void fji_pool_start_failed(fj_pool *p);
/* Looks whether the pool can stop, stop it if `now`, and whether it has ended. */
void fji_pool_try_terminate(fj_pool *p, bool now);
/* The caller has made the pool quieter: if it is shut down, this may have been the end. */
void fji_pool_maybe_terminate(fj_pool *p);
/* A thread that was counted as a guest ends, joined by the next or by whoever destroys the pool. */
void fji_pool_leave(fj_pool *p);
/* With the lock: the calling thread is now the last to leave; true: the caller joins *before. At the
 * end of the process the thread is detached instead. */
bool fji_pool_last_thread(fj_pool *p, fji_thread *before);
/* A pool without workers gets one: it has to run what nobody waits for. */
void fji_pool_needs_worker(fj_pool *p);
/* With the lock: the pool has stopped, and nobody is left: says so. */
void fji_pool_end_if_over(fj_pool *p);

/* idle.c */
void fji_wake_one(fj_pool *p);
/* w, which may have searched, has found a task and not yet begun it; `more`: there are others. */
void fji_search_succeeded(fji_worker *w, bool more);
/* Whether w, which has found nothing, may search on: it has a permit then. */
bool fji_search_begin(fji_worker *w);
bool fji_idle_wait(fji_worker *w);
void fji_search_end(fji_worker *w); /* w ends, since the pool stops */
bool fji_pool_has_work(fj_pool *p);
void fji_idle_release_all(fj_pool *p);

/* worker.c */
bool fji_worker_start(fj_pool *p);
void fji_worker_unpark(fji_worker *w);
uint32_t fji_worker_random(fji_worker *w);
/* Says in the word of a task who runs it and where the tasks of that run begin. */
void fji_worker_claim(fji_worker *w, uint32_t *state, uint32_t *child_base);
void fji_worker_run(fji_worker *w, const fji_taken *taken);
bool fji_worker_take_local(fji_worker *w, fji_taken *taken);
fji_steal_result fji_worker_scan(fji_worker *w, fji_taken *taken);
/* Puts a detached task or an ACTION into the own queue; its position, or -1: no room. */
int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake);
bool fji_worker_reserve(fj_pool *p); /* with the lock: a first record */
fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down);
void fji_guest_leave(fji_worker *w);
void fji_taken_cancel(const fji_taken *taken);

/* Typed code keeps the boundary in registers; hot.top is the END below cell 0 then. */
static inline fj_cell *fji_worker_boundary(fji_worker *w)
{
    if (w->q.fast.top >= w->q.cells) return w->q.fast.top;
    return fji_queue_boundary(&w->q, w->q.typed_hint);
}

/*
 * The fast paths of tasks that complete themselves: as fj_fork() and fji_pop(). Push: false:
 * nothing was done. Pop of t, if it is the topmost of the own queue: false: nothing was done,
 * or a thief has it.
 */
static inline bool fji_push_future(fj_task *t, uintptr_t root)
{
    fj_worker *fast = fji_self;
    fj_cell *p = fast->top;

    if (p->item != FJI_FREE) return false; /* nor if the thread works for no pool */
    /* relaxed: published below; who waits already only sleeps. */
    fji_store_relaxed(&t->cell, fast->submitted_cell);
    /* relaxed: as above */
    fji_store_relaxed(&t->location, fast->location_base + (uint32_t)((uintptr_t)p / sizeof *p));
    /* relaxed: a thief late with an older base may read it, and its CAS fails. */
    fji_store_relaxed((uintptr_t *)(void *)p->args, root);
    fast->top = p + 1;
    /* [queue.publish] release -> acquire load in steal: the task. */
    fji_store_release(&p->item, (uintptr_t)t | FJI_TAG_DETACHED | FJI_TAG_FUTURE);
    /* [idle.dekker] as in fj_fork(). */
    FJI_LIGHT_FENCE();
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(fast->ctl))) fji_wake_slow(fast);
    return true;
}

bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item);

static inline bool fji_pop_future(fj_worker *fast, const fj_task *t)
{
    fj_cell *c = fast->top - 1;
    uintptr_t item = (uintptr_t)t | FJI_TAG_DETACHED | FJI_TAG_FUTURE;

    if (c->item != item) return false; /* nor if the thread works for no pool */
    int got = fji_pop(fast, c);
    if (got > 0) fast->top = c;
    return got > 0 || (got < 0 && fji_worker_finish_pop(fji_worker_of(fast), c, item));
}

/* After a fork() of the process, and at the beginning. */
static inline void fji_worker_set_location(fji_worker *w)
{
    uint32_t first = (uint32_t)((uintptr_t)w->q.cells / sizeof *w->q.cells);

    w->q.fast.location_base = (FJI_LOCATION_LOCAL | fji_location_stamp()) - first;
}

/* cancel.c */
/* What w forks from now on, at c or above, has this token. `scope` is the one that w is in, and
 * has room above it. */
static inline void fji_scope_push(fji_worker *w, fji_scope *scope, const fj_token *token,
                                  const fj_cell *c)
{
    /* [cancel.runner] release -> acquire in scope_find(): the end of what used the entry before. */
    fji_store_release(&scope[1].from, (uintptr_t)c);
    /* [cancel.runner] release -> acquire in scope_find(): `from`. */
    fji_store_release(&scope[1].token, token);
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the entry. */
    fji_store_release(&w->scope, scope + 1);
}

/* The token of the task that w runs, or NULL. By w itself. */
static inline const fj_token *fji_scope_token(const fji_worker *w)
{
    return w->scope->token;
}

fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token);
/* The same for a task that belongs to a body which w does not run itself. */
fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token);
/* Whether w's present task belongs to the body with this token, and w runs that body. By w. */
bool fji_scope_runs(const fji_worker *w, const fj_token *token);
void fji_scope_leave(fji_worker *w, fji_scope_saved saved);
/* With no task on the stack: whatever is forked from now on, at any cell, has this token. What is
 * in the queue is of no scope, and the queue may get shorter before the next fork. */
void fji_scope_replace(fji_worker *w, const fj_token *token);
/* Between two tasks, with none on the stack: tasks from here on have none. */
static inline void fji_scope_reset(fji_worker *w)
{
    /* [cancel.scope] release -> acquire in fji_scope_of_stolen(): the array, if it is new. */
    fji_store_release(&w->scope, w->scope_base);
}
/* The token of a task that was stolen from there and is not done. */
const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken);
/* A worker of p other than `but` that runs a task with this token of its own, and the position in its
 * queue at which the tasks of that run begin. NULL: there is none. What is found is true until
 * the task is done, which the caller has to check afterwards. */
fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *but, const fj_token *token,
                             uint32_t *from);
void fji_scope_fini(fji_worker *w);
void fji_token_set(fj_token *t, uint32_t bits);
/* Whether waits of w's present task are to be broken. */
bool fji_interrupted(const fji_worker *w);
/*
 * Lots: a few words on which waits sleep that may be interrupted, one for each future by its
 * address (NULL: for waits for several). A lot is bumped when what it stands for has changed.
 */
uint32_t *fji_wait_bucket(const void *future);
void fji_wait_bucket_notify(uint32_t *bucket);
/* Around a sleep in a lot. What is read from the lot, then fji_interrupted(), then the sleep
 * while the lot is as it was read: no interrupt is missed. */
void fji_interruptible_begin(fji_worker *w, uint32_t *bucket);
void fji_interruptible_end(fji_worker *w);
/* Around a system call that the interrupt_signal of w's pool is to end, in the same way. */
void fji_syscall_begin(fji_worker *w);
void fji_syscall_end(fji_worker *w);
/* Wakes the nappers of the pool that the token `only`, or any if NULL, may concern. They look. */
void fji_pool_wake_interruptible(fj_pool *p, const fj_token *only);
/* The same for a pool that stops, and signals, if it has one. */
void fji_pool_interrupt(fj_pool *p);

/* join.c */
/* Runs the body of t; from: the position of the boundary. Where code was compiled with FJ_CHECKED it is
 * an error if a task is left there that the body has forked. */
int fji_run_body(fji_worker *w, fj_task *t, uint32_t from);
void fji_cell_complete(fj_cell *c);
void fji_task_complete(fj_task *t, int code);
/* How to wait. */
typedef struct fji_wait {
    uint32_t done;         /* until one of these bits is in the word */
    bool interruptible;    /* and if the waiter's own task is interrupted */
    int64_t deadline;      /* FJ_FOREVER: none. With one the waiter runs nothing */
    void *root;            /* helps only what has this root, unless NULL */
    const fj_token *token; /* of the future that is waited for, or NULL */
    bool guest;            /* the waiter is a guest that has no task: asleep it counts as quiet */
} fji_wait;
#define FJI_WAIT_DONE ((fji_wait){.done = FJI_DONE, .deadline = FJ_FOREVER})

/* Whether the waiter may run tasks meanwhile. It cannot stop one when its time is over. */
static inline bool fji_wait_may_run(const fji_wait *how)
{
    return how->deadline == FJ_FOREVER;
}
/*
 * Waits until t, submitted to `pool` (NULL: to none), is done or lost. w: the waiter, NULL
 * outside. A worker of that pool helps, others only sleep, and run the task themselves if that
 * pool turns out to have no threads. FJ_OK, FJ_ETIMEDOUT, FJ_ECANCELED.
 */
int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how);
/* Runs one queued task with this root. NONE: there is none. RETRY: there may be one. */
fji_steal_result fji_help_root(fji_worker *w, uintptr_t root);
void fji_overflow_in_child(void); /* in the child of fork() */
void fji_overflow_free(fj_cell *list);

/* compensate.c */
int fji_compensate_begin(fji_worker *w);
/* The same, where the saturation callback may refuse: FJI_BLOCKED_REFUSED, and no end. */
int fji_compensate_try_begin(fji_worker *w);
void fji_compensate_end(fji_worker *w, int token);
/* The start of a thread was refused. */
void fji_compensate_refused(fj_pool *p);
/* Whether a task is queued, and a worker that could run it is missing although one can be had: a
 * signal is under way, or the start of a thread was refused. */
bool fji_compensate_is_short(fj_pool *p);
/* The same, and no worker is active. */
bool fji_compensate_is_stuck(fj_pool *p);
/*
 * For the waits of a blocked worker, before each sleep: if the pool is short, signals again, with
 * growing pauses. Returns when the wait has to end for the next try; FJ_FOREVER: it need not.
 * *pause is 0 at first.
 */
int64_t fji_compensate_retry(fji_worker *w, int64_t *pause);

/* submit.c */
int fji_inject(fj_pool *p, uintptr_t item, fj_action_fn *fn, void *arg, bool wake);
/* The same also after shutdown, until the pool stops, for what it owes. */
int fji_submit_after_shutdown(fj_pool *p, uintptr_t item, fj_action_fn *fn, void *arg);
/* A fork that the worker's queue has no room for: t goes to a submission queue, with its token.
 * False: there is no room either. */
bool fji_submit_fork(fji_worker *w, fj_task *t);
/* Gives memory of empty submission queues back. */
void fji_submissions_shrink(fj_pool *p);
/* What a task that completes itself says while no queue has it yet. */
void fji_task_mark_unqueued(fj_pool *p, fj_task *t);
/* Called before a wait, by any thread: signals if a task was queued without a signal. A signal for
 * anything else could come late, and wake a worker of a pool that is quiescent by then. */
void fji_wake_for_lazy(fj_pool *p);
/* The submission queues of the common pool stay, without their slots; false: no memory. */
bool fji_submit_renew(fj_pool *p);
void fji_submit_clear(fj_pool *p);
/* A task that completes itself. */
int fji_submit_future(fj_pool *p, fj_task *t, uintptr_t root, bool outside, bool wake);
/* tag: 0 or FJI_TAG_FUTURE. */
bool fji_submit_take_back(fj_pool *p, fj_task *t, uintptr_t tag);
/* Whether this thread works for p itself while it waits for it. */
bool fji_submit_caller_works(const fj_pool *p, bool helps);
int fji_join_submitted(fj_task *t);
/* For a pool that has tasks and no threads: asks for one, and if none comes and the caller may run
 * tasks, runs what is queued. */
void fji_run_threadless(fj_pool *p, bool may_run);

/* future.c */
bool fji_future_unresolved(const fj_future *f);
/* Runs the body with its token; w: the calling worker, or NULL. */
int fji_future_body(fj_future *f, fji_worker *w);
/* The runner is through with it: the outcome, unless it is decided; lets go of it. */
void fji_future_finish(fj_future *f, int code);
void fji_future_unref(fj_future *f); /* of an allocated one */
/*
 * Decides the outcome. `bits`: FAILED, CANCELLED, or none. False: it was decided before.
 *
 *   INTERRUPTS   waits inside the body are broken
 *   QUIET        it comes to its end by itself: the body is not told
 *   TELLS        sets TOLD
 *   HOLDS        with TELLS: it is DONE only after fji_future_hold() and fji_future_publish_held(). In
 *                between the calling thread, and no other, sees it done.
 */
#define FJI_RESOLVE_INTERRUPTS 1u
#define FJI_RESOLVE_QUIETLY 2u
#define FJI_RESOLVE_REPORTS 4u
#define FJI_RESOLVE_HOLDS 8u
bool fji_future_resolve(fj_future *f, uint32_t bits, void *result, int code, unsigned how);
typedef struct fji_held {
    fj_future *future;
    struct fji_held *outer;
} fji_held;
void fji_future_hold(fj_future *f, fji_held *held);
void fji_future_publish_held(fji_held *held);
/* Of a future that is done: whether it failed by hand, and this call is the first to set TOLD. */
bool fji_future_claim_report(fj_future *f);

/* completer.c: 0 if it is none. */
uintptr_t fji_completer_root(const fj_future *f);
bool fji_completer_is_child(const fj_future *f); /* of another: no queue lets go of it */

/* timer.c */
/* The thread of the timers signals, with growing pauses, while the pool is short of a worker. If that
 * thread cannot be had nothing is done. */
void fji_timers_watch(fj_pool *p);
/* Whether the limit of f, which has one, is over: it may be decided at any moment. */
bool fji_timer_has_expired(const fj_future *f);
/* Whether the calling thread is one of the timers of p. */
bool fji_timers_is_own_thread(const fj_pool *p);
/* Out of the wheel, if it is there. True: nobody has it then, and it is to be let go. */
bool fji_timer_remove(fj_future *f);
/* The pool was shut down, or stops: cancels what is not run any more. */
void fji_timers_shutdown(fj_pool *p);
/* Whether timers wait that a pool which is shut down still runs. */
bool fji_timers_wait(const fj_pool *p);
void fji_timers_free(fj_pool *p);
void fji_timers_renew(fj_pool *p);    /* the common pool is made again */
void fji_timers_in_child(fj_pool *p); /* in the child of fork() */

/* quiesce.c */
/* w, which runs no task or waits for the pool to be quiescent, becomes QUIET, or ACTIVE again. */
void fji_quiesce_turn(fji_worker *w, uint32_t park);
bool fji_pool_quiescent(fj_pool *p, bool ending);

#endif /* FJI_POOL_H */
