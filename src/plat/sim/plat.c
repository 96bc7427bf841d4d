/* SPDX-License-Identifier: MIT */
/*
 * sim/plat.c - the functions of plat.h, implemented by the simulator
 *
 * plat.h says what each function does. The functions that no simulated source calls are missing:
 * fji_plat_thread_block_all(), fji_fault_and() and fji_fault_random().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../plat.h"
#include "engine.h"

#define HERE __builtin_return_address(0)

/* ---- Waiting, fences, time ------------------------------------------------------------------- */

bool fji_plat_wait(uint32_t *word, uint32_t value, int64_t deadline_ns)
{
    return sim_wait(word, value, deadline_ns);
}

void fji_plat_wake_one(uint32_t *word)
{
    sim_wake(word, false);
}

void fji_plat_wake_all(uint32_t *word)
{
    sim_wake(word, true);
}

bool fji_plat_has_barrier(void)
{
    return sim_engine->o.heavy_fence && !fji_fault_now(FJI_FAULT_BARRIER);
}

bool fji_plat_barrier(void)
{
    if (fji_fault_now(FJI_FAULT_BARRIER)) return false;
    sim_barrier(HERE);
    return true;
}

int64_t fji_plat_now(void)
{
    sim_point();
    if (sim_engine->o.strategy == SIM_TIMED) sim_cost(25);
    return sim_now();
}

void fji_plat_yield(void)
{
    if (sim_engine->o.strategy == SIM_TIMED) sim_cost(600);
    sim_yield();
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct plat_start {
    void (*main)(void *);
    void *arg;
};

static void *plat_entry(void *p)
{
    struct plat_start s = *(struct plat_start *)p;

    sim_free(p);
    s.main(s.arg);
    return NULL;
}

static void plat_main(void *p)
{
    (void)plat_entry(p);
}

bool fji_plat_thread_start(void (*main)(void *), void *arg, const fji_creator *how,
                           const char *name)
{
    (void)name;
    sim_point();
    if (fji_fault_now(FJI_FAULT_THREAD)) return false;
    struct plat_start *s = sim_alloc(sizeof *s, 16, true);
    *s = (struct plat_start){main, arg};
    if (how->create_thread == NULL) {
        /* The run fails here. If this function returned false, the pool would try again, and no
         * attempt could succeed before a thread ends. */
        if (sim_thread_start(plat_main, s) < 0) sim_fail("too many threads for the simulator");
        return true;
    }
    bool refused = how->create_thread(plat_entry, s, how->arg) != 0;
    if (refused) sim_free(s);
    return !refused;
}

void fji_plat_thread_bind(const void *cpus, size_t bytes)
{
    (void)cpus, (void)bytes;
}

void fji_plat_thread_allow(int signal)
{
    (void)signal;
}

/* Sends no signal, because the simulator has none. The library uses signals only to make system
 * calls return early. The call is only a point at which another thread may run. */
void fji_plat_thread_signal(fji_thread t, int signal)
{
    (void)t, (void)signal;
    sim_point();
}

fji_thread fji_plat_thread_self(void)
{
    return (fji_thread){(uintptr_t)sim_self()};
}

void fji_plat_thread_detach(fji_thread t)
{
    sim_thread_detach((int)t.handle);
}

void fji_plat_thread_join(fji_thread t)
{
    sim_thread_join((int)t.handle);
}

bool fji_plat_stack(uintptr_t *low, size_t *bytes)
{
    *low = (uintptr_t)sim_engine->now->stack;
    *bytes = SIM_STACK;
    return true;
}

uint32_t fji_plat_thread_hash(void)
{
    return (uint32_t)sim_self() * 0x9e3779b9u;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void *fji_plat_alloc(size_t bytes)
{
    if (fji_fault_now(FJI_FAULT_ALLOC)) return NULL;
    return sim_alloc(bytes, 128, true);
}

void *fji_plat_alloc_small(size_t bytes)
{
    if (fji_fault_now(FJI_FAULT_ALLOC)) return NULL;
    return sim_alloc(bytes, 16, false);
}

void *fji_plat_alloc_scratch(size_t bytes)
{
    return sim_alloc(bytes, 128, true);
}

void fji_plat_free(void *p)
{
    sim_free(p);
}

void *fji_plat_reserve(size_t bytes, size_t *committed)
{
    *committed = 0;
    return sim_reserve(bytes);
}

bool fji_plat_commit(void *at, size_t bytes, size_t *committed)
{
    if (fji_fault_now(FJI_FAULT_COMMIT)) return false;
    sim_commit(at, bytes);
    if (bytes > *committed) *committed = bytes;
    return true;
}

bool fji_plat_discard(void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return false;
}

void fji_plat_release(void *at, size_t bytes, size_t committed)
{
    (void)at, (void)bytes, (void)committed;
}

size_t fji_plat_page(void)
{
    return 4096;
}

/* ---- Environment ----------------------------------------------------------------------------- */

int fji_plat_cpus(const char *root)
{
    (void)root;
    return sim_engine->o.cpus;
}

const char *fji_plat_env(const char *name)
{
    (void)name;
    return NULL;
}

/* Installs nothing, because programs on the simulator do not call fork(). */
void fji_plat_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    (void)prepare, (void)parent, (void)child;
}

int64_t fji_plat_process(void)
{
    return 1;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static struct plat_fault {
    long calls, from, count;
} plat_fault[FJI_FAULT_N];

void fji_fault_set(enum fji_fault kind, long n, long count)
{
    struct plat_fault *f = &plat_fault[kind];

    f->from = f->calls + n;
    f->count = count;
}

long fji_fault_calls(enum fji_fault kind)
{
    return plat_fault[kind].calls;
}

bool fji_fault_now(enum fji_fault kind)
{
    struct plat_fault *f = &plat_fault[kind];
    long n = ++f->calls;

    return n >= f->from && n - f->from < f->count;
}
