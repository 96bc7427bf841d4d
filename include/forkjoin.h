/* SPDX-License-Identifier: MIT */
/*
 * forkjoin.h - a work-stealing fork/join pool for C
 *
 * Split work into tasks, fork some of them, do the rest yourself, join:
 *
 *     struct fib { fj_task task; long n, result; };
 *
 *     static int fib_run(fj_task *t);
 *
 *     static long fib(long n)
 *     {
 *         if (n < 2) return n;
 *         struct fib a = {.n = n - 1};
 *         fj_task_init(&a.task, fib_run);
 *         fj_fork(&a.task);
 *         long y = fib(n - 2);
 *         fj_join(&a.task);
 *         return a.result + y;
 *     }
 *
 *     static int fib_run(fj_task *t)
 *     {
 *         struct fib *f = (struct fib *)t;
 *         f->result = fib(f->n);
 *         return FJ_OK;
 *     }
 *
 *     struct fib root = {.n = 40};
 *     fj_task_init(&root.task, fib_run);
 *     int err = fj_invoke(NULL, &root.task);     (NULL: the common pool)
 *
 * The typed tier (forkjoin/typed.h) writes the same in seven lines and runs it
 * at the speed of a call.
 *
 * Rules for all of it
 *   threads  every function may be called from any thread unless its `from` line
 *            says otherwise; none from a signal handler.
 *   errors   int: 0 is success, negative codes are the library's, positive ones
 *            belong to the author of a task and travel through join unchanged.
 *            errno is left alone. On failure outputs are untouched.
 *   memory   a task's memory belongs to the caller; it must stay put from fork or
 *            submit until the join returns. Forking allocates nothing.
 *   silence  nothing is printed, no signal handler is installed, nothing aborts.
 */
#ifndef FORKJOIN_H
#define FORKJOIN_H

#include <stddef.h>
#include <stdint.h>

#include "forkjoin/attr.h"
#include "forkjoin/version.h"

FJ_EXTERN_C_BEGIN

/* ---- Types ---------------------------------------------------------------------------- */

typedef struct fj_pool fj_pool;     /* opaque */
typedef struct fj_task fj_task;     /* yours: the first member of your own struct */
typedef struct fj_worker fj_worker; /* a thread of a pool; see forkjoin/inline.h */
typedef struct fj_cell fj_cell;
typedef struct fj_type fj_type;

/*
 * The body of a task. Gets the task it was started for; returns FJ_OK or a
 * positive code of its own, which its joiner gets. Leaving it by longjmp or
 * pthread_exit is not allowed.
 */
typedef int fj_fn(fj_task *t);

/* The body of a fire-and-forget action; a non-zero return goes to `on_error`. */
typedef int fj_action(void *arg);

/*
 * A structured task. Set it up by fj_task_init(); the members are private, and
 * only their sum of 32 bytes is part of the ABI.
 */
struct fj_task {
    fj_fn *fn;      /* the body */
    fj_cell *cell;  /* where it was forked */
    uint32_t state; /* completion, when it was submitted rather than forked */
    uint32_t mark;  /* where the tasks of whoever runs it begin */
    int32_t code;   /* what the body returned, when somebody else ran it */
    uint32_t home;  /* where it was put, when `cell` does not say it */
};

/* ---- Error codes ------------------------------------------------------------------------ */

/* code, value, text. Linux's errno numbers where there is one. */
#define FJ_ERRORS(X)                                           \
    X(FJ_OK, 0, "success")                                     \
    X(FJ_EAGAIN, -11, "the system has no thread to give")      \
    X(FJ_ENOMEM, -12, "out of memory")                         \
    X(FJ_EBUSY, -16, "busy")                                   \
    X(FJ_EINVAL, -22, "invalid argument or misuse")            \
    X(FJ_EDEADLK, -35, "the caller would wait for itself")     \
    X(FJ_ENOTSUP, -95, "not supported for this pool")          \
    X(FJ_ETIMEDOUT, -110, "timed out")                         \
    X(FJ_ECANCELED, -125, "cancelled")                         \
    X(FJ_EREJECTED, -1001, "the pool is shut down")            \
    X(FJ_ESATURATED, -1002, "the limit of threads is reached") \
    X(FJ_EFAILED, -1003, "failed, without a code")             \
    X(FJ_PENDING, -1004, "not finished: somebody completes it later")

