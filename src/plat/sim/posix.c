/* SPDX-License-Identifier: MIT */
/*
 * posix.c - the functions of posix.h, on the simulator
 *
 * Mutexes, condition variables, barriers and semaphores are words, at the beginning of the object,
 * that are accessed with acquire and release order only. So the simulator finds programs that rely
 * on a stronger order, such as that of a full fence.
 */
#include "posix.h"

#include <errno.h>

#include "engine.h"

#define HERE __builtin_return_address(0)

static uint32_t *word_of(void *object)
{
    return object;
}

static uint32_t posix_load(void *object)
{
    return (uint32_t)sim_load(word_of(object), 4, __ATOMIC_ACQUIRE, HERE);
}

static uint32_t posix_add(void *object, uint32_t n)
{
    return (uint32_t)sim_rmw(word_of(object), 4, SIM_ADD, n, __ATOMIC_ACQ_REL, HERE);
}

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct posix_start {
    void *(*main)(void *);
    void *arg;
};

static void posix_main(void *p)
{
    struct posix_start s = *(struct posix_start *)p;

    sim_free(p);
    (void)s.main(s.arg);
}

int sim_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    (void)attr;
    sim_point();
    struct posix_start *s = sim_alloc(sizeof *s, 16, true);
    *s = (struct posix_start){main, arg};
    int id = sim_thread_start(posix_main, s);
    if (id < 0) sim_fail("too many threads for the simulator");
    *out = (pthread_t)id;
    return 0;
}

int sim_pthread_join(pthread_t t, void **result)
{
    sim_thread_join((int)t);
    if (result != NULL) *result = NULL;
    return 0;
}

int sim_pthread_detach(pthread_t t)
{
    sim_thread_detach((int)t);
    return 0;
}

pthread_t sim_pthread_self(void)
{
    return (pthread_t)sim_self();
}

int sim_sched_yield(void)
{
    sim_yield();
    return 0;
}

int sim_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left;
    sim_sleep_until(sim_now() + ns_of(t));
    return 0;
}

int sim_nothing(void *object)
{
    (void)object;
    return 0;
}

/* ---- Mutexes: 0 free, 1 held ----------------------------------------------------------------- */

int sim_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
    (void)attr;
    *word_of(m) = 0;
    return 0;
}

int sim_mutex_trylock(pthread_mutex_t *m)
{
    uint64_t old = 0;
    return sim_cas(m, 4, &old, 1, __ATOMIC_ACQ_REL, HERE) ? 0 : EBUSY;
}

int sim_mutex_lock(pthread_mutex_t *m)
{
    while (sim_mutex_trylock(m) != 0) sim_wait(word_of(m), 1, INT64_MAX);
    return 0;
}

int sim_mutex_unlock(pthread_mutex_t *m)
{
    sim_store(m, 4, 0, __ATOMIC_RELEASE, HERE);
    sim_wake(word_of(m), false);
    return 0;
}

/* ---- Condition variables: a count of signals ------------------------------------------------- */

int sim_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr)
{
    (void)attr;
    *word_of(c) = 0;
    return 0;
}

static int cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t at)
{
    uint32_t seen = posix_load(c);

    sim_mutex_unlock(m);
    bool in_time = sim_wait(word_of(c), seen, at);
    sim_mutex_lock(m);
    return in_time ? 0 : ETIMEDOUT;
}

int sim_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    return cond_wait_until(c, m, INT64_MAX);
}

int sim_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                       const struct timespec *at)
{
    (void)clock;
    return cond_wait_until(c, m, ns_of(at));
}

int sim_cond_wake(pthread_cond_t *c)
{
    posix_add(c, 1);
    sim_wake(word_of(c), true);
    return 0;
}

/* ---- Barriers: threads that have arrived, round, size ---------------------------------------- */

int sim_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned n)
{
    (void)attr;
    word_of(b)[0] = word_of(b)[1] = 0;
    word_of(b)[2] = n;
    return 0;
}

int sim_barrier_wait(pthread_barrier_t *b)
{
    uint32_t *round = word_of(b) + 1, was = posix_load(round);

    if (posix_add(b, 1) + 1 == word_of(b)[2]) {
        sim_store(b, 4, 0, __ATOMIC_RELEASE, HERE);
        posix_add(round, 1);
        sim_wake(round, true);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (posix_load(round) == was) sim_wait(round, was, INT64_MAX);
    return 0;
}

/* ---- Semaphores: the value ------------------------------------------------------------------- */

int sim_sem_init(sem_t *s, int shared, unsigned value)
{
    (void)shared;
    *word_of(s) = value;
    return 0;
}

int sim_sem_trywait(sem_t *s)
{
    uint64_t n = posix_load(s);

    while (n > 0)
        if (sim_cas(s, 4, &n, n - 1, __ATOMIC_ACQ_REL, HERE)) return 0;
    errno = EAGAIN;
    return -1;
}

static int sem_wait_until(sem_t *s, int64_t at)
{
    while (sim_sem_trywait(s) != 0)
        if (!sim_wait(word_of(s), 0, at)) {
            errno = ETIMEDOUT;
            return -1;
        }
    return 0;
}

int sim_sem_wait(sem_t *s)
{
    return sem_wait_until(s, INT64_MAX);
}

int sim_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at)
{
    (void)clock;
    return sem_wait_until(s, ns_of(at));
}

int sim_sem_post(sem_t *s)
{
    posix_add(s, 1);
    sim_wake(word_of(s), true);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void *sim_malloc(size_t n)
{
    return sim_alloc(n, 16, false);
}

void *sim_calloc(size_t n, size_t each)
{
    return sim_alloc(n * each, 16, true);
}

void *sim_aligned_alloc(size_t align, size_t n)
{
    return sim_alloc(n, align, false);
}

void *sim_memset(void *p, int c, size_t n)
{
    if (sim_inside()) sim_plain(p, n, true, HERE);
    unsigned char *at = p;
    for (size_t i = 0; i < n; i++) at[i] = (unsigned char)c;
    return p;
}

void *sim_memcpy(void *to, const void *from, size_t n)
{
    if (sim_inside()) {
        sim_plain(from, n, false, HERE);
        sim_plain(to, n, true, HERE);
    }
    return __builtin_memmove(to, from, n);
}
