/* SPDX-License-Identifier: MIT */
/*
 * block.c - waits for something that is not a task
 *
 * Each of them is: try without waiting; tell the pool (compensate.c); wait; tell it again. What is
 * begun is ended on every path, since begin and end are in one function.
 */
#define _GNU_SOURCE /* pthread_cond_clockwait(), sem_clockwait(), ppoll() */
#include <errno.h>
#include <fcntl.h>
#include <forkjoin/block.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "plat/wait.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/pool.h"
#include "sched/spawn.h"

/* ---- Begin and end -------------------------------------------------------------------------------- */

static bool managed_interrupted(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL && fji_interrupted(w);
}

/* When the calling worker's wait has to end because a refused thread is to be asked for again. */
static int64_t managed_retry(const fj_blocking *b, int64_t *pause)
{
    return b->worker != NULL ? fji_compensate_retry(b->worker, pause) : FJ_FOREVER;
}

/* Whether p has a queued task and no worker for it, since a thread was refused a short while ago. */
static bool managed_is_stuck(fj_pool *p)
{
    int64_t since = fji_load_relaxed(&p->spawn_refused_ns); /* relaxed: a hint */

    if (fji_load_relaxed(&p->spawn_refused) >= FJI_RETRY_TRIES && /* relaxed: a hint */
        fji_plat_now() - since >= FJI_RETRY_WAIT_NS)
        return false;
    return fji_spawn_is_stuck(p);
}

/* Whether a wait that the library does not control should be put off. */
static bool managed_put_off(const fji_worker *w)
{
    for (; w != NULL; w = fji_worker_outer(w))
        if (managed_is_stuck(w->pool)) return true;
    return false;
}

/* When a refused thread is asked for again. */
struct managed_tries {
    int64_t next, pause;
};

/*
 * Before a wait that the library does not control: nothing can ask for a refused thread while it
 * lasts, so it is put off, for a limited time, while that is asked for again. Returns whether
 * ready(arg), if there is one, has become true meanwhile.
 */
static bool managed_insist(const fj_blocking *b, struct managed_tries *t, int (*ready)(void *arg),
                           void *arg)
{
    fji_worker *w = b->worker;
    uint32_t word = 0;

    while (w != NULL) {
        if (fji_plat_now() >= t->next) t->next = fji_compensate_retry(w, &t->pause);
        if (t->next == FJ_FOREVER) *t = (struct managed_tries){0};
        if (t->next == 0 || !managed_put_off(w) || managed_interrupted()) break;
        (void)fji_plat_wait(&word, 0, t->next);
        if (ready != NULL && ready(arg)) return true;
    }
    return false;
}

/* FJ_OK, or FJ_ESATURATED and nothing was begun. */
static int managed_ask(fj_blocking *b)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_try_begin(w) : FJI_KEPT_SLOT;

    if (c == FJI_SATURATED) return FJ_ESATURATED;
    b->worker = w;
    b->token = (int)c;
    return FJ_OK;
}

int fj_block_begin(fj_blocking *b)
{
    struct managed_tries tries = {0};

    if (b == NULL) return FJ_EINVAL;
    int err = managed_ask(b);
    if (err == FJ_OK) (void)managed_insist(b, &tries, NULL, NULL);
    return err;
}

void fj_block_end(fj_blocking *b)
{
    if (b == NULL || b->worker == NULL) return;
    fji_compensate_end(b->worker, (fji_compensation)b->token);
    b->worker = NULL;
}

