/* SPDX-License-Identifier: MIT */
/*
 * engine.h - what the files of the simulator share
 *
 * The state of the simulator is in mappings of its own, and not in the data segment of the program,
 * because the simulator restores the data segment before every run.
 */
#ifndef FJI_SIM_ENGINE_H
#define FJI_SIM_ENGINE_H

#include "sim.h"

/* Most threads of a run with a memory model, and with the TIMED strategy, which has no model. */
#define SIM_CLOCKS 24
#define SIM_THREADS 1280

/* Bytes of a thread's stack, and most bytes of its thread-local variables. */
#define SIM_STACK (8u << 20)
#define SIM_TLS 4096

/* A vector clock. at[i] is the time of thread i up to which its stores are known. */
typedef struct sim_clock {
    uint32_t at[SIM_CLOCKS];
} sim_clock;

static inline void sim_clock_join(sim_clock *to, const sim_clock *from)
{
    for (int i = 0; i < SIM_CLOCKS; i++)
        if (to->at[i] < from->at[i]) to->at[i] = from->at[i];
}

enum sim_state { SIM_NONE, SIM_READY, SIM_FROZEN, SIM_WAITING, SIM_JOINING, SIM_ENDED };

struct sim_thread {
    void *sp;
    int id;
    enum sim_state state;
    bool detached;
    bool in_time;         /* false: its last wait ended at the deadline */
    const uint32_t *word; /* WAITING: the word it waits on, or NULL */
    int64_t deadline;
    int joins;         /* JOINING: the thread that it joins */
    uint64_t priority; /* PCT */
    uint32_t run;      /* points since it was chosen */
    int64_t time;      /* TIMED: its own clock */
    void (*main)(void *);
    void *arg;
    char *stack;
    /*
     * Vector clocks; see memory.c.
     * hb        what happens before its next step
     * view      hb, and what full fences have made visible to it
     * pending   what it has read with relaxed loads and not yet acquired by a fence
     * released  hb at its last release fence
     */
    sim_clock hb, view, pending, released;
    /* While another thread runs: this thread's values of the program's thread-local variables, and
     * its errno. errno is a variable of the C library, so it is not among those of `tls`. */
    unsigned char tls[SIM_TLS];
    int error;
};

struct sim_memory;
struct sim_heap;
struct sim_costs;

struct sim_engine {
    sim_options o;
    sim_result result;
    bool on;
    uint64_t random;
    long steps, next_look;
    long change_at[8];
    int changes_left;
    long freeze_at, thaw_at;
    int freezes_left;
    struct sim_thread *frozen;
    uint64_t lowest; /* priority that the next demoted thread gets; below all others */
    int64_t clock;
    int64_t earliest; /* deadline of any waiting thread */
    struct sim_thread *now;
    int ready[SIM_THREADS]; /* ids of ready threads; TIMED: a heap by time */
    int at[SIM_THREADS];    /* index of a thread in `ready`, or -1 */
    int ready_n;
    int highest; /* the ids used in this run are less than this */
    void *main_sp;
    unsigned char main_tls[SIM_TLS];
    size_t tls_bytes;
    unsigned char *tls;
    unsigned char *data, *saved; /* the data segment of the program, and its initial contents */
    size_t data_bytes;
    uintptr_t mapped;  /* the address of the next sim_map() */
    uintptr_t program; /* the load address of the program */
    struct sim_memory *memory;
    struct sim_heap *heap;
    struct sim_costs *costs;
    struct sim_thread thread[SIM_THREADS];
};

extern struct sim_engine *sim_engine;

/* sched.c */
/* Maps zeroed memory at an address that is the same in every process, so that a run does not depend
 * on addresses. */
void *sim_map(size_t bytes);
/* A point: the simulator may let another thread run here. */
void sim_point(void);
/* The calling thread is not READY any more: another thread runs until it is. */
void sim_block(void);
/* Makes t READY. */
void sim_ready(struct sim_thread *t);
/* Starts a thread that runs main(arg). Returns its id, or -1 if there are too many. */
int sim_thread_start(void (*main)(void *), void *arg);
__attribute__((noreturn)) void sim_thread_end(void);
void sim_thread_join(int id);
void sim_thread_detach(int id);
/* As fji_plat_wait(). If word is NULL, sleeps until the deadline. */
bool sim_wait(const uint32_t *word, uint32_t value, int64_t deadline);
void sim_wake(const uint32_t *word, bool all);
/* Makes the threads READY whose deadline has passed. */
void sim_check_time(void);

/* memory.c: accesses of the running thread. order is one of __ATOMIC_*. pc: where in the
 * program. */
void sim_memory_reset(void);
uint64_t sim_load(const void *p, int size, int order, const void *pc);
void sim_store(void *p, int size, uint64_t v, int order, const void *pc);
enum sim_rmw { SIM_SWAP, SIM_ADD, SIM_SUB, SIM_AND, SIM_OR, SIM_XOR };
uint64_t sim_rmw(void *p, int size, enum sim_rmw op, uint64_t v, int order, const void *pc);
bool sim_cas(void *p, int size, uint64_t *old, uint64_t v, int order, const void *pc);
void sim_fence(int order, const void *pc);
void sim_fence_thief(const void *pc);
void sim_barrier(const void *pc);
void sim_plain(const void *p, size_t size, bool write, const void *pc);
/* Buffered stores (tso). leave: another thread runs from now on, so the stores of t are taken out
 * of memory. resume: t runs again. drain: all its buffered stores reach memory. tick: one buffered
 * store of any thread may reach memory. */
void sim_memory_leave(struct sim_thread *t);
void sim_memory_resume(struct sim_thread *t);
void sim_memory_drain(struct sim_thread *t);
void sim_memory_tick(void);
/* Discards the history of these addresses: they are allocated again. */
void sim_memory_forget(const void *p, size_t size);
/* Clocks at the start and at the join of a thread. */
void sim_memory_inherit(struct sim_thread *child, const struct sim_thread *from);
void sim_memory_join(struct sim_thread *t, const struct sim_thread *ended);

/* heap.c */
void sim_heap_reset(void); /* everything is free */
void *sim_alloc(size_t bytes, size_t align, bool zero);
void sim_free(void *p);
/* Fails the run if p is in the heap and not allocated. */
void sim_heap_check(const void *p, size_t size, const void *pc);
/* Describes an address, for example "block 12 (64 bytes) + 0x40". Returns buffer. */
const char *sim_where(const void *p, char *buffer, size_t n);
void *sim_reserve(size_t bytes);
bool sim_in_range(const void *p);       /* whether p is in a reserved range: the queues */
void sim_commit(void *p, size_t bytes); /* part of a reserved range, zero at first */
long sim_heap_blocks(void);             /* blocks that are allocated */

/* cost.c, for TIMED: each adds to the clock of the running thread. */
void sim_cost_reset(void);
void sim_cost_access(const void *p, size_t size, bool write, bool locked);
void sim_cost(int64_t ns);
void sim_cost_barrier(void);
int64_t sim_cost_of_wake(void);  /* returns the time at which the woken thread runs */
int64_t sim_cost_of_start(void); /* returns the time at which the new thread runs */

/* trace.c */
__attribute__((format(printf, 2, 3))) void sim_trace_line(const void *pc, const char *format, ...);

/* The arguments are evaluated only if the run prints a trace. */
#define sim_trace(...)                                                             \
    do {                                                                           \
        if (__builtin_expect(sim_engine->o.trace, 0)) sim_trace_line(__VA_ARGS__); \
    } while (0)

#endif /* FJI_SIM_ENGINE_H */