enum fj_error {
#define FJI_ERROR_ENUM(name, value, text) name = (value),
    FJ_ERRORS(FJI_ERROR_ENUM)
#undef FJI_ERROR_ENUM
};

/*
 * Name ("FJ_EINVAL") and text ("invalid argument or misuse") of a code.
 *
 *   returns  a constant string; for a positive code "user" and "code of the task", for
 *            an unknown negative one "unknown" and "unknown error".
 */
FJ_API const char *fj_error_name(int code);
FJ_API const char *fj_error_text(int code);

/* The version the library was built as: FJ_VERSION at that time. */
FJ_API int fj_version(void);

/* ---- Tasks ---------------------------------------------------------------------------- */

/*
 * Makes `t` a task with the body `fn`. Needed once: a task that was joined may
 * be forked again as it is.
 *
 *   Java     the constructor of RecursiveAction.
 */
FJ_INLINE void fj_task_init(fj_task *t, fj_fn *fn);

/*
 * Offers `t` to the other workers and returns at once. If nobody takes it, the
 * join runs it. Cannot fail: where the queue cannot grow the task is run here.
 *
 *   from     a body running in a pool: any worker may take it. Any other thread:
 *            the task goes to the common pool.
 *   order    what the caller did before happens before the body.
 *   owns     the library, until fj_join(), fj_wait() or fj_unfork() gave it back: every
 *            fork is followed by exactly one of them, by the same thread, in the
 *            frame that forked or in one called from it. Any order of joins is
 *            right; youngest first is the fastest.
 *   Java     ForkJoinTask.fork().
 */
FJ_INLINE void fj_fork(fj_task *t);

/*
 * Waits until `t` is done; runs it here if nobody took it.
 *
 *   from     the thread that forked or submitted it. While it waits, a worker runs
 *            only tasks that belong to `t`, never anything else; then it sleeps,
 *            and the pool replaces it.
 *   order    everything the task did happens before the return.
 *   owns     on return `t` belongs to the caller again and may be reused.
 *   returns  what the body returned; FJ_ECANCELED if the pool was stopped before it
 *            began; FJ_EINVAL if `t` is not forked (as far as that can be seen; the
 *            checked build sees every wrong joiner and tells the log callback).
 *   Java     ForkJoinTask.join(), a code in place of the throw.
 */
FJ_INLINE int fj_join(fj_task *t);

/*
 * Takes `t` back if nobody has begun to run it. The caller then does the work
 * itself, by a direct call with the arguments at hand: the cheapest way to join.
 *
 *     if (fj_unfork(&a.task)) x = fib(n - 1);
 *     else { fj_wait(&a.task); x = a.result; }
 *
 *   from     as fj_join().
 *   owns     1: the caller; it must not be joined. 0: the library, as before.
 *   returns  1 if it was taken back, else 0.
 *   Java     ForkJoinTask.tryUnfork(), without its limit to the newest task.
 */
FJ_INLINE int fj_unfork(fj_task *t);

/*
 * As fj_join(), for a task that somebody else is likely to run, or that fj_unfork() did
 * not get: a call instead of inlined code, otherwise the same.
 */
FJ_INLINE int fj_wait(fj_task *t);

/*
 * Runs two tasks, n tasks, or the tasks at the head of n structs of `stride` bytes
 * that lie one after the other, and waits for all of them, also after an error.
 *
 *   from     any thread; outside a pool they run in the common pool.
 *   owns     the caller again, all of them, on return.
 *   returns  FJ_OK, else the first error in the order of the arguments; FJ_EINVAL for
 *            NULL, before any task was begun. n == 0 is FJ_OK.
 *   Java     ForkJoinTask.invokeAll(t1, t2), invokeAll(tasks...). Java may leave while
 *            siblings still run; this does not.
 */