int fj_managed_block(int (*ready)(void *arg), int (*block)(void *arg), void *arg)
{
    struct managed_tries tries = {0};
    fj_blocking b;
    int err, got = 0;

    if (ready == NULL || block == NULL) return FJ_EINVAL;
    if (ready(arg)) return FJ_OK;
    if ((err = managed_ask(&b)) != FJ_OK) return err;
    do {
        if (managed_insist(&b, &tries, ready, arg))
            got = 1;
        else if (managed_interrupted())
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
    b->token = (int)(w != NULL ? fji_compensate_begin(w) : FJI_KEPT_SLOT);
}

/* ---- Time ------------------------------------------------------------------------------------------ */

/* The moment at which a limit is over; FJ_FOREVER: never. */
static int64_t managed_end(int64_t timeout_ns)
{
    int64_t now = fji_plat_now();

    return timeout_ns > FJ_FOREVER - now ? FJ_FOREVER : now + timeout_ns;
}

/* A moment as the system wants it. */
static struct timespec managed_timespec(int64_t at)
{
    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* In a lot, though nothing but an interrupt concerns it there. */
static int sleep_until(fji_worker *w, int64_t end)
{
    uint32_t *bucket = fji_wait_bucket(w);
    int64_t pause = 0;
    bool go_on;

    fji_interruptible_begin(w, bucket);
    do {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): an interrupt is seen below. */
        uint32_t seen = fji_load_acquire(bucket);
        go_on = !fji_interrupted(w);
        if (go_on) (void)fji_plat_wait(bucket, seen, earlier(end, fji_compensate_retry(w, &pause)));
    } while (go_on && fji_plat_now() < end);
    fji_interruptible_end(w);
    return go_on ? FJ_OK : FJ_ECANCELED;
}

int fj_sleep_ns(int64_t ns)
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

/* While a refused thread is asked for, a lock is tried again and again, in place of a call with a
 * limit, which the thread sanitizer does not know. */
static int mutex_try_until(pthread_mutex_t *m, int64_t end)
{
    uint32_t word = 0;
    int err;

    do {
        (void)fji_plat_wait(&word, 0, earlier(end, fji_plat_now() + FJI_RETRY_LOCK_NS));
        err = pthread_mutex_trylock(m);
    } while (err == EBUSY && fji_plat_now() < end);
    return err;
}

int fj_block_mutex_lock(pthread_mutex_t *m)
{
    fj_blocking b;
    int64_t pause = 0;

    if (m == NULL) return FJ_EINVAL;
    int err = pthread_mutex_trylock(m);
    if (err != EBUSY) return -err;
    managed_begin(&b);
    do {
        int64_t look = managed_retry(&b, &pause);
        err = look == FJ_FOREVER ? pthread_mutex_lock(m) : mutex_try_until(m, look);
    } while (err == EBUSY);
    fj_block_end(&b);
    return -err;
}

int fj_block_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t timeout_ns)
{
    fj_blocking b;
    int err;

    if (c == NULL || m == NULL) return FJ_EINVAL;
    if (timeout_ns <= 0) return FJ_ETIMEDOUT;
    int64_t end = managed_end(timeout_ns), pause = FJI_RETRY_MAX_NS;
    managed_begin(&b);
    /* A second wait could miss a signal that came after the first: a retry returns early. */
    int64_t look = earlier(end, managed_retry(&b, &pause));
    struct timespec at = managed_timespec(look);
    if (look == FJ_FOREVER)
        err = pthread_cond_wait(c, m);
    else
        err = pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &at);
    if (err == ETIMEDOUT && look < end) err = 0;
    fj_block_end(&b);
    return -err;
}

/* As mutex_try_until(). */
static int sem_try_until(sem_t *s, int64_t end)
{
    uint32_t word = 0;
    int err;

    do {
        (void)fji_plat_wait(&word, 0, earlier(end, fji_plat_now() + FJI_RETRY_LOCK_NS));
        err = sem_trywait(s) == 0 ? 0 : errno;
    } while (err == EAGAIN && fji_plat_now() < end);
    return err == EAGAIN ? ETIMEDOUT : err;
}

/* Until `look`, which is `end` unless a refused thread is asked for then. */
static int sem_wait_once(sem_t *s, int64_t look, int64_t end)
{
    struct timespec at = managed_timespec(end);

    if (look < end) return sem_try_until(s, look);
    if (end == FJ_FOREVER) return sem_wait(s) == 0 ? 0 : errno;
    return sem_clockwait(s, CLOCK_MONOTONIC, &at) == 0 ? 0 : errno;
}

