/* SPDX-License-Identifier: MIT */
/*
 * managed.c - waits for something that is not a task
 *
 * Each of them is: try without waiting; tell the pool (block.c); wait; tell it again. What is
 * begun is ended on every path, since begin and end are in one function.
 */
#define _GNU_SOURCE /* pthread_cond_clockwait(), sem_clockwait(), ppoll() */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

/* ---- Begin and end -------------------------------------------------------------------------------- */

int fj_block_begin(fj_blocking *b)
{
    fji_worker *w = fji_worker_self();

    if (b == NULL) return FJ_EINVAL;
    int token = w != NULL ? fji_block_ask(w) : (int)FJI_BLOCKED_NO;
    if (token == (int)FJI_BLOCKED_REFUSED) return FJ_ESATURATED;
    b->worker = w;
    b->token = token;
    return FJ_OK;
}

void fj_block_end(fj_blocking *b)
{
    if (b == NULL || b->worker == NULL) return;
    fji_block_end(b->worker, b->token);
    b->worker = NULL;
}

static bool managed_interrupted(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL && fji_interrupted(w);
}

int fj_managed_block(int (*ready)(void *arg), int (*block)(void *arg), void *arg)
{
    fj_blocking b;
    int err, got = 0;

    if (ready == NULL || block == NULL) return FJ_EINVAL;
    if (ready(arg)) return FJ_OK;
    if ((err = fj_block_begin(&b)) != FJ_OK) return err;
    do {
        if (managed_interrupted())
            err = FJ_ECANCELED;
        else if ((got = block(arg)) < 0)
            err = got;
    } while (err == FJ_OK && got == 0 && !ready(arg));
    fj_block_end(&b);
    return err;
}

/* For waits that cannot be refused. */
static void managed_begin(fj_blocking *b)
{
    fji_worker *w = fji_worker_self();

    b->worker = w;
    b->token = w != NULL ? fji_block_begin(w) : (int)FJI_BLOCKED_NO;
}

/* ---- Time ------------------------------------------------------------------------------------------ */

/* A moment as the system wants it; forever becomes the far future. */
static struct timespec managed_deadline(int64_t timeout_ns)
{
    int64_t now = fji_plat_now();
    int64_t at = timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;

    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

/* In a lot, though nothing but an interrupt concerns it there. */
static int sleep_until(fji_worker *w, int64_t end)
{
    uint32_t *lot = fji_lot(w);
    bool go_on;

    fji_nap_begin(w, lot);
    do {
        /* [cancel.lot] acquire <- acq_rel in fji_lot_bump(): an interrupt is seen below. */
        uint32_t seen = fji_load_acquire(lot);
        go_on = !fji_interrupted(w);
        if (go_on) (void)fji_plat_wait(lot, seen, end);
    } while (go_on && fji_plat_now() < end);
    fji_nap_end(w);
    return go_on ? FJ_OK : FJ_ECANCELED;
}

int fj_sleep(int64_t ns)
{
    fji_worker *w = fji_worker_self();
    fj_blocking b;
    int64_t now = fji_plat_now();
    int64_t end = ns < 0 ? now : ns > FJ_FOREVER - now ? FJ_FOREVER : now + ns;
    uint32_t word = 0;

    if (w == NULL) {
        while (fji_plat_now() < end) (void)fji_plat_wait(&word, 0, end);
        return FJ_OK;
    }
    managed_begin(&b);
    int err = sleep_until(w, end);
    fj_block_end(&b);
    return err;
}

/* ---- What threads have ------------------------------------------------------------------------------ */

int fj_mutex_lock(pthread_mutex_t *m)
{
    fj_blocking b;
    int err = pthread_mutex_trylock(m);

    if (err != EBUSY) return -err;
    managed_begin(&b);
    err = pthread_mutex_lock(m);
    fj_block_end(&b);
    return -err;
}

int fj_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t timeout_ns)
{
    fj_blocking b;
    int err;

    if (timeout_ns <= 0) return FJ_ETIMEDOUT;
    struct timespec at = managed_deadline(timeout_ns);
    managed_begin(&b);
    if (timeout_ns == FJ_FOREVER)
        err = pthread_cond_wait(c, m);
    else
        err = pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &at);
    fj_block_end(&b);
    return -err;
}

static int sem_wait_once(sem_t *s, int64_t timeout_ns, const struct timespec *at)
{
    if (timeout_ns == FJ_FOREVER) return sem_wait(s);
    return sem_clockwait(s, CLOCK_MONOTONIC, at);
}

