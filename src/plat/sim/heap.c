/* SPDX-License-Identifier: MIT */
/*
 * heap.c - the memory of the simulated program; finds uses after free
 *
 * Blocks are allocated from one mapping at growing addresses. A map with one byte for each 16-byte
 * granule says which granules belong to an allocated block, and every access is checked against it,
 * except with the strategy TIMED. If the option `reuse` is false, freed blocks are never allocated
 * again, so that a use after free is found. If it is true, the next allocation of the same size and
 * alignment uses a freed block, so that ABA problems with addresses are found. Reserved ranges
 * (fji_plat_reserve()) are in a second mapping, in which accesses are not checked.
 */
#include <stdio.h>
#include <string.h>

#include "engine.h"

#define HEAP_BYTES ((size_t)1 << 31)  /* size of the mapping of the blocks, bytes */
#define HEAP_RANGES ((size_t)1 << 38) /* size of the mapping of the reserved ranges, bytes */
#define HEAP_GRANULE 16               /* bytes for which the map has one byte */
#define HEAP_APART 64         /* at least this many unallocated bytes are before each block */
#define HEAP_BLOCKS (1 << 20) /* largest number of blocks of a run */
#define HEAP_RANGE_N 8192     /* largest number of reserved ranges of a run */

struct heap_block {
    size_t at, size, align;
    bool free;
};

struct sim_heap {
    unsigned char *bytes;
    unsigned char *map; /* for each granule: 1 if it is in an allocated block, else 0 */
    size_t used;        /* offset in `bytes` of the end of the last block */
    struct heap_block block[HEAP_BLOCKS];
    int blocks;            /* elements of `block` in use, of allocated and of free blocks */
    long live;             /* number of allocated blocks */
    unsigned char *ranges; /* the mapping of the reserved ranges */
    size_t ranges_used;    /* bytes of it that are reserved */
    struct heap_range {
        unsigned char *at;
        size_t bytes, used; /* used: how many bytes at the front are committed */
    } range[HEAP_RANGE_N];
    int range_n;
};

#define H (sim_engine->heap)

void sim_heap_reset(void)
{
    if (H == NULL) {
        H = sim_map(sizeof *H);
        H->bytes = sim_map(HEAP_BYTES);
        H->map = sim_map(HEAP_BYTES / HEAP_GRANULE);
        H->ranges = sim_map(HEAP_RANGES);
    }
    memset(H->map, 0, H->used / HEAP_GRANULE + 1);
    for (int i = 0; i < H->range_n; i++) memset(H->range[i].at, 0, H->range[i].used);
    H->range_n = 0;
    H->used = 0;
    H->blocks = 0;
    H->live = 0;
    H->ranges_used = 0;
}

/* Returns a free block of this size and alignment, or NULL. */
static struct heap_block *heap_again(size_t bytes, size_t align)
{
    for (int i = H->blocks; i-- > 0;) {
        struct heap_block *b = &H->block[i];
        if (b->free && b->size == bytes && b->align == align) return b;
    }
    return NULL;
}

static struct heap_block *heap_new(size_t bytes, size_t align)
{
    size_t at = (H->used + HEAP_APART + align - 1) & ~(align - 1);

    if (H->blocks == HEAP_BLOCKS || at + bytes + HEAP_APART > HEAP_BYTES)
        sim_fail("too many blocks of memory for the simulator");
    struct heap_block *b = &H->block[H->blocks++];
    *b = (struct heap_block){at, bytes, align, false};
    H->used = (at + bytes + HEAP_GRANULE - 1) & ~(size_t)(HEAP_GRANULE - 1);
    return b;
}

static void heap_mark(const struct heap_block *b, int in_use)
{
    size_t from = b->at / HEAP_GRANULE;
    size_t to = (b->at + b->size + HEAP_GRANULE - 1) / HEAP_GRANULE;

    memset(H->map + from, in_use, to - from);
}

