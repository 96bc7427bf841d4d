/* SPDX-License-Identifier: MIT */
/*
 * linux/plat.c - waiting by futex, the heavy fence by membarrier, number of CPUs by affinity
 *
 * plat.h says what each function does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../atomic.h"
#include "../config.h"
#include "../nocancel.h"
#include "../unix.h"

/* The values of linux/membarrier.h, a header that older systems do not have. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns)
{
    bool limited = deadline_ns != FJ_FOREVER;

    if (limited && deadline_ns <= fji_plat_now()) return false;
    if (fji_fault_now(FJI_FAULT_WAIT)) return true;
    fji_fault_late(FJI_FAULT_WAIT_LATE);
    int64_t at = limited ? fji_plat_system_time(deadline_ns) : 0;
    struct timespec ts = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    struct timespec *limit = limited ? &ts : NULL;
    FJI_CHAOS_POINT(); /* after the caller's load of the word, before the system compares it */
    int keep = errno;
    /* FUTEX_WAIT_BITSET takes a deadline, a time of the monotonic clock, and not a duration. */
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, limit, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    bool in_time = !(r == -1 && errno == ETIMEDOUT);
    errno = keep;
    return in_time || (FJI_FAULTS && fji_plat_now() < deadline_ns);
}

static void futex_wake(uint32_t *word, int n)
{
    FJI_CHAOS_POINT(); /* after the caller has changed the word, before threads are woken */
    int keep = errno;
    /* For a private futex the system uses only the address: the memory may already be freed. */
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, NULL, NULL, 0);
    errno = keep;
}

static void wake(uint32_t *word, int n)
{
    fji_fault_late(FJI_FAULT_WAKE_LATE);
    futex_wake(word, n);
    if (fji_fault_now(FJI_FAULT_WAKE_MORE)) futex_wake(word, INT32_MAX);
}

void fji_plat_wake_one(uint32_t *word)
{
    wake(word, 1);
}

void fji_plat_wake_all(uint32_t *word)
{
    wake(word, INT32_MAX);
}

/*
 * The heavy fence if the system refuses membarrier. It waits for 1 ms. A store that a processor has
 * executed becomes visible to the other processors within microseconds, and at once if the thread
 * is interrupted or leaves the core. Consider another thread that stores X, executes a light fence,
 * and then does not see what the caller stored before this call. That thread has executed its store
 * of X before the caller's stores became visible, so the caller sees X when this call returns.
 */
static void wait_for_stores(void)
{
    struct timespec left = {.tv_nsec = 1000000};
    int old = fji_nocancel_begin();

    /* [plat.stores] the caller's stores above, the sleep below: other threads can see the stores
     * when the sleep begins. The comment of this function explains why the order is needed. */
    fji_fence_full();
    while (nanosleep(&left, &left) != 0) {} /* repeated if a signal interrupts it */
    /* [plat.stores] the sleep above, the caller's loads below: the loads see the stores of other
     * threads that became visible during the sleep. */
    fji_fence_full();
    fji_nocancel_end(old);
}

bool fji_plat_barrier(void)
{
    if (fji_fault_now(FJI_FAULT_BARRIER)) return false;
    FJI_CHAOS_POINT();
    int keep = errno;
    bool done = !fji_fault_now(FJI_FAULT_MEMBARRIER) &&
                syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0;
    if (!done) wait_for_stores();
    errno = keep;
    return true;
}

bool fji_plat_has_barrier(void)
{
    if (FJI_SYMMETRIC || FJI_TSAN || fji_fault_now(FJI_FAULT_BARRIER)) return false;
    int keep = errno;
    /* A process has to register before it may use membarrier. The registration takes 0.6 us, and
     * child processes inherit it. */
    bool has = syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
               syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0;
    errno = keep;
    return has;
}

int fji_plat_cpus_online(void)
{
    /* If the machine has more CPUs than the mask has bits, sched_getaffinity() fails with EINVAL,
     * and the loop tries a larger mask. */
    for (size_t bits = CPU_SETSIZE; bits <= 1u << 20; bits *= 2) {
        cpu_set_t *set = CPU_ALLOC(bits);
        if (set == NULL) break;
        size_t bytes = CPU_ALLOC_SIZE(bits);
        int n = -1;
        if (fji_fault_now(FJI_FAULT_AFFINITY))
            errno = EPERM;
        else if (sched_getaffinity(0, bytes, set) == 0)
            n = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (n > 0) return n;
        if (errno != EINVAL) break;
    }
    return fji_fault_now(FJI_FAULT_SYSCONF) ? -1 : (int)sysconf(_SC_NPROCESSORS_ONLN);
}
