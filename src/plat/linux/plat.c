/* SPDX-License-Identifier: MIT */
/*
 * linux/plat.c - waiting by futex, the heavy fence by membarrier, CPUs by affinity
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../atomic.h"
#include "../../config.h"
#include "../plat_common.h"

/* From linux/membarrier.h, which older systems do not have. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                          .tv_nsec = (long)(deadline_ns % 1000000000)};
    struct timespec *limit = deadline_ns == FJ_FOREVER ? NULL : &ts;

    if (limit != NULL && deadline_ns <= fji_plat_now()) return false;
    /* BITSET takes an absolute time on the monotonic clock. */
    int keep = errno;
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, limit, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    bool in_time = !(r == -1 && errno == ETIMEDOUT);
    errno = keep;
    return in_time;
}

void fji_plat_wake_one(uint32_t *word)
{
    int keep = errno; /* a wake on memory that is gone may fail, and nobody minds */
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    errno = keep;
}

void fji_plat_wake_all(uint32_t *word)
{
    int keep = errno;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
    errno = keep;
}

bool fji_plat_barrier(void)
{
    if (fji_fault_now(FJI_FAULT_BARRIER)) return false;
    int keep = errno;
    bool done = syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0;
    errno = keep;
    return done;
}

bool fji_plat_has_barrier(void)
{
    /* Registration is per process, is inherited over fork and costs 0.6 us. */
    if (FJI_SYMMETRIC || FJI_TSAN || fji_fault_now(FJI_FAULT_BARRIER)) return false;
    int keep = errno;
    bool has = syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
               syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0;
    errno = keep;
    return has;
}

int fji_plat_cpus_online(void)
{
    /* A machine may have more CPUs than cpu_set_t has bits: ask for more until it fits. */
    for (size_t bits = CPU_SETSIZE; bits <= 1u << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (set == NULL) break;
        size_t bytes = CPU_ALLOC_SIZE(bits);
        int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : -1;
        CPU_FREE(set);
        if (n > 0) return n;
        if (errno != EINVAL) break;
    }
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
