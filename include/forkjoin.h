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
 * The typed tier (forkjoin/typed.h) expresses the same computation in seven lines. With typed tasks
 * a fork and a join together cost about as much as a function call.
 *
 * Words
 *   worker            a thread of a pool. Each worker has a queue of its own, into which it pushes
 *                     the tasks that it forks. Other workers steal tasks from that queue.
 *   submission queue  a queue of a pool for tasks that come from threads outside the pool.
 *   common pool       the pool that the library creates for the process on first use.
 *   helping caller    a thread outside the pool that runs tasks of the pool while it waits in a
 *                     call, for example in fj_invoke() on the common pool. Until that call returns,
 *                     the thread counts as a worker of the pool, but figures such as
 *                     fj_pool_thread_count() do not include it.
 *
 * Rules for all functions
 *   threads  Every function may be called from any thread, unless its `from` line restricts that.
 *            No function may be called from a signal handler.
 *   lines    A contract may end with these lines: `from`, which threads may call the function; `order`,
 *            what happens before what; `owns`, which side may use or free the memory; `returns`.
 *   errors   A function that can fail returns an int. 0 is success. A negative code comes from the
 *            library. A positive code comes from the body of a task. The library passes on the
 *            return value of a body unchanged (see fj_task_fn). The library leaves errno unchanged.
 *            If a function fails, it does not write to its output arguments.
 *   NULL     An argument is invalid if a required pointer or function is NULL, if a task has no
 *            body, or if the contract of the function excludes the value. For invalid arguments a
 *            function that returns a code returns FJ_EINVAL. A function that returns a value
 *            returns 0. A function that returns a pointer returns NULL. A void function does
 *            nothing. In none of these cases does the function change anything or call a callback.
 *            NULL in place of a pool means the common pool. Only the functions that end a pool do
 *            not accept NULL: they return FJ_EINVAL, except that fj_pool_destroy(NULL) does nothing
 *            and returns FJ_OK. Other meanings of NULL are stated with the function.
 *   speed    The following functions do not check their arguments, so that they stay fast:
 *            fj_fork(), fj_join(), fj_join_as(), fj_unfork(), fj_join_stolen(), fj_task_init(),
 *            fj_future_init(), fj_completer_init(), fj_completer_set_pending(), and NAME_fork(),
 *            NAME_join(), NAME_unfork(), NAME_state(), NAME_spawn(), NAME_sync() and NAME_call() of
 *            typed tasks. In code compiled with FJ_CHECKED=1 (forkjoin/attr.h) these functions check
 *            their arguments, except the functions of typed tasks.
 *   memory   The caller provides the memory of a task. The memory must stay valid, and the task
 *            must not move, from the fork or the submission until the join has returned. The
 *            library allocates nothing for a single task; only a queue that is full grows.
 *   structs  A struct that the caller allocates has a fixed size. Its reserved members must be 0,
 *            because a later version may give them a meaning. A function that takes options returns
 *            FJ_EINVAL if a reserved member is not 0.
 *   order    What the library promises about the order in which tasks run:
 *
 *            One thread, FIFO pool. What one thread outside a pool with FJ_POOL_FIFO submits, by
 *            fj_execute(), fj_submit(), fj_future_submit() and the like in any mixture, the workers take
 *            in the order of the calls. If the pool has one worker, the tasks begin in this order, and
 *            each begins after the one before has ended or blocks: while a task waits in a join, a
 *            managed block or another wait of the library, the pool may let another thread run the
 *            next tasks. If the pool has several workers, two tasks that are taken one after the other
 *            may begin in either order.
 *            Several threads, FIFO pool. The tasks of each thread keep their order. Nothing is promised
 *            about the order of tasks of different threads, also if the program orders the calls.
 *            Workers, FIFO pool. A worker runs what it has submitted or forked into its own queue oldest
 *            first, and other workers steal the oldest task first. What a worker submits by
 *            fj_submit_external() goes into a submission queue, and these submissions of one worker
 *            keep their order among each other. Nothing is promised about the order of the tasks in a
 *            worker's own queue and those in the submission queues.
 *            Other pools. Nothing is promised: a worker runs the youngest task of its own queue first,
 *            thieves take the oldest, and one thread may use several submission queues.
 *
 *            In every pool, a thread that waits for a task may run that task, and the tasks on which
 *            that one depends, before older ones. A task that is taken back or cancelled leaves the
 *            order of the others unchanged. Timers submit their tasks when they are due. That a task
 *            runs before another one does not make its effects visible to the other; a join, or the
 *            program's own synchronisation, does.
 *   silence  The library prints nothing, installs no signal handler and does not abort the process.
 *            Only a library that was built with FORKJOIN_CHECKED=ON traps, if it finds one of its
 *            own invariants broken.
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
typedef struct fj_worker fj_worker; /* private: see forkjoin/inline.h */
typedef struct fj_cell fj_cell;     /* private: see forkjoin/inline.h */
typedef struct fj_type fj_type;     /* private: see forkjoin/inline.h */

/*
 * The body of a task. The library calls it with a pointer to the task.
 *
 * The joiner gets the return value of the body unchanged, whether the joiner or another thread ran
 * the body. The caller of a parallel algorithm also gets the return value of a body unchanged, and
 * `on_error` gets that of an action. 0 is success. The author of the body defines the meaning of
 * positive codes. A negative code should be one that a call inside the body has returned, as in
 * `return fj_join(&x)`, because the joiner cannot distinguish a negative code of the body from an
 * error of the join itself. Two negative codes have a meaning if the body is that of a future or a
 * timer: FJ_ECANCELED makes the future cancelled, and FJ_PENDING leaves the future incomplete
 * (forkjoin/future.h).
 *
 * A body, like every callback, ends only by returning. Leaving it by a C++ exception, by longjmp()
 * or by pthread_exit() is undefined, because the library is written in C and does not unwind. A C++
 * body catches its exceptions and returns a code.
 */
typedef int fj_task_fn(fj_task *t);

/* The function of an action, a task that no thread joins. The library passes a return value other
 * than 0 to the pool's `on_error`. */
