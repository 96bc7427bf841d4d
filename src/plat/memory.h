/* SPDX-License-Identifier: MIT */
/*
 * memory.h - the memory of a pool: from the program's functions or from the system, counted by kind
 *
 * A memory record belongs to a pool. It has the functions `allocate` and `release` of the pool's
 * options, and counts the bytes that are in use. There are two ways to get memory:
 *
 *   fji_memory_alloc()  for what lives no longer than the pool. The caller knows the size when it
 *                       frees the memory.
 *   fji_block_alloc()   for what may outlive the pool: futures, scratch memory, values of workers. A
 *                       head in front of the block names the memory record and the size, so that any
 *                       thread can free the block without knowing the pool. fji_pool_block() in
 *                       pool/memory.c chooses the record.
 *
 * The memory record itself lives until the pool has ended and the last block is free: `held` is the sum
 * of the sizes of the blocks, which are even numbers, plus 1 while the pool exists. The thread that
 * changes `held` to 0 frees the record.
 *
 * Most blocks are futures. So that a future costs only one change of a counter when it is made, and one
 * when it is freed, the futures have no counter of their own: they are what `held` has more than the
 * other two kinds of blocks.
 *
 * The counters are changed by the functions that allocate and free, never by a fork, a join or a steal.
 *
 * Edges          from                             to                        carries
 *   memory.held  acq_rel add, fji_block_free(),   the same add, by the      all accesses to the
 *                  fji_memory_end()                 thread that reaches 0     record
 */
#ifndef FJI_MEMORY_H
#define FJI_MEMORY_H

#include <forkjoin.h>

/* What memory is used for. */
enum fji_memory_kind {
    FJI_MEMORY_POOL,        /* the records of the pool and of its memory, the set of CPUs */
    FJI_MEMORY_WORKERS,     /* the records of workers, overflow cells */
    FJI_MEMORY_SCOPES,      /* scopes of workers; their memory is committed, not allocated */
    FJI_MEMORY_SUBMISSIONS, /* the records of submission queues */
    FJI_MEMORY_TIMERS,      /* the record of the timers */
    FJI_MEMORY_FUTURES,     /* blocks: futures that the library allocates */
    FJI_MEMORY_SCRATCH,     /* blocks: of algorithms; not zeroed */
    FJI_MEMORY_OTHER,       /* blocks: values of workers */
    FJI_MEMORY_KINDS
};

/* The functions of fj_pool_options by which a pool gets its memory. If `allocate` is NULL, the memory
 * comes from the platform layer. */
typedef struct fji_allocator {
    void *(*allocate)(size_t bytes, size_t align, void *arg);
    void (*release)(void *p, size_t bytes, void *arg);
    void *arg;
} fji_allocator;

typedef struct fji_memory {
    fji_allocator from;
    uint64_t used[FJI_MEMORY_KINDS]; /* bytes in use, of each kind but FUTURES; see below */
    uint64_t held;                   /* see above */
} fji_memory;

/* The value of `held` of a record without blocks. */
#define FJI_MEMORY_POOL_EXISTS 1u

/* Returns the functions in the options *o. */
fji_allocator fji_allocator_of(const fj_pool_options *o);

/* Allocates `bytes` bytes, zeroed and aligned to FJI_CACHE_PAIR. Returns NULL if there is no memory. A
 * block of the program's function that is not aligned counts as no memory. */
void *fji_allocator_alloc(const fji_allocator *a, size_t bytes);

/* Frees memory of fji_allocator_alloc(), of this size. Does nothing if p is NULL. */
void fji_allocator_free(const fji_allocator *a, void *p, size_t bytes);

/* Makes a memory record, with its own memory from *a. Returns NULL if there is no memory. */
fji_memory *fji_memory_make(const fji_allocator *a);

/* Called when the pool of m has ended and has freed what fji_memory_alloc() gave it. LAST TOUCH of m:
 * the record is freed now, or with the last block. */
void fji_memory_end(fji_memory *m);

/* Allocates memory as fji_allocator_alloc(), and counts it. Returns NULL if there is none. */
void *fji_memory_alloc(fji_memory *m, enum fji_memory_kind kind, size_t bytes);

/* Frees memory of fji_memory_alloc(), of this kind and size. Does nothing if p is NULL. */
void fji_memory_free(fji_memory *m, enum fji_memory_kind kind, void *p, size_t bytes);

/* Counts memory that does not come from m: adds `bytes`, which may be negative, to the kind. */
void fji_memory_count(fji_memory *m, enum fji_memory_kind kind, int64_t bytes);

/* Any thread. Returns how many bytes of the kind are in use. An estimate while other threads allocate or
 * free. */
uint64_t fji_memory_used(const fji_memory *m, enum fji_memory_kind kind);

/* Allocates a block of at least `bytes` bytes from m, or from the platform layer, uncounted, if m is
 * NULL. A block of the kind OTHER is aligned to FJI_CACHE_PAIR and shares no cache line with other
 * memory; the others are aligned for any type. Blocks of the kind SCRATCH are not zeroed. Returns NULL
 * if there is no memory. */
void *fji_block_alloc(fji_memory *m, enum fji_memory_kind kind, size_t bytes);

/* Frees a block. Does nothing if p is NULL. Any thread may call it, also after the end of the pool. */
void fji_block_free(void *p);

#endif /* FJI_MEMORY_H */