FJ_API FJ_NODISCARD int fj_invoke_both(fj_task *a, fj_task *b);
FJ_API FJ_NODISCARD int fj_invoke_all(fj_task *const *tasks, size_t n);
FJ_API FJ_NODISCARD int fj_invoke_array(void *first, size_t n, size_t stride);

/* ---- Pools ---------------------------------------------------------------------------- */

/* Most workers a pool may have. */
#define FJ_MAX_WORKERS 32767

/* For durations: no limit. */
#define FJ_FOREVER INT64_MAX

/* fj_pool_options.flags */
#define FJ_POOL_FIFO 1u         /* workers run their own tasks oldest first (asyncMode) */
#define FJ_POOL_CALLER_HELPS 2u /* fj_invoke() from outside runs on the caller */
#define FJ_POOL_SYMMETRIC 4u    /* full fences instead of membarrier (for tests) */

/* Levels of the log callback. */
#define FJ_LOG_ERROR 0 /* misuse, or a limit that changes behaviour */
#define FJ_LOG_INFO 1

/*
 * How a pool is to be. Zero means default for every member, so that
 * `fj_pool_options o = FJ_POOL_OPTIONS_INIT;` is a complete setting. Callbacks get
 * `arg`. A struct of an older library, with a smaller `size`, is accepted; a larger
 * one only if what this library does not know is zero.
 */
typedef struct fj_pool_options {
    size_t size;           /* sizeof(fj_pool_options) */
    int parallelism;       /* workers aimed at; default fj_available_parallelism() */
    unsigned flags;        /* FJ_POOL_... */
    int max_threads;       /* most threads, spares for blocked ones included; default
                               parallelism + 256; not below parallelism */
    int min_runnable;      /* unblocked workers below which a spare is made; default 1 */
    int64_t keep_alive_ns; /* idle workers leave after this; default 60 s, at least 20 ms */
    int64_t spin_ns;       /* search before sleeping; default 20 us, at most 100 ms, -1: none */
    size_t stack_bytes;    /* of a worker; default: the system's, at least 1 MiB */
    const char *name;      /* prefix of thread names, 8 bytes are used; default "fj" */
    void *arg;             /* handed to the callbacks */
    /* Asked before a worker is started: 0 refuses, and the pool goes on with fewer. */
    int (*may_start)(fj_pool *pool, void *arg);
    /* On the new worker, before its first task; non-zero ends it, after on_stop. Another is
     * started in its place; after three in a row only when the pool is called again, and not
     * within a tenth of a second. */
    int (*on_start)(fj_pool *pool, int worker, void *arg);
    /* On the worker, after its last task: as often as on_start. */
    void (*on_stop)(fj_pool *pool, int worker, void *arg);
    /* On the worker: an action of fj_execute() returned `code`, or on_start did. */
    void (*on_error)(fj_pool *pool, int code, void *arg);
    /* max_threads is reached: non-zero = block without a replacement (the default);
     * 0 = the wait that asked fails with FJ_ESATURATED where it can fail. */
    int (*saturate)(fj_pool *pool, void *arg);
    /* What would otherwise be printed. Any thread; must not call the library. */
    void (*log)(int level, const char *text, void *arg);
    /* On the worker, each time it has run a task from outside its queue and all that came
     * of it, before it looks for the next: to clean what tasks leave in the thread. */
    void (*on_reset)(fj_pool *pool, int worker, void *arg);
    /* Starts the thread of a worker in place of the library: a joinable one that calls
     * entry(entry_arg) and returns its result; non-zero refuses. Signals are blocked, name and
     * CPUs set by the library. stack_bytes is not looked at. */
    int (*create)(fj_pool *pool, void *(*entry)(void *), void *entry_arg, void *arg);
    /* A cpu_set_t of so many bytes: the CPUs that workers run on. Default: those of the
     * thread that starts them. Is copied. Ignored where the system does not have it. */
    const void *cpus;
    size_t cpus_bytes;
    /* Sent to a worker whose task is cancelled with interrupt, so that a system call it
     * waits in returns EINTR; 0: none. The program has installed a handler for it, without
     * SA_RESTART. */
    int interrupt_signal;
} fj_pool_options;