typedef int fj_action_fn(void *arg);

/*
 * A structured task: the thread that forks it also joins it. Initialise it with fj_task_init(). The
 * members are private; only the size of 32 bytes is part of the ABI.
 */
struct fj_task {
    fj_task_fn *fn; /* the body */
    fj_cell *cell;  /* the cell of a worker's queue that the task was forked into */
    uint32_t state; /* the completion word of a task that was submitted */
    union {
        uint32_t child_base; /* where the forks of the body begin, in the queue of the worker that
                              * runs it */
        uint32_t number;     /* the number of the task in its submission queue */
    };
    int32_t code; /* what the body returned, if a thread other than the joiner ran the body */
    uint32_t
        location; /* the queue and the position of the task, if `cell` does not identify them */
};

/* ---- Error codes ------------------------------------------------------------------------ */

/* X(code, value, text). If Linux has an errno number for the error, the value is that number,
 * negated. */
#define FJ_ERRORS(X)                                           \
    X(FJ_OK, 0, "success")                                     \
    X(FJ_EAGAIN, -11, "the system refuses a thread or a file") \
    X(FJ_ENOMEM, -12, "out of memory")                         \
    X(FJ_EBUSY, -16, "busy")                                   \
    X(FJ_EINVAL, -22, "invalid argument or misuse")            \
    X(FJ_EDEADLK, -35, "the caller would wait for itself")     \
    X(FJ_ENOTSUP, -95, "not supported for this pool")          \
    X(FJ_ETIMEDOUT, -110, "timed out")                         \
    X(FJ_ECANCELED, -125, "cancelled")                         \
    X(FJ_EREJECTED, -1001, "shut down, closed or ended")       \
    X(FJ_ESATURATED, -1002, "the limit of threads is reached") \
    X(FJ_EFAILED, -1003, "failed, without a code")             \
    X(FJ_PENDING, -1004, "not finished: another call completes it later")

enum fj_error {
#define FJI_ERROR_ENUM(name, value, text) name = (value),
    FJ_ERRORS(FJI_ERROR_ENUM)
#undef FJI_ERROR_ENUM
};

/*
 * Returns the name of a code, for example "FJ_EINVAL".
 *
 *   returns  a constant string; "user" for a positive code; "unknown" for a negative code that the
 *            library does not define.
 */
FJ_API const char *fj_error_name(int code);

/*
 * Returns the text of a code, for example "invalid argument or misuse".
 *
 *   returns  a constant string; "code of the task" for a positive code; "unknown error" for a
 *            negative code that the library does not define.
 */
FJ_API const char *fj_strerror(int code);

/* Returns the version of the library at run time: the value of FJ_VERSION when the library was
 * built. */
FJ_API int fj_version(void);

/* ---- Tasks ---------------------------------------------------------------------------- */

/*
 * Initialises `t` as a task with the body `fn`. One call is enough: a task that was joined may be
 * forked again without another call.
 *
 *   Java     the constructor of RecursiveAction.
 */
FJI_INLINE void fj_task_init(fj_task *t, fj_task_fn *fn);

/*
 * Makes `t` available to the other workers and returns at once. If no other worker steals `t`, the
 * join runs it. A fork cannot fail: if there is no memory for one more queued task, fj_fork() runs
 * the body before it returns.
 *
 *   from     any thread. In a body that runs in a pool, the task goes into the queue of the calling
 *            worker. In any other thread, the task goes to the common pool.
 *   order    everything that the caller did before the call happens before the body runs.
 *   owns     the library owns `t` until fj_join(), fj_join_stolen() or fj_unfork() gives it back.
 *            For each fork the forking thread must take the task back exactly once, in the function
 *            that forked or in a function called from it. The joins may come in any order; joining
 *            the youngest task first is the fastest.
 *   misuse   If a worker forks a task that it has forked and not yet joined, the second fork does
 *            nothing and the log callback gets a message. In a thread outside a pool the second
 *            fork also does nothing while the task is not done. The behaviour is undefined if a
 *            body returns without joining a task that it forked, because the memory of the task may
 *            be gone. If the code was compiled with FJ_CHECKED=1, the library instead removes that
 *            task from the queue, or waits for the thief that runs it, and the log callback gets a
 *            message.
 *   Java     ForkJoinTask.fork().
 */
FJI_INLINE void fj_fork(fj_task *t);

/*
 * Waits until `t` is done. If no other thread has begun to run `t`, the caller runs it.
 *
 *   from     the thread that forked or submitted `t`. While a worker waits, it runs only tasks that
 *            `t` or its descendants have forked or submitted. A worker that has used half of its
 *            stack runs no other task while it waits. A worker that finds no task to run sleeps,
 *            and the pool lets another worker run in its place (forkjoin/block.h).
 *   order    everything that the task did happens before the return.
 *   owns     the caller owns `t` on return and may fork it again or free it.
 *   returns  what the body returned; FJ_ECANCELED if the task was cancelled before its body began,
 *            because the pool was stopped or by fj_taken_cancel(); FJ_ECANCELED in the child of a
 *            fork() of the process, if another thread of the parent had the task; FJ_EINVAL if `t`
 *            was never forked or submitted, or if another worker forked it.
 *   misuse   A second join without a new fork is undefined. fj_join() returns FJ_EINVAL if it
 *            detects the second join. It does not detect the second join if the queue cell of `t`
 *            holds another task by then, unless the code was compiled with FJ_CHECKED=1.
 *   Java     ForkJoinTask.join(), which throws an exception where fj_join() returns a code.
 */
FJI_INLINE int fj_join(fj_task *t);

/*
 * Does the same as fj_join(), for a task whose function is known where it is joined. If no other
 * thread has taken `t`, the compiler can inline the body, which saves a quarter of the cost of a
 * small task:
 *
 *     fj_join_as(&a.task, fib_run);
 *
 *   fn       the function that fj_task_init() got. If it is another function, the behaviour is
 *            undefined.
 *   from, order, owns, returns, misuse  as fj_join().
 */
FJI_INLINE int fj_join_as(fj_task *t, fj_task_fn *fn);

