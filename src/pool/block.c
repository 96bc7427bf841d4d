/* SPDX-License-Identifier: MIT */
/*
 * block.c - waits for something that is not a task (forkjoin/block.h)
 *
 * Most functions of this file wrap a call that may wait, for example fj_block_mutex_lock(). Where
 * possible, such a wrapper first tries the call without waiting. If it has to wait, it tells the
 * pool that the calling worker is blocked (sched/compensate.c), waits, and tells the pool that the
 * worker is active again.
 *
 * The system may have refused to start a thread that would replace the blocked worker: a "refused
 * thread" below. Then the blocked worker has to ask for the thread again from time to time
 * (fji_compensate_retry()), so it divides its wait into steps. In the functions below, `end` is the
 * deadline of the caller and `until` is the end of the current step. If `until` is earlier than
 * `end`, a timeout at `until` is not reported to the caller.
 *
 * Broadcasts (sched/safepoint.c). A worker takes part in a broadcast in fj_sleep_ns(), and before
 * and after it waits for a file. It does not take part in the other waits: a worker that takes a
 * lock may hold another one already, and a worker that has waited may hold the lock that it waited
 * for. Another worker, which waits for that lock, would not arrive.
 */
#include "plat/blocking.h"
#include "plat/wait.h"
#include "sched/compensate.h"
#include "sched/interrupt.h"
#include "sched/pool.h"
#include "sched/safepoint.h"
#include "sched/spawn.h"

/* ---- Begin and end --------------------------------------------------------------------------- */

/* Returns whether the calling thread is a worker or guest, and the task that it runs is
 * interrupted: cancelled with interrupt, or the pool stops (fji_interrupted()). */
static bool block_interrupted(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL && fji_interrupted(w);
}

/* Returns the time at which the worker or guest b->worker has to ask again for a refused thread.
 * Returns FJ_FOREVER if it need not ask, or if b->worker is NULL because the calling thread works
 * for no pool. *pause: the pause before the next attempt, in ns; the caller sets it to 0 before the
 * first call of a wait (see fji_compensate_retry()). */
static int64_t block_retry(const fj_blocking *b, int64_t *pause)
{
    return b->worker != NULL ? fji_compensate_retry(b->worker, pause) : FJ_FOREVER;
}

/*
 * Returns whether p is stuck: p is short of a worker, and no worker of p is active. But returns
 * false if at least FJI_RETRY_TRIES starts in a row were refused, the first of them at least
 * FJI_RETRY_WAIT_NS ago. Then the caller gives up and does not delay its wait any longer.
 */
static bool block_pool_is_stuck(fj_pool *p)
{
    int64_t since = fji_load_relaxed(&p->spawn_refused_ns); /* relaxed: a hint */

    if (fji_load_relaxed(&p->spawn_refused) >= FJI_RETRY_TRIES && /* relaxed: a hint */
        fji_plat_now() - since >= FJI_RETRY_WAIT_NS)
        return false;
    return fji_spawn_is_stuck(p);
}

/* Returns whether block_pool_is_stuck() is true for a pool in which the thread of w is a worker or
 * a guest. */
static bool block_any_is_stuck(const fji_worker *w)
{
    for (; w != NULL; w = fji_worker_outer(w))
        if (block_pool_is_stuck(w->pool)) return true;
    return false;
}

/* What block_delay() keeps from one call to the next: `next`, the time (fji_plat_now()) at which it
 * asks again for a refused thread, and `pause`, the last pause between two requests, ns. Both are 0
 * before the first call, and while no pool of the thread is short of a worker. */
struct block_tries {
    int64_t next, pause;
};

/*
 * Called before a wait during which the library cannot ask for a refused thread, for example a
 * wait in a callback of the program. Delays that wait: asks for a thread again and again while a
 * pool of the calling thread is stuck (block_any_is_stuck()). Returns true as soon as ready(arg)
 * returns true, so that the caller need not wait. Returns false when no pool is stuck, when the
 * task of the calling thread is interrupted, or if the thread works for no pool. `ready` may be
 * NULL: the result is then always false.
 */