void *sim_alloc(size_t bytes, size_t align, bool zero)
{
    if (align < HEAP_GRANULE) align = HEAP_GRANULE;
    if (bytes == 0) bytes = 1;
    struct heap_block *b = sim_engine->o.reuse ? heap_again(bytes, align) : NULL;
    if (b == NULL)
        b = heap_new(bytes, align);
    else
        sim_memory_forget(H->bytes + b->at, bytes);
    b->free = false;
    heap_mark(b, 1);
    H->live++;
    memset(H->bytes + b->at, zero ? 0 : 0xa5, bytes);
    return H->bytes + b->at;
}

/* Returns the block, allocated or free, that contains the address p, or NULL. */
static struct heap_block *heap_find(const void *p)
{
    size_t at = (size_t)((const unsigned char *)p - H->bytes);

    for (int i = H->blocks; i-- > 0;)
        if (at >= H->block[i].at && at < H->block[i].at + H->block[i].size) return &H->block[i];
    return NULL;
}

bool sim_in_range(const void *p)
{
    return (const unsigned char *)p >= H->ranges &&
           (const unsigned char *)p < H->ranges + HEAP_RANGES;
}

static bool heap_has(const void *p)
{
    return (const unsigned char *)p >= H->bytes && (const unsigned char *)p < H->bytes + HEAP_BYTES;
}

void sim_free(void *p)
{
    if (p == NULL) return;
    struct heap_block *b = heap_has(p) ? heap_find(p) : NULL;
    if (b == NULL || H->bytes + b->at != p) sim_fail("free of memory that was not allocated");
    if (b->free) sim_fail("freed twice");
    sim_memory_drain(sim_engine->now);
    /* To free counts as a write to the whole block. So an access of another thread that does not
     * happen before it is reported as a race. */
    sim_plain(p, b->size, true, __builtin_return_address(0));
    b->free = true;
    heap_mark(b, 0);
    memset(p, 0xdd, b->size);
    H->live--;
}

void sim_heap_check(const void *p, size_t size, const void *pc)
{
    char buffer[64];

    if (!heap_has(p)) return;
    size_t at = (size_t)((const unsigned char *)p - H->bytes);
    if (H->map[at / HEAP_GRANULE] != 0 && H->map[(at + size - 1) / HEAP_GRANULE] != 0) return;
    const struct heap_block *b = heap_find(p);
    sim_trace(pc, "uses %s", sim_where(p, buffer, sizeof buffer));
    if (b != NULL && b->free) sim_fail("use after free: %s", sim_where(p, buffer, sizeof buffer));
    sim_fail("use of memory that was not allocated: %s", sim_where(p, buffer, sizeof buffer));
}

const char *sim_where(const void *p, char *buffer, size_t n)
{
    const struct heap_block *b = heap_has(p) ? heap_find(p) : NULL;

    if (b != NULL)
        snprintf(buffer, n, "block %d (%zu bytes) + 0x%zx", (int)(b - H->block), b->size,
                 (size_t)((const unsigned char *)p - H->bytes) - b->at);
    else if (sim_in_range(p))
        snprintf(buffer, n, "range + 0x%zx", (size_t)((const unsigned char *)p - H->ranges));
    else
        snprintf(buffer, n, "%p", p);
    return buffer;
}

void *sim_reserve(size_t bytes)
{
    if (H->ranges_used + bytes > HEAP_RANGES || H->range_n == HEAP_RANGE_N) return NULL;
    unsigned char *p = H->ranges + H->ranges_used;
    H->ranges_used += bytes;
    H->range[H->range_n++] = (struct heap_range){p, bytes, 0};
    return p;
}

void sim_commit(void *p, size_t bytes)
{
    unsigned char *end = (unsigned char *)p + bytes;

    for (int i = H->range_n; i-- > 0;) {
        struct heap_range *r = &H->range[i];
        if (end < r->at || end > r->at + r->bytes) continue;
        if (r->used < (size_t)(end - r->at)) r->used = (size_t)(end - r->at);
        return;
    }
    sim_fail("commit outside the reserved ranges");
}

long sim_heap_blocks(void)
{
    return H->live;
}