/*
 * Takes `t` back if no thread has begun to run it. If fj_unfork() returns 1, the caller does the
 * work of the task itself, by a direct function call with the arguments that it has at hand. That
 * is the cheapest way to join:
 *
 *     if (fj_unfork(&a.task)) x = fib(n - 1);
 *     else { fj_join_stolen(&a.task); x = a.result; }
 *
 *   from     the thread that forked or submitted `t`.
 *   owns     if the call returns 1, the caller owns `t` and must not join it. If the call returns
 *            0, the library still owns `t`, and the caller must join it.
 *   returns  1 if the task was taken back, otherwise 0.
 *   Java     ForkJoinTask.tryUnfork(), which takes back only the newest task. fj_unfork() also
 *            takes back older ones.
 */
FJI_INLINE int fj_unfork(fj_task *t);

/*
 * Does the same as fj_join(), by a function call instead of inlined code. Use fj_join_stolen()
 * after fj_unfork() has returned 0, and for a task that another thread has probably stolen.
 *
 *   from, order, owns, returns  as fj_join().
 */
FJI_INLINE int fj_join_stolen(fj_task *t);

/*
 * Runs the tasks `a` and `b` and waits for both. If one task fails, the call still runs the other
 * one and waits for it.
 *
 *   from     any thread. The tasks run in the pool of the calling worker. In a thread outside a
 *            pool they run in the common pool, with the caller as a helping caller.
 *   owns     the caller, on return.
 *   returns  FJ_OK, or the first error in the order of the arguments; FJ_EINVAL, before any task is
 *            run, if an argument is NULL, if a task has no body, or if a == b.
 *   Java     ForkJoinTask.invokeAll(t1, t2). Unlike this function, the Java method may return while
 *            one of the tasks still runs.
 */
FJ_API FJ_NODISCARD int fj_invoke_both(fj_task *a, fj_task *b);

/*
 * Runs the n tasks that the array `tasks` points to and waits for all of them, even if some of them
 * fail. The array must not contain a task twice.
 *
 *   from, owns  as fj_invoke_both().
 *   returns  FJ_OK, also if n is 0; the first error in the order of the array; FJ_EINVAL, before
 *            any task is run, if n is not 0 and `tasks` is NULL, if an element is NULL or has no
 *            body, or if the array would not fit into the address space.
 *   Java     ForkJoinTask.invokeAll(tasks...). Unlike this function, the Java method may return
 *            while some of the tasks still run.
 */
FJ_API FJ_NODISCARD int fj_invoke_all(fj_task *const *tasks, size_t n);

/*
 * Runs the tasks of an array of n structs and waits for all of them, even if some of them fail.
 * Each struct is `stride` bytes long and begins with its fj_task.
 *
 *   from, owns  as fj_invoke_both().
 *   returns  FJ_OK, also if n is 0; the first error in the order of the array; FJ_EINVAL, before
 *            any task is run, if n is not 0 and `first` is NULL, if a task has no body, if `stride`
 *            is less than sizeof(fj_task) or not a multiple of its alignment, or if the array would
 *            not fit into the address space.
 *   Java     ForkJoinTask.invokeAll(tasks...). Unlike this function, the Java method may return
 *            while some of the tasks still run.
 */
FJ_API FJ_NODISCARD int fj_invoke_array(void *first, size_t n, size_t stride);

/* ---- Pools ---------------------------------------------------------------------------- */

/* The largest number of workers that a pool may have. */
#define FJ_MAX_WORKERS 32767

/* A duration or a time limit of FJ_FOREVER means: no limit. */
#define FJ_FOREVER INT64_MAX

/*
 * Values for fj_pool_options.flags. Flags of a pool, flags of a scan, values of enum fj_caller and
 * kinds of pipeline stages have no value in common, except 0, which is the default of each. A
 * function that gets a constant of the wrong kind therefore returns FJ_EINVAL.
 *
 * FJ_POOL_FIFO          Each worker runs the tasks of its own queue oldest first, and the workers take
 *                       what one thread outside the pool submits in the order of submission. The rule
 *                       `order` in the head of this file says what is promised. Java calls this
 *                       asyncMode.
 * FJ_POOL_CALLER_HELPS  A thread outside every pool becomes a helping caller while it waits,
 *                       without a time limit, for a task of the pool or until the pool is
 *                       quiescent. In the common pool, waiting threads become helping callers
 *                       without this flag too.
 * FJ_POOL_SYMMETRIC     The pool uses full fences instead of membarrier(). This flag is for tests.
 */
#define FJ_POOL_FIFO 1u
#define FJ_POOL_CALLER_HELPS 2u
#define FJ_POOL_SYMMETRIC 4u

/* Levels of the log callback. */
#define FJ_LOG_ERROR 0 /* misuse, or a limit that changes the behaviour */
#define FJ_LOG_INFO 1

/*
 * The options of a pool. For every member 0 means the default, so `fj_pool_options o = {0};` is a
 * complete setting. Every callback gets `arg` as its last argument. The argument `worker` of a
 * callback is the index of the calling worker, as fj_current_worker() returns it.
 */