static bool block_delay(const fj_blocking *b, struct block_tries *t, int (*ready)(void *arg),
                        void *arg)
{
    fji_worker *w = b->worker;
    uint32_t word = 0;

    while (w != NULL) {
        if (fji_plat_now() >= t->next) t->next = fji_compensate_retry(w, &t->pause);
        if (t->next == FJ_FOREVER) *t = (struct block_tries){0};
        if (t->next == 0 || !block_any_is_stuck(w) || block_interrupted()) break;
        (void)fji_plat_wait(&word, 0, t->next);
        if (ready != NULL && ready(arg)) return true;
    }
    return false;
}

/* Fills *b. If the calling thread is a worker, counts it as blocked until fj_block_end(). Returns
 * FJ_OK. Returns FJ_ESATURATED, and changes nothing, if the allow_saturation callback of the pool
 * refuses; the caller then does not call fj_block_end(). */
static int block_try_begin(fj_blocking *b)
{
    fji_worker *w = fji_worker_self();
    fji_compensation c = w != NULL ? fji_compensate_try_begin(w) : FJI_UNCOUNTED;

    if (c == FJI_SATURATED) return FJ_ESATURATED;
    b->worker = w;
    b->token = (int)c;
    return FJ_OK;
}

int fj_block_begin(fj_blocking *b)
{
    struct block_tries tries = {0};

    if (b == NULL) return FJ_EINVAL;
    int err = block_try_begin(b);
    if (err == FJ_OK) (void)block_delay(b, &tries, NULL, NULL);
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
    struct block_tries tries = {0};
    fj_blocking b;
    int err, got = 0;

    if (ready == NULL || block == NULL) return FJ_EINVAL;
    if (ready(arg)) return FJ_OK;
    if ((err = block_try_begin(&b)) != FJ_OK) return err;
    do {
        if (block_delay(&b, &tries, ready, arg))
            got = 1;
        else if (block_interrupted())
            err = FJ_ECANCELED;
        else if ((got = block(arg)) < 0)
            err = got;
    } while (err == FJ_OK && got == 0 && !ready(arg));
    fj_block_end(&b);
    return err;
}

/* Fills *b. If the calling thread is a worker, counts it as blocked until fj_block_end(). Unlike
 * block_try_begin(), does so even if the allow_saturation callback refuses. */
static void block_begin(fj_blocking *b)
{
    fji_worker *w = fji_worker_self();

    b->worker = w;
    b->token = (int)(w != NULL ? fji_compensate_begin(w) : FJI_UNCOUNTED);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sleeps until the time `end`. Called by w, which *b says is blocked. Returns FJ_OK, or FJ_ECANCELED
 * if the task of w is interrupted. w sleeps on its wait bucket, because an interrupt notifies the
 * bucket. If the bucket is notified for another reason, or a broadcast has ended the sleep, w sleeps
 * again. */
static int sleep_until(fji_worker *w, fj_blocking *b, int64_t end)
{
    uint32_t *bucket = fji_wait_bucket(w);
    int64_t pause = 0;
    bool should_continue;

    fji_interruptible_begin(w, bucket);
    do {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): the interrupt, which
         * fji_interrupted() then sees. */
        uint32_t seen = fji_load_acquire(bucket);
        should_continue = !fji_interrupted(w);
        if (should_continue)
            (void)fji_safepoint_sleep(w, bucket, seen,
                                      earlier(end, fji_compensate_retry(w, &pause)));
        if (fji_called(w)) {
            fji_interruptible_end(w);
            b->token = (int)fji_safepoint_blocked(w, (fji_compensation)b->token);
            fji_interruptible_begin(w, bucket);
        }
    } while (should_continue && fji_plat_now() < end);
    fji_interruptible_end(w);
    return should_continue ? FJ_OK : FJ_ECANCELED;
}

int fj_sleep_ns(int64_t ns)
{
    fji_worker *w = fji_worker_self();
    fj_blocking b;
    int64_t end = fji_deadline(ns);
    uint32_t word = 0;

    if (w == NULL) {
        while (fji_plat_now() < end) (void)fji_plat_wait(&word, 0, end);
        return FJ_OK;
    }
    block_begin(&b);
    int err = sleep_until(w, &b, end);
    fj_block_end(&b);
    return err;
}

/* ---- Mutexes, condition variables, semaphores ------------------------------------------------ */

/* Tries to lock m every FJI_RETRY_LOCK_NS until the time `until`. Returns FJ_OK, an error, or
 * FJ_EBUSY if another thread still has m locked then. A lock call with a timeout would do the same,
 * but ThreadSanitizer does not know that call. */
