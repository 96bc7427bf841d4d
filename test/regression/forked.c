/* SPDX-License-Identifier: MIT */
/*
 * forked.c - fork() at difficult moments and in difficult places, and systems without threads
 *
 * In the child process of fork() every pool exists, but none of its threads. Any thread may call
 * fork(), at any moment. In the child process a task that this thread had submitted is done or
 * cancelled, the queues are intact, and a worker or guest that called fork() is still a worker or
 * guest. If the system starts no threads, a thread that waits runs the queued tasks itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regression.h"

/* ---- Work ------------------------------------------------------------ */

struct fib {
    fj_task task;
    long n, result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t, a, b;

    if (f->n < 2) {
        f->result = f->n;
        return FJ_OK;
    }
    a.n = f->n - 1;
    b.n = f->n - 2;
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    int err = fib_run(&b.task);
    int joined = fj_join(&a.task);
    f->result = a.result + b.result;
    return err != FJ_OK ? err : joined;
}

#define FIB_N 15
#define FIB_RESULT 610

static void fib_by(fj_pool *p, enum fj_caller caller)
{
    struct fib f = {.n = FIB_N};

    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke_mode(p, &f.task, caller), FJ_OK);
    CHECK_EQ(f.result, FIB_RESULT);
}

/* Uses the main calls of a pool once each. */
static void use_pool(fj_pool *p)
{
    struct fib f = {.n = FIB_N};
    atomic_int ran = 0;

    fib_by(p, FJ_CALLER_BLOCKS);
    fib_by(p, FJ_CALLER_HELPS);
    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_submit(p, &f.task), FJ_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    CHECK_EQ(fj_join(&f.task), FJ_OK);
    CHECK_EQ(f.result, FIB_RESULT);
    UNTIL(atomic_load(&ran) == 20);
}

/* Keeps a pool busy until it stops. The pauses let its workers go to sleep. */
static int load_action(void *pool)
{
    struct fib f = {.n = FIB_N};

    fj_task_init(&f.task, fib_run);
    int code = fj_invoke_mode(pool, &f.task, FJ_CALLER_DEFAULT);
    if (fj_is_stopping()) return FJ_OK; /* tasks that it forked may have been cancelled */
    CHECK_EQ(code, FJ_OK);
    CHECK_EQ(f.result, FIB_RESULT);
    fjt_sleep_us(100);
    return fj_execute(pool, load_action, pool);
}

static void load_begin(fj_pool *p)
{
    for (int i = 0; i < 6; i++) CHECK_EQ(fj_execute(p, load_action, p), FJ_OK);
}

/* ---- Child processes ------------------------------------------------------------ */

/* Ends a child process without a leak report. The threads of the parent do not exist here, so a
 * leak check would report memory that they had just allocated and not yet stored anywhere. */
__attribute__((noreturn)) static void child_end(void)
{
    if (getenv("FJT_LEAKS_CHECKED") != NULL) execl("/bin/true", "true", (char *)NULL);
    if (fjt_sanitized()) _exit(0);
    exit(0);
}

static pid_t checked_fork(void)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void child_must_end_well(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    if (WIFSIGNALED(status))
        fjt_fail(__FILE__, __LINE__, "the child process was killed by signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* Threads of the test or of the test framework may allocate at the moment of the fork, and the
 * child process allocates as well. */
static void need_fork_with_threads(void)
{
    if (FJI_TSAN) fjt_skip("ThreadSanitizer does not support new threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator may stay locked after fork()");
}

/* ---- The end of the process ------------------------------------------------------------ */

/* In a child process that has not used the library: makes the common pool busy, then calls
 * `end`. */
static void end_while_busy(void (*end)(int), long rounds)
{
    uint64_t seed = fjt_seed();

    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator may stay locked after fork()");
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "3", 1), 0);
    for (long i = 0; i < rounds; i++) {
        int64_t moment = regression_below(&seed, 1000000);
        pid_t pid = checked_fork();
        if (pid == 0) {
            load_begin(NULL);
            regression_spin_ns(moment);
            end(0);
        }
        child_must_end_well(pid);
    }
}

FJ_TEST(quick_exit_while_the_common_pool_is_busy_ends_well, 60)
{
    end_while_busy(quick_exit, fjt_rounds(fjt_sanitized() ? 20 : 60));
}

FJ_TEST(end_without_handlers_while_the_common_pool_is_busy_ends_well, 60)
{
    end_while_busy(_exit, fjt_rounds(fjt_sanitized() ? 20 : 60));
}

static int exiting_action(void *arg)
{
    (void)arg;
    exit(0);
}

