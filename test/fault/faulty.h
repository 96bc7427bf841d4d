/* SPDX-License-Identifier: MIT */
/*
 * faulty.h - sets faults, and tells which results they explain
 *
 * A program of these tests checks every code that it gets with may(): the code is FJ_OK, or the
 * error that a fault explains which was set and has occurred. Any other code fails the test. The
 * programs do not use may() for calls that cannot fail according to the headers.
 */
#ifndef FAULTY_H
#define FAULTY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "fjtest.h"
#include "plat/config.h"
#include "plat/unix.h"
#include "pool/common_pool.h"
#include "sched/pool.h"

#define FOR_EVER 1000000000l

static const char *const fault_names[FJI_FAULT_N] = {
    [FJI_FAULT_ALLOC] = "alloc",         [FJI_FAULT_COMMIT] = "commit",
    [FJI_FAULT_THREAD] = "thread",       [FJI_FAULT_BARRIER] = "barrier",
    [FJI_FAULT_RESERVE] = "reserve",     [FJI_FAULT_ATTR] = "attr",
    [FJI_FAULT_ATFORK] = "atfork",       [FJI_FAULT_AFFINITY] = "affinity",
    [FJI_FAULT_SYSCONF] = "sysconf",     [FJI_FAULT_MEMBARRIER] = "membarrier",
    [FJI_FAULT_EVENT] = "event",         [FJI_FAULT_WAIT] = "wait",
    [FJI_FAULT_WAIT_LATE] = "wait late", [FJI_FAULT_WAKE_LATE] = "wake late",
    [FJI_FAULT_WAKE_MORE] = "wake more", [FJI_FAULT_JUMP] = "jump",
    [FJI_FAULT_STILL] = "still",
};

static inline void need_faults(void)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
}

/* ---- Setting faults ------------------------------------------------------------------------- */

/* For each kind, the number of the first call that may fail, as fji_fault_calls() counts. 0: none
 * fails. */
static long fault_from[FJI_FAULT_N];

static inline void set_fault(enum fji_fault kind, long n, long count)
{
    fault_from[kind] = fji_fault_calls(kind) + n;
    fji_fault_set(kind, n, count);
}

static inline void set_chance(enum fji_fault kind, uint64_t seed, long one_in)
{
    fault_from[kind] = fji_fault_calls(kind) + 1;
    fji_fault_random(kind, seed, one_in);
}

/* Ends all faults. No later call fails. */
static inline void calm(void)
{
    for (int kind = 0; kind < FJI_FAULT_N; kind++) {
        fji_fault_set((enum fji_fault)kind, 1, 0);
        fji_fault_random((enum fji_fault)kind, 0, 0);
        fault_from[kind] = 0;
    }
}

/* Whether a fault of this kind was set and has occurred. */
static inline bool met(enum fji_fault kind)
{
    return fault_from[kind] != 0 && fji_fault_calls(kind) >= fault_from[kind];
}

static inline bool no_memory(void)
{
    return met(FJI_FAULT_ALLOC) || met(FJI_FAULT_COMMIT) || met(FJI_FAULT_RESERVE);
}

static inline bool no_thread(void)
{
    return met(FJI_FAULT_THREAD) || met(FJI_FAULT_ATTR) || met(FJI_FAULT_ALLOC);
}

/* may(): whether a call that needs memory may return this code. may_timer(): the same for a call
 * that also needs a thread. */
static inline bool may(int err)
{
    return err == FJ_OK || (err == FJ_ENOMEM && no_memory());
}

static inline bool may_timer(int err)
{
    return may(err) || (err == FJ_EAGAIN && no_thread());
}

#define CHECK_MAY(err)                                                               \
    do {                                                                             \
        int faulty_err = (err);                                                      \
        if (!may(faulty_err))                                                        \
            fjt_fail(__FILE__, __LINE__, "%s: %s", #err, fj_error_name(faulty_err)); \
    } while (0)

/* ---- Threads and memory that are left ------------------------------------------------------- */

/* Whether this is a thread of the common pool, which persists. If no resource is available, an
 * outside thread runs a submitted task itself, and what that task forks goes to the common pool. */
static inline bool is_common_thread(const char *task)
{
    char path[300], name[16] = "";

    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    size_t n = fread(name, 1, sizeof name - 1, f);
    fclose(f);
    return n > 0 && strncmp(name, "common-", 7) == 0;
}

static inline int threads_alive(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    int n = 0;

    if (d == NULL) return -1;
    while ((e = readdir(d)) != NULL) n += !is_common_thread(e->d_name);
    closedir(d);
    return n;
}

/* Waits until at most n threads are left. A thread that was joined may still exist for a moment. */
static inline void await_threads(int n)
{
    while (threads_alive() > n) sched_yield();
}

/* The number of mapped pages, without the ranges that the process keeps for the next pool.
 * LeakSanitizer does not report mapped pages. */
static inline long pages_mapped(void)
{
    long pages = -1;

    fji_plat_release_kept();
    FILE *f = fopen("/proc/self/statm", "re");

    if (f == NULL) return -1;
    if (fscanf(f, "%ld", &pages) != 1) pages = -1;
    fclose(f);
    return pages;
}

/* Checks that no range of a queue is left mapped. Such a range has at least 64 MiB; the stacks that
 * glibc keeps have at most 40 MiB. */
static inline void check_pages(long before)
{
    long grown = pages_mapped() - before;

    /* The common pool, which such an outside thread uses, is never unmapped. */
    if (fjt_sanitized() || before < 0 || fji_common_if_made() != NULL) return;
    if (grown > (60l << 20) / (long)fji_plat_page())
        fjt_fail(__FILE__, __LINE__, "%ld pages were not unmapped", grown);
}

static inline void one_arena(void)
{
    mallopt(M_ARENA_MAX, 1); /* an arena for each thread would look like leaked pages */
}

#endif /* FAULTY_H */
