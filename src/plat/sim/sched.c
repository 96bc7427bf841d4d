/* SPDX-License-Identifier: MIT */
/*
 * sched.c - threads as coroutines, the choice of the next thread, the clock, waiting and waking
 *
 * Exactly one simulated thread runs at a time. The simulator may switch to another one at a point
 * (sim_point()) and when the running thread has to wait. A thread is ready if it is not waiting,
 * joining, frozen or ended; the running thread is ready, too. A step is a point or a wait. The
 * process has only one real thread, and therefore one set of thread-local variables, whose contents
 * are exchanged at each switch.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../config.h"
#include "engine.h"

/* Time of the simulated clock at the beginning of a run, ns. */
#if FJI_WRAP_TEST
#define SCHED_BEGIN FJI_START_CLOCK
#else
#define SCHED_BEGIN 1000000000
#endif

struct sim_engine *sim_engine;
#define S sim_engine

/* ---- Memory of the simulator ----------------------------------------------------------------- */

/* The address of the first mapping that sim_map() makes. */
#define SCHED_MAPS ((uintptr_t)0x200000000000)

/* The address of the next mapping, until sim_engine exists. Then S->mapped replaces it. */
static uintptr_t sched_mapped;

void *sim_map(size_t bytes)
{
    uintptr_t *mapped = S != NULL ? &S->mapped : &sched_mapped;
    if (*mapped == 0) *mapped = SCHED_MAPS;
    void *p = mmap((void *)*mapped, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) abort();
    *mapped += (bytes + 0xffffff) & ~(uintptr_t)0xffffff;
    return p;
}

/* ---- Random numbers ------------------------------------------------------------------------- */

