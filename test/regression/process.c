/* SPDX-License-Identifier: MIT */
/*
 * process.c - the pool and its process: CPUs, environment, exit, fork, signals
 *
 * The test framework runs each test in its own process, so a test may set the environment, the
 * affinity or a filter of system calls before the first use of the library. If a test forks, a
 * failure in its child process fails the test, and the child process ends with the test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "regression.h"

/* ---- Something to compute --------------------------------------------------------------- */

struct fib {
    fj_task task;
    int n;
    long result;
};

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    struct fib a = {.n = f->n - 1}, b = {.n = f->n - 2};

    if (f->n < 2) {
        f->result = f->n;
        return FJ_OK;
    }
    fj_task_init(&a.task, fib_run);
    fj_task_init(&b.task, fib_run);
    fj_fork(&a.task);
    (void)fib_run(&b.task);
    int code = fj_join(&a.task);
    f->result = a.result + b.result;
    return code;
}

static void check_fib(fj_pool *p, int n, long result)
{
    struct fib f = {.n = n};

    fj_task_init(&f.task, fib_run);
    CHECK_EQ(fj_invoke(p, &f.task), FJ_OK);
    CHECK_EQ(f.result, result);
}

FJ_TASK(long, typed_fib, int, n)
{
    if (n < 2) return n;
    typed_fib_task a;
    typed_fib_fork(FJ, &a, n - 1);
    long y = typed_fib_call(FJ, n - 2);
    return typed_fib_join(FJ, &a) + y;
}

static void check_typed_fib(fj_pool *p, int n, long result)
{
    long r = -1;

    CHECK_EQ(typed_fib_invoke(p, &r, n), FJ_OK);
    CHECK_EQ(r, result);
}

/* ---- Child processes -------------------------------------------------------------------- */

static int in_child;

/* The child processes of these tests start threads and allocate. A thread of the parent, at least
 * that of the test framework, may be allocating at the moment of the fork. */
static void need_threads_after_fork(void)
{
    if (FJI_TSAN) fjt_skip("ThreadSanitizer does not support new threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator may stay locked after fork()");
}

/* In the child process: the kernel kills it when the test ends. */
static void child_begin(void)
{
    in_child = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* LeakSanitizer would look for the threads of the parent when a child process exits. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return in_child;
}

