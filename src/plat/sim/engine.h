/* SPDX-License-Identifier: MIT */
/*
 * engine.h - the state of the simulator, and the functions that its files share
 *
 * The state of the simulator is in its own mappings (sim_map()), and not in the data segment of the
 * program, because the simulator restores the data segment before every run.
 */
#ifndef FJI_SIM_ENGINE_H
#define FJI_SIM_ENGINE_H

#include "sim.h"

/* SIM_CLOCKS: the largest number of threads that exist at the same time in a run, except with the
 * TIMED strategy. SIM_THREADS: the same with TIMED, which uses no memory model and so no vector
 * clocks. */
#define SIM_CLOCKS 24
#define SIM_THREADS 1280

/* Size of a thread's stack, and largest size of the program's thread-local variables, bytes. */
#define SIM_STACK (8u << 20)
#define SIM_TLS 4096

/* A vector clock. It contains the steps of each thread i up to the time at[i] on the clock of i. */
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
    void *sp; /* its stack pointer, while another thread runs */
    int id;   /* its index in sim_engine->thread */
    enum sim_state state;
    bool detached; /* no thread joins it: its id is free as soon as it has ended */
    bool in_time;  /* false if its last sim_wait() ended because the deadline had passed */
    /* if WAITING: the word it sleeps on, or NULL if it only waits for the deadline */
    const uint32_t *word;
    int64_t deadline;  /* if WAITING: when the wait ends, ns; INT64_MAX: no deadline */
    int joins;         /* if JOINING: the id of the thread that it waits for */
    uint64_t priority; /* PCT strategy: the ready thread with the highest value runs */
    /* PCT strategy: points, with other threads ready, since it began to run or was demoted */
    uint32_t run;
    int64_t time; /* TIMED strategy: the thread's own clock, ns */
    void (*main)(void *);
    void *arg;
    char *stack;
    /*
     * Vector clocks; see memory.c.
     * hb        what happens before its next step
     * view      hb, and what full fences have made visible to it
     * pending   the values that it has read, and what they carry; its next acquire fence or full
     *           fence joins it into hb
     * released  hb at its last release fence or full fence; its relaxed stores carry it
     */
    sim_clock hb, view, pending, released;
    /* While another thread runs, `tls` holds this thread's values of the program's thread-local
     * variables, and `error` holds its errno, which is a variable of the C library and therefore
     * not in `tls`. */
    unsigned char tls[SIM_TLS];
    int error;
};

struct sim_memory;
struct sim_heap;
struct sim_costs;

struct sim_engine {
    sim_options o;
    sim_result result;
    bool on;               /* whether a run is in progress */
    uint64_t random;       /* state of the random number generator */
    long steps, next_look; /* steps of the run so far; next_look is unused */
    long change_at[8];     /* PCT strategy: the steps at which the running thread is demoted */
    int changes_left;      /* how many elements of change_at are still to come */
    /* the step at which the running thread is frozen, and at which the frozen one continues */
    long freeze_at, thaw_at;
    int freezes_left;          /* how often the run may still freeze a thread */
    struct sim_thread *frozen; /* the frozen thread, or NULL */
    uint64_t lowest;  /* PCT strategy: the priority of the next demoted thread; below all others */
    int64_t clock;    /* simulated time, ns; TIMED: the latest time at which a thread was chosen */
    int64_t earliest; /* earliest deadline of all waiting threads, ns, or INT64_MAX */
    struct sim_thread *now; /* the running thread */
    int ready[SIM_THREADS]; /* ids of the ready threads; with TIMED a heap by their clocks */
    int at[SIM_THREADS];    /* index of a thread in `ready`, or -1 if it is not ready */
    int ready_n;
    int highest;   /* one more than the highest thread id of this run */
    void *main_sp; /* stack pointer of sim_run(), to which the end of the run switches back */
    unsigned char main_tls[SIM_TLS]; /* the thread-local variables from before the first run */
    size_t tls_bytes;                /* size of the thread-local variables */
    unsigned char *tls;              /* their address, which is the same for all threads */
    /* The data segment of the program, and a copy of its contents from before the first run. */
    unsigned char *data, *saved;
    size_t data_bytes;
    uintptr_t mapped;  /* the address at which sim_map() makes the next mapping */
    uintptr_t program; /* the load address of the program */
    struct sim_memory *memory;
    struct sim_heap *heap;
    struct sim_costs *costs;
    struct sim_thread thread[SIM_THREADS];
};

