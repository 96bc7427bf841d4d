/* SPDX-License-Identifier: MIT */
/*
 * memory.c - the memory of a pool; see memory.h
 */

#include "plat/memory.h"

#include <string.h>

#include "plat/atomic.h"
#include "plat/config.h"
#include "plat/plat.h"

/* ---- The program's functions ----------------------------------------------------------------- */

fji_allocator fji_allocator_of(const fj_pool_options *o)
{
    return (fji_allocator){o->allocate, o->release, o->arg};
}

/* Calls `allocate` of *a, which is not NULL. */
static void *allocator_call(const fji_allocator *a, size_t bytes, size_t align)
{
    void *p = a->allocate(bytes, align, a->arg);

    if ((uintptr_t)p % align == 0) return p;
    a->release(p, bytes, a->arg);
    return NULL;
}

void *fji_allocator_alloc(const fji_allocator *a, size_t bytes)
{
    if (a->allocate == NULL) return fji_plat_alloc(bytes);
    void *p = allocator_call(a, bytes, FJI_CACHE_PAIR);
    return p != NULL ? memset(p, 0, bytes) : NULL;
}

void fji_allocator_free(const fji_allocator *a, void *p, size_t bytes)
{
    if (a->allocate == NULL)
        fji_plat_free(p);
    else if (p != NULL)
        a->release(p, bytes, a->arg);
}

/* ---- The record ------------------------------------------------------------------------------ */

fji_memory *fji_memory_make(const fji_allocator *a)
{
    fji_memory *m = fji_allocator_alloc(a, sizeof *m);

    if (m == NULL) return NULL;
    m->from = *a;
    m->used[FJI_MEMORY_POOL] = sizeof *m;
    m->held = FJI_MEMORY_POOL_EXISTS;
    return m;
}

/* Subtracts n from `held`, and frees the record if `held` becomes 0. */
static void memory_drop(fji_memory *m, uint64_t n)
{
    /* [memory.held] release -> acquire in the call that reaches 0 and frees the record: all accesses of
     * this thread to the record.
     * [memory.held] both ends are here. LAST TOUCH of m, unless it reaches 0. */
    if (fji_add_acq_rel(&m->held, (uint64_t)0 - n) != n) return;
    fji_allocator from = m->from;
    fji_allocator_free(&from, m, sizeof *m);
}

void fji_memory_end(fji_memory *m)
{
    memory_drop(m, FJI_MEMORY_POOL_EXISTS);
}

void fji_memory_count(fji_memory *m, enum fji_memory_kind kind, int64_t bytes)
{
    fji_add_relaxed(&m->used[kind], (uint64_t)bytes); /* relaxed: a statistic */
}

void *fji_memory_alloc(fji_memory *m, enum fji_memory_kind kind, size_t bytes)
{
    void *p = fji_allocator_alloc(&m->from, bytes);

    if (p != NULL) fji_memory_count(m, kind, (int64_t)bytes);
    return p;
}

void fji_memory_free(fji_memory *m, enum fji_memory_kind kind, void *p, size_t bytes)
{
    if (p == NULL) return;
    fji_memory_count(m, kind, -(int64_t)bytes);
    fji_allocator_free(&m->from, p, bytes);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* The alignment of futures and scratch memory: that of any type. */
#define BLOCK_ALIGN 16

/* The words in front of a block. */
typedef struct block_head {
    fji_memory *memory; /* NULL: from the platform layer, not counted */
    size_t bytes;       /* of the block and what is in front of it; an even number */
    uint32_t front;     /* how many bytes are in front of the block */
    uint32_t kind;
} block_head;

/* Returns how many bytes are in front of a block of this kind. A future is small, and its block should
 * be. Scratch memory keeps its alignment to cache lines, and a value of a worker has cache lines of its
 * own. */
static uint32_t block_front(enum fji_memory_kind kind)
{
    return kind == FJI_MEMORY_FUTURES   ? FJI_BLOCK_FRONT
           : kind == FJI_MEMORY_SCRATCH ? FJI_CACHE_PAIR / 2
                                        : FJI_CACHE_PAIR;
}

FJI_STATIC_ASSERT(sizeof(block_head) <= FJI_BLOCK_FRONT, "the head is in front of the block");

/* Allocates the memory of a block with its front. */
static char *block_memory(fji_memory *m, enum fji_memory_kind kind, size_t bytes)
{
    bool hooked = m != NULL && m->from.allocate != NULL;

    if (kind == FJI_MEMORY_OTHER)
        return hooked ? fji_allocator_alloc(&m->from, bytes) : fji_plat_alloc(bytes);
    /* Futures need no cache lines of their own: malloc() is three times as fast without. */
    if (kind == FJI_MEMORY_FUTURES && fji_fault_now(FJI_FAULT_ALLOC)) return NULL;
    void *p = hooked ? allocator_call(&m->from, bytes, BLOCK_ALIGN) : fji_plat_alloc_scratch(bytes);
    return p != NULL && kind == FJI_MEMORY_FUTURES ? memset(p, 0, bytes) : p;
}

void *fji_block_alloc(fji_memory *m, enum fji_memory_kind kind, size_t bytes)
{
    uint32_t front = block_front(kind);

    if (bytes > PTRDIFF_MAX - (size_t)2 * FJI_CACHE_PAIR) return NULL;
    size_t multiple = kind == FJI_MEMORY_OTHER ? FJI_CACHE_PAIR : 8; /* even: see memory.h */
    bytes = (bytes + front + multiple - 1) / multiple * multiple;
    char *base = block_memory(m, kind, bytes);
    if (base == NULL) return NULL;
    block_head head = {m, bytes, front, kind};
    memcpy(base + front - sizeof head, &head, sizeof head);
    if (m == NULL) return base + front;
    if (kind != FJI_MEMORY_FUTURES) fji_memory_count(m, kind, (int64_t)bytes);
    /* relaxed: the caller uses the pool, so the record is not freed now. */
    fji_add_relaxed(&m->held, (uint64_t)bytes);
    return base + front;
}

void fji_block_free(void *p)
{
    block_head head;

    if (p == NULL) return;
    memcpy(&head, (char *)p - sizeof head, sizeof head);
    void *base = (char *)p - head.front;
    if (head.memory == NULL) {
        fji_plat_free(base);
        return;
    }
    enum fji_memory_kind kind = (enum fji_memory_kind)head.kind;
    if (kind != FJI_MEMORY_FUTURES) fji_memory_count(head.memory, kind, -(int64_t)head.bytes);
    fji_allocator_free(&head.memory->from, base, head.bytes);
    memory_drop(head.memory, head.bytes);
}

uint64_t fji_memory_used(const fji_memory *m, enum fji_memory_kind kind)
{
    if (kind != FJI_MEMORY_FUTURES)
        return fji_load_relaxed(&m->used[kind]); /* relaxed: a statistic */
    /* relaxed: statistics, as above */
    uint64_t others = fji_load_relaxed(&m->used[FJI_MEMORY_SCRATCH]) +
                      fji_load_relaxed(&m->used[FJI_MEMORY_OTHER]);
    uint64_t all = fji_load_relaxed(&m->held) &
                   ~(uint64_t)FJI_MEMORY_POOL_EXISTS; /* relaxed: same */
    return all > others ? all - others : 0;
}
