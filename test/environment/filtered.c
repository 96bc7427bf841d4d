/* SPDX-License-Identifier: MIT */
/*
 * filtered.c - the program restricts its own system calls while it runs
 *
 * The filter is set for all threads at once while pools are busy. From then on membarrier fails
 * although its registration succeeded, or every wait returns at once with an error, or no thread
 * can be started.
 */
#include "environment.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#ifndef SECCOMP_FILTER_FLAG_TSYNC
#define SECCOMP_FILTER_FLAG_TSYNC 1
#endif

static void need_filters(void)
{
    if (FJI_TSAN || FJI_ASAN) fjt_skip("sanitizers need these system calls");
}

static void set_filter(struct sock_filter *code, unsigned short n)
{
    struct sock_fprog program = {n, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        fjt_skip("system calls cannot be filtered here");
}

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (skip))
#define FAIL(err) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)(err))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Makes every call of this number fail. */
static void refuse(long number, int err)
{
    struct sock_filter code[] = {LOAD(nr), UNLESS(number, 1), FAIL(err), ALLOW};

    set_filter(code, sizeof code / sizeof code[0]);
}

/* ---- The heavy fence ------------------------------------------------------------------------ */

/* Uses the pools before, while and after membarrier is refused. */
static void lose_membarrier(int err)
{
    fj_pool *p = fjt_pool(3, 0), *one = fjt_pool(1, 0);
    struct users users;

    need_filters();
    use_pool(p);
    use_pool(one);
    start_users(&users, p, 2);
    UNTIL(atomic_load(&users.rounds) > 0);
    refuse(SYS_membarrier, err);
    CHECK_EQ(syscall(SYS_membarrier, 0, 0, 0), -1);
    for (long i = fjt_rounds(30); i > 0; i--) {
        use_pool(p);
        use_pool(one);
        regression_all_at_once(p, 3);
    }
    end_users(&users);
    regression_rest(p);
    regression_rest(one);
    use_pool(NULL);
    fjt_destroy(p);
    fjt_destroy(one);
}

FJ_TEST(membarrier_that_is_gone_all_of_a_sudden_is_made_up_for, 60)
{
    lose_membarrier(ENOSYS);
}

FJ_TEST(membarrier_that_is_forbidden_all_of_a_sudden_is_made_up_for, 60)
{
    lose_membarrier(EPERM);
}

/* A task that is queued behind a long one is still stolen without membarrier, only later. */
struct behind {
    fj_task task;
    atomic_int ran;
};

static int behind_run(fj_task *t)
{
    atomic_store(&((struct behind *)t)->ran, 1);
    return FJ_OK;
}

static int long_leaf(fj_task *t)
{
    struct behind b = {.ran = 0};

    (void)t;
    fj_task_init(&b.task, behind_run);
    fj_fork(&b.task);
    UNTIL(atomic_load(&b.ran)); /* a thief runs it */
    return fj_join(&b.task);
}

FJ_TEST(task_behind_a_long_one_is_stolen_without_membarrier, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    fj_task t;

    need_filters();
    use_pool(p);
    refuse(SYS_membarrier, EPERM);
    fj_task_init(&t, long_leaf);
    for (long i = fjt_rounds(50); i > 0; i--) CHECK_EQ(fj_invoke(p, &t), FJ_OK);
    fjt_destroy(p);
}

/* ---- Waits ---------------------------------------------------------------------------------- */

/* Makes the waits of the library fail: absolute, monotonic and private ones. The C library uses
 * other kinds of waits. */
static void refuse_waits(int err)
{
    struct sock_filter code[] = {LOAD(nr),      UNLESS(SYS_futex, 3),
                                 LOAD(args[1]), UNLESS(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 1),
                                 FAIL(err),     ALLOW};

    set_filter(code, sizeof code / sizeof code[0]);
}

static void work_without_waits(int err)
{
    need_filters();
    if (FJI_SYMMETRIC) fjt_skip("the C library needs the waits that this test refuses");
    fj_pool *p = fjt_pool(2, 0);
    use_pool(p);
    refuse_waits(err);
    for (long i = fjt_rounds(5); i > 0; i--) use_pool(p);
    fjt_destroy(p);
    p = fjt_pool(3, FJ_POOL_CALLER_HELPS);
    for (long i = fjt_rounds(3); i > 0; i--) use_pool(p);
    fjt_destroy(p);
}

FJ_TEST(waits_that_are_always_interrupted_lose_nothing, 60)
{
    work_without_waits(EINTR);
}

FJ_TEST(waits_that_are_never_begun_lose_nothing, 60)
{
    work_without_waits(EAGAIN);
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void refuse_threads(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
#ifdef SYS_clone
        UNLESS(SYS_clone, 1),
        FAIL(EAGAIN),
#endif
#ifdef SYS_clone3
        UNLESS(SYS_clone3, 1),
        FAIL(EAGAIN),
#endif
        ALLOW,
    };

    set_filter(code, sizeof code / sizeof code[0]);
}

FJ_TEST(program_that_may_start_no_more_threads_does_it_with_those_there, 60)
{
    fj_pool *has = fjt_pool(2, 0), *none = fjt_pool(2, 0);

    need_filters();
    use_pool(has); /* starts the workers and the timer thread */
    refuse_threads();
    for (long i = fjt_rounds(30); i > 0; i--) {
        use_pool(has);
        use_fib(none, FJ_CALLER_BLOCKS);
        use_fib(none, FJ_CALLER_HELPS);
        use_fib(NULL, FJ_CALLER_HELPS);
    }
    CHECK_EQ(fj_pool_thread_count(none), 0);
    fjt_destroy(has);
    fjt_destroy(none);
}

FJ_TEST(program_that_may_not_ask_for_its_cpus_has_pools, 60)
{
    need_filters();
    refuse(SYS_sched_getaffinity, EPERM);
    CHECK(fj_available_parallelism() >= 1);
    fj_pool *p = fjt_pool(0, 0);
    use_pool(p);
    fjt_destroy(p);
}