#ifdef __cplusplus
#define FJ_POOL_OPTIONS_INIT fji_options_init()
#else
#define FJ_POOL_OPTIONS_INIT            \
    (fj_pool_options)                   \
    {                                   \
        .size = sizeof(fj_pool_options) \
    }
#endif

/* The same for languages without initialisers: *o becomes all defaults. */
FJ_API void fj_pool_options_init(fj_pool_options *o);

/*
 * Makes a pool. Starts no thread: workers come with the work.
 *
 *   owns     the caller; release it by fj_pool_destroy(). *o may go afterwards.
 *   returns  FJ_OK and *pool; FJ_EINVAL (pool NULL, parallelism negative or above
 *            FJ_MAX_WORKERS, max_threads below parallelism, negative durations, unknown
 *            flags, size); FJ_ENOMEM.
 *   Java     new ForkJoinPool(...).
 */
FJ_API FJ_NODISCARD int fj_pool_create(fj_pool **pool, const fj_pool_options *o);

/*
 * Takes no more work from outside; what is queued, and what running tasks fork,
 * still runs; the pool ends when nothing is left. Idempotent.
 *
 *   returns  FJ_OK; FJ_EINVAL for NULL; FJ_ENOTSUP for the common pool, which goes on.
 *   Java     shutdown().
 */
FJ_API int fj_pool_shutdown(fj_pool *pool);

/*
 * As shutdown, and what is queued but not begun is cancelled: its joiner gets
 * FJ_ECANCELED, an action is dropped. Running tasks see fj_stopping().
 *
 *   Java     shutdownNow().
 */
FJ_API int fj_pool_shutdown_now(fj_pool *pool);

/*
 * Waits until the pool has ended: no worker is left and none of them will touch
 * the pool again.
 *
 *   returns  FJ_OK; FJ_ETIMEDOUT after timeout_ns (<= 0: only looks); FJ_EDEADLK from a
 *            worker of the pool itself. The common pool never ends: helps until it is
 *            quiescent or the time is over, then FJ_ETIMEDOUT.
 *   Java     awaitTermination().
 */
FJ_API FJ_NODISCARD int fj_pool_await_termination(fj_pool *pool, int64_t timeout_ns);

/*
 * Shuts down and waits for the end, without limit.
 *
 *   returns  FJ_OK; FJ_EDEADLK from a worker of the pool; FJ_ENOTSUP for the common
 *            pool.
 *   Java     close().
 */
FJ_API int fj_pool_close(fj_pool *pool);

/*
 * Closes the pool, joins its threads and frees it. NULL is FJ_OK.
 *
 *   returns  as fj_pool_close(); unless FJ_OK the pool is as it was.
 */
FJ_API int fj_pool_destroy(fj_pool *pool);

/* From the first shutdown on; between stop and end; at the end. NULL = common pool. */
FJ_API int fj_pool_is_shutdown(const fj_pool *pool);
FJ_API int fj_pool_is_terminating(const fj_pool *pool);
FJ_API int fj_pool_is_terminated(const fj_pool *pool);

/* ---- Submitting from outside ------------------------------------------------------------ */

/*
 * Each of these gives work to `pool` (NULL: the common pool). They differ in where
 * it is put and who waits.
 *
 *   returns  FJ_OK; FJ_EINVAL for NULL; FJ_EREJECTED after shutdown (not for calls by
 *            the pool's own workers, except fj_external_submit); FJ_ENOMEM.
 *   order    what the caller did before happens before the body.
 */

/*
 * Runs action(arg) some time, by some worker. Nobody waits for it; a result other
 * than 0 goes to `on_error`. Allocates nothing. A pool without workers (the common one
 * with parallelism 0) runs it in the caller.
 *
 *   Java     execute(Runnable).
 */
FJ_API FJ_NODISCARD int fj_execute(fj_pool *pool, fj_action *action, void *arg);

/*
 * Queues `t`. A worker of the pool puts it into its own queue, any other thread
 * into a submission queue.
 *
 *   owns     the library, until fj_join(t) by the same thread returned, which has to be
 *            before the pool is destroyed.
 *   Java     submit(ForkJoinTask), execute(ForkJoinTask).
 */