static int mutex_try_until(pthread_mutex_t *m, int64_t until)
{
    uint32_t word = 0;
    int err;

    do {
        (void)fji_plat_wait(&word, 0, earlier(until, fji_plat_now() + FJI_RETRY_LOCK_NS));
        err = fji_plat_mutex_trylock(m);
    } while (err == FJ_EBUSY && fji_plat_now() < until);
    return err;
}

int fj_block_mutex_lock(pthread_mutex_t *m)
{
    fj_blocking b;
    int64_t pause = 0;

    if (m == NULL) return FJ_EINVAL;
    int err = fji_plat_mutex_trylock(m);
    if (err != FJ_EBUSY) return err;
    block_begin(&b);
    do {
        int64_t until = block_retry(&b, &pause);
        err = until == FJ_FOREVER ? fji_plat_mutex_lock(m) : mutex_try_until(m, until);
    } while (err == FJ_EBUSY);
    fj_block_end(&b);
    return err;
}

int fj_block_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t timeout_ns)
{
    fj_blocking b;

    if (c == NULL || m == NULL) return FJ_EINVAL;
    if (timeout_ns <= 0) return FJ_ETIMEDOUT;
    int64_t end = fji_deadline(timeout_ns), pause = FJI_RETRY_MAX_NS;
    block_begin(&b);
    /* The worker waits only once, because between two waits it would miss a pthread_cond_signal().
     * If `until`, at which the worker has to ask again for a refused thread, is earlier than `end`,
     * the call may return FJ_OK without a signal, which its contract allows. */
    int64_t until = earlier(end, block_retry(&b, &pause));
    int err = fji_plat_cond_wait(c, m, until);
    if (err == FJ_ETIMEDOUT && until < end) err = FJ_OK;
    fj_block_end(&b);
    return err;
}

/* Tries to decrement s every FJI_RETRY_LOCK_NS until the time `until`. Returns FJ_OK, an error, or
 * FJ_ETIMEDOUT if the value of s is still 0 then. */
static int sem_try_until(sem_t *s, int64_t until)
{
    uint32_t word = 0;
    int err;

    do {
        (void)fji_plat_wait(&word, 0, earlier(until, fji_plat_now() + FJI_RETRY_LOCK_NS));
        err = fji_plat_sem_trywait(s);
    } while (err == FJ_EAGAIN && fji_plat_now() < until);
    return err == FJ_EAGAIN ? FJ_ETIMEDOUT : err;
}