typedef struct fj_pool_options {
    /* The number of workers that the pool aims to keep active. The default is
     * fj_available_parallelism(). */
    int parallelism;
    /* FJ_POOL_... flags, combined by |. */
    unsigned flags;
    /* The largest number of threads, including those that replace blocked workers. `max_threads`
     * must not be less than `parallelism` or `min_runnable`. It also limits
     * fj_pool_set_parallelism(). The default is `parallelism` + 256, or `min_runnable` if that is
     * more; the default changes when the parallelism changes. A value above FJ_MAX_WORKERS counts
     * as FJ_MAX_WORKERS. */
    int max_threads;
    /* The library calls `allow_saturation` only if fewer than `min_runnable` workers would stay
     * active. The default is 1. */
    int min_runnable;
    /* An idle worker ends after `keep_alive_ns` nanoseconds, if no worker is active or if the pool
     * has more threads than `parallelism`. After one worker has ended in this way, the next idle
     * workers follow at intervals of 1 ms. The default is 60 s, the minimum 20 ms; a smaller value
     * counts as 20 ms. FJ_FOREVER means that idle workers do not end. */
    int64_t keep_alive_ns;
    /* How long a worker searches for tasks before it sleeps, in ns. The default is 20 us, the
     * maximum 100 ms; a larger value counts as 100 ms. -1 means that a worker sleeps without
     * searching first. */
    int64_t spin_ns;
    /* The stack size of a worker, in bytes. The default is the default of the system, but at least
     * 1 MiB. The library ignores a size that the system does not accept. */
    size_t stack_bytes;
    /* The beginning of the thread names, of which the library uses the first 8 bytes. The default
     * is "fj", for the common pool "common". */
    const char *name;
    /* The last argument of every callback. */
    void *arg;
    /* The library calls `allow_thread` before it starts a worker. If the callback returns 0, the
     * library does not start the worker. The library calls `allow_thread` again while a task is
     * queued and a worker is missing. */
    int (*allow_thread)(fj_pool *pool, void *arg);
    /* A new worker calls `on_start` before its first task. If the callback returns a code other
     * than 0, the worker passes the code to on_error, calls on_stop and ends. If tasks are queued,
     * another worker starts. After three such failures in a row, the pool starts no worker for
     * 0.1 s, and then only when a later call needs one. */
    int (*on_start)(fj_pool *pool, int worker, void *arg);
    /* A worker calls `on_stop` after its last task, once for each call of `on_start`. */
    void (*on_stop)(fj_pool *pool, int worker, void *arg);
    /* The thread that ran an action calls `on_error` if the action returned a code other than 0. A
     * worker calls `on_error` if its on_start returned a code other than 0. */
    void (*on_error)(fj_pool *pool, int code, void *arg);
    /* A worker calls `allow_saturation` before it blocks, if the pool has max_threads threads, no
     * worker is idle, and fewer than min_runnable workers would stay active. If the callback
     * returns a value other than 0, the worker blocks without a replacement. If it returns 0,
     * fj_managed_block() and fj_block_begin() return FJ_ESATURATED; other waits cannot fail and
     * block without a replacement. Without a callback the worker blocks. */
    int (*allow_saturation)(fj_pool *pool, void *arg);
    /* The library passes its messages to `log`, because it prints nothing itself. `level` is
     * FJ_LOG_ERROR or FJ_LOG_INFO. Any thread may call `log`. The callback must not call the
     * library. */
    void (*log)(int level, const char *text, void *arg);
    /* A worker calls `on_reset` between two stolen or submitted tasks. It normally first runs the
     * tasks that the first one has left in its queue. It does not if it takes a submitted task in
     * between, or if other workers are to take the rest. Use `on_reset` to clean up what tasks
     * leave behind in the thread. */
    void (*on_reset)(fj_pool *pool, int worker, void *arg);
    /* Starts the thread of a worker in place of the library. The callback must create a joinable
     * thread that calls entry(entry_arg) and returns what entry() returned. The callback returns 0,
     * or another value if it started no thread. The library blocks all signals during the callback,
     * and the new thread inherits that signal mask. The library also sets the name and the CPUs of
     * the thread. `stack_bytes` has no effect. */
    int (*create_thread)(fj_pool *pool, void *(*entry)(void *), void *entry_arg, void *arg);
    /* The CPUs that the workers run on: a cpu_set_t of `cpus_bytes` bytes, at most 65536. The
     * library copies the set. By default a worker inherits the CPUs of the thread that starts it.
     * The option is ignored on systems without CPU affinity. */
    const void *cpus;
    size_t cpus_bytes;
    /* A signal that makes a blocking system call in a worker return EINTR; 0 means no signal. The
     * program must have installed a handler for the signal, without SA_RESTART. The library sends
     * the signal to:
     *   - the worker that runs the body of a future, when the future is cancelled with `interrupt`
     *     or exceeds the limit of fj_submit_with_timeout();
     *   - a worker in fj_block_read(), fj_block_write() or fj_block_poll(), when the token of its
     *     task, or a token above that token, is cancelled, or when the future that its task belongs
     *     to is cancelled with `interrupt`;
     *   - all workers of the pool, in fj_pool_shutdown_now().
     * The library never sends the signal to a helping caller. */
    int interrupt_signal;
    /* The functions by which the pool gets and returns its memory, in place of malloc() and free().
     * Either both are NULL, the default, or none is. `allocate` returns `bytes` bytes at a multiple of
     * `align`, a power of two that is at most 128, or NULL if there is no memory. A block at another
     * address counts as no memory. The memory need not be 0. `release` gets each block back once, with
     * the same size.
     *
     * The functions serve everything that the library allocates for the pool: its records and those of
     * its workers, queues and timers, futures that are submitted to it by fj_submit_call() and the like,
     * scratch memory of the algorithms, values of workers (forkjoin/worker_local.h), lanes and groups.
     * They do not serve the stacks of threads and what the system allocates to start a thread, nor the
     * cells and slots of the queues, which are parts of reserved address ranges. Nor do they serve
     * objects that belong to no pool: graphs, inboxes, functions of fj_future_on_done(), and futures of
     * fj_future_new(), fj_future_new_call() and forkjoin/then.h.
     *
     * Any thread may call them, also while it holds a lock of the library. They must not call the
     * library. `release` may be called after fj_pool_destroy(), for a future to which the program still
     * has a reference. fj_pool_memory() says how much memory is in use. */
    void *(*allocate)(size_t bytes, size_t align, void *arg);
    void (*release)(void *p, size_t bytes, void *arg);
    /* Must be 0. */
    uint64_t reserved[6];
} fj_pool_options;