FJ_API FJ_NODISCARD int fj_submit(fj_pool *pool, fj_task *t);

/*
 * As fj_submit(), but always into a submission queue, where it waits its turn
 * behind earlier submissions.
 *
 *   Java     externalSubmit().
 */
FJ_API FJ_NODISCARD int fj_external_submit(fj_pool *pool, fj_task *t);

/*
 * As fj_submit(), but wakes nobody: it is run when some worker comes by.
 *
 *   Java     lazySubmit().
 */
FJ_API FJ_NODISCARD int fj_lazy_submit(fj_pool *pool, fj_task *t);

/*
 * Runs `t` in the pool and waits for it.
 *
 *   from     a worker of the pool: runs it at once. A worker of another pool: that
 *            pool replaces it meanwhile. Any other thread: on the common pool, and
 *            with FJ_POOL_CALLER_HELPS, the caller itself becomes a worker for
 *            this task and nothing else; otherwise it sleeps. The _by forms say so
 *            explicitly: FJ_CALLER_HELPS or FJ_CALLER_BLOCKS.
 *   returns  the body's code, or an error as above.
 *   Java     invoke().
 */
enum fj_caller { FJ_CALLER_DEFAULT, FJ_CALLER_HELPS, FJ_CALLER_BLOCKS };

FJ_API FJ_NODISCARD int fj_invoke(fj_pool *pool, fj_task *t);
FJ_API FJ_NODISCARD int fj_invoke_by(fj_pool *pool, fj_task *t, enum fj_caller caller);

/* ---- Common pool and sizes --------------------------------------------------------------- */

/*
 * The pool of the process, made on first use, never ended. Its workers are one
 * fewer than fj_available_parallelism(), since callers help.
 *
 * Environment, read once (not in setuid programs):
 *   FORKJOIN_PARALLELISM   0 to 32767; 0: no workers, callers run their own tasks
 *   FORKJOIN_MAX_SPARES    threads beyond that to replace blocked ones; default 256
 *   FORKJOIN_KEEP_ALIVE_MS idle workers leave after this
 *   FORKJOIN_SPIN_US       search before sleeping
 *   FORKJOIN_FENCES        "symmetric": no membarrier, for every pool
 * A value that cannot be read is ignored.
 *
 *   returns  the pool; NULL if there was no memory to make it.
 *   Java     commonPool().
 */
FJ_API fj_pool *fj_common_pool(void);

/*
 * How the common pool is to be, before it is made; what the environment says comes first.
 * `parallelism` 0 is the default, not none.
 *
 *   returns  FJ_OK; FJ_EBUSY: it was made already; FJ_EINVAL as fj_pool_create().
 *   Java     the system properties java.util.concurrent.ForkJoinPool.common.*.
 */
FJ_API FJ_NODISCARD int fj_common_configure(const fj_pool_options *o);

/* Workers the common pool aims at: 0 if callers run everything themselves. */
FJ_API int fj_common_parallelism(void);

/* CPUs this process may use: online, affinity and cgroup quota; at least 1. */
FJ_API int fj_available_parallelism(void);

/* ---- Quiescence -------------------------------------------------------------------------- */

/*
 * Whether at some moment during the call no task was running or queued, apart from those
 * that wait for this themselves, in fj_help_quiesce() or fj_pool_await_quiescence().
 *
 *   Java     isQuiescent().
 */
FJ_API int fj_pool_is_quiescent(fj_pool *pool);

/*
 * Waits for quiescence; a worker of the pool runs tasks meanwhile, whatever they are;
 * so does an outside caller, on the common pool or with FJ_POOL_CALLER_HELPS.
 *
 *   returns  FJ_OK, FJ_ETIMEDOUT (timeout_ns <= 0: one look), FJ_EINVAL.
 *   Java     awaitQuiescence().
 */
FJ_API FJ_NODISCARD int fj_pool_await_quiescence(fj_pool *pool, int64_t timeout_ns);

/*
 * Runs tasks until the caller's pool (outside: the common pool) has none left apart
 * from those that call this function themselves.
 *
 *   Java     ForkJoinTask.helpQuiesce().
 */
FJ_API void fj_help_quiesce(void);