__attribute__((noreturn)) static void exit_by_a_worker(int status)
{
    CHECK_EQ(status, 0);
    CHECK_EQ(fj_execute(NULL, exiting_action, NULL), FJ_OK);
    for (;;) pause();
}

FJ_TEST(exit_by_a_worker_of_the_busy_common_pool_ends_well, 60)
{
    end_while_busy(exit_by_a_worker, fjt_rounds(fjt_sanitized() ? 20 : 60));
}

__attribute__((noreturn)) static void exit_with_a_pool_of_ones_own(int status)
{
    load_begin(fjt_pool(3, 0));
    exit(status);
}

FJ_TEST(exit_with_a_busy_pool_that_nobody_destroyed_ends_well, 60)
{
    end_while_busy(exit_with_a_pool_of_ones_own, fjt_rounds(fjt_sanitized() ? 20 : 60));
}

/* ---- fork() at any moment ------------------------------------------------------------ */

FJ_TEST(fork_a_hundred_times_under_load_each_child_uses_its_copies, 60)
{
    need_fork_with_threads();
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "3", 1), 0);
    fj_pool *p = fjt_pool(3, 0);

    load_begin(p);
    load_begin(NULL);
    for (long i = 0; i < fjt_rounds(100); i++) {
        pid_t pid = checked_fork();
        if (pid == 0) {
            use_pool(p);
            use_pool(NULL);
            CHECK_EQ(fj_pool_destroy(p), FJ_OK);
            child_end();
        }
        if (i % 8 == 0) use_pool(p); /* while the child process runs */
        child_must_end_well(pid);
    }
    use_pool(p);
    use_pool(NULL);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    fjt_destroy(p);
}

static int short_run(fj_task *t)
{
    ((struct fib *)t)->result = 7;
    return FJ_OK;
}

/* At whatever moment the fork() comes, the child process finds each task done or cancelled. Its
 * join never waits forever. */
FJ_TEST(fork_at_any_moment_leaves_the_child_no_task_that_never_ends, 60)
{
    need_fork_with_threads();
    uint64_t seed = fjt_seed();
    fj_pool *p = fjt_pool(3, 0);

    for (long round = 0; round < fjt_rounds(500); round++) {
        struct fib f[16];
        for (int i = 0; i < 16; i++) {
            f[i].result = 0;
            fj_task_init(&f[i].task, short_run);
            CHECK_EQ(fj_submit(p, &f[i].task), FJ_OK);
        }
        regression_spin_ns(regression_below(&seed, 20000));
        pid_t pid = checked_fork();
        for (int i = 16; i-- > 0;) {
            int code = fj_join(&f[i].task);
            if (pid != 0) CHECK_EQ(code, FJ_OK);
            CHECK(code == FJ_ECANCELED || (code == FJ_OK && f[i].result == 7));
        }
        if (pid == 0) child_end();
        child_must_end_well(pid);
    }
    fjt_destroy(p);
}

static int until_set(void *arg)
{
    UNTIL(atomic_load((atomic_int *)arg));
    return FJ_OK;
}

/* Each process forks the next one, `depth` times in all. A task that the first process has queued
 * is cancelled in the last one. */
static void lost_after(int depth)
{
    fj_pool *p = fjt_pool(1, 0);
    atomic_int over = 0;
    struct fib f = {.result = 0};

    CHECK_EQ(fj_execute(p, until_set, &over), FJ_OK);
    fj_task_init(&f.task, short_run);
    CHECK_EQ(fj_submit(p, &f.task), FJ_OK);
    for (int i = 0; i < depth; i++) {
        pid_t pid = checked_fork();
        if (pid == 0) continue;
        child_must_end_well(pid);
        if (i > 0) child_end();
        atomic_store(&over, 1);
        CHECK_EQ(fj_join(&f.task), FJ_OK);
        fjt_destroy(p);
        return;
    }
    CHECK_EQ(fj_join(&f.task), FJ_ECANCELED);
    child_end();
}

FJ_TEST(fork_by_child_after_child_leaves_the_last_no_task_that_never_ends, 60)
{
    need_fork_with_threads();
    lost_after(1);
    lost_after(31);
    lost_after(32); /* a generation number of five bits would wrap here */
    lost_after(64);
}

/* ---- fork() in difficult places ------------------------------------------------------ */

static struct {
    fj_pool *pool;
    atomic_bool over, later_ran;
    pid_t pid;
} theft;

struct late {
    fj_task task;
    atomic_bool began;
    int value;
};

static int late_run(fj_task *t)
{
    struct late *l = (struct late *)t;

    atomic_store(&l->began, true);
    regression_spin_ns(500000);
    l->value = 42;
    return 5;
}

/* Runs on a worker that the child process has started. It forks into a queue that the parent
 * process created. */