/*
 * Creates a pool. If `o` is NULL, all options have their defaults. The call starts no thread; the
 * pool starts workers when it gets tasks.
 *
 *   owns     the caller owns the pool and releases it by fj_pool_destroy(). The library copies *o
 *            and what `name` and `cpus` point to.
 *   returns  FJ_OK, and the pool in *pool.
 *            FJ_EINVAL if `pool` is NULL; if `parallelism`, `max_threads`, `min_runnable`,
 *            `keep_alive_ns` or `interrupt_signal` is negative; if `spin_ns` is below -1; if
 *            `parallelism` or `min_runnable` is above FJ_MAX_WORKERS; if `max_threads` is not 0 and
 *            below `parallelism` (given or default) or `min_runnable`; if `flags` has an unknown
 *            bit; if `cpus_bytes` is above 65536; if only one of `allocate` and `release` is NULL; if a
 *            reserved member is not 0.
 *            FJ_ENOMEM if there is no memory.
 *   Java     new ForkJoinPool(...).
 */
FJ_API FJ_NODISCARD int fj_pool_create(fj_pool **pool, const fj_pool_options *o);

/*
 * Starts an orderly end of the pool and returns at once. After the call the pool rejects work from
 * outside. Queued tasks, and the tasks that running tasks fork, still run. Delayed tasks that run
 * once still run, unless fj_pool_cancel_delayed_on_shutdown() was called. Periodic tasks are
 * cancelled. The pool terminates when no work is left. A second call has no effect.
 *
 *   returns  FJ_OK; FJ_EINVAL if `pool` is NULL; FJ_ENOTSUP for the common pool, which only
 *            fj_common_shutdown() ends.
 *   Java     shutdown().
 */
FJ_API int fj_pool_shutdown(fj_pool *pool);

/*
 * Stops the pool: does the same as fj_pool_shutdown(), and cancels every task that is queued and
 * not begun, and every delayed task. The joiner of a cancelled task gets FJ_ECANCELED. A cancelled
 * action is not run. A typed task cannot be cancelled: its joiner runs it. Running tasks are not
 * stopped, but fj_is_stopping() returns 1 in them.
 *
 *   returns  as fj_pool_shutdown().
 *   Java     shutdownNow().
 */
FJ_API int fj_pool_shutdown_now(fj_pool *pool);

/*
 * Waits until the pool has terminated: no worker is left that uses the pool.
 *
 *   from     any thread except the workers and the timer threads of this pool.
 *   returns  FJ_OK.
 *            FJ_ETIMEDOUT if the pool has not terminated after timeout_ns. If timeout_ns is 0 or
 *            less, the call checks once.
 *            FJ_ETIMEDOUT for the common pool (also NULL), which does not terminate by itself. The
 *            call first waits until the common pool is quiescent or timeout_ns has passed.
 *            FJ_EDEADLK from a worker or a timer thread of the pool.
 *            FJ_ENOMEM if `pool` is NULL and there is no memory to create the common pool.
 *   Java     awaitTermination().
 */
FJ_API FJ_NODISCARD int fj_pool_await_termination(fj_pool *pool, int64_t timeout_ns);

/*
 * Shuts the pool down and waits, without a time limit, until it has terminated.
 *
 *   from     any thread except the workers and the timer threads of this pool.
 *   returns  FJ_OK; FJ_EINVAL if `pool` is NULL; FJ_ENOTSUP for the common pool; FJ_EDEADLK from a
 *            worker or a timer thread of the pool. On an error the pool is unchanged.
 *   Java     close().
 */
FJ_API int fj_pool_close(fj_pool *pool);

/*
 * Closes the pool as fj_pool_close() does, joins its threads and frees its memory.
 *
 *   from     any thread except the workers and the timer threads of this pool.
 *   returns  FJ_OK, also if `pool` is NULL; FJ_ENOTSUP for the common pool; FJ_EDEADLK from a
 *            worker or a timer thread of the pool. On an error the pool is unchanged.
 */
FJ_API int fj_pool_destroy(fj_pool *pool);

/* Returns 1 from the first shutdown of the pool on, otherwise 0. NULL: the common pool. */
FJ_API int fj_pool_is_shutdown(const fj_pool *pool);

/* Returns 1 while the pool is stopping and has not yet terminated, otherwise 0. NULL: the common
 * pool. */
FJ_API int fj_pool_is_terminating(const fj_pool *pool);

/* Returns 1 after the pool has terminated, otherwise 0. NULL: the common pool. */
FJ_API int fj_pool_is_terminated(const fj_pool *pool);

/* ---- Submitting from outside ------------------------------------------------------------ */

/*
 * The functions of this section give work to `pool` (NULL: the common pool). For all of them:
 *
 *   order    everything that the caller did before the call happens before the body runs. The rule
 *            `order` in the head of this file says in which order tasks run.
 *   returns  FJ_OK.
 *            FJ_EINVAL if the task or the action is NULL, or if the task has no body. FJ_EREJECTED
 *            if the pool is shut down. The workers of a pool may submit to it even then, except by
 *            fj_submit_external(). The common pool rejects work only from its own callbacks while
 *            fj_common_shutdown() ends it.
 *            FJ_ENOMEM if there is no memory to queue the task or to create the common pool.
 *            On an error the task is not queued and still belongs to the caller.
 */

/*
 * Queues an action: a worker of the pool calls action(arg) later. No thread waits for an action. If
 * the action returns a code other than 0, the worker passes the code to `on_error`. If the pool has
 * no workers, because it is the common pool with a parallelism of 0, the caller runs the action
 * before the call returns.
 *
 *   returns  see the head of this section.
 *   Java     execute(Runnable).
 */
FJ_API FJ_NODISCARD int fj_execute(fj_pool *pool, fj_action_fn *action, void *arg);

/*
 * Queues `t` in the pool. If the caller is a worker of the pool, `t` goes into the queue of that
 * worker. Otherwise `t` goes into a submission queue.
 *
 *   owns     the library owns `t` until fj_join(t) has returned. The thread that submitted the task
 *            must call fj_join(t), or take the task back by fj_unfork(t), before the pool is
 *            destroyed.
 *   returns  see the head of this section.
 *   Java     submit(ForkJoinTask), execute(ForkJoinTask).
 */
FJ_API FJ_NODISCARD int fj_submit(fj_pool *pool, fj_task *t);

/*
 * Does the same as fj_submit(), but always puts `t` into a submission queue, behind the earlier
 * submissions in that queue (see the rule `order` in the head of this file).
 *
 *   owns     as fj_submit().
 *   returns  see the head of this section.
 *   Java     externalSubmit().
 */
