/* SPDX-License-Identifier: MIT */
/*
 * waits.c - the calls of <forkjoin/block.h>: time limits, signals, cases without a wait
 */
#define _GNU_SOURCE /* O_PATH, pipe2() */
#include <errno.h>
#include <fcntl.h>
#include <forkjoin/block.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside.h"

static void nothing(int signal)
{
    (void)signal;
}

/* Installs a handler after which system calls return EINTR. */
static void install(void)
{
    struct sigaction sa = {.sa_handler = nothing};

    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
}

/* ---- Time limits ----------------------------------------------------------------------------- */

FJ_TEST(semaphore_is_waited_for_no_longer_than_asked, 30)
{
    sem_t s;

    CHECK_EQ(sem_init(&s, 0, 1), 0);
    CHECK_EQ(fj_block_sem_wait(&s, 0), FJ_OK);
    CHECK_EQ(fj_block_sem_wait(&s, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_block_sem_wait(&s, -1), FJ_ETIMEDOUT);
    int64_t start = fjt_now();
    CHECK_EQ(fj_block_sem_wait(&s, 2000000), FJ_ETIMEDOUT);
    CHECK(fjt_now() - start >= 2000000);
    CHECK_EQ(sem_post(&s), 0);
    CHECK_EQ(fj_block_sem_wait(&s, INT64_MAX - 1), FJ_OK);
    CHECK_EQ(sem_destroy(&s), 0);
}

FJ_TEST(condition_that_is_only_asked_for_times_out_with_the_mutex_held, 30)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;

    CHECK_EQ(fj_block_mutex_lock(&m), FJ_OK);
    CHECK_EQ(fj_block_cond_wait(&c, &m, 0), FJ_ETIMEDOUT);
    CHECK_EQ(fj_block_cond_wait(&c, &m, 1000000), FJ_ETIMEDOUT);
    CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

FJ_TEST(sleep_into_the_past_returns_at_once, 30)
{
    CHECK_EQ(fj_sleep_ns(-1), FJ_OK);
    CHECK_EQ(fj_sleep_ns(INT64_MIN), FJ_OK);
    CHECK_EQ(fj_sleep_ns(0), FJ_OK);
}

FJ_TEST(waits_without_what_to_wait_for_are_refused, 30)
{
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fj_block_begin(NULL), FJ_EINVAL);
    CHECK_EQ(fj_managed_block(NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_block_read(ends[0], NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_block_write(ends[1], NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_block_read(-1, ends, 1), -EBADF);
    CHECK_EQ(fj_block_write(-1, ends, 1), -EBADF);
}

/* ---- Files that are not ready ---------------------------------------------------------------- */

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
        ssize_t n = fj_block_write(ends[1], buf + done, sizeof buf - done);
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

/* ---- Answers that need no wait --------------------------------------------------------------- */

/* One read or write, made with the system call and with the library. */
struct transfers {
    int fd;
    int writes;
    size_t n;
    int null;
};

static char transfer_bytes[1 << 17];

static ssize_t system_does(const struct transfers *t)
{
    void *buf = t->null ? NULL : transfer_bytes;
    ssize_t got = t->writes ? write(t->fd, buf, t->n) : read(t->fd, buf, t->n);

    return got >= 0 ? got : -errno;
}

static void library_does_the_same(void *arg)
{
    const struct transfers *t = arg;
    void *buf = t->null ? NULL : transfer_bytes;
    ssize_t wanted = system_does(t);

    errno = 77;
    CHECK_EQ(t->writes ? fj_block_write(t->fd, buf, t->n) : fj_block_read(t->fd, buf, t->n),
             wanted);
    CHECK_EQ(errno, 77);
}

/* Compares outside a pool, on a worker, and on a worker of a pool with an interrupt signal. */
static void same_as_the_system(struct transfers t)
{
    fj_pool_options o = {0};

    install();
    o.parallelism = 1;
    library_does_the_same(&t);
    for (int i = 0; i < 2; i++) {
        o.interrupt_signal = i == 0 ? 0 : SIGUSR1;
        fj_pool *p = fjt_pool_with(&o);
        inside(p, library_does_the_same, &t);
        fjt_destroy(p);
    }
}

static void fill(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (write(fd, transfer_bytes, 4096) > 0) {}
    while (write(fd, transfer_bytes, 1) > 0) {}
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
}

FJ_TEST(no_byte_is_read_or_written_without_a_wait, 30)
{
    int ends[2], pair[2];

    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (int null = 0; null < 2; null++) {
        same_as_the_system((struct transfers){.fd = ends[0], .null = null});
        same_as_the_system((struct transfers){.fd = ends[1], .writes = 1, .null = null});
        same_as_the_system((struct transfers){.fd = pair[0], .null = null});
        same_as_the_system((struct transfers){.fd = -1, .null = null});
        same_as_the_system((struct transfers){.fd = -1, .writes = 1, .null = null});
    }
    fill(ends[1]);
    fill(pair[1]);
    for (int null = 0; null < 2; null++) {
        same_as_the_system((struct transfers){.fd = ends[1], .writes = 1, .null = null});
        same_as_the_system((struct transfers){.fd = pair[1], .writes = 1, .null = null});
    }
}

FJ_TEST(files_that_cannot_be_read_or_written_are_refused_without_a_wait, 30)
{
    static const size_t sizes[] = {0, 1, 4096, 4097, sizeof transfer_bytes};
    int ends[2], closed, directory = open("/", O_RDONLY | O_DIRECTORY);
    int path = open("/dev/null", O_PATH);

    CHECK_EQ(pipe(ends), 0);
    CHECK((closed = dup(ends[0])) >= 0);
    CHECK_EQ(close(closed), 0);
    const int fds[] = {-1, INT_MIN, closed, 1 << 20, directory, path, ends[0], ends[1]};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int writes = 0; writes < 2; writes++) {
                if ((writes && fds[i] == ends[1]) || (!writes && fds[i] == ends[0])) continue;
                same_as_the_system(
                    (struct transfers){.fd = fds[i], .writes = writes, .n = sizes[k]});
            }
}

FJ_TEST(files_that_do_not_block_answer_as_the_system, 30)
{
    int ends[2], file = open("/dev/zero", O_RDWR);

    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    same_as_the_system((struct transfers){.fd = ends[0], .n = 1});
    while (write(ends[1], transfer_bytes, 4096) > 0) {}
    same_as_the_system((struct transfers){.fd = ends[1], .writes = 1, .n = 1});
    same_as_the_system((struct transfers){.fd = ends[1], .writes = 1, .n = sizeof transfer_bytes});
    same_as_the_system((struct transfers){.fd = file, .n = sizeof transfer_bytes});
    same_as_the_system((struct transfers){.fd = file, .writes = 1, .n = sizeof transfer_bytes});
    CHECK_EQ(close(ends[0]), 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    same_as_the_system((struct transfers){.fd = ends[1], .writes = 1, .n = 1});
}

FJ_TEST(read_into_less_than_an_event_counter_is_refused_without_a_wait, 30)
{
    int counter = eventfd(0, 0);
    struct transfers t = {.fd = counter, .n = 4};
    fj_pool *p = fjt_pool(1, 0);

    library_does_the_same(&t);
    inside(p, library_does_the_same, &t);
    fjt_destroy(p);
}

FJ_TEST(poll_of_nothing_answers_as_the_system, 30)
{
    struct pollfd one = {.fd = -1, .events = POLLIN};

    CHECK_EQ(fj_block_poll(NULL, 0, 0), 0);
    CHECK_EQ(fj_block_poll(NULL, 0, -1), 0);
    CHECK_EQ(fj_block_poll(NULL, 0, 1000000), 0);
    CHECK_EQ(fj_block_poll(&one, 1, 0), 0);
    CHECK_EQ(fj_block_poll(&one, 1, 1000000), 0);
    one = (struct pollfd){.fd = 1 << 20, .events = POLLIN};
    CHECK_EQ(fj_block_poll(&one, 1, FJ_FOREVER), 1);
    CHECK_EQ(one.revents, POLLNVAL);
    CHECK_EQ(fj_block_poll(NULL, 1, 0), FJ_EINVAL);
}

/* ---- Signals during a wait ------------------------------------------------------------------- */

struct disturbed {
    sem_t sem;
    int ends[2];
    atomic_int waits, over;
    int got;
    void (*wait)(struct disturbed *d);
};

static void wait_sem(struct disturbed *d)
{
    d->got = fj_block_sem_wait(&d->sem, FJ_FOREVER);
}

static void wait_sem_timed(struct disturbed *d)
{
    d->got = fj_block_sem_wait(&d->sem, (int64_t)3600 * 1000000000);
}

static void wait_read(struct disturbed *d)
{
    char c;

    d->got = fj_block_read(d->ends[0], &c, 1) == 1 ? FJ_OK : FJ_EFAILED;
}

static void wait_poll(struct disturbed *d)
{
    struct pollfd one = {.fd = d->ends[0], .events = POLLIN};

    d->got = fj_block_poll(&one, 1, FJ_FOREVER) == 1 ? FJ_OK : FJ_EFAILED;
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

/* ---- The interrupt signal of a pool ---------------------------------------------------------- */

static atomic_int told;
static int wake_up[2];

/* The signal may arrive before the read() that it should interrupt, so this also writes a byte. */
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
    (void)!read(wake_up[0], &c, 1); /* a plain system call, which only the signal ends */
    return FJ_OK;
}

FJ_TEST(stop_of_a_pool_sends_its_signal_to_workers_in_system_calls, 60)
{
    struct sigaction sa = {.sa_handler = tell};
    fj_pool_options o = {0};

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