int fj_block_sem_wait(sem_t *s, int64_t timeout_ns)
{
    fj_blocking b;
    int keep = errno, err = 0;

    if (s == NULL) return FJ_EINVAL;
    if (sem_trywait(s) != 0) {
        err = errno;
        if (err == EAGAIN && timeout_ns <= 0) err = ETIMEDOUT;
    }
    if (err == EAGAIN || err == EINTR) {
        int64_t end = managed_end(timeout_ns), look, pause = 0;
        managed_begin(&b);
        do {
            look = earlier(end, managed_retry(&b, &pause));
            err = sem_wait_once(s, look, end);
            if (err == EINTR && managed_interrupted()) err = ECANCELED;
        } while (err == EINTR || (err == ETIMEDOUT && look < end));
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

/* For a wait in the system that an interrupt of the task breaks, if its pool has a signal. */
static void files_begin(fj_blocking *b)
{
    managed_begin(b);
    if (b->worker != NULL) fji_syscall_begin(b->worker);
}

static void files_end(fj_blocking *b)
{
    if (b->worker != NULL) fji_syscall_end(b->worker);
    fj_block_end(b);
}

/* The same until it is ready, the time is over, or the task is interrupted. */
static int files_poll(const fj_blocking *b, struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    int64_t end = managed_end(timeout_ns), look, pause = 0;
    int got;

    do {
        look = earlier(end, managed_retry(b, &pause));
        int64_t now = fji_plat_now();
        got = files_wait(fds, n, look == FJ_FOREVER ? FJ_FOREVER : look > now ? look - now : 0);
        if (got == -EINTR && managed_interrupted()) got = FJ_ECANCELED;
    } while (got == -EINTR || (got == 0 && look < end));
    return got;
}

int fj_block_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    fj_blocking b;
    struct timespec none = {0};

    if (fds == NULL && n != 0) return FJ_EINVAL;
    int keep = errno, got = ppoll(fds, n, &none, NULL);
    got = got >= 0 ? got : -errno;
    if ((got == 0 || got == -EINTR) && timeout_ns > 0) {
        files_begin(&b);
        got = files_poll(&b, fds, n, timeout_ns);
        files_end(&b);
    }
    errno = keep;
    return got;
}

struct transfer {
    int fd;
    bool writes;
    void *in;
    const void *out;
    size_t n;
};

static ssize_t transfer_once(const struct transfer *t)
{
    ssize_t got = t->writes ? write(t->fd, t->out, t->n) : read(t->fd, t->in, t->n);
    return got >= 0 ? got : -errno;
}

static struct pollfd transfer_poll(const struct transfer *t)
{
    return (struct pollfd){.fd = t->fd, .events = t->writes ? POLLOUT : POLLIN};
}

/* Whether the system refuses the call, or is not to wait in it: poll knows nothing of either. */
static bool transfer_refused(const struct transfer *t)
{
    int flags = fcntl(t->fd, F_GETFL);

    if (flags < 0 || (flags & O_NONBLOCK) != 0) return true;
    return (flags & O_ACCMODE) == (t->writes ? O_RDONLY : O_WRONLY);
}

/* Whether it will not wait, as far as that is known: much that is written may have to. A read of
 * no byte never does. */
static bool transfer_ready(const struct transfer *t)
{
    struct pollfd one = transfer_poll(t);
    struct timespec none = {0};
    bool asks = !t->writes || t->n <= PIPE_BUF;

    if (!t->writes && t->n == 0) return true;
    return (asks && ppoll(&one, 1, &none, NULL) != 0) || transfer_refused(t);
}

/*
 * Where an interrupt sends a signal, poll waits for the file: a read or write could not be broken
 * without a race. Elsewhere the call itself waits, so that its answer is the system's in every
 * case; also for no byte, for which a file that is not ready may have an answer at once.
 */
static bool transfer_polls(const struct transfer *t)
{
    const fji_worker *w = fji_worker_self();

    return w != NULL && w->pool->options.interrupt_signal != 0 && t->n != 0;
}

static ssize_t transfer_wait(const fj_blocking *b, const struct transfer *t)
{
    struct pollfd one = transfer_poll(t);
    bool polls = transfer_polls(t);
    ssize_t got;

    do {
        got = polls ? files_poll(b, &one, 1, FJ_FOREVER) : 1;
        if (got > 0) got = transfer_once(t);
        if (got == -EINTR && managed_interrupted()) got = FJ_ECANCELED;
    } while (got == -EINTR);
    return got;
}

static ssize_t transfer_run(const struct transfer *t)
{
    struct managed_tries tries = {0};
    fj_blocking b;
    int keep = errno;
    ssize_t got = -EINTR;

    if (transfer_ready(t)) got = transfer_once(t);
    if (got == -EINTR) {
        files_begin(&b);
        (void)managed_insist(&b, &tries, NULL, NULL);
        got = transfer_wait(&b, t);
        files_end(&b);
    }
    errno = keep;
    return got;
}

ssize_t fj_block_read(int fd, void *buf, size_t n)
{
    struct transfer t = {.fd = fd, .in = buf, .n = n};

    return buf != NULL || n == 0 ? transfer_run(&t) : FJ_EINVAL;
}

ssize_t fj_block_write(int fd, const void *buf, size_t n)
{
    struct transfer t = {.fd = fd, .writes = true, .out = buf, .n = n};

    return buf != NULL || n == 0 ? transfer_run(&t) : FJ_EINVAL;
}
