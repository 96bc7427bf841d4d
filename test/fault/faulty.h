/* SPDX-License-Identifier: MIT */
/*
 * faulty.h - faults that are set, and what may come of them
 *
 * A program of these tests asks may() of every code it gets: FJ_OK, or the error that a fault
 * which was set, and has been met, accounts for. Any other code is a failure of the test. Where
 * the headers say that something cannot fail the programs do not ask.
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
#include "pool/common_pool.h"
#include "sched/pool.h"

#define FOR_EVER 1000000000l

static const char *const fault_names[FJI_FAULT_N] = {
    [FJI_FAULT_ALLOC] = "alloc",         [FJI_FAULT_COMMIT] = "commit",
    [FJI_FAULT_THREAD] = "thread",       [FJI_FAULT_BARRIER] = "barrier",
    [FJI_FAULT_RESERVE] = "reserve",     [FJI_FAULT_ATTR] = "attr",
    [FJI_FAULT_ATFORK] = "atfork",       [FJI_FAULT_AFFINITY] = "affinity",
    [FJI_FAULT_SYSCONF] = "sysconf",     [FJI_FAULT_MEMBARRIER] = "membarrier",
    [FJI_FAULT_WAIT] = "wait",           [FJI_FAULT_WAIT_LATE] = "wait late",
    [FJI_FAULT_WAKE_LATE] = "wake late", [FJI_FAULT_WAKE_MORE] = "wake more",
    [FJI_FAULT_JUMP] = "jump",           [FJI_FAULT_STILL] = "still",
};

static inline void need_faults(void)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
}

/* ---- What is set ------------------------------------------------------------------------- */

/* The call from which on a kind may fail, by fji_fault_calls(); 0: it does not. */
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

/* From now on nothing fails. */
static inline void calm(void)
{
    for (int kind = 0; kind < FJI_FAULT_N; kind++) {
        fji_fault_set((enum fji_fault)kind, 1, 0);
        fji_fault_random((enum fji_fault)kind, 0, 0);
        fault_from[kind] = 0;
    }
}

/* Whether such a fault was set and has been met. */
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

/* What a call may return that needs memory; and one that needs a thread as well. */
static inline bool may(int err)
{
    return err == FJ_OK || (err == FJ_ENOMEM && no_memory());
}

static inline bool may_timer(int err)
{
    return may(err) || (err == FJ_EAGAIN && no_thread());
}

#define CHECK_MAY(err)                                                                \
    do {                                                                              \
        int faulty_err = (err);                                                       \
        if (!may(faulty_err))                                                         \
            fjt_fail(__FILE__, __LINE__, "%s = %s", #err, fj_error_name(faulty_err)); \
    } while (0)

/* ---- What is left behind ------------------------------------------------------------------ */

/* A thread of the common pool, which stays: tasks that a thread from outside has to run
 * itself, for want of everything, fork into that pool. */
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

/* A thread that was joined may still be on its way out for a moment. */
static inline void await_threads(int n)
{
    while (threads_alive() > n) sched_yield();
}

/* Pages of address space: what LeakSanitizer does not see. */
static inline long pages_mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = -1;

    if (f == NULL) return -1;
    if (fscanf(f, "%ld", &pages) != 1) pages = -1;
    fclose(f);
    return pages;
}

/* Ranges of queues are 64 MiB and more; the stacks that glibc keeps are 40 MiB at most. */
static inline void check_pages(long before)
{
    long grown = pages_mapped() - before;

    /* The common pool, which a thread that gets nothing falls back to, is never given back. */
    if (fjt_sanitized() || before < 0 || fji_common_if_made() != NULL) return;
    if (grown > (60l << 20) / (long)fji_plat_page())
        fjt_fail(__FILE__, __LINE__, "%ld pages of addresses were not given back", grown);
}

static inline void one_arena(void)
{
    mallopt(M_ARENA_MAX, 1); /* one for each thread would look like a leak of addresses */
}

#endif /* FAULTY_H */