static int later_root(fj_task *t)
{
    struct late stolen[2] = {{.value = 0}, {.value = 0}};
    (void)t;

    for (int i = 0; i < 2; i++) {
        fj_task_init(&stolen[i].task, late_run);
        fj_fork(&stolen[i].task);
    }
    UNTIL(atomic_load(&stolen[0].began));
    CHECK_EQ(fj_join(&stolen[1].task), 5);
    CHECK_EQ(fj_join(&stolen[0].task), 5);
    CHECK_EQ(stolen[0].value + stolen[1].value, 84);
    atomic_store(&theft.later_ran, true);
    return FJ_OK;
}

/* Runs in the child process, on the worker that called fork(), after the stolen task has ended. */
static int after_the_theft(void *arg)
{
    static fj_task later[4];
    (void)arg;

    /* The two other workers run these one after the other. One of them is the thief. */
    for (int i = 0; i < 4; i++) {
        atomic_store(&theft.later_ran, false);
        fj_task_init(&later[i], later_root);
        CHECK_EQ(fj_submit_external(theft.pool, &later[i]), FJ_OK);
        UNTIL(atomic_load(&theft.later_ran));
        CHECK_EQ(fj_join(&later[i]), FJ_OK);
    }
    for (int i = 0; i < 20; i++) fib_by(theft.pool, FJ_CALLER_DEFAULT);
    child_end();
}

static int stolen_forking(fj_task *t)
{
    (void)t;
    theft.pid = checked_fork();
    if (theft.pid == 0) CHECK_EQ(fj_execute(theft.pool, after_the_theft, NULL), FJ_OK);
    atomic_store(&theft.over, true);
    return FJ_OK;
}

static int robbed_root(fj_task *t)
{
    fj_task stolen;
    (void)t;

    atomic_store(&theft.over, false);
    fj_task_init(&stolen, stolen_forking);
    fj_fork(&stolen);
    UNTIL(atomic_load(&theft.over)); /* another worker runs it */
    return fj_join(&stolen);
}

FJ_TEST(fork_in_a_stolen_task_child_goes_on_with_sound_queues, 60)
{
    need_fork_with_threads();
    theft.pool = fjt_pool(3, 0);

    for (long i = 0; i < fjt_rounds(40); i++) {
        fj_task root;
        fj_task_init(&root, robbed_root);
        CHECK_EQ(fj_invoke_mode(theft.pool, &root, FJ_CALLER_BLOCKS), FJ_OK);
        child_must_end_well(theft.pid);
    }
    fjt_destroy(theft.pool);
}

static int guest_forking(fj_task *t)
{
    (void)t;
    theft.pid = checked_fork();
    return FJ_OK;
}

static int index_run(fj_task *t)
{
    struct late *l = (struct late *)t;

    l->value = fj_current_worker();
    atomic_store(&l->began, true);
    return FJ_OK;
}

/* A worker of theft.pool, which runs a task of the common pool. The common pool has no workers. */
static int host_run(fj_task *t)
{
    int index = fj_current_worker();
    fj_task inner;
    (void)t;

    fj_task_init(&inner, guest_forking);
    CHECK_EQ(fj_invoke(NULL, &inner), FJ_OK);
    if (theft.pid != 0) return FJ_OK;
    CHECK(fj_current_pool() == theft.pool);
    CHECK_EQ(fj_current_worker(), index);
    for (int i = 0; i < 50; i++) { /* new workers of the child process must not get our index */
        struct late l = {.value = -1};
        fj_task_init(&l.task, index_run);
        CHECK_EQ(fj_submit_external(theft.pool, &l.task), FJ_OK);
        UNTIL(atomic_load(&l.began));
        CHECK_EQ(fj_join(&l.task), FJ_OK);
        CHECK(l.value != index);
    }
    for (int i = 0; i < 20; i++) fib_by(theft.pool, FJ_CALLER_DEFAULT);
    child_end();
}

FJ_TEST(fork_by_a_worker_that_is_a_guest_elsewhere_keeps_both_its_places_in_the_child, 60)
{
    need_fork_with_threads();
    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    theft.pool = fjt_pool(2, 0);
    fj_task root;

    fj_task_init(&root, host_run);
    CHECK_EQ(fj_invoke_mode(theft.pool, &root, FJ_CALLER_BLOCKS), FJ_OK);
    child_must_end_well(theft.pid);
    fjt_destroy(theft.pool);
}

/* ---- Unloading ------------------------------------------------------------ */