int fj_block_sem_wait(sem_t *s, int64_t timeout_ns)
{
    fj_blocking b;
    int keep = fji_plat_errno();

    if (s == NULL) return FJ_EINVAL;
    int err = fji_plat_sem_trywait(s);
    if (err == FJ_EAGAIN && timeout_ns <= 0) err = FJ_ETIMEDOUT;
    if (err == FJ_EAGAIN || err == FJI_PLAT_EINTR) {
        int64_t end = fji_deadline(timeout_ns), until, pause = 0;
        block_begin(&b);
        do {
            until = earlier(end, block_retry(&b, &pause));
            err = until < end ? sem_try_until(s, until) : fji_plat_sem_wait(s, end);
            if (err == FJI_PLAT_EINTR && block_interrupted()) err = FJ_ECANCELED;
        } while (err == FJI_PLAT_EINTR || (err == FJ_ETIMEDOUT && until < end));
        fj_block_end(&b);
    }
    fji_plat_set_errno(keep);
    return err;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Returns the option interrupt_signal of the pool that the calling thread works for. Returns 0 if
 * the pool has none, or if the calling thread works for no pool. */
static int interrupt_signal(void)
{
    const fji_worker *w = fji_worker_self();
    return w != NULL ? w->pool->options.interrupt_signal : 0;
}

/* As block_begin(). In addition, if the calling thread is a worker and its pool has an
 * interrupt_signal: until files_end(), a thread that interrupts the worker's task sends that signal
 * to the worker. */
static void files_begin(fj_blocking *b)
{
    fji_safepoint(fji_worker_self());
    block_begin(b);
    if (b->worker != NULL) fji_syscall_begin(b->worker);
}

static void files_end(fj_blocking *b)
{
    if (b->worker != NULL) fji_syscall_end(b->worker);
    fj_block_end(b);
    fji_safepoint(fji_worker_self());
}

/* Makes one call of poll(). Returns what fji_plat_poll() returns. If the pool that the calling
 * thread works for has an interrupt_signal, an interrupt of the task before the call also ends it,
 * and the result is FJI_PLAT_EINTR. If the thread is a worker, not a guest, an interrupt during the
 * call ends it in the same way. */
static int files_poll_once(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    int signal = interrupt_signal();

    if (signal == 0) return fji_plat_poll(fds, n, timeout_ns);
    return fji_plat_poll_signal(fds, n, timeout_ns, signal, block_interrupted);
}

/* Waits until one of the n files has an event, the timeout has passed, or the task is interrupted.
 * Returns the number of files with an event, 0 after the timeout, FJ_ECANCELED after an interrupt,
 * or an error. Without an interrupt_signal of the pool, and in a guest, an interrupt does not end
 * the wait by itself. *b was filled by files_begin(). */
static int files_poll(const fj_blocking *b, struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    int64_t end = fji_deadline(timeout_ns), until, pause = 0;
    int got;

    do {
        until = earlier(end, block_retry(b, &pause));
        int64_t now = fji_plat_now();
        int64_t left = until == FJ_FOREVER ? FJ_FOREVER : until > now ? until - now : 0;
        got = files_poll_once(fds, n, left);
        if (got == FJI_PLAT_EINTR && block_interrupted()) got = FJ_ECANCELED;
    } while (got == FJI_PLAT_EINTR || (got == 0 && until < end));
    return got;
}

int fj_block_poll(struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
    fj_blocking b;

    if (fds == NULL && n != 0) return FJ_EINVAL;
    int keep = fji_plat_errno(), got = fji_plat_poll(fds, n, 0);
    if ((got == 0 || got == FJI_PLAT_EINTR) && timeout_ns > 0) {
        files_begin(&b);
        got = files_poll(&b, fds, n, timeout_ns);
        files_end(&b);
    }
    fji_plat_set_errno(keep);
    return got;
}

struct transfer {
    int fd;
    bool writes;     /* true: write(); false: read() */
    void *in;        /* of read(): the buffer */
    const void *out; /* of write(): the buffer */
    size_t n;        /* size of the buffer in bytes */
};

static ssize_t transfer_once(const struct transfer *t)
{
    return t->writes ? fji_plat_write(t->fd, t->out, t->n) : fji_plat_read(t->fd, t->in, t->n);
}

/*
 * Waits until the transfer is possible and makes it. Returns what read() or write() returned, or
 * FJ_ECANCELED if the task is interrupted.
 *
 * If the pool has an interrupt_signal, the worker waits in poll(). It cannot wait in read() or
 * write(), because a signal that arrives just before such a call does not end it. Without an
 * interrupt_signal, read() or write() itself waits, so that the caller gets exactly the result of
 * that system call. If n is 0, read() or write() is also called without poll(), because a transfer
 * of 0 bytes may return at once even if the file is not ready.
 */
static ssize_t transfer_wait(const fj_blocking *b, const struct transfer *t)
{
    struct pollfd one = {.fd = t->fd, .events = t->writes ? POLLOUT : POLLIN};
    bool polls = interrupt_signal() != 0 && t->n != 0;
    ssize_t got;

    do {
        got = polls ? files_poll(b, &one, 1, FJ_FOREVER) : 1;
        if (got > 0) got = transfer_once(t);
        if (got == FJI_PLAT_EINTR && block_interrupted()) got = FJ_ECANCELED;
    } while (got == FJI_PLAT_EINTR);
    return got;
}

static ssize_t transfer_run(const struct transfer *t)
{
    struct block_tries tries = {0};
    fj_blocking b;
    int keep = fji_plat_errno();
    ssize_t got = FJI_PLAT_EINTR;

    if (fji_plat_transfer_ready(t->fd, t->writes, t->n)) got = transfer_once(t);
    if (got == FJI_PLAT_EINTR) {
        files_begin(&b);
        (void)block_delay(&b, &tries, NULL, NULL);
        got = transfer_wait(&b, t);
        files_end(&b);
    }
    fji_plat_set_errno(keep);
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
