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
 *     int err = fj_invoke(NULL, &root.task); // NULL: the common pool
 *
 * The typed tier (forkjoin/typed.h) writes the same in seven lines and runs it
 * at the speed of a call.
 *
 * Rules for all of it
 *   threads  every function may be called from any thread unless its `from` line
 *            says otherwise; none from a signal handler.
 *   errors   int: 0 is success, negative codes are the library's, positive ones
 *            belong to the author of a task. What a body returns travels unchanged
 *            (see fj_task_fn). errno is left alone. On failure outputs are untouched.
 *   NULL     where a pointer or a function is needed, a task without a body, and other
 *            arguments that cannot be meant: a function that returns a code returns
 *            FJ_EINVAL, one that returns a value returns 0, one that returns a pointer
 *            NULL, a void one does nothing. Nothing is changed, started or called. A
 *            pool that is NULL is the common pool; only the functions that end a pool
 *            refuse it, and fj_pool_destroy(NULL) does nothing. Other meanings of NULL
 *            are stated with the function. Some functions do not look, so that they
 *            cost nothing: fj_fork(), fj_join(), fj_unfork(), fj_join_stolen(), NAME_fork(),
 *            NAME_join() and NAME_call() of typed tasks, fj_task_init(),
 *            fj_future_init(), fj_completer_init(), fj_completer_set_pending(). Code
 *            compiled with FJ_CHECKED=1 (forkjoin/attr.h) looks there too, but for the
 *            functions of typed tasks.
 *   memory   a task's memory belongs to the caller; it must stay put from fork or
 *            submit until the join returns. Forking allocates nothing.
 *   structs  a struct that the caller allocates has a fixed size. Its reserved members are 0;
 *            a later version gives them a meaning. A function that takes options returns
 *            FJ_EINVAL if a reserved member is not 0.
 *   silence  nothing is printed, no signal handler is installed, nothing aborts.
 */
#ifndef FORKJOIN_H
#define FORKJOIN_H

#include <stddef.h>
#include <stdint.h>

#include "forkjoin/attr.h"
#include "forkjoin/version.h"

FJI_EXTERN_C_BEGIN

/* ---- Types ---------------------------------------------------------------------------- */

typedef struct fj_pool fj_pool;     /* opaque */
typedef struct fj_task fj_task;     /* yours: the first member of your own struct */
typedef struct fj_worker fj_worker; /* a thread of a pool; see forkjoin/inline.h */
typedef struct fj_cell fj_cell;
typedef struct fj_type fj_type;

/*
 * The body of a task. Gets the task it was started for. What it returns, whatever the
 * number is, its joiner gets unchanged, whether the joiner ran the body or another
 * thread did; so does the caller of an algorithm, and `on_error` of an action. 0 is
 * success. A positive code is the author's own. A negative code should be one of the
 * library's that a call inside the body has returned, as in `return fj_join(&x)`: the
 * joiner cannot tell it from an error of the join itself. Only the body of a future or
 * timer gives two of them a meaning: FJ_ECANCELED makes it cancelled, FJ_PENDING leaves
 * it open (forkjoin/future.h).
 *
 * A body ends by its return. To leave it, or any callback, by a C++ exception, longjmp()
 * or pthread_exit() is undefined: the library is C, and what it holds at that moment
 * stays held. A C++ body catches what it throws and returns a code.
 */
typedef int fj_task_fn(fj_task *t);

/* The body of a fire-and-forget action; a non-zero return goes to `on_error`. */
typedef int fj_action_fn(void *arg);

/*
 * A structured task. Set it up by fj_task_init(); the members are private, and
 * only their sum of 32 bytes is part of the ABI.
 */