int fj_sem_wait(sem_t *s, int64_t timeout_ns)
{
    fj_blocking b;
    int keep = errno, err = 0;

    if (sem_trywait(s) != 0) {
        err = errno;
        if (err == EAGAIN && timeout_ns <= 0) err = ETIMEDOUT;
    }
    if (err == EAGAIN || err == EINTR) {
        struct timespec at = managed_deadline(timeout_ns);
        managed_begin(&b);
        do {
            err = sem_wait_once(s, timeout_ns, &at) == 0 ? 0 : errno;
            if (err == EINTR && managed_interrupted()) err = ECANCELED;
        } while (err == EINTR);
        fj_block_end(&b);
    }
    errno = keep;
    return -err;
}

/* ---- Files ------------------------------------------------------------------------------------------ */

/*
 * Waits in the system, unless the task is interrupted. The interrupt's signal is let through
 * only inside the call, so that it cannot come between the look at the token and the call.
 */
static int files_wait(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    struct timespec left = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    const struct timespec *limit = timeout_ns == FJ_FOREVER ? NULL : &left;
    const fji_worker *w = fji_worker_self();
    int signal = w != NULL ? w->pool->options.interrupt_signal : 0;
    sigset_t one, old;

    if (signal == 0) {
        int got = ppoll(fds, n, limit, NULL);
        return got >= 0 ? got : -errno;
    }
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    int got = managed_interrupted() ? -EINTR : ppoll(fds, n, limit, &old);
    if (got < 0) got = got == -EINTR ? got : -errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return got;
}

/* The same until it is ready, the time is over, or the task is interrupted. */
static int files_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    int64_t now = fji_plat_now();
    int64_t end = timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
    int got;

    do {
        now = fji_plat_now();
        got = files_wait(fds, n, end == FJ_FOREVER ? FJ_FOREVER : end > now ? end - now : 0);
        if (got == -EINTR && managed_interrupted()) got = FJ_ECANCELED;
    } while (got == -EINTR);
    return got;
}

int fj_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    fj_blocking b;
    struct timespec none = {0};
    int keep = errno, got = ppoll(fds, n, &none, NULL);

    got = got >= 0 ? got : -errno;
    if ((got == 0 || got == -EINTR) && timeout_ns > 0) {
        managed_begin(&b);
        got = files_poll(fds, n, timeout_ns);
        fj_block_end(&b);
    }
    errno = keep;
    return got;
}

struct transfer {
    int fd;
    void *in;
    const void *out;
    size_t n;
};

static ssize_t transfer_once(const struct transfer *t)
{
    ssize_t got = t->in != NULL ? read(t->fd, t->in, t->n) : write(t->fd, t->out, t->n);
    return got >= 0 ? got : -errno;
}

/* Whether it will not wait, as far as poll knows: much that is written may have to. */
static bool transfer_ready(const struct transfer *t)
{
    struct pollfd one = {.fd = t->fd, .events = t->in != NULL ? POLLIN : POLLOUT};
    struct timespec none = {0};

    if (t->in == NULL && t->n > PIPE_BUF) return false;
    return ppoll(&one, 1, &none, NULL) != 0 || (fcntl(t->fd, F_GETFL) & O_NONBLOCK) != 0;
}

static ssize_t transfer_wait(const struct transfer *t)
{
    struct pollfd one = {.fd = t->fd, .events = t->in != NULL ? POLLIN : POLLOUT};
    ssize_t got;

    do {
        got = files_poll(&one, 1, FJ_FOREVER);
        if (got > 0) got = transfer_once(t);
        if (got == -EINTR && managed_interrupted()) got = FJ_ECANCELED;
    } while (got == -EINTR);
    return got;
}

static ssize_t transfer_run(const struct transfer *t)
{
    fj_blocking b;
    int keep = errno;
    ssize_t got = -EINTR;

    if (transfer_ready(t)) got = transfer_once(t);
    if (got == -EINTR) {
        managed_begin(&b);
        got = transfer_wait(t);
        fj_block_end(&b);
    }
    errno = keep;
    return got;
}

ssize_t fj_read(int fd, void *buf, size_t n)
{
    struct transfer t = {.fd = fd, .in = buf, .n = n};

    return buf != NULL ? transfer_run(&t) : FJ_EINVAL;
}

ssize_t fj_write(int fd, const void *buf, size_t n)
{
    struct transfer t = {.fd = fd, .out = buf, .n = n};

    return buf != NULL ? transfer_run(&t) : FJ_EINVAL;
}