static void await_child(pid_t pid)
{
    int status = -1;

    CHECK(pid > 0);
    while (waitpid(pid, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    if (WIFSIGNALED(status))
        fjt_fail(__FILE__, __LINE__, "the child process was killed by signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- No workers at all ------------------------------------------------------------------ */

struct forks_outside {
    fj_task task;
    int ran;
};

static int note_ran(fj_task *t)
{
    ((struct forks_outside *)t)->ran++;
    return 3;
}

/* Uses every call that must work in a common pool without workers. */
static void use_common_alone(bool actions)
{
    struct forks_outside t[6] = {{.ran = 0}};
    fj_task *list[3] = {&t[3].task, &t[4].task, &t[5].task};
    atomic_int ran = 0;

    check_fib(NULL, 12, 144);
    check_typed_fib(NULL, 12, 144);
    for (int i = 0; i < 6; i++) fj_task_init(&t[i].task, note_ran);
    fj_fork(&t[0].task);
    CHECK_EQ(fj_submit(NULL, &t[1].task), FJ_OK);
    CHECK_EQ(fj_submit_lazy(NULL, &t[2].task), FJ_OK);
    CHECK_EQ(fj_join(&t[0].task), 3);
    CHECK_EQ(fj_join(&t[2].task), 3);
    CHECK_EQ(fj_join(&t[1].task), 3);
    CHECK_EQ(fj_invoke_all(list, 3), 3);
    for (int i = 0; i < 6; i++) CHECK_EQ(t[i].ran, 1);
    for (int i = 0; actions && i < 5; i++)
        CHECK_EQ(fj_execute(NULL, regression_count, &ran), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(NULL, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&ran), actions ? 5 : 0);
    fj_help_quiesce();
}

static void *use_common_in_a_thread(void *arg)
{
    for (long i = fjt_rounds(200); i > 0; i--) use_common_alone(arg != NULL);
    return NULL;
}

static void use_common_by_four(void)
{
    static int yes;
    pthread_t t[4];

    for (int i = 0; i < 4; i++) t[i] = regression_thread(use_common_in_a_thread, &yes);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

FJ_TEST(a_common_pool_without_workers_leaves_the_work_to_its_callers, 30)
{
    setenv("FORKJOIN_PARALLELISM", "0", 1);
    CHECK_EQ(fj_common_parallelism(), 0);
    use_common_alone(true);
    use_common_by_four();
    CHECK_EQ(regression_started(NULL), 0);
    CHECK_EQ(fj_pool_await_termination(NULL, 1000), FJ_ETIMEDOUT);
}

FJ_TEST(a_common_pool_whose_threads_fail_leaves_the_work_to_its_callers, 60)
{
    fji_fault_set(FJI_FAULT_THREAD, 1, 1000000000);
    CHECK(fj_common_parallelism() > 0);
    use_common_alone(true);
    if (fji_fault_calls(FJI_FAULT_THREAD) == 0) fjt_skip("built without faults");
    use_common_by_four();
    CHECK_EQ(regression_started(NULL), 0);
}

/* ---- How many workers ------------------------------------------------------------------- */

static void restrict_to(int n)
{
    cpu_set_t all, few;
    int got = 0;

    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&few);
    for (size_t i = 0; i < CPU_SETSIZE && got < n; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        CPU_SET(i, &few);
        got++;
    }
    CHECK_EQ(sched_setaffinity(0, sizeof few, &few), 0);
}

FJ_TEST(on_one_cpu_the_common_pool_has_one_worker, 30)
{
    unsetenv("FORKJOIN_PARALLELISM");
    restrict_to(1);
    if (fj_available_parallelism() != 1)
        fjt_skip("the number of CPUs does not follow the affinity");
    CHECK_EQ(fj_common_parallelism(), 1);
    fj_pool *p = fjt_pool(0, 0);
    CHECK_EQ(fj_pool_parallelism(p), 1);
    check_fib(NULL, 15, 610);
    check_fib(p, 15, 610);
    fjt_destroy(p);
}

FJ_TEST(the_common_pool_has_one_worker_less_than_there_are_cpus, 30)
{
    unsetenv("FORKJOIN_PARALLELISM");
    int cpus = fj_available_parallelism();

    CHECK(cpus >= 1);
    CHECK_EQ(fj_common_parallelism(), cpus > 1 ? cpus - 1 : 1);
    fj_pool *p = fjt_pool(0, 0);
    CHECK_EQ(fj_pool_parallelism(p), cpus);
    fjt_destroy(p);
}

FJ_TEST(the_environment_sets_the_common_pool, 30)
{
    setenv("FORKJOIN_PARALLELISM", "3", 1);
    setenv("FORKJOIN_KEEP_ALIVE_MS", "20", 1);
    setenv("FORKJOIN_MAX_SPARES", "0", 1);
    CHECK_EQ(fj_common_parallelism(), 3);
    regression_all_at_once(NULL, 3);
    UNTIL(fj_pool_thread_count(NULL) == 0);
    CHECK_EQ(fj_pool_set_parallelism(NULL, 2), FJ_ENOTSUP);
    check_fib(NULL, 15, 610);
}

FJ_TEST(nonsense_in_the_environment_is_ignored, 30)
{
    setenv("FORKJOIN_PARALLELISM", "-1", 1);
    setenv("FORKJOIN_KEEP_ALIVE_MS", "99999999999999999999", 1);
    setenv("FORKJOIN_MAX_SPARES", "many", 1);
    setenv("FORKJOIN_SPIN_US", "", 1);
    setenv("FORKJOIN_FENCES", "none", 1);
    int cpus = fj_available_parallelism();
    CHECK_EQ(fj_common_parallelism(), cpus > 1 ? cpus - 1 : 1);
    check_fib(NULL, 15, 610);
}

/* ---- exit() ----------------------------------------------------------------------------- */

static int endless_fibs(void *arg)
{
    for (;;) {
        struct fib f = {.n = 10};
        (void)fib_run(&f.task);
        if (arg != NULL && *(atomic_int *)arg) return FJ_OK;
    }
}

static void *submit_for_ever(void *arg)
{
    (void)arg;
    for (;;) {
        struct fib f = {.n = 8};
        fj_task_init(&f.task, fib_run);
        CHECK_EQ(fj_submit(NULL, &f.task), FJ_OK);
        CHECK_EQ(fj_join(&f.task), FJ_OK);
    }
    return NULL;
}

FJ_TEST(a_process_may_exit_while_the_common_pool_is_busy, 120)
{
    uint64_t seed = fjt_seed();

    need_threads_after_fork();
    for (long i = fjt_rounds(300); i > 0; i--) {
        int wait_us = regression_below(&seed, 600);
        pid_t pid = fork();
        if (pid == 0) {
            child_begin();
            setenv("FORKJOIN_PARALLELISM", "4", 1);
            for (int k = 0; k < 3; k++) CHECK_EQ(fj_execute(NULL, endless_fibs, NULL), FJ_OK);
            pthread_t t = regression_thread(submit_for_ever, NULL);
            pthread_detach(t);
            fjt_spin_us(wait_us);
            exit(0);
        }
        await_child(pid);
    }
}

/* ---- fork() ----------------------------------------------------------------------------- */

struct load {
    fj_pool *pool;
    atomic_bool over;
};

static void *load_main(void *arg)
{
    struct load *l = arg;

    while (!atomic_load(&l->over)) {
        check_fib(l->pool, 12, 144);
        check_typed_fib(l->pool, 12, 144);
        check_fib(NULL, 8, 21);
    }
    return NULL;
}

/* What must work in the child process, whatever the parent was doing at the fork. */
static void use_in_the_child(fj_pool *p)
{
    child_begin();
    check_fib(p, 14, 377);
    check_typed_fib(p, 14, 377);
    check_fib(NULL, 14, 377);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    regression_all_at_once(p, fj_pool_parallelism(p));
    regression_rest(p);
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    p = NULL;
    CHECK_EQ(fj_pool_create(&p, NULL), FJ_OK);
    check_fib(p, 14, 377);
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
}

static void fork_under_load(unsigned flags)
{
    need_threads_after_fork();
    fj_pool *p = fjt_pool(3, flags);
    struct load load = {.pool = p};
    pthread_t t[2];
    uint64_t seed = fjt_seed();

    for (int i = 0; i < 2; i++) t[i] = regression_thread(load_main, &load);
    for (long i = fjt_rounds(200); i > 0; i--) {
        fjt_sleep_us(regression_below(&seed, 500));
        pid_t pid = fork();
        if (pid == 0) {
            use_in_the_child(p);
            _exit(0);
        }
        await_child(pid);
    }
    atomic_store(&load.over, true);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
}

FJ_TEST(a_child_of_fork_has_pools_that_work, 120)
{
    fork_under_load(0);
}

FJ_TEST(a_child_of_fork_has_helping_pools_that_work, 120)
{
    fork_under_load(FJ_POOL_CALLER_HELPS | FJ_POOL_FIFO);
}

static int until_set(void *arg)
{
    UNTIL(atomic_load((atomic_int *)arg));
    return FJ_OK;
}

/* The parent has queued these tasks and runs them, so the child process must not run them as
 * well. */
FJ_TEST(what_is_queued_at_a_fork_is_cancelled_in_the_child, 60)
{
    fj_pool *p = fjt_pool(1, 0);

    need_threads_after_fork();
    for (long i = fjt_rounds(50); i > 0; i--) {
        struct forks_outside t[100];
        atomic_int open = 0;
        CHECK_EQ(fj_execute(p, until_set, &open), FJ_OK);
        UNTIL(!fj_pool_has_queued_submissions(p));
        for (int k = 0; k < 100; k++) {
            t[k].ran = 0;
            fj_task_init(&t[k].task, note_ran);
            CHECK_EQ(fj_submit(p, &t[k].task), FJ_OK);
        }
        pid_t pid = fork();
        if (pid == 0) {
            child_begin();
            for (int k = 0; k < 100; k++) {
                CHECK_EQ(fj_join(&t[k].task), FJ_ECANCELED);
                CHECK_EQ(t[k].ran, 0);
                CHECK_EQ(fj_submit(p, &t[k].task), FJ_OK);
            }
            for (int k = 0; k < 100; k++) CHECK_EQ(fj_join(&t[k].task), 3);
            CHECK_EQ(fj_pool_destroy(p), FJ_OK);
            _exit(0);
        }
        await_child(pid);
        atomic_store(&open, 1);
        for (int k = 0; k < 100; k++) CHECK_EQ(fj_join(&t[k].task), 3);
        for (int k = 0; k < 100; k++) CHECK_EQ(t[k].ran, 1);
    }
    fjt_destroy(p);
}

/* ---- fork() in a worker ----------------------------------------------------------------- */

#define OFFERED 5

struct held {
    fj_task task;
    atomic_int began, *released;
};

static int held_run(fj_task *t)
{
    struct held *h = (struct held *)t;

    atomic_fetch_add(&h->began, 1);
    UNTIL(atomic_load(h->released));
    return 9;
}

struct forker {
    fj_task task;
    int stolen; /* number of its tasks that other workers have begun when it calls fork() */
};

static void forker_child(struct held *h, int stolen)
{
    int cancelled = 0;

    child_begin();
    for (int i = OFFERED; i-- > 0;) {
        int code = fj_join(&h[i].task);
        CHECK(code == FJ_ECANCELED || code == 9);
        if (code == FJ_ECANCELED)
            cancelled++;
        else
            CHECK_EQ(atomic_load(&h[i].began), 1);
    }
    CHECK_EQ(cancelled, stolen);
    struct fib f = {.n = 14};
    (void)fib_run(&f.task);
    CHECK_EQ(f.result, 377);
    check_typed_fib(fj_current_pool(), 12, 144);
    _exit(0);
}

/* Other workers run some of its tasks when it calls fork(). Those tasks are cancelled in the child
 * process. */
static int forker_run(fj_task *t)
{
    int stolen = ((struct forker *)t)->stolen;
    struct held h[OFFERED];
    atomic_int released = 0;

    for (int i = 0; i < OFFERED; i++) {
        h[i] = (struct held){.released = &released};
        fj_task_init(&h[i].task, held_run);
        fj_fork(&h[i].task);
    }
    for (int i = 0; i < stolen; i++) UNTIL(atomic_load(&h[i].began));
    pid_t pid = fork();
    atomic_store(&released, 1);
    if (pid == 0) forker_child(h, stolen);
    await_child(pid);
    for (int i = OFFERED; i-- > 0;) CHECK_EQ(fj_join(&h[i].task), 9);
    return FJ_OK;
}

FJ_TEST(a_worker_may_fork_the_process, 60)
{
    need_threads_after_fork();
    for (int stolen = 0; stolen < 4; stolen++) {
        for (long i = fjt_rounds(30); i > 0; i--) {
            fj_pool *p = fjt_pool(stolen + 1, 0);
            struct forker f = {.stolen = stolen};
            fj_task_init(&f.task, forker_run);
            CHECK_EQ(fj_invoke(p, &f.task), FJ_OK);
            fjt_destroy(p);
        }
    }
}

/* ---- fork() while the common pool is created -------------------------------------------- */

static void *make_common(void *arg)
{
    (void)arg;
    CHECK(fj_common_pool() != NULL);
    return NULL;
}

/* A process in which one thread creates the common pool while another calls fork(). */
static void fork_beside_a_maker(int wait_ns)
{
    pthread_t t = regression_thread(make_common, NULL);

    regression_spin_ns(wait_ns);
    pid_t pid = fork();
    if (pid == 0) {
        child_begin();
        check_fib(NULL, 8, 21);
        _exit(0);
    }
    await_child(pid);
    pthread_join(t, NULL);
}

FJ_TEST(a_fork_while_the_common_pool_is_made_does_no_harm, 60)
{
    uint64_t seed = fjt_seed();

    need_threads_after_fork();
    for (long i = fjt_rounds(500); i > 0; i--) {
        int wait_ns = regression_below(&seed, 150000);
        pid_t pid = fork();
        if (pid == 0) {
            child_begin();
            fork_beside_a_maker(wait_ns);
            _exit(0);
        }
        await_child(pid);
    }
}

/* ---- Signals ---------------------------------------------------------------------------- */

static int look_at_mask(void *arg)
{
    static const int blocked[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGCHLD, SIGPIPE, SIGPROF, SIGIO};
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t set;

    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        CHECK_EQ(sigismember(&set, blocked[i]), 1);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) CHECK_EQ(sigismember(&set, own[i]), 0);
    return regression_count(arg);
}

FJ_TEST(workers_leave_signals_to_others, 30)
{
    fj_pool *p = fjt_pool(4, 0);
    atomic_int looked = 0;
    sigset_t before, after;

    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(fj_execute(p, look_at_mask, &looked), FJ_OK);
    UNTIL(atomic_load(&looked) == 20);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    CHECK_EQ(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
    fjt_destroy(p);
}

static pthread_t main_thread;
static volatile sig_atomic_t elsewhere;
static volatile sig_atomic_t alarms;

static void on_signal(int sig)
{
    (void)sig;
    if (!pthread_equal(pthread_self(), main_thread))
        elsewhere = 1;
    else
        alarms++;
}

static int sleeper(fj_task *t)
{
    (void)t;
    fjt_sleep_us(300);
    return 4;
}

/* A timer signal interrupts every wait of the caller, again and again. */
FJ_TEST(signals_do_not_disturb_whoever_waits, 60)
{
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */
    struct itimerval every = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};
    struct itimerval never = {.it_value = {.tv_usec = 0}};

    main_thread = pthread_self();
    CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    for (long i = fjt_rounds(300); i > 0; i--) {
        fj_pool *p = fjt_pool(2, 0);
        fj_task t;
        fj_task_init(&t, sleeper);
        CHECK_EQ(fj_invoke(p, &t), 4);
        check_fib(p, 10, 55);
        CHECK_EQ(fj_submit(p, &t), FJ_OK);
        CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_join(&t), 4);
        fjt_destroy(p);
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK(alarms > 0);
    CHECK_EQ(elsewhere, 0);
}

/* ---- Without membarrier ----------------------------------------------------------------- */

static void refuse_membarrier(int err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)err & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fjt_skip("system calls cannot be filtered");
    CHECK_EQ(syscall(SYS_membarrier, 0, 0, 0), -1);
    CHECK_EQ(errno, err);
}

static void work_with_full_fences(void)
{
    fj_pool *p = fjt_pool(4, 0);

    CHECK(!p->asymmetric);
    for (long i = fjt_rounds(200); i > 0; i--) {
        check_fib(p, 15, 610);
        check_typed_fib(p, 15, 610);
        regression_all_at_once(p, 4);
    }
    regression_rest(p);
    fjt_destroy(p);
    check_fib(NULL, 15, 610);
}

FJ_TEST(a_system_without_membarrier_gets_full_fences, 60)
{
    refuse_membarrier(ENOSYS);
    work_with_full_fences();
}

FJ_TEST(a_system_that_forbids_membarrier_gets_full_fences, 60)
{
    refuse_membarrier(EPERM);
    work_with_full_fences();
}

FJ_TEST(the_environment_can_ask_for_full_fences, 60)
{
    setenv("FORKJOIN_FENCES", "symmetric", 1);
    work_with_full_fences();
}