extern struct sim_engine *sim_engine;

/* sched.c */
/* Maps zeroed memory. The n-th mapping has the same address in every process, so that a run with
 * the same options is the same in every process. Aborts if there is no memory. */
void *sim_map(size_t bytes);
/* A point in the calling thread at which the simulator may switch to another thread. */
void sim_point(void);
/* Called by a thread that has set its own state to one that is not READY. Switches to another
 * thread. Returns when the calling thread is READY again and is chosen to run. */
void sim_block(void);
/* Makes t READY: it can be chosen to run. t is not READY before. */
void sim_ready(struct sim_thread *t);
/* Starts a thread that runs main(arg). Returns its id, or -1 if the run has the
 * largest number of threads (SIM_CLOCKS, or SIM_THREADS with TIMED). */
int sim_thread_start(void (*main)(void *), void *arg);
__attribute__((noreturn)) void sim_thread_end(void);
void sim_thread_join(int id);
void sim_thread_detach(int id);
/* As fji_plat_wait(). If word is NULL, sleeps until the deadline. */
bool sim_wait(const uint32_t *word, uint32_t value, int64_t deadline);
void sim_wake(const uint32_t *word, bool all);
/* Makes the waiting threads READY whose deadline is not later than the clock. */
void sim_check_time(void);

/* memory.c: accesses of the running thread. `order` is one of __ATOMIC_*. `pc` is the code address
 * of the access, for the trace. */
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
/* Late stores (memory model tso): stores that other threads do not see yet; see memory.c.
 * leave   Called when the simulator switches from t to another thread: undoes the late stores of t.
 * resume  Called when the simulator switches to t: writes the late stores of t to memory again.
 * drain   Makes all late stores of t visible to all threads.
 * tick    Called at each step: at random, makes one late store of one thread visible to all. */
void sim_memory_leave(struct sim_thread *t);
void sim_memory_resume(struct sim_thread *t);
void sim_memory_drain(struct sim_thread *t);
void sim_memory_tick(void);
/* Discards the histories and shadows (memory.c) of the `size` bytes at p, because this memory is
 * allocated again. */
void sim_memory_forget(const void *p, size_t size);
/* Set the vector clocks: what `from` has done happens before the first step of `child`, which it
 * starts; what `ended` has done happens before the next step of t, which joins it. */
void sim_memory_inherit(struct sim_thread *child, const struct sim_thread *from);
void sim_memory_join(struct sim_thread *t, const struct sim_thread *ended);

/* heap.c */
void sim_heap_reset(void); /* makes the heap empty */
void *sim_alloc(size_t bytes, size_t align, bool zero);
void sim_free(void *p);
/* Fails the run if p is in the heap and the first or last of the `size` bytes at p is not in an
 * allocated block. */
void sim_heap_check(const void *p, size_t size, const void *pc);
/* Writes a description of the address p to buffer, which has n bytes, for example
 * "block 12 (64 bytes) + 0x40". Returns buffer. */
const char *sim_where(const void *p, char *buffer, size_t n);
void *sim_reserve(size_t bytes);
bool sim_in_range(const void *p);       /* whether p may be in a range reserved by sim_reserve() */
void sim_commit(void *p, size_t bytes); /* as fji_plat_commit(), but fails the run on an error */
long sim_heap_blocks(void);             /* the number of blocks that are allocated now */

/* cost.c, for the TIMED strategy (sim.h). All except sim_cost_reset() add the cost of an operation
 * to the clock of the running thread. */
void sim_cost_reset(void);
void sim_cost_access(const void *p, size_t size, bool write, bool locked);
void sim_cost(int64_t ns);
void sim_cost_barrier(void);
int64_t sim_cost_of_wake(void);  /* returns the time from which the woken thread can run */
int64_t sim_cost_of_start(void); /* returns the time from which the new thread can run */

/* trace.c */
__attribute__((format(printf, 2, 3))) void sim_trace_line(const void *pc, const char *format, ...);

/* The arguments are evaluated only if the run prints a trace. */
#define sim_trace(...)                                                             \
    do {                                                                           \
        if (__builtin_expect(sim_engine->o.trace, 0)) sim_trace_line(__VA_ARGS__); \
    } while (0)

#endif /* FJI_SIM_ENGINE_H */