static uint64_t sched_mix(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint32_t sim_random(void)
{
    return (uint32_t)(sched_mix(&S->random) >> 32);
}

static bool sched_one_in(int n)
{
    return n > 0 && sim_random() % (uint32_t)n == 0;
}

void sim_options_of(uint64_t seed, sim_options *o)
{
    uint64_t x = seed * 2 + 1;
    static const int switches[] = {2, 3, 5, 10, 30};
    static const int stale[] = {2, 4, 10};

    memset(o, 0, sizeof *o);
    o->seed = seed;
    o->model = sched_mix(&x) % 8 < 5 ? SIM_WEAK : SIM_TSO;
    o->strategy = sched_mix(&x) % 2 == 0 ? SIM_PCT : SIM_RANDOM;
    o->switch_in = switches[sched_mix(&x) % 5];
    o->changes = 1 + (int)(sched_mix(&x) % 4);
    o->stale_in = stale[sched_mix(&x) % 3];
    o->freezes = (int)(sched_mix(&x) % 3);
    o->jump_in = sched_mix(&x) % 2 == 0 ? 2000 : 0;
    o->spurious_in = sched_mix(&x) % 4 == 0 ? 1000 : 0;
    o->heavy_fence = sched_mix(&x) % 4 != 0;
    o->reuse = sched_mix(&x) % 2 == 0;
    o->races = true;
    o->steps = 50000000;
    o->step_ns = 10;
    o->cpus = 4;
}

/* ---- Coroutines ------------------------------------------------------------------------------ */

#if !defined(__x86_64__)
#error "the simulator switches stacks by hand, on x86-64 only"
#endif

/* Saves the callee-saved registers on the stack, stores the stack pointer in *from, and continues
 * the coroutine whose stack pointer is `to`. Returns when another call switches back to *from. */
void sim_switch(void **from, void *to);
__asm__(".text\n.type sim_switch,@function\nsim_switch:\n"
        "\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n"
        "\tmovq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n"
        "\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret\n");

/* The first function of a new coroutine: runs the thread's main function and ends the thread. */
static void sched_start_here(void)
{
    S->now->main(S->now->arg);
    sim_thread_end();
}

static void sched_prepare_stack(struct sim_thread *t)
{
    if (t->stack == NULL) t->stack = sim_map(SIM_STACK);
    void **sp = (void **)(void *)(t->stack + SIM_STACK) - 2;
    *--sp = NULL; /* the return address of sched_start_here(), which does not return */
    *--sp = (void *)sched_start_here;
    sp -= 6;
    memset(sp, 0, 6 * sizeof *sp);
    t->sp = sp;
}

static void sched_go_to(struct sim_thread *next)
{
    struct sim_thread *t = S->now;

    if (t == next) return;
    S->result.switches++;
    sim_memory_leave(t);
    sim_memory_resume(next);
    memcpy(t->tls, S->tls, S->tls_bytes);
    memcpy(S->tls, next->tls, S->tls_bytes);
    t->error = errno;
    errno = next->error;
    S->now = next;
    next->run = 0;
    sim_switch(&t->sp, next->sp);
}

/* Ends the run: switches back to sim_run(). The coroutines of the run are never continued. */
static void __attribute__((noreturn)) sched_leave(void)
{
    void *nowhere;

    memcpy(S->tls, S->main_tls, S->tls_bytes);
    S->on = false;
    sim_switch(&nowhere, S->main_sp);
    __builtin_unreachable();
}

void sim_fail(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    S->result.failed = true;
    vsnprintf(S->result.text, sizeof S->result.text, format, list);
    va_end(list);
    sim_trace(NULL, "FAILED: %s", S->result.text);
    sched_leave();
}

void sim_end(void)
{
    sched_leave();
}

bool sim_inside(void)
{
    return S != NULL && S->on;
}

int sim_self(void)
{
    return S->now->id;
}

/* ---- Ready threads --------------------------------------------------------------------------- */

/* S->ready is the array of the ready threads. With the strategy TIMED it is a heap, and the
 * first thread is the one whose own clock is furthest behind. Otherwise it has no order. */

static void sched_place(int i, int id)
{
    S->ready[i] = id;
    S->at[id] = i;
}

static bool sched_timed(void)
{
    return S->o.strategy == SIM_TIMED;
}

static void sched_sift(int i)
{
    int id = S->ready[i];
    int64_t time = S->thread[id].time;

    while (i > 0 && S->thread[S->ready[(i - 1) / 2]].time > time) {
        sched_place(i, S->ready[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (int c; (c = 2 * i + 1) < S->ready_n; i = c) {
        if (c + 1 < S->ready_n && S->thread[S->ready[c + 1]].time < S->thread[S->ready[c]].time)
            c++;
        if (S->thread[S->ready[c]].time >= time) break;
        sched_place(i, S->ready[c]);
    }
    sched_place(i, id);
}

void sim_ready(struct sim_thread *t)
{
    t->state = SIM_READY;
    t->word = NULL;
    t->deadline = INT64_MAX;
    sched_place(S->ready_n++, t->id);
    if (sched_timed()) sched_sift(S->ready_n - 1);
}

static void sched_unready(struct sim_thread *t)
{
    int i = S->at[t->id], last = S->ready[--S->ready_n];

    S->at[t->id] = -1;
    if (i == S->ready_n) return;
    sched_place(i, last);
    if (sched_timed()) sched_sift(i);
}

/* ---- The clock ------------------------------------------------------------------------------- */

int64_t sim_now(void)
{
    return sched_timed() ? S->now->time : S->clock;
}

bool sim_jumps(void)
{
    /* While a thread is frozen (does not run), the steps of other threads advance the clock. */
    return S->o.jump_in != 0 || S->o.freezes != 0;
}

/* Makes the waiting threads ready whose deadline is not later than `now`. Sets S->earliest to the
 * earliest deadline of the others. */
static void sched_time_out(int64_t now)
{
    S->earliest = INT64_MAX;
    for (int i = 0; i < S->highest; i++) {
        struct sim_thread *t = &S->thread[i];
        if (t->state != SIM_WAITING) continue;
        if (t->deadline <= now) {
            t->in_time = false;
            if (t->time < t->deadline) t->time = t->deadline;
            sim_ready(t);
        } else if (t->deadline < S->earliest) {
            S->earliest = t->deadline;
        }
    }
}

void sim_check_time(void)
{
    if (S->clock >= S->earliest) sched_time_out(S->clock);
}

/* ---- The next thread ------------------------------------------------------------------------- */

static struct sim_thread *sched_top_priority(void)
{
    struct sim_thread *best = &S->thread[S->ready[0]];

    for (int i = 1; i < S->ready_n; i++) {
        struct sim_thread *t = &S->thread[S->ready[i]];
        if (t->priority > best->priority) best = t;
    }
    return best;
}

static struct sim_thread *sched_any(void)
{
    return &S->thread[S->ready[sim_random() % (uint32_t)S->ready_n]];
}

/* Advances the clock to the earliest deadline, if there is one, and makes the threads with this
 * deadline ready. */
static void sched_jump(void)
{
    if (S->earliest == INT64_MAX) return;
    if (S->clock < S->earliest) S->clock = S->earliest;
    sched_time_out(S->clock);
}

/* Wakes a random thread that sleeps on a word, if there is one: a spurious wake-up. */
static void sched_wake_anybody(void)
{
    int waiting[SIM_CLOCKS], n = 0;

    for (int i = 0; i < S->highest && n < SIM_CLOCKS; i++)
        if (S->thread[i].state == SIM_WAITING && S->thread[i].word != NULL) waiting[n++] = i;
    if (n == 0) return;
    struct sim_thread *t = &S->thread[waiting[sim_random() % (uint32_t)n]];
    sim_trace(NULL, "thread %d wakes without a reason", t->id);
    t->in_time = true;
    sim_ready(t);
}

/* With the strategy PCT: gives t a priority below those of all other threads. */
static void sched_demote(struct sim_thread *t)
{
    t->priority = S->lowest--;
}

/* Chooses the step at which a thread is frozen next: a random one of the next S->o.expected steps,
 * or never if the run has had all its freezes or S->o.expected is 0. */
static void sched_next_freeze(void)
{
    S->freeze_at = S->freezes_left-- > 0 && S->o.expected > 0
                       ? S->steps + 1 + (long)(sim_random() % (uint64_t)S->o.expected)
                       : INT64_MAX;
}

static void sched_thaw(void)
{
    struct sim_thread *t = S->frozen;

    sim_trace(NULL, "thread %d is thawed", t->id);
    S->frozen = NULL;
    sim_ready(t);
    sched_next_freeze();
}

/* Freezes the running thread t for a random number of steps, at most S->o.expected. A frozen thread
 * does not run, as if the system had taken its core away. */
static void sched_freeze(struct sim_thread *t)
{
    sim_trace(NULL, "is frozen");
    sched_unready(t);
    t->state = SIM_FROZEN;
    S->frozen = t;
    S->freeze_at = INT64_MAX;
    S->thaw_at = S->steps + 1 + (long)(sim_random() % (uint64_t)S->o.expected);
}

/* Called at each step, except with the strategy TIMED. Causes the events that are due: the
 * failure of a run with too many steps, freezes, changes of priority, late stores that reach
 * memory, jumps of the clock, spurious wake-ups, and ends of waits whose deadline has passed. */
static void sched_events(void)
{
    struct sim_thread *t = S->now;

    if (S->steps > S->o.steps) sim_fail("no end after %ld steps", S->steps);
    if (S->frozen != NULL && S->steps >= S->thaw_at) sched_thaw();
    if (S->steps >= S->freeze_at && t->state == SIM_READY) sched_freeze(t);
    if (S->changes_left > 0 && S->steps >= S->change_at[S->changes_left - 1]) {
        S->changes_left--;
        sched_demote(t);
    }
    sim_memory_tick();
    if (sched_one_in(S->o.jump_in)) sched_jump();
    if (sched_one_in(S->o.spurious_in)) sched_wake_anybody();
    sim_check_time();
}

/* For the strategy TIMED: switches to the ready thread whose own clock is furthest behind.
 * Before that, ends the waits whose deadline is not later than this clock. */
static void sched_choose_timed(void)
{
    struct sim_thread *t = S->now;

    if (S->steps > S->o.steps) sim_fail("no end after %ld steps", S->steps);
    int i = S->at[t->id];
    if (i >= 0) sched_sift(i);
    for (;;) {
        struct sim_thread *first = S->ready_n > 0 ? &S->thread[S->ready[0]] : NULL;
        if (S->earliest != INT64_MAX && (first == NULL || first->time >= S->earliest)) {
            sched_time_out(S->earliest);
            continue;
        }
        if (first == NULL) sim_fail("deadlock: no thread can run");
        if (first->time > S->clock) S->clock = first->time;
        sched_go_to(first);
        return;
    }
}

/* Switches to a ready thread; not used with the strategy TIMED. The running thread is usually
 * not ready. If no thread is ready, advances the clock to the next deadline, or else ends the
 * freeze of the frozen thread, or else fails the run, because it is a deadlock. */
static void sched_switch(void)
{
    while (S->ready_n == 0) {
        if (S->earliest != INT64_MAX)
            sched_jump();
        else if (S->frozen != NULL)
            sched_thaw();
        else
            sim_fail("deadlock: no thread can run");
    }
    sched_go_to(S->o.strategy == SIM_PCT ? sched_top_priority() : sched_any());
}

void sim_point(void)
{
    struct sim_thread *t = S->now;

    S->steps++;
    if (sched_timed()) {
        /* The choice is needed if another thread is ready, or if a deadline is earlier than the
         * clock of t. */
        if (S->ready_n > 1 || S->earliest < t->time) sched_choose_timed();
        return;
    }
    S->clock += S->o.step_ns;
    sched_events();
    if (t->state != SIM_READY) {
        sched_switch();
        return;
    }
    if (S->ready_n == 1) return;
    if (S->o.strategy == SIM_PCT) {
        if (++t->run > 2000) sched_demote(t), t->run = 0; /* t probably spins: others run first */
        sched_go_to(sched_top_priority());
    } else if (sched_one_in(S->o.switch_in)) {
        sched_go_to(sched_any());
    }
}

void sim_yield(void)
{
    struct sim_thread *t = S->now;

    sim_point();
    if (sched_timed() || S->ready_n <= 1) return;
    if (S->o.strategy == SIM_PCT) {
        sched_demote(t);
        sched_go_to(sched_top_priority());
    } else {
        sched_go_to(sched_any());
    }
}

void sim_block(void)
{
    S->steps++;
    if (sched_timed()) {
        sched_choose_timed();
        return;
    }
    S->clock += S->o.step_ns;
    sched_events();
    sched_switch();
}

void sim_work(int64_t ns)
{
    if (sched_timed())
        S->now->time += ns;
    else
        S->clock += ns;
    sim_point();
}

/* ---- Threads --------------------------------------------------------------------------------- */

static struct sim_thread *sched_free_thread(void)
{
    int most = sched_timed() ? SIM_THREADS : SIM_CLOCKS;

    for (int i = 0; i < most; i++) {
        struct sim_thread *t = &S->thread[i];
        if (t->state != SIM_NONE) continue;
        if (i >= S->highest) S->highest = i + 1;
        return t;
    }
    return NULL;
}

int sim_thread_start(void (*main)(void *), void *arg)
{
    struct sim_thread *t = sched_free_thread();

    if (t == NULL) return -1;
    sim_memory_drain(S->now);
    t->main = main;
    t->arg = arg;
    t->detached = false;
    t->priority = (1ull << 32) + sim_random();
    t->time = sched_timed() && S->now != NULL ? sim_cost_of_start() : 0;
    memcpy(t->tls, S->main_tls, S->tls_bytes);
    t->error = 0;
    sched_prepare_stack(t);
    if (S->now != NULL) sim_memory_inherit(t, S->now);
    sim_ready(t);
    S->result.threads++;
    sim_trace(NULL, "starts thread %d", t->id);
    return t->id;
}

static void sched_gone(struct sim_thread *t)
{
    t->state = SIM_NONE;
}

void sim_thread_end(void)
{
    struct sim_thread *t = S->now;

    sim_memory_drain(t);
    if (t->id == 0) sched_leave();
    sim_point();
    sim_trace(NULL, "ends");
    sched_unready(t);
    t->state = SIM_ENDED;
    for (int i = 0; i < S->highest; i++) {
        struct sim_thread *j = &S->thread[i];
        if (j->state != SIM_JOINING || j->joins != t->id) continue;
        sim_memory_join(j, t);
        if (j->time < t->time) j->time = t->time;
        sim_ready(j);
        t->detached = true;
    }
    if (t->detached) sched_gone(t);
    sim_block();
    __builtin_unreachable();
}

void sim_thread_join(int id)
{
    struct sim_thread *t = S->now, *of = &S->thread[id];

    sim_point();
    if (of->state == SIM_NONE || of->detached) sim_fail("join of a thread that is not there");
    if (of->state == SIM_ENDED) {
        sim_memory_join(t, of);
        sched_gone(of);
        return;
    }
    sched_unready(t);
    t->state = SIM_JOINING;
    t->joins = id;
    sim_block();
}

void sim_thread_detach(int id)
{
    struct sim_thread *t = &S->thread[id];

    if (t->state == SIM_ENDED)
        sched_gone(t);
    else
        t->detached = true;
}

/* ---- Waiting on a word ----------------------------------------------------------------------- */

/* A deadline later than this, 146 years in ns, counts as no deadline. */
#define SIM_NEVER (1ll << 62)

bool sim_wait(const uint32_t *word, uint32_t value, int64_t deadline)
{
    struct sim_thread *t = S->now;

    sim_memory_drain(t);
    sim_point();
    if (word != NULL && *word != value)
        return true; /* like a futex, it compares the last value stored, never an older one */
    if (deadline <= sim_now()) return false;
    if (deadline > SIM_NEVER) deadline = INT64_MAX; /* otherwise the clock would overflow */
    sim_trace(NULL, "sleeps%s", deadline == INT64_MAX ? "" : " with a limit");
    sched_unready(t);
    t->state = SIM_WAITING;
    t->word = word;
    t->deadline = deadline;
    t->in_time = true;
    if (deadline < S->earliest) S->earliest = deadline;
    sim_block();
    return t->in_time;
}

bool sim_sleep_until(int64_t ns)
{
    return sim_wait(NULL, 0, ns);
}

static void sched_wake_this(struct sim_thread *t)
{
    sim_trace(NULL, "wakes thread %d", t->id);
    t->in_time = true;
    if (sched_timed()) {
        int64_t when = sim_cost_of_wake();
        if (t->time < when) t->time = when;
    }
    sim_ready(t);
}

void sim_wake(const uint32_t *word, bool all)
{
    int n = 0, chosen = -1;

    sim_memory_drain(S->now);
    sim_point();
    for (int i = 0; i < S->highest; i++) {
        struct sim_thread *t = &S->thread[i];
        if (t->state != SIM_WAITING || t->word != word) continue;
        if (all)
            sched_wake_this(t);
        else if (sim_random() % (uint32_t)++n == 0)
            chosen = i;
    }
    if (chosen >= 0) sched_wake_this(&S->thread[chosen]);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

extern unsigned char __data_start[], _end[];

static int sched_find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    S->program = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
        S->tls = info->dlpi_tls_data;
        S->tls_bytes = info->dlpi_phdr[i].p_memsz;
    }
    return 1; /* ends dl_iterate_phdr() after the first object, which is the program itself */
}

static void sched_first_time(void)
{
    struct sim_engine *at = sim_map(sizeof *S);
    at->mapped = sched_mapped;
    S = at;
    dl_iterate_phdr(sched_find_tls, NULL);
    if (S->tls_bytes > SIM_TLS) abort();
    memcpy(S->main_tls, S->tls, S->tls_bytes);
    for (int i = 0; i < SIM_THREADS; i++) S->thread[i].id = i;
    S->data = __data_start;
    S->data_bytes = (size_t)(_end - __data_start);
    S->saved = malloc(S->data_bytes);
    if (S->saved == NULL) abort();
    memcpy(S->saved, S->data, S->data_bytes);
}

static void sched_choose_changes(void)
{
    long k = S->o.expected > 100 ? S->o.expected : 100;

    S->changes_left = S->o.expected <= 0 ? 0 : S->o.changes > 8 ? 8 : S->o.changes;
    for (int i = 0; i < S->changes_left; i++) S->change_at[i] = 1 + (long)sim_random() % k;
    /* Sorts change_at in descending order. sched_events() uses the last element first. */
    for (int i = 1; i < S->changes_left; i++)
        for (int j = i; j > 0 && S->change_at[j - 1] < S->change_at[j]; j--) {
            long x = S->change_at[j];
            S->change_at[j] = S->change_at[j - 1];
            S->change_at[j - 1] = x;
        }
}

/* Prepares a run: restores the data of the program to their state at the first call of sim_run(),
 * and resets the simulator. */
static void sched_reset(const sim_options *o)
{
    for (int i = 0; i < S->highest; i++) S->thread[i].state = SIM_NONE;
    memcpy(S->data, S->saved, S->data_bytes);
    memcpy(S->tls, S->main_tls, S->tls_bytes);
    S->o = *o;
    memset(&S->result, 0, sizeof S->result);
    S->random = o->seed * 0x2545f4914f6cdd1dull + 1;
    S->steps = 0;
    S->clock = SCHED_BEGIN;
    S->earliest = INT64_MAX;
    S->ready_n = 0;
    S->highest = 0;
    S->now = NULL;
    S->lowest = 1u << 31;
    sched_choose_changes();
    S->frozen = NULL;
    S->freezes_left = S->o.freezes;
    sched_next_freeze();
    sim_heap_reset();
    sim_memory_reset();
    if (sched_timed()) sim_cost_reset();
}

void sim_run(const sim_options *o, void (*main)(void *), void *arg, sim_result *out)
{
    if (S == NULL) sched_first_time();
    sched_reset(o);
    sim_thread_start(main, arg);
    S->now = &S->thread[0];
    S->on = true;
    sim_switch(&S->main_sp, S->now->sp);
    S->result.steps = S->steps;
    S->result.time = S->clock - SCHED_BEGIN;
    S->result.blocks = sim_heap_blocks();
    *out = S->result;
}