FJ_API FJ_NODISCARD int fj_submit_external(fj_pool *pool, fj_task *t);

/*
 * Does the same as fj_submit(), but wakes no worker. A worker that is awake finds the task when it
 * next searches for work. A join of the task, a wait for quiescence and a shutdown of the pool wake
 * a worker for it.
 *
 *   owns     as fj_submit().
 *   returns  see the head of this section.
 *   Java     lazySubmit().
 */
FJ_API FJ_NODISCARD int fj_submit_lazy(fj_pool *pool, fj_task *t);

/* What a thread outside every pool does while it waits in fj_invoke_mode(). */
enum fj_caller {
    FJ_CALLER_DEFAULT = 0,   /* as in fj_invoke() */
    FJ_CALLER_HELPS = 0x100, /* the thread becomes a helping caller and runs the task itself */
    FJ_CALLER_BLOCKS = 0x200 /* the thread sleeps, and a worker runs the task */
};

/*
 * Runs `t` in the pool and waits for it.
 *
 *   from     A worker of the pool runs the task itself, at once. A worker of another pool sleeps
 *            until the task is done, and its own pool lets another worker run in its place. A
 *            thread outside every pool becomes a helping caller on the common pool and on a pool
 *            with FJ_POOL_CALLER_HELPS; it then runs only `t` and the tasks that `t` or its
 *            descendants have forked or submitted. On other pools a thread outside every pool
 *            sleeps until the task is done. If the common pool has no workers, every caller runs
 *            the task itself.
 *   order    everything that the task did happens before the return.
 *   owns     the caller, on return.
 *   returns  what the body returned; FJ_ECANCELED if the pool was stopped before the body began; or
 *            an error from the head of this section.
 *   Java     invoke().
 */
FJ_API FJ_NODISCARD int fj_invoke(fj_pool *pool, fj_task *t);

/*
 * Does the same as fj_invoke(), but `caller` selects what a thread outside every pool does.
 * `caller` has no effect if the calling thread is a worker, or if the pool is the common pool and
 * has no workers.
 *
 *   order, owns  as fj_invoke().
 *   returns  as fj_invoke(); FJ_EINVAL also if `caller` is not a value of enum fj_caller.
 *   Java     invoke().
 */
FJ_API FJ_NODISCARD int fj_invoke_mode(fj_pool *pool, fj_task *t, enum fj_caller caller);

/* ---- Common pool and sizes --------------------------------------------------------------- */

/*
 * Returns the common pool, which the library creates on first use. Its default parallelism is one
 * less than fj_available_parallelism(), because waiting threads run tasks of the common pool too,
 * but at least 1. Only fj_common_shutdown() ends the common pool. If the program does not call
 * fj_common_shutdown(), the threads of the common pool end with the process.
 *
 * The library reads these environment variables when it creates the common pool, except in
 * privileged processes (setuid). The library ignores a value that is not a number or is out of
 * range.
 *   FORKJOIN_PARALLELISM    0 to 32767. 0 means that the pool has no workers and callers run
 *                           their own tasks. A timer or a wait with a time limit raises the
 *                           parallelism from 0 to 1; it does not become 0 again.
 *   FORKJOIN_MAX_SPARES     0 to 32767: how many threads beyond the parallelism may replace blocked
 *                           workers. The default is 256. If the variable is set, max_threads is the
 *                           initial parallelism plus this number, at most FJ_MAX_WORKERS.
 *   FORKJOIN_KEEP_ALIVE_MS  1 to 1000000000: `keep_alive_ns`, in ms.
 *   FORKJOIN_SPIN_US        0 to 1000000: `spin_ns`, in us. 0 means that workers do not search.
 *   FORKJOIN_FENCES         "symmetric": no pool uses membarrier(). The library reads this variable
 *                           once, for all pools, when it creates the first pool of the process.
 *
 *   returns  the pool, or NULL if there is no memory to create it.
 *   Java     commonPool().
 */
FJ_API fj_pool *fj_common_pool(void);

/*
 * Sets the options of the common pool, before it is created. The environment variables take
 * precedence. If `parallelism` is 0, the pool gets its default parallelism. A later call replaces
 * the options of an earlier one.
 *
 *   owns     the library copies *o and what `name` and `cpus` point to.
 *   returns  FJ_OK; FJ_EBUSY if the common pool exists already; FJ_EINVAL if `o` is NULL, for the
 *            options that fj_pool_create() refuses, and if `parallelism` is 0 and `max_threads` is
 *            below the default parallelism of the common pool; FJ_ENOMEM if there is no memory.
 *   Java     the system properties java.util.concurrent.ForkJoinPool.common.*.
 */
FJ_API FJ_NODISCARD int fj_common_configure(const fj_pool_options *o);

/*
 * Ends the common pool: waits until it is quiescent, stops and joins its threads, and frees its
 * memory. The next use of the common pool creates a new one. For the new pool the library reads the
 * environment again and forgets the options from fj_common_configure(). The program may then call
 * fj_common_configure() again.
 *
 * Code that contains the static library and is unloaded by dlclose() calls this function first.
 * Afterwards no thread, no memory and no handler of the library is left (docs/cookbook.md).
 *
 *   from     any thread except a worker, a helping caller, a timer thread or a callback of the
 *            common pool. If timeout_ns is FJ_FOREVER, a thread outside every pool runs tasks of
 *            the common pool while it waits.
 *   timers   The call waits for delayed tasks that run once, as fj_pool_shutdown() does. A periodic
 *            task is cancelled when the pool stops and ends with FJ_ECANCELED.
 *   threads  Other threads may use the common pool (NULL) during the call, and may also call
 *            fj_common_shutdown(). Each such call either uses the old pool before its end, or waits
 *            for the end and uses a new pool. As long as other threads keep the pool busy, it does
 *            not become quiescent. A callback that the common pool calls while it ends cannot
 *            submit to the common pool; the submission returns FJ_EREJECTED. Such callbacks are
 *            on_stop, and the callbacks that run because a periodic task is cancelled.
 *   pointers The program must not use the pointers that fj_common_pool() returned before.
 *   tasks    Everything that was submitted is done. Tasks, futures and completers stay valid, also
 *            futures whose body returned FJ_PENDING.
 *   returns  FJ_OK, also if there is no common pool.
 *            FJ_ETIMEDOUT if the pool was not quiescent after timeout_ns; the pool then continues
 *            to accept work. FJ_ETIMEDOUT also if another thread was still ending the pool after
 *            timeout_ns. If timeout_ns is 0 or less, the call checks once. The limit applies to the
 *            wait for quiescence; the wait for the threads and their on_stop has no limit.
 *            FJ_EDEADLK from a worker, a helping caller, a timer thread or a callback of the common
 *            pool.
 *   Java     none: commonPool() cannot be shut down.
 */