/* ---- Where am I -------------------------------------------------------------------------- */

/* The pool of the calling worker, NULL outside. Java: getPool(), inForkJoinPool(). */
FJ_API fj_pool *fj_current_pool(void);

/* The calling worker's number, from 0, below the most that ever were; -1 outside. */
FJ_API int fj_worker_index(void);

/* Whether the caller's pool was told to stop: a long task may then give up. */
FJ_API int fj_stopping(void);

/* Bytes of stack left to the calling thread, SIZE_MAX if not known. */
FJ_API size_t fj_stack_left(void);

/* ---- Monitoring --------------------------------------------------------------------------- */

/*
 * What a pool is doing: estimates while it is busy, exact at rest. `size` is set by
 * the caller to sizeof(fj_pool_stats); members a shorter caller does not have are
 * left out.
 */
typedef struct fj_pool_stats {
    size_t size;
    int parallelism;    /* workers aimed at */
    int threads;        /* started and not yet ended */
    int active;         /* searching or running; blocked ones not */
    int running;        /* neither idle nor blocked */
    int idle;           /* asleep or about to be, waiting for work */
    int blocked;        /* waiting in a join or managed block */
    int state;          /* 0 running, 1 shut down, 2 stopping, 3 terminated */
    uint64_t steals;    /* tasks run by another thread than the one that made them */
    uint64_t queued;    /* tasks in the queues of workers */
    uint64_t submitted; /* submissions not yet begun */
    uint64_t started;   /* threads ever started */
    uint64_t openings;  /* times a queue was opened to thieves */
    uint64_t barriers;  /* heavy fences issued */
    uint64_t parks;     /* times a worker went to sleep */
} fj_pool_stats;

/* Fills *s. FJ_EINVAL for NULL or a size that is too small. */
FJ_API int fj_pool_get_stats(const fj_pool *pool, fj_pool_stats *s);

/* Single figures, as in Java: getParallelism() and so on. NULL = common pool. */
FJ_API int fj_pool_parallelism(const fj_pool *pool);
FJ_API int fj_pool_size(const fj_pool *pool);
FJ_API int fj_pool_active_count(const fj_pool *pool);
FJ_API int fj_pool_running_count(const fj_pool *pool);
FJ_API int fj_pool_is_fifo(const fj_pool *pool);
FJ_API uint64_t fj_pool_steal_count(const fj_pool *pool);
FJ_API uint64_t fj_pool_queued_task_count(const fj_pool *pool);
FJ_API uint64_t fj_pool_queued_submission_count(const fj_pool *pool);
FJ_API int fj_pool_has_queued_submissions(const fj_pool *pool);

/*
 * Aims at `n` workers from now on: more come with the work, surplus ones go to
 * sleep after their present task.
 *
 *   returns  the number aimed at before; FJ_EINVAL unless 1 <= n <= FJ_MAX_WORKERS;
 *            FJ_ENOTSUP on a common pool whose size came from the environment.
 *   Java     setParallelism().
 */
FJ_API int fj_pool_set_parallelism(fj_pool *pool, int n);

/*
 * The state in one line, without a newline, as by snprintf: returns its length, also
 * if `cap` was too small.
 *
 *   Java     toString().
 */
FJ_API int fj_pool_text(const fj_pool *pool, char *buf, size_t cap);

/*
 * Every worker and queue, a line each, given to `line` one by one: for a watchdog, so
 * it takes no lock and may be called while the pool hangs.
 */
FJ_API void fj_pool_dump(const fj_pool *pool, void (*line)(const char *text, void *arg), void *arg);

FJ_EXTERN_C_END

#ifdef __cplusplus
static inline fj_pool_options fji_options_init(void)
{
    fj_pool_options o;
    fj_pool_options_init(&o);
    return o;
}
#endif

#include "forkjoin/inline.h"
#include "forkjoin/typed.h"

/* In this order: each knows those before it. */
#include "forkjoin/future.h"

#include "forkjoin/block.h"
#include "forkjoin/completer.h"
#include "forkjoin/local.h"
#include "forkjoin/timer.h"

#endif /* FORKJOIN_H */