FJ_TEST(unloading_the_shared_library_leaves_its_workers_their_code, 30)
{
    const char *path = getenv("FJT_SHARED_LIBRARY");
    int (*execute)(fj_pool *, fj_action_fn *, void *);
    static atomic_int ran;

    if (path == NULL) fjt_skip("FJT_SHARED_LIBRARY does not name the shared library");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fjt_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
    *(void **)&execute = dlsym(library, "fj_execute");
    CHECK(execute != NULL);
    for (int i = 0; i < 100; i++) CHECK_EQ(execute(NULL, regression_count, &ran), FJ_OK);
    CHECK_EQ(dlclose(library), 0);
    UNTIL(atomic_load(&ran) == 100);
    fjt_sleep_us(50000); /* the workers go to sleep: their code must still be mapped */
}

/* ---- A system without threads ------------------------------------------------------------ */

static void refuse_threads(long count)
{
    long before = fji_fault_calls(FJI_FAULT_ALLOC);
    fj_pool *p = NULL;

    CHECK_EQ(fj_pool_create(&p, NULL), FJ_OK);
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    if (fji_fault_calls(FJI_FAULT_ALLOC) == before) fjt_skip("built without FJI_FAULTS");
    fji_fault_set(FJI_FAULT_THREAD, 1, count);
}

FJ_TEST(system_without_threads_invoke_runs_on_the_caller, 60)
{
    refuse_threads(LONG_MAX);
    fj_pool *p = fjt_pool(2, 0);

    fib_by(p, FJ_CALLER_BLOCKS);
    fib_by(p, FJ_CALLER_HELPS);
    fib_by(NULL, FJ_CALLER_BLOCKS);
    fib_by(NULL, FJ_CALLER_HELPS);
    CHECK_EQ(fj_pool_thread_count(p), 0);
    fjt_destroy(p);
}

FJ_TEST(system_without_threads_join_runs_what_was_submitted, 60)
{
    refuse_threads(LONG_MAX);
    fj_pool *p = fjt_pool(2, 0);
    struct fib f[10];

    for (int i = 0; i < 10; i++) {
        f[i].n = FIB_N;
        fj_task_init(&f[i].task, fib_run);
        CHECK_EQ(i % 2 ? fj_submit(p, &f[i].task) : fj_submit_lazy(p, &f[i].task), FJ_OK);
    }
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(fj_join(&f[i].task), FJ_OK);
        CHECK_EQ(f[i].result, FIB_RESULT);
    }
    /* A thread outside any pool forks into the common pool. */
    for (int i = 0; i < 10; i++) fj_fork(&f[i].task);
    for (int i = 0; i < 10; i++) CHECK_EQ(fj_join(&f[i].task), FJ_OK);
    fjt_destroy(p);
}

FJ_TEST(system_without_threads_close_runs_what_was_executed, 60)
{
    refuse_threads(LONG_MAX);
    fj_pool *p = fjt_pool(2, 0);
    atomic_int ran = 0;

    for (int i = 0; i < 1000; i++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    CHECK_EQ(fj_pool_close(p), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 1000);
    fjt_destroy(p);
}

FJ_TEST(system_without_threads_quiescence_is_reached, 60)
{
    refuse_threads(LONG_MAX);
    fj_pool *p = fjt_pool(2, 0);
    atomic_int ran = 0;

    for (int i = 0; i < 100; i++) CHECK_EQ(fj_execute(p, regression_count, &ran), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&ran), 100);
    fjt_destroy(p);
}

FJ_TEST(system_that_gives_threads_again_gives_the_pool_its_workers, 60)
{
    refuse_threads(LONG_MAX);
    fj_pool *p = fjt_pool(3, 0);

    fib_by(p, FJ_CALLER_BLOCKS);
    CHECK_EQ(fj_pool_thread_count(p), 0);
    fji_fault_set(FJI_FAULT_THREAD, 1, 0);
    regression_all_at_once(p, 3);
    CHECK_EQ(fj_pool_thread_count(p), 3);
    fjt_destroy(p);
}

/* The pool calls this before it starts a thread. */
static int refuse_every_second(fj_pool *p, void *arg)
{
    (void)p;
    fji_fault_set(FJI_FAULT_THREAD, 1, atomic_fetch_add((atomic_int *)arg, 1) % 2);
    return 1;
}

FJ_TEST(system_that_refuses_every_second_thread_has_working_pools, 60)
{
    refuse_threads(0);
    for (long round = 0; round < fjt_rounds(30); round++) {
        atomic_int asked = (int)(round % 2);
        fj_pool_options o = {0};

        o.parallelism = 4;
        o.allow_thread = refuse_every_second;
        o.arg = &asked;
        fj_pool *p = fjt_pool_with(&o);
        use_pool(p);
        use_pool(p);
        CHECK_EQ(fj_pool_close(p), FJ_OK);
        fjt_destroy(p);
    }
}