FJ_API FJ_NODISCARD int fj_common_shutdown(int64_t timeout_ns);

/*
 * Returns the parallelism of the common pool. If there is no common pool, the call creates one.
 *
 *   returns  the number of workers that the pool aims to keep active. 0 means that callers run all
 *            tasks themselves, or that there is no memory for the pool.
 *   Java     getCommonPoolParallelism().
 */
FJ_API int fj_common_parallelism(void);

/*
 * Returns how many CPUs this process may use. The number respects the online CPUs, the CPU affinity
 * and the cgroup quota. The number is at least 1 and at most FJ_MAX_WORKERS.
 *
 *   Java     Runtime.availableProcessors().
 */
FJ_API int fj_available_parallelism(void);

/* ---- Quiescence -------------------------------------------------------------------------- */

/*
 * Returns 1 if at some moment during the call no task of the pool was running or queued. Tasks that
 * themselves wait for quiescence, in fj_help_quiesce() or fj_pool_await_quiescence(), do not count
 * as running. A stopping pool is quiescent.
 *
 *   returns  1 or 0. If `pool` is NULL and there is no common pool, 1.
 *   Java     isQuiescent().
 */
FJ_API int fj_pool_is_quiescent(fj_pool *pool);

/*
 * Waits until the pool is quiescent.
 *
 *   from     any thread. If timeout_ns is FJ_FOREVER, a worker of the pool runs any tasks of the
 *            pool while it waits. A thread outside every pool does the same if the pool is the
 *            common pool or has FJ_POOL_CALLER_HELPS. If timeout_ns is less than FJ_FOREVER, the
 *            caller runs no tasks.
 *   returns  FJ_OK; FJ_ETIMEDOUT if the pool did not become quiescent within timeout_ns. If
 *            timeout_ns is 0 or less, the call checks once.
 *   Java     awaitQuiescence().
 */
FJ_API FJ_NODISCARD int fj_pool_await_quiescence(fj_pool *pool, int64_t timeout_ns);

/*
 * Runs tasks of the caller's pool until that pool is quiescent. In a thread outside a pool the
 * function runs tasks of the common pool. The call is the same as fj_pool_await_quiescence() with
 * FJ_FOREVER.
 *
 *   Java     ForkJoinTask.helpQuiesce().
 */
FJ_API void fj_help_quiesce(void);

/* ---- The calling thread ------------------------------------------------------------------- */

/*
 * Returns the pool that the calling thread works for, as a worker or as a helping caller.
 *
 *   returns  the pool; NULL in a thread outside a pool.
 *   Java     ForkJoinTask.getPool(), inForkJoinPool().
 */
FJ_API fj_pool *fj_current_pool(void);

/*
 * Returns the index of the calling worker in its pool. The index is less than
 * fj_pool_worker_limit(). While a thread runs a task, no other thread of the pool has the same
 * index.
 *
 *   returns  the index, 0 or more; -1 in a thread outside a pool.
 *   Java     ForkJoinWorkerThread.getPoolIndex().
 */
FJ_API int fj_current_worker(void);

/*
 * Returns a number that is greater than every index that fj_current_worker() has returned in `pool`
 * so far (NULL: the common pool). The number grows when more workers and helping callers are in the
 * pool at the same time than ever before. The number is at most FJ_MAX_WORKERS. The number is 0 if
 * there is no memory for the common pool.
 */
FJ_API int fj_pool_worker_limit(const fj_pool *pool);

/*
 * Returns 1 if the pool of the calling worker is stopping, so that a long task can return early.
 *
 *   returns  1 or 0; 0 in a thread outside a pool.
 */
FJ_API int fj_is_stopping(void);

/* Returns how many bytes of stack the calling thread has left, or SIZE_MAX if that is unknown. */
FJ_API size_t fj_stack_left(void);

/* ---- Monitoring --------------------------------------------------------------------------- */

/* The states of a pool. A pool never returns to an earlier state. */
enum fj_pool_state {
    FJ_POOL_STATE_RUNNING = 0,
    FJ_POOL_STATE_SHUTDOWN = 1,   /* the pool rejects work from outside */
    FJ_POOL_STATE_STOPPING = 2,   /* workers take no more tasks from the queues */
    FJ_POOL_STATE_TERMINATED = 3, /* the pool has no thread left */
};

/* The figures of a pool. The figures are estimates while the pool is busy and exact while it is
 * idle. */
typedef struct fj_stats {
    int parallelism;      /* workers that the pool aims to keep active */
    int threads;          /* workers that were started and have not ended */
    int active;           /* workers that search for tasks or run them and are not blocked */
    int running;          /* workers that are neither idle nor blocked */
    int idle;             /* workers that sleep, or are about to sleep, until there is work */
    int blocked;          /* workers that wait in a join or in another blocking call */
    int state;            /* a value of enum fj_pool_state */
    uint64_t steals;      /* tasks taken from another worker's queue or from a submission queue */
    uint64_t queued;      /* tasks in the queues of workers */
    uint64_t submitted;   /* tasks in the submission queues */
    uint64_t started;     /* workers that were ever started */
    uint64_t openings;    /* times that the queue of a worker was opened for thieves */
    uint64_t barriers;    /* heavy fences (membarrier) that thieves have issued */
    uint64_t parks;       /* times that a worker went to sleep */
    uint64_t reserved[8]; /* set to 0 by the library */
} fj_stats;

