/* SPDX-License-Identifier: MIT */
/*
 * waits.c - the waits that people need: their limits, signals in the middle, nothing to wait for
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

static void nothing(int signal)
{
    (void)signal;
}

/* A handler that lets system calls return EINTR. */
static void install(void)
{
    struct sigaction sa = {.sa_handler = nothing};

    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

FJ_TEST(semaphore_is_waited_for_no_longer_than_asked, 30)
{
    sem_t s;

    CHECK_EQ(sem_init(&s, 0, 1), 0);
    CHECK_EQ(fj_sem_wait(&s, 0), FJ_OK);
    CHECK_EQ(fj_sem_wait(&s, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_sem_wait(&s, -1), FJ_ETIMEDOUT);
    int64_t start = fjt_now();
    CHECK_EQ(fj_sem_wait(&s, 2000000), FJ_ETIMEDOUT);
    CHECK(fjt_now() - start >= 2000000);
    CHECK_EQ(sem_post(&s), 0);
    CHECK_EQ(fj_sem_wait(&s, INT64_MAX - 1), FJ_OK);
    CHECK_EQ(sem_destroy(&s), 0);
}

FJ_TEST(condition_that_is_only_asked_for_times_out_with_the_mutex_held, 30)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;

    CHECK_EQ(fj_mutex_lock(&m), FJ_OK);
    CHECK_EQ(fj_cond_wait(&c, &m, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_cond_wait(&c, &m, 1000000), FJ_ETIMEDOUT);
    CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

FJ_TEST(sleep_into_the_past_returns_at_once, 30)
{
    CHECK_EQ(fj_sleep(-1), FJ_OK);
    CHECK_EQ(fj_sleep(INT64_MIN), FJ_OK);
    CHECK_EQ(fj_sleep(0), FJ_OK);
}

FJ_TEST(waits_without_what_to_wait_for_are_refused, 30)
{
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fj_block_begin(NULL), FJ_EINVAL);
    CHECK_EQ(fj_managed_block(NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_read(ends[0], NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_write(ends[1], NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_read(-1, ends, 1), -EBADF);
    CHECK_EQ(fj_write(-1, ends, 1), -EBADF);
}

/* ---- Files that are not ready ----------------------------------------------------------------- */

static void *read_later(void *arg)
{
    static char buf[1 << 16];
    const int *ends = arg;
    long left = 1 << 18;

    fjt_sleep_us(2000);
    while (left > 0) {
        ssize_t n = read(ends[0], buf, sizeof buf);
        CHECK(n > 0);
        left -= n;
    }
    return NULL;
}

static void write_much(void *arg)
{
    static char buf[1 << 18];
    const int *ends = arg;

    for (size_t done = 0; done < sizeof buf;) {
        ssize_t n = fj_write(ends[1], buf + done, sizeof buf - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
}

FJ_TEST(worker_writes_more_than_a_pipe_has_room_for, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    pthread_t thread;
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(pthread_create(&thread, NULL, read_later, ends), 0);
    inside(p, write_much, ends);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fjt_destroy(p);
}

/* ---- Signals in the middle ---------------------------------------------------------------------- */

struct disturbed {
    sem_t sem;
    int ends[2];
    atomic_int waits, over;
    int got;
    void (*wait)(struct disturbed *d);
};

static void wait_sem(struct disturbed *d)
{
    d->got = fj_sem_wait(&d->sem, FJ_FOREVER);
}

static void wait_sem_timed(struct disturbed *d)
{
    d->got = fj_sem_wait(&d->sem, (int64_t)3600 * 1000000000);
}

static void wait_read(struct disturbed *d)
{
    char c;

    d->got = fj_read(d->ends[0], &c, 1) == 1 ? FJ_OK : FJ_EFAILED;
}

static void wait_poll(struct disturbed *d)
{
    struct pollfd one = {.fd = d->ends[0], .events = POLLIN};

    d->got = fj_poll(&one, 1, FJ_FOREVER) == 1 ? FJ_OK : FJ_EFAILED;
}

static void *disturbed_run(void *arg)
{
    struct disturbed *d = arg;

    d->got = FJ_EFAILED;
    atomic_store(&d->waits, 1);
    d->wait(d);
    atomic_store(&d->over, 1);
    return NULL;
}

static void disturb(void (*wait)(struct disturbed *d))
{
    struct disturbed d = {.wait = wait};
    pthread_t thread;

    install();
    CHECK_EQ(sem_init(&d.sem, 0, 0), 0);
    CHECK_EQ(pipe(d.ends), 0);
    CHECK_EQ(pthread_create(&thread, NULL, disturbed_run, &d), 0);
    while (!atomic_load(&d.waits)) fjt_sleep_us(20);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
        fjt_sleep_us(300);
        CHECK_EQ(atomic_load(&d.over), 0);
    }
    CHECK_EQ(sem_post(&d.sem), 0);
    CHECK_EQ(write(d.ends[1], "x", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(d.got, FJ_OK);
}

FJ_TEST(signals_do_not_end_the_wait_for_a_semaphore, 30)
{
    disturb(wait_sem);
    disturb(wait_sem_timed);
}

FJ_TEST(signals_do_not_end_the_wait_for_a_file, 30)
{
    disturb(wait_read);
    disturb(wait_poll);
}

/* ---- The signal of a pool ------------------------------------------------------------------------- */

static atomic_int told;
static int wake_up[2];

/* As well as the EINTR, something to read: it may come before the call it is to break. */
static void tell(int signal)
{
    int keep = errno;

    (void)signal;
    atomic_fetch_add(&told, 1);
    if (write(wake_up[1], "x", 1) != 1) _exit(2);
    errno = keep;
}

static atomic_int in_call;

static int bare_read(void *arg)
{
    char c;

    (void)arg;
    atomic_fetch_add(&in_call, 1);
    (void)!read(wake_up[0], &c, 1); /* not ours: only the signal ends it */
    return FJ_OK;
}

FJ_TEST(stop_of_a_pool_sends_its_signal_to_workers_in_system_calls, 60)
{
    struct sigaction sa = {.sa_handler = tell};
    fj_pool_options o = FJ_POOL_OPTIONS_INIT;

    CHECK_EQ(pipe(wake_up), 0);
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    o.parallelism = 2;
    o.interrupt_signal = SIGUSR1;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_execute(p, bare_read, NULL), FJ_OK);
    while (atomic_load(&in_call) != 2) fjt_sleep_us(50);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    CHECK_EQ(fj_pool_await_termination(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&told), 2);
    fjt_destroy(p);
}