struct fj_task {
    fj_task_fn *fn; /* the body */
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
FJ_API const char *fj_strerror(int code);

/* The version the library was built as: FJ_VERSION at that time. */
FJ_API int fj_version(void);

/* ---- Tasks ---------------------------------------------------------------------------- */

/*
 * Makes `t` a task with the body `fn`. Needed once: a task that was joined may
 * be forked again as it is.
 *
 *   Java     the constructor of RecursiveAction.
 */
FJI_INLINE void fj_task_init(fj_task *t, fj_task_fn *fn);

/*
 * Offers `t` to the other workers and returns at once. If no worker takes it, the
 * join runs it. Cannot fail: if there is no memory for one more queued task, the task is run here.
 *
 *   from     a body running in a pool: any worker may take it. Any other thread:
 *            the task goes to the common pool.
 *   order    what the caller did before happens before the body.
 *   owns     the library, until fj_join(), fj_join_stolen() or fj_unfork() gave it back: every
 *            fork is followed by exactly one of them, by the same thread, in the
 *            frame that forked or in one called from it. Any order of joins is
 *            right; youngest first is the fastest. A second fork of a task that is forked
 *            does nothing. A body that returns without joining leaves a task whose memory
 *            may be gone: undefined, but code compiled with FJ_CHECKED=1 takes it out of the
 *            queue and tells the log callback.
 *   Java     ForkJoinTask.fork().
 */
FJI_INLINE void fj_fork(fj_task *t);

/*
 * Waits until `t` is done; runs it here if nobody took it.
 *
 *   from     the thread that forked or submitted it. While it waits, a worker runs
 *            only tasks that belong to `t`, never anything else. When there are none
 *            it sleeps, and the pool lets another worker run in its place: see
 *            forkjoin/block.h.
 *   order    everything the task did happens before the return.
 *   owns     on return `t` belongs to the caller again and may be reused.
 *   returns  what the body returned; FJ_ECANCELED if the pool was stopped before it
 *            began; FJ_EINVAL if `t` was never forked, or was joined and not forked again.
 *            A join by another thread than the forker is seen only by code that is compiled
 *            with FJ_CHECKED=1: it gets FJ_EINVAL, and the log callback a message.
 *   Java     ForkJoinTask.join(), a code in place of the throw.
 */
FJI_INLINE int fj_join(fj_task *t);

/*
 * Takes `t` back if nobody has begun to run it. The caller then does the work
 * itself, by a direct call with the arguments at hand: the cheapest way to join.
 *
 *     if (fj_unfork(&a.task)) x = fib(n - 1);
 *     else { fj_join_stolen(&a.task); x = a.result; }
 *
 *   from     as fj_join().
 *   owns     1: the caller; it must not be joined. 0: the library, as before.
 *   returns  1 if it was taken back, else 0.
 *   Java     ForkJoinTask.tryUnfork(), without its limit to the newest task.
 */
FJI_INLINE int fj_unfork(fj_task *t);

/*
 * As fj_join(), for a task that somebody else is likely to run, or that fj_unfork() did
 * not get: a call instead of inlined code, otherwise the same.
 */
FJI_INLINE int fj_join_stolen(fj_task *t);

/*
 * Runs two tasks, n tasks, or the tasks at the head of n structs of `stride` bytes
 * that lie one after the other, and waits for all of them, also after an error.
 *
 *   from     any thread; outside a pool they run in the common pool.
 *   owns     the caller again, all of them, on return.
 *   returns  FJ_OK, else the first error in the order of the arguments; FJ_EINVAL for
 *            NULL, a task without a body, the same task twice (both), a stride below the
 *            size of fj_task or not a multiple of its alignment, n * stride beyond memory:
 *            before any task was begun. n == 0 is FJ_OK.
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

/* fj_pool_options.flags. No constant that a function takes has the value of one of another kind,
 * apart from 0, the default: flags of a pool, of a scan, the callers of fj_invoke_mode() and kinds
 * of stages are refused (FJ_EINVAL) in each other's place. */
#define FJ_POOL_FIFO 1u         /* oldest first, see below (asyncMode) */
#define FJ_POOL_CALLER_HELPS 2u /* fj_invoke() from outside runs on the caller */
#define FJ_POOL_SYMMETRIC 4u    /* full fences instead of membarrier (for tests) */

/*
 * FJ_POOL_FIFO: a worker runs the tasks of its own queue oldest first. What one thread outside the
 * pool submits, actions, tasks and futures alike, is taken in the order of submission. With one
 * worker it is also run in that order. With several workers two tasks that are taken one after the
 * other run at the same time.
 */

/* Levels of the log callback. */
#define FJ_LOG_ERROR 0 /* misuse, or a limit that changes behaviour */
#define FJ_LOG_INFO 1

/*
 * The options of a pool. 0 means the default for every member, so `fj_pool_options o = {0};`
 * is a complete setting. Callbacks get `arg`.
 */
typedef struct fj_pool_options {
    int parallelism;       /* workers aimed at; default fj_available_parallelism() */
    unsigned flags;        /* FJ_POOL_... */
    int max_threads;       /* most threads, those that replace blocked ones included; not below
                              parallelism or min_runnable, and a bound for
                              fj_pool_set_parallelism(). Default parallelism + 256, or
                              min_runnable if that is more, also after it has changed */
    int min_runnable;      /* `allow_saturation` is asked only if fewer workers than this would stay
                              active; default 1 */
    int64_t keep_alive_ns; /* idle workers leave after this; default 60 s, at least 20 ms */
    int64_t spin_ns;       /* search before sleeping; default 20 us, at most 100 ms, -1: none */
    size_t stack_bytes;    /* of a worker; default: the system's, at least 1 MiB */
    const char *name;      /* prefix of thread names, 8 bytes are used; default "fj" */
    void *arg;             /* handed to the callbacks */
    /* Asked before a worker is started: 0 refuses, and the pool runs with fewer. While a task is
     * queued and a worker is missing, it is asked again. */
    int (*allow_thread)(fj_pool *pool, void *arg);
    /* On the new worker, before its first task; non-zero ends it, after on_stop. Another is
     * started in its place; after three in a row only when the pool is called again, and not
     * within a tenth of a second. */
    int (*on_start)(fj_pool *pool, int worker, void *arg);
    /* On the worker, after its last task: as often as on_start. */
    void (*on_stop)(fj_pool *pool, int worker, void *arg);
    /* On the worker: an action of fj_execute() returned `code`, or on_start did. */
    void (*on_error)(fj_pool *pool, int code, void *arg);
    /* A worker is about to block, max_threads is reached, no worker is idle, and fewer than
     * min_runnable workers would stay active. Non-zero: it blocks without a replacement (the
     * default). 0: the wait fails with FJ_ESATURATED where it can fail. */
    int (*allow_saturation)(fj_pool *pool, void *arg);
    /* What would otherwise be printed. Any thread; must not call the library. */
    void (*log)(int level, const char *text, void *arg);
    /* On the worker, each time it has run a task from outside its queue and all that came
     * of it, before it looks for the next: to clean what tasks leave in the thread. */
    void (*on_reset)(fj_pool *pool, int worker, void *arg);
    /* Starts the thread of a worker in place of the library: a joinable one that calls
     * entry(entry_arg) and returns its result; non-zero refuses. Signals are blocked, name and
     * CPUs set by the library. stack_bytes is not looked at. */
    int (*create_thread)(fj_pool *pool, void *(*entry)(void *), void *entry_arg, void *arg);
    /* A cpu_set_t of so many bytes: the CPUs that workers run on. Default: those of the
     * thread that starts them. Is copied. Ignored where the system does not have it. */
    const void *cpus;
    size_t cpus_bytes;
    /* Sent to a worker whose task is cancelled with interrupt, or that waits for a file in a task
     * below one, so that a system call it waits in returns EINTR; 0: none. The program has installed a handler for it, without
     * SA_RESTART. */
    int interrupt_signal;
    uint64_t reserved[8]; /* 0 */
} fj_pool_options;

/*
 * Makes a pool. Starts no thread: workers come with the work.
 *
 *   owns     the caller; release it by fj_pool_destroy(). *o may go afterwards.
 *   returns  FJ_OK and *pool; FJ_EINVAL (pool NULL, parallelism negative or above
 *            FJ_MAX_WORKERS, max_threads below parallelism or min_runnable, min_runnable
 *            above FJ_MAX_WORKERS, negative durations, unknown flags, size); FJ_ENOMEM.
 *   Java     new ForkJoinPool(...).
 */
FJ_API FJ_NODISCARD int fj_pool_create(fj_pool **pool, const fj_pool_options *o);

/*
 * Takes no more work from outside; what is queued, and what running tasks fork,
 * still runs; the pool ends when nothing is left. Idempotent.
 *
 *   returns  FJ_OK; FJ_EINVAL for NULL; FJ_ENOTSUP for the common pool, which stays open:
 *            fj_common_shutdown() ends it.
 *   Java     shutdown().
 */
FJ_API int fj_pool_shutdown(fj_pool *pool);

/*
 * As shutdown, and what is queued but not begun is cancelled: its joiner gets
 * FJ_ECANCELED, an action is dropped. Running tasks see fj_is_stopping().
 *
 *   Java     shutdownNow().
 */
FJ_API int fj_pool_shutdown_now(fj_pool *pool);

/*
 * Waits until the pool has ended: no worker is left and none of them will touch
 * the pool again.
 *
 *   returns  FJ_OK; FJ_ETIMEDOUT after timeout_ns (<= 0: only looks); FJ_EDEADLK from a
 *            worker of the pool itself. On the common pool (also NULL): waits until it is
 *            quiescent or the time is over, then FJ_ETIMEDOUT.
 *   Java     awaitTermination().
 */
FJ_API FJ_NODISCARD int fj_pool_await_termination(fj_pool *pool, int64_t timeout_ns);

/*
 * Shuts down and waits for the end, without limit.
 *
 *   returns  FJ_OK; FJ_EDEADLK from a worker of the pool; FJ_ENOTSUP for the common
 *            pool; FJ_EINVAL for NULL.
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
 *            the pool's own workers, except fj_submit_external); FJ_ENOMEM.
 *   order    what the caller did before happens before the body.
 */

/*
 * Runs action(arg) some time, by some worker. Nobody waits for it; a result other
 * than 0 goes to `on_error`. Allocates nothing. A pool without workers (the common one
 * with parallelism 0) runs it in the caller.
 *
 *   Java     execute(Runnable).
 */
FJ_API FJ_NODISCARD int fj_execute(fj_pool *pool, fj_action_fn *action, void *arg);

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
FJ_API FJ_NODISCARD int fj_submit_external(fj_pool *pool, fj_task *t);

/*
 * As fj_submit(), but wakes nobody: it is run when some worker comes by.
 *
 *   Java     lazySubmit().
 */
FJ_API FJ_NODISCARD int fj_submit_lazy(fj_pool *pool, fj_task *t);

/*
 * Runs `t` in the pool and waits for it.
 *
 *   from     a worker of the pool: runs it at once. A worker of another pool: that
 *            pool replaces it meanwhile. Any other thread: on the common pool, and
 *            with FJ_POOL_CALLER_HELPS, the caller itself becomes a worker for
 *            this task and nothing else; otherwise it sleeps. The _by forms say so
 *            explicitly: FJ_CALLER_HELPS or FJ_CALLER_BLOCKS.
 *   returns  the body's code, or an error as above; FJ_EINVAL for a `caller` that is none.
 *   Java     invoke().
 */
enum fj_caller {
    FJ_CALLER_DEFAULT = 0, /* as fj_invoke() */
    FJ_CALLER_HELPS = 0x100,
    FJ_CALLER_BLOCKS = 0x200
};

FJ_API FJ_NODISCARD int fj_invoke(fj_pool *pool, fj_task *t);
FJ_API FJ_NODISCARD int fj_invoke_mode(fj_pool *pool, fj_task *t, enum fj_caller caller);

/* ---- Common pool and sizes --------------------------------------------------------------- */

/*
 * The pool of the process, made on first use. It aims at one worker fewer than
 * fj_available_parallelism(), since callers help, but at least at one. It ends by
 * fj_common_shutdown() only; a program that does not call it leaves its threads to the end of
 * the process.
 *
 * Environment, read when the pool is made (not in setuid programs):
 *   FORKJOIN_PARALLELISM   0 to 32767; 0: no workers, callers run their own tasks
 *   FORKJOIN_MAX_SPARES    threads beyond that to replace blocked ones; default 256. Given, it
 *                          sets max_threads: the parallelism at the beginning plus this
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
 * `parallelism` 0 is the default, not none. *o may go afterwards.
 *
 *   returns  FJ_OK; FJ_EBUSY: it was made already; FJ_EINVAL as fj_pool_create(), and for a
 *            max_threads below the default parallelism of the common pool if `parallelism` is 0;
 *            FJ_ENOMEM.
 *   Java     the system properties java.util.concurrent.ForkJoinPool.common.*.
 */
FJ_API FJ_NODISCARD int fj_common_configure(const fj_pool_options *o);

/*
 * Ends the common pool: waits until it is quiescent, stops and joins its threads, and frees
 * its memory. An outside caller runs tasks of the pool while it waits. The next use of the
 * common pool makes a new one: the environment is read again, and what fj_common_configure()
 * was given for the old one is forgotten, so it may be called again. Code that is to be
 * unloaded by dlclose(), and contains the static library, calls this first: then no thread,
 * no memory and no handler of the library is left (docs/cookbook.md).
 *
 *   timers   a delayed task that runs once is work: the call waits for it, as
 *            fj_pool_shutdown() does. A periodic one ends with FJ_ECANCELED when the pool
 *            stops.
 *   threads  other threads may use the common pool (NULL) during the call, and call this
 *            function too. Each of their calls acts on the old pool before its end, or
 *            waits for the end and acts on a new pool. While they always have work for it
 *            the pool is not quiescent. Callbacks of the pool that ends (on_stop, and what
 *            runs when a periodic task is cancelled) cannot give work to the common pool:
 *            FJ_EREJECTED.
 *   pointers the program does not use what fj_common_pool() returned before.
 *   tasks    what was submitted is done. Tasks, futures and completers stay valid, also
 *            futures that a body has left open.
 *   returns  FJ_OK, also if there is no common pool; FJ_ETIMEDOUT after timeout_ns (<= 0:
 *            only looks): the pool was not quiescent and stays open, or another
 *            thread's call is still ending it; FJ_EDEADLK from a worker, guest or callback
 *            of the common pool. The limit is for quiescence: the threads then end without
 *            one, after their on_stop.
 *   Java     none: commonPool() cannot be shut down.
 */
FJ_API FJ_NODISCARD int fj_common_shutdown(int64_t timeout_ns);

/* Workers the common pool aims at: 0 if callers run everything themselves. */
FJ_API int fj_common_parallelism(void);

/* CPUs this process may use: online, affinity and cgroup quota; at least 1. */
FJ_API int fj_available_parallelism(void);

/* ---- Quiescence -------------------------------------------------------------------------- */

/*
 * Whether at some moment during the call no task was running or queued, apart from those
 * that wait for this themselves, in fj_help_quiesce() or fj_pool_await_quiescence(). A pool
 * that stops is quiescent at once.
 *
 *   Java     isQuiescent().
 */
FJ_API int fj_pool_is_quiescent(fj_pool *pool);

/*
 * Waits for quiescence. Without a limit (FJ_FOREVER) a worker of the pool runs tasks meanwhile,
 * whatever they are; so does an outside caller, on the common pool or with FJ_POOL_CALLER_HELPS.
 * With a limit the caller only waits.
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

/*
 * The index of the calling worker in its pool: 0 or more, and below fj_pool_worker_limit(). While
 * the thread runs a task no other thread of the pool has the same index.
 *
 *   returns  the index; -1 outside a pool.
 */
FJ_API int fj_current_worker(void);

/*
 * A number above every index that fj_current_worker() has returned in `pool` (NULL: the common
 * pool). It grows when the pool has more threads and helping callers at the same time than ever
 * before, up to FJ_MAX_WORKERS.
 */
FJ_API int fj_pool_worker_limit(const fj_pool *pool);

/* Whether the caller's pool was told to stop: a long task may then give up. */
FJ_API int fj_is_stopping(void);

/* Bytes of stack left to the calling thread, SIZE_MAX if not known. */
FJ_API size_t fj_stack_left(void);

/* ---- Monitoring --------------------------------------------------------------------------- */

/* The life of a pool. Each state follows the one before it; none is left out. */
enum fj_pool_state {
    FJ_POOL_STATE_RUNNING = 0,
    FJ_POOL_STATE_SHUTDOWN = 1,   /* takes no more work from outside */
    FJ_POOL_STATE_STOPPING = 2,   /* no task is begun any more */
    FJ_POOL_STATE_TERMINATED = 3, /* no thread is left */
};

/* The figures of a pool: estimates while it is busy, exact when it is idle. */
typedef struct fj_stats {
    int parallelism;      /* workers aimed at */
    int threads;          /* started and not yet ended */
    int active;           /* searching or running; blocked ones not */
    int running;          /* neither idle nor blocked */
    int idle;             /* asleep or about to be, waiting for work */
    int blocked;          /* waiting in a join or managed block */
    int state;            /* enum fj_pool_state */
    uint64_t steals;      /* tasks run by another thread than the one that made them */
    uint64_t queued;      /* tasks in the queues of workers */
    uint64_t submitted;   /* submissions not yet begun */
    uint64_t started;     /* threads ever started */
    uint64_t openings;    /* times a queue was opened to thieves */
    uint64_t barriers;    /* heavy fences issued */
    uint64_t parks;       /* times a worker went to sleep */
    uint64_t reserved[8]; /* set to 0 by the library */
} fj_stats;

/*
 * Writes the figures of `pool` to *s.
 *
 *   returns  FJ_OK; FJ_EINVAL if `s` is NULL; FJ_ENOMEM if there is no memory for the common pool.
 */
FJ_API int fj_pool_stats(const fj_pool *pool, fj_stats *s);

/* Single figures, as in Java: getParallelism() and so on. NULL = common pool. */
FJ_API int fj_pool_parallelism(const fj_pool *pool);
FJ_API int fj_pool_thread_count(const fj_pool *pool);
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
 *   returns  the number aimed at before; FJ_EINVAL unless 1 <= n <= FJ_MAX_WORKERS, and if n
 *            is above a max_threads that the options, fj_common_configure() or
 *            FORKJOIN_MAX_SPARES have given; FJ_ENOTSUP on a common pool whose size came from
 *            the environment. On an error the size is as before.
 *   Java     setParallelism().
 */
FJ_API int fj_pool_set_parallelism(fj_pool *pool, int n);

/*
 * The state in one line, without a newline, as by snprintf: returns its length, also
 * if `cap` was too small or 0; 0 if `buf` is NULL and `cap` is not 0.
 *
 *   Java     toString().
 */
FJ_API int fj_pool_describe(const fj_pool *pool, char *buf, size_t cap);

/*
 * Every worker and queue, a line each, given to `line` one by one: for a watchdog, so
 * it takes no lock and may be called while the pool hangs.
 */
FJ_API void fj_pool_dump(const fj_pool *pool, void (*line)(const char *text, void *arg), void *arg);

FJI_EXTERN_C_END

#include "forkjoin/inline.h"
#include "forkjoin/typed.h"

/* In this order: each knows those before it. */
#include "forkjoin/future.h"

#include "forkjoin/completer.h"
#include "forkjoin/local.h"
#include "forkjoin/timer.h"

#endif /* FORKJOIN_H */
