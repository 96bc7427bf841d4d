/* SPDX-License-Identifier: MIT */
/*
 * hooks.c - the functions that code compiled with -fsanitize=thread calls
 *
 * The program is compiled with that option and linked without the runtime of ThreadSanitizer. So
 * the calls that the compiler inserts for each access to memory call the functions of this file.
 * For a plain access the call is only a report: the program makes the access itself. An atomic
 * access is made by the function. Outside a run (sim_run()) nothing is reported to the simulator.
 */
#include "engine.h"

#define HERE __builtin_return_address(0)

/* No header declares the __tsan_ functions, because only code that the compiler generates calls
 * them. So this file declares each of them before its definition. */
void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

/* ---- Plain accesses -------------------------------------------------------------------------- */

#define HOOK_PLAIN(name, size, write)                          \
    void __tsan_##name(void *p);                               \
    void __tsan_##name(void *p)                                \
    {                                                          \
        if (sim_inside()) sim_plain(p, (size), (write), HERE); \
    }

HOOK_PLAIN(read1, 1, false)
HOOK_PLAIN(read2, 2, false)
HOOK_PLAIN(read4, 4, false)
HOOK_PLAIN(read8, 8, false)
HOOK_PLAIN(read16, 16, false)
HOOK_PLAIN(write1, 1, true)
HOOK_PLAIN(write2, 2, true)
HOOK_PLAIN(write4, 4, true)
HOOK_PLAIN(write8, 8, true)
HOOK_PLAIN(write16, 16, true)
HOOK_PLAIN(unaligned_read2, 2, false)
HOOK_PLAIN(unaligned_read4, 4, false)
HOOK_PLAIN(unaligned_read8, 8, false)
HOOK_PLAIN(unaligned_read16, 16, false)
HOOK_PLAIN(unaligned_write2, 2, true)
HOOK_PLAIN(unaligned_write4, 4, true)
HOOK_PLAIN(unaligned_write8, 8, true)
HOOK_PLAIN(unaligned_write16, 16, true)
HOOK_PLAIN(volatile_read1, 1, false)
HOOK_PLAIN(volatile_read2, 2, false)
HOOK_PLAIN(volatile_read4, 4, false)
HOOK_PLAIN(volatile_read8, 8, false)
HOOK_PLAIN(volatile_write1, 1, true)
HOOK_PLAIN(volatile_write2, 2, true)
HOOK_PLAIN(volatile_write4, 4, true)
HOOK_PLAIN(volatile_write8, 8, true)

void __tsan_read_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size);

void __tsan_read_range(void *p, size_t size)
{
    if (sim_inside()) sim_plain(p, size, false, HERE);
}

void __tsan_write_range(void *p, size_t size)
{
    if (sim_inside()) sim_plain(p, size, true, HERE);
}

/* ---- Atomic accesses ------------------------------------------------------------------------- */

/* The values of `order` are those of __ATOMIC_*. */

#define HOOK_RMW(bits, name, op, outside)                                                        \
    uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *p, uint##bits##_t v, int order); \
    uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *p, uint##bits##_t v, int order)  \
    {                                                                                            \
        if (!sim_inside()) return outside(p, v, __ATOMIC_SEQ_CST);                               \
        return (uint##bits##_t)sim_rmw(p, bits / 8, op, v, order, HERE);                         \
    }

#define HOOK_CAS(bits, name)                                                                      \
    int __tsan_atomic##bits##_compare_exchange_##name(uint##bits##_t *p, uint##bits##_t *old,     \
                                                      uint##bits##_t v, int order, int fail);     \
    int __tsan_atomic##bits##_compare_exchange_##name(uint##bits##_t *p, uint##bits##_t *old,     \
                                                      uint##bits##_t v, int order, int fail)      \
    {                                                                                             \
        (void)fail;                                                                               \
        if (!sim_inside())                                                                        \
            return __atomic_compare_exchange_n(p, old, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        uint64_t was = *old;                                                                      \
        bool done = sim_cas(p, bits / 8, &was, v, order, HERE);                                   \
        if (!done) *old = (uint##bits##_t)was;                                                    \
        return done;                                                                              \
    }

#define HOOK_ATOMIC(bits)                                                             \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *p, int order);    \
    void __tsan_atomic##bits##_store(uint##bits##_t *p, uint##bits##_t v, int order); \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *p, int order)     \
    {                                                                                 \
        if (!sim_inside()) return *(const volatile uint##bits##_t *)p;                \
        return (uint##bits##_t)sim_load(p, bits / 8, order, HERE);                    \
    }                                                                                 \
    void __tsan_atomic##bits##_store(uint##bits##_t *p, uint##bits##_t v, int order)  \
    {                                                                                 \
        if (sim_inside())                                                             \
            sim_store(p, bits / 8, v, order, HERE);                                   \
        else                                                                          \
            *(volatile uint##bits##_t *)p = v;                                        \
    }                                                                                 \
    HOOK_RMW(bits, exchange, SIM_SWAP, __atomic_exchange_n)                           \
    HOOK_RMW(bits, fetch_add, SIM_ADD, __atomic_fetch_add)                            \
    HOOK_RMW(bits, fetch_sub, SIM_SUB, __atomic_fetch_sub)                            \
    HOOK_RMW(bits, fetch_and, SIM_AND, __atomic_fetch_and)                            \
    HOOK_RMW(bits, fetch_or, SIM_OR, __atomic_fetch_or)                               \
    HOOK_RMW(bits, fetch_xor, SIM_XOR, __atomic_fetch_xor)                            \
    HOOK_CAS(bits, strong)                                                            \
    HOOK_CAS(bits, weak)

HOOK_ATOMIC(8)
HOOK_ATOMIC(16)
HOOK_ATOMIC(32)
HOOK_ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    if (sim_inside()) sim_fence(order, HERE);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---- Functions that atomic.h calls in place of instructions ---------------------------------- */

void fji_sim_fence(void);
void fji_sim_fence_thief(void);
void fji_sim_pause(void);

void fji_sim_fence(void)
{
    if (sim_inside()) sim_fence(__ATOMIC_SEQ_CST, HERE);
}

void fji_sim_fence_thief(void)
{
    if (sim_inside()) sim_fence_thief(HERE);
}

void fji_sim_pause(void)
{
    if (!sim_inside()) return;
    if (sim_engine->o.strategy == SIM_TIMED) sim_cost(25);
    sim_yield();
}
