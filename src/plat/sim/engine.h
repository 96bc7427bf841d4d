/* SPDX-License-Identifier: MIT */
/*
 * engine.h - what the parts of the simulator share
 *
 * All state is in one mapping that is not part of the program's own data, because those are
 * put back to what they were before every run.
 */
#ifndef FJI_SIM_ENGINE_H
#define FJI_SIM_ENGINE_H

#include "sim.h"

/* Threads that the memory models can tell apart, and threads in all (TIMED has no models). */
#define SIM_CLOCKS 24
#define SIM_THREADS 1280
#define SIM_STACK (8u << 20)
#define SIM_TLS 4096

/* What a thread knows: of each thread, how many of its stores. */
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
    bool in_time;         /* how its last wait ended */
    const uint32_t *word; /* it waits on */
    int64_t deadline;
    int joins; /* JOINING: whom */
    uint64_t priority;
    uint32_t run; /* points since it was chosen */
    int64_t time; /* TIMED: its own clock */
    void (*main)(void *);
    void *arg;
    char *stack;
    /* Clocks. hb: happens before. view: and what fences have brought. pending: what it has read
     * without acquiring. released: hb at its last release fence. read: what it has seen. */
    sim_clock hb, view, pending, released;
    unsigned char tls[SIM_TLS];
    int error; /* errno, which is the C library's */
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
    uint64_t lowest; /* priority given at the next change */
    int64_t clock;
    int64_t earliest; /* limit of anybody's wait */
    struct sim_thread *now;
    int ready[SIM_THREADS]; /* ids; TIMED: a heap by time */
    int at[SIM_THREADS];    /* where a thread is in it, -1: not */
    int ready_n;
    int highest; /* thread ids ever used in this run */
    void *main_sp;
    unsigned char main_tls[SIM_TLS];
    size_t tls_bytes;
    unsigned char *tls;
    unsigned char *data, *saved; /* the program's own data, and as they were */
    size_t data_bytes;
    uintptr_t mapped;  /* where sim_map() goes on */
    uintptr_t program; /* what its addresses were moved by */
    struct sim_memory *memory;
    struct sim_heap *heap;
    struct sim_costs *costs;
    struct sim_thread thread[SIM_THREADS];
};

extern struct sim_engine *sim_engine;

/* sched.c */
/* Zeroed memory at an address that is the same in every process: a run does not depend on where
 * things happen to be. */
void *sim_map(size_t bytes);
void sim_point(void); /* somebody else may go on here */
void sim_block(void); /* the calling thread is not READY any more: others go on */
void sim_ready(struct sim_thread *t);
int sim_thread_start(void (*main)(void *), void *arg);
__attribute__((noreturn)) void sim_thread_end(void);
void sim_thread_join(int id);
void sim_thread_detach(int id);
bool sim_wait(const uint32_t *word, uint32_t value, int64_t deadline);
void sim_wake(const uint32_t *word, bool all);
void sim_check_time(void);

/* memory.c: accesses. order is one of __ATOMIC_*. */
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
void sim_memory_leave(struct sim_thread *t);  /* another goes on: its late stores are its own */
void sim_memory_resume(struct sim_thread *t); /* and it goes on */
void sim_memory_drain(struct sim_thread *t);  /* all its late stores arrive */
void sim_memory_tick(void);                   /* a late store may arrive */
void sim_memory_forget(const void *p, size_t size); /* a new life of these addresses */
void sim_memory_inherit(struct sim_thread *child, const struct sim_thread *from);
void sim_memory_join(struct sim_thread *t, const struct sim_thread *ended);

/* heap.c */
void sim_heap_reset(void);
void *sim_alloc(size_t bytes, size_t align, bool zero);
void sim_free(void *p);
void sim_heap_check(const void *p, size_t size, const void *pc);
/* "block 12 + 0x40", or the bare address. */
const char *sim_where(const void *p, char *buffer, size_t n);
void *sim_reserve(size_t bytes);
bool sim_in_range(const void *p);       /* part of one that was reserved: queues */
void sim_commit(void *p, size_t bytes); /* of a reserved range: zero at first */
long sim_heap_blocks(void);

/* cost.c, TIMED */
void sim_cost_reset(void);
void sim_cost_access(const void *p, size_t size, bool write, bool locked);
void sim_cost(int64_t ns);
void sim_cost_barrier(void);
int64_t sim_cost_of_wake(void); /* charges the waker; when the woken one goes on */
int64_t sim_cost_of_start(void);

/* trace.c */
__attribute__((format(printf, 2, 3))) void sim_trace_line(const void *pc, const char *format, ...);

/* The arguments are looked at only if somebody wants to read them. */
#define sim_trace(...)                                                             \
    do {                                                                           \
        if (__builtin_expect(sim_engine->o.trace, 0)) sim_trace_line(__VA_ARGS__); \
    } while (0)

#endif /* FJI_SIM_ENGINE_H */
