/* SPDX-License-Identifier: MIT */
/*
 * posix/plat.c - waiting by mutex and condition variable, no heavy fence
 *
 * plat.h says what each function does.
 *
 * The address of a word selects one of POSIX_BUCKETS buckets. A bucket is a mutex and a condition
 * variable; it is not a wait bucket in the sense of src/README.md. A waiter locks the mutex of the
 * bucket, compares the word, and sleeps on the condition variable, which unlocks the mutex. A wake
 * function locks the same mutex. So a wake-up that follows a change of the word is not lost. A wake
 * function wakes all threads that sleep in the bucket. It may do so, because fji_plat_wait() may
 * return without a wake-up.
 *
 * Edges        from                            to                         carries
 *   plat.word  the mutex, fji_plat_wake_all()  acquire, fji_plat_wait()   the change of the word
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../atomic.h"
#include "../config.h"
#include "../nocancel.h"
#include "../unix.h"

#define POSIX_BUCKETS 64

static struct posix_bucket {
    FJI_ALIGNAS(FJI_CACHE_PAIR) pthread_mutex_t mutex;
    pthread_cond_t cond;
} posix_bucket[POSIX_BUCKETS];

static pthread_once_t posix_once = PTHREAD_ONCE_INIT;

static void posix_init(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (int i = 0; i < POSIX_BUCKETS; i++) {
        pthread_mutex_init(&posix_bucket[i].mutex, NULL);
        pthread_cond_init(&posix_bucket[i].cond, &attr);
    }
    pthread_condattr_destroy(&attr);
}

/* Called in the child process after fork(). Initialises the mutex and the condition variable of
 * each bucket again, because a thread that held such a mutex in the parent process does not exist
 * in the child process. */
static void posix_child(void)
{
    posix_init();
}

static void posix_init_once(void)
{
    posix_init();
    (void)fji_plat_register_fork(NULL, NULL, posix_child);
}

static struct posix_bucket *posix_of(const uint32_t *word)
{
    pthread_once(&posix_once, posix_init_once);
    uint64_t x = (uint64_t)(uintptr_t)word >> 2;
    return &posix_bucket[(x * 0x9e3779b97f4a7c15u) >> 58];
}

bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns)
{
    struct posix_bucket *b = posix_of(word);
    bool limited = deadline_ns != FJ_FOREVER;
    int err = 0;

    if (limited && deadline_ns <= fji_plat_now()) return false;
    if (fji_fault_now(FJI_FAULT_WAIT)) return true;
    fji_fault_late(FJI_FAULT_WAIT_LATE);
    int64_t at = limited ? fji_plat_system_time(deadline_ns) : 0;
    struct timespec ts = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    FJI_CHAOS_POINT(); /* after the caller's load of the word, before the comparison below */
    /* A thread that was cancelled in its wait would leave the mutex locked. */
    int old = fji_nocancel_begin();
    pthread_mutex_lock(&b->mutex);
    /* [plat.word] acquire <- the mutex in fji_plat_wake_all(): if a wake-up came before this lock
     * of the mutex, the change of the word before that wake-up is seen here. */
    if (fji_load_acquire(word) == value)
        err = limited ? pthread_cond_timedwait(&b->cond, &b->mutex, &ts)
                      : pthread_cond_wait(&b->cond, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
    fji_nocancel_end(old);
    return err != ETIMEDOUT || (FJI_FAULTS && fji_plat_now() < deadline_ns);
}

void fji_plat_wake_one(uint32_t *word)
{
    /* Many words share a bucket. If only one thread were woken, it could be a thread that sleeps on
     * another word, and all threads that sleep on this word would continue to sleep. */
    fji_plat_wake_all(word);
}

void fji_plat_wake_all(uint32_t *word)
{
    struct posix_bucket *b = posix_of(word);

    FJI_CHAOS_POINT(); /* after the caller has changed the word, before threads are woken */
    fji_fault_late(FJI_FAULT_WAKE_LATE);
    /* With the fault WAKE_MORE there is a second broadcast. It also wakes threads that began to
     * sleep after the first one.
     * [plat.word] the mutex -> acquire in fji_plat_wait(): the change of the word. A thread that
     * compared the word before this lock of the mutex already sleeps, and is woken. */
    for (int more = fji_fault_now(FJI_FAULT_WAKE_MORE); more >= 0; more--) {
        pthread_mutex_lock(&b->mutex);
        pthread_cond_broadcast(&b->cond);
        pthread_mutex_unlock(&b->mutex);
    }
}

bool fji_plat_has_barrier(void)
{
    return false;
}

bool fji_plat_barrier(void)
{
    return false;
}

int fji_plat_cpus_online(void)
{
    return fji_fault_now(FJI_FAULT_SYSCONF) ? -1 : (int)sysconf(_SC_NPROCESSORS_ONLN);
}
