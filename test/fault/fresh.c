/* SPDX-License-Identifier: MIT */
/*
 * fresh.c - refusals in a new process: resources that are requested only once, and the common pool
 *
 * Each run is a child process, forked before the library was first used. The common pool may be
 * impossible to create for a while. A call that needs it then returns an error, or the caller runs
 * the task itself.
 */
#include "programs.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MET 10
#define NOT_MET 11

static void need_fresh_processes(void)
{
    need_faults();
    if (FJI_TSAN) fjt_skip("ThreadSanitizer does not support threads after fork()");
    if (FJI_ASAN) fjt_skip("AddressSanitizer's allocator may stay locked after fork()");
}

/* ---- Uses of the common pool ---------------------------------------------------------------- */

static void use_common_tasks(void)
{
    struct leaf l[10];
    fj_task *list[4];
    long r = -1;
    int err;

    for (int i = 0; i < 10; i++) leaf_init(&l[i], i + 1);
    fj_fork(&l[0].task); /* cannot fail */
    fj_fork(&l[1].task);
    CHECK_EQ(fj_join(&l[1].task), 2);
    CHECK_EQ(fj_join(&l[0].task), 1);
    for (int i = 0; i < 4; i++) list[i] = &l[2 + i].task;
    CHECK_EQ(fj_invoke_all(list, 4), 3);
    CHECK_EQ(fj_invoke_both(&l[6].task, &l[7].task), 7);
    CHECK_MAY(err = fj_submit(NULL, &l[8].task));
    if (err == FJ_OK) CHECK_EQ(fj_join(&l[8].task), 9);
    for (int i = 0; i < 8; i++) CHECK_EQ(atomic_load(&l[i].runs), 1);
    (void)use_fib(NULL, FJ_CALLER_HELPS);
    (void)use_fib(NULL, FJ_CALLER_BLOCKS);
    CHECK_MAY(err = typed_deep_invoke(NULL, &r, 100));
    CHECK_EQ(r, err == FJ_OK ? 100 : -1);
}

static void use_common_rest(void)
{
    atomic_int actions = 0;
    fj_future *f = NULL;
    int value, sent = 0, err;

    use_futures(NULL);
    use_bulk(NULL);
    struct sum *root = sum_make(NULL, 0, 50);
    CHECK_MAY(err = fj_completer_invoke(NULL, &root->c));
    CHECK_EQ(root->total, err == FJ_OK ? 1225 : 0);
    if (err == FJ_OK) fj_future_fini(&root->c.future);
    free(root);
    CHECK(may_timer(err = fj_schedule_call(NULL, call_run, &value, 1000, &f)));
    if (err == FJ_OK) CHECK(may_end(fj_future_get(f, FJ_FOREVER, NULL), FJ_OK));
    if (err == FJ_OK) fj_future_unref(f);
    for (int i = 0; i < 20; i++) {
        CHECK_MAY(err = fj_execute(NULL, count_action, &actions));
        sent += err == FJ_OK;
    }
    fj_help_quiesce();
    CHECK_EQ(atomic_load(&actions), sent);
}

static void use_common(void)
{
    fj_pool_options o = {0};

    o.parallelism = 2;
    CHECK_EQ(fj_common_configure(&o), FJ_OK);
    use_common_tasks();
    use_common_rest();
    calm();
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(fj_common_parallelism(), 2);
    CHECK(use_fib(NULL, FJ_CALLER_HELPS));
    use_common_tasks();
    use_common_rest();
}

static void use_own(void)
{
    for (int i = 0; i < N_PROGRAMS && i < 4; i++) programs[i].run(1);
    calm();
    run_life(2);
    run_plain(2);
}

/* ---- Processes ------------------------------------------------------------------------------ */

/* Runs `use` in a child process in which calls n to n + count - 1 of this kind are refused. Returns
 * whether call n was made. */
static bool in_a_process(void (*use)(void), enum fji_fault kind, long n, long count)
{
    int status = -1;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        long before = fji_fault_calls(kind);
        set_fault(kind, n, count);
        use();
        _exit(fji_fault_calls(kind) - before >= n ? MET : NOT_MET);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fjt_fail(__FILE__, __LINE__, "%s, call %ld: signal %d", fault_names[kind], n,
                 WTERMSIG(status));
    CHECK(WEXITSTATUS(status) == MET || WEXITSTATUS(status) == NOT_MET);
    return WEXITSTATUS(status) == MET;
}

static void sweep(void (*use)(void), enum fji_fault kind, long *points)
{
    long most = fjt_rounds(30);

    for (long n = 1; in_a_process(use, kind, n, 1); n += 1 + n / most) ++*points;
    for (long n = 1; in_a_process(use, kind, n, FOR_EVER); n += 1 + n / most) ++*points;
}

static void sweep_all(void (*use)(void))
{
    static const enum fji_fault kinds[] = {
        FJI_FAULT_ALLOC, FJI_FAULT_COMMIT, FJI_FAULT_RESERVE,  FJI_FAULT_THREAD,
        FJI_FAULT_ATTR,  FJI_FAULT_ATFORK, FJI_FAULT_AFFINITY, FJI_FAULT_SYSCONF,
    };
    long points = 0;

    need_fresh_processes();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) sweep(use, kinds[i], &points);
    /* The first call determines the kind of fence for the whole process. */
    (void)in_a_process(use, FJI_FAULT_BARRIER, 1, FOR_EVER);
    printf("# %ld refusals\n", points);
    fflush(stdout);
}

FJ_TEST(common_pool_whatever_is_refused, 120)
{
    sweep_all(use_common);
}

FJ_TEST(first_pool_whatever_is_refused, 120)
{
    sweep_all(use_own);
}

/* ---- Handlers for fork() -------------------------------------------------------------------- */

/* The registration of the handlers is refused for the first pool and repeated for the second. */
FJ_TEST(refused_handlers_of_fork_are_asked_for_again, 30)
{
    int status = -1;

    need_fresh_processes();
    fji_fault_set(FJI_FAULT_ATFORK, 1, 1);
    fj_pool *first = fjt_pool(2, 0), *second = fjt_pool(2, 0);
    CHECK(use_fib(first, FJ_CALLER_BLOCKS));
    CHECK(use_fib(second, FJ_CALLER_BLOCKS));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(use_fib(first, FJ_CALLER_BLOCKS));
        CHECK(use_fib(second, FJ_CALLER_BLOCKS));
        CHECK_EQ(fj_pool_destroy(first), FJ_OK);
        CHECK_EQ(fj_pool_destroy(second), FJ_OK);
        _exit(0);
    }
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fjt_destroy(first);
    fjt_destroy(second);
}
