/* SPDX-License-Identifier: MIT */
/*
 * posix/plat.c - waiting by mutex and condition variable, no heavy fence
 *
 * A word that somebody waits on belongs to one of a fixed number of buckets, by its
 * address. Comparing and going to sleep are one under the bucket's mutex, and a wake
 * takes that mutex, so a wake after a change of the word is not lost. A bucket's
 * sleepers are all woken: waits may return without a reason.
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

/* In the child of fork() the buckets may be held by threads that are no more. */
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
    FJI_CHAOS_POINT();              /* the word was looked at, and is compared only now */
    int old = fji_nocancel_begin(); /* a wait that is cancelled would keep the mutex */
    pthread_mutex_lock(&b->mutex);
    /* [plat.word] acquire: stands in for the kernel's comparison under its lock. */
    if (fji_load_acquire(word) == value)
        err = limited ? pthread_cond_timedwait(&b->cond, &b->mutex, &ts)
                      : pthread_cond_wait(&b->cond, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
    fji_nocancel_end(old);
    return err != ETIMEDOUT || (FJI_FAULTS && fji_plat_now() < deadline_ns);
}

void fji_plat_wake_one(uint32_t *word)
{
    /* [plat.word] the mutex orders this after the comparison of whoever goes to sleep. A
     * bucket is shared by many words, so all its sleepers have to look. */
    fji_plat_wake_all(word);
}

void fji_plat_wake_all(uint32_t *word)
{
    struct posix_bucket *b = posix_of(word);

    FJI_CHAOS_POINT(); /* the word has changed, and whoever waited for that may go on before it is woken */
    fji_fault_late(FJI_FAULT_WAKE_LATE);
    /* A second broadcast finds those who have looked in between and sleep again. */
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
