/* SPDX-License-Identifier: MIT */
/*
 * outcomes.c - one test for each way in which a test can end
 *
 * test/selftest/run runs this program. It checks that the result which the framework prints for a
 * test is the one with which the name of the test begins.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjtest.h"

static void *fail_in_thread(void *arg)
{
    (void)arg;
    CHECK_EQ(1 + 1, 3);
    return NULL;
}

FJ_TEST(ok_returns, 1)
{
    CHECK(fjt_rounds(10) >= 1);
}

FJ_TEST(ok_pool, 1)
{
    fjt_destroy(fjt_pool(2, 0));
}

FJ_TEST(ok_signals_are_not_blocked, 1)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    CHECK(!sigismember(&blocked, SIGCHLD));
}

FJ_TEST(skip_says_why, 1)
{
    fjt_skip("for this reason");
}

FJ_TEST(not_ok_check, 1)
{
    CHECK(fjt_rounds(10) < 0);
}

FJ_TEST(not_ok_many_threads_at_once, 1)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, fail_in_thread, NULL) == 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

FJ_TEST(not_ok_signal, 1)
{
    raise(SIGKILL);
}

FJ_TEST(not_ok_abort, 1)
{
    abort();
}

FJ_TEST(not_ok_exit_before_the_end, 1)
{
    exit(0);
}

static void exit_with_3(void)
{
    _exit(3);
}

FJ_TEST(not_ok_status_after_the_end, 1)
{
    atexit(exit_with_3);
}

FJ_TEST(not_ok_in_a_forked_process_unseen, 1)
{
    pid_t pid = fork();
    if (pid == 0) CHECK(getppid() < 0);
    waitpid(pid, NULL, 0);
}

FJ_TEST(not_ok_sleeps, 1)
{
    fjt_watch(fj_common_pool());
    for (;;) fjt_sleep_us(1000);
}

FJ_TEST(not_ok_spins, 1)
{
    for (;;) fjt_spin_us(1000);
}

/* SIGSTOP stops the watchdog too, so only the parent process can end this test. */
FJ_TEST(not_ok_stopped, 1)
{
    raise(SIGSTOP);
}