/*
 * Writes the figures of `pool` (NULL: the common pool) to *s.
 *
 *   returns  FJ_OK; FJ_EINVAL if `s` is NULL; FJ_ENOMEM if there is no memory for the common pool.
 */
FJ_API int fj_pool_stats(const fj_pool *pool, fj_stats *s);

/* The memory that a pool uses, in bytes. The figures are estimates while the pool is busy and exact while
 * it is idle. */
typedef struct fj_memory {
    uint64_t total;       /* the sum of the members from `cells` to `other` */
    uint64_t allocated;   /* the part of `total` that came from `allocate` of the options, or from
                           * malloc(). The rest is committed memory of reserved address ranges */
    uint64_t cells;       /* queues of workers: the cells that have memory */
    uint64_t submissions; /* submission queues: their records, and the slots that have memory */
    uint64_t workers;     /* records of workers and helping callers, and what belongs to them */
    uint64_t timers;      /* the record of the timers */
    uint64_t futures;     /* futures and timers that the library allocated and that still exist */
    uint64_t scratch;     /* scratch memory of algorithms that run */
    uint64_t other;       /* the record of the pool; values of workers (forkjoin/worker_local.h) */
    uint64_t reserved[7]; /* set to 0 by the library */
} fj_memory;

/*
 * Writes how much memory `pool` (NULL: the common pool) uses to *m. The figures do not include the stacks
 * of the threads, and address ranges that are reserved and have no memory. Memory that the library
 * keeps in static variables, such as the record of the common pool, does not count either.
 *
 *   returns  FJ_OK; FJ_EINVAL if `m` is NULL; FJ_ENOMEM if there is no memory for the common pool. If
 *            the common pool is just ending, all figures are 0.
 */
FJ_API int fj_pool_memory(const fj_pool *pool, fj_memory *m);

/*
 * Each of the following functions returns one figure of `pool` (NULL: the common pool). The figure
 * is 0 if there is no memory for the common pool.
 */

/* Returns the number of workers that the pool aims to keep active. Java: getParallelism(). */
FJ_API int fj_pool_parallelism(const fj_pool *pool);

/* Returns the number of workers that were started and have not ended. Java: getPoolSize(). */
FJ_API int fj_pool_thread_count(const fj_pool *pool);

/* Returns the number of workers that search for tasks or run them and are not blocked. Java:
 * getActiveThreadCount(). */
FJ_API int fj_pool_active_count(const fj_pool *pool);

/* Returns the number of workers that are awake and search for a task at this moment. Such a worker
 * steals a task within a microsecond; a sleeping one first has to be woken, which takes several. A
 * loop that is about to fork can thus find out whether a short task is worth a fork. The call costs
 * a few nanoseconds. */
FJ_API int fj_pool_searching_count(const fj_pool *pool);

/* Returns the number of workers that are neither idle nor blocked. Java:
 * getRunningThreadCount(). */
FJ_API int fj_pool_running_count(const fj_pool *pool);

/* Returns 1 if the pool was created with FJ_POOL_FIFO, otherwise 0. Java: getAsyncMode(). */
FJ_API int fj_pool_is_fifo(const fj_pool *pool);

/* Returns how many tasks workers have taken from another worker's queue or from a submission queue.
 * Java: getStealCount(). */
FJ_API uint64_t fj_pool_steal_count(const fj_pool *pool);

/* Returns the number of tasks in the queues of workers. Java: getQueuedTaskCount(). */
FJ_API uint64_t fj_pool_queued_task_count(const fj_pool *pool);

/* Returns the number of tasks in the submission queues. Java: getQueuedSubmissionCount(). */
FJ_API uint64_t fj_pool_queued_submission_count(const fj_pool *pool);

/* Returns 1 if the pool is not stopping and a task is in a submission queue, otherwise 0. Java:
 * hasQueuedSubmissions(). */
FJ_API int fj_pool_has_queued_submissions(const fj_pool *pool);

/*
 * Changes the parallelism of `pool` (NULL: the common pool) to n. If n is higher than before, more
 * workers start when there is work. If n is lower, surplus workers go to sleep after their current
 * task.
 *
 *   returns  the previous parallelism.
 *            FJ_EINVAL if n is less than 1 or above FJ_MAX_WORKERS, or above a max_threads that was
 *            set by the options, by fj_common_configure() or by FORKJOIN_MAX_SPARES.
 *            FJ_ENOTSUP for a common pool whose parallelism was set by FORKJOIN_PARALLELISM.
 *            FJ_ENOMEM if there is no memory for the common pool.
 *            FJ_EREJECTED in a callback of a common pool that fj_common_shutdown() ends.
 *            On an error the parallelism is unchanged.
 *   Java     setParallelism().
 */
FJ_API int fj_pool_set_parallelism(fj_pool *pool, int n);

/*
 * Writes the state of `pool` (NULL: the common pool) to `buf`, as one line of text without a
 * newline. Like snprintf(), it writes at most `cap` bytes, including the terminating 0.
 *
 *   returns  the length of the whole text, also if `cap` is too small or 0; 0 if `buf` is NULL and
 *            `cap` is not 0.
 *   Java     toString().
 */
FJ_API int fj_pool_describe(const fj_pool *pool, char *buf, size_t cap);

/*
 * Describes every worker and every queue of `pool` (NULL: the common pool). The function calls
 * line(text, arg) once for each line of the description. It takes no lock of the pool, so a
 * watchdog may call it while the pool hangs.
 */
FJ_API void fj_pool_dump(const fj_pool *pool, void (*line)(const char *text, void *arg), void *arg);

FJI_EXTERN_C_END

#include "forkjoin/inline.h"
#include "forkjoin/typed.h"

/* The headers are included in this order, because each header uses the ones before it. */
#include "forkjoin/future.h"

#include "forkjoin/callback.h"
#include "forkjoin/completer.h"
#include "forkjoin/listen.h"
#include "forkjoin/local.h"
#include "forkjoin/timer.h"

#endif /* FORKJOIN_H */
