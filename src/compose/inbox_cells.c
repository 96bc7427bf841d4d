/* SPDX-License-Identifier: MIT */
/*
 * inbox_cells.c - the cells of an inbox: many threads take them, the thread of the loop returns them
 *
 * Cells are in chunks. Chunk k has FJI_INBOX_CELLS << k cells. A chunk is allocated when no cell is
 * free, and freed with the inbox, so a thread may read a cell that another thread has just taken.
 * The cells are numbered through all chunks, beginning with 1.
 *
 * The free cells form a list, whose head is one word:
 *
 *     63                       24 23                     0
 *    +---------------------------+------------------------+
 *    |          version          |  number of first cell  |   0: the list is empty
 *    +---------------------------+------------------------+
 *
 * Transitions of the word
 *   take   any thread     first = its next_free         CAS
 *   give   any thread     first = a cell, version + 1   CAS; its last cell points to the old first
 *
 * A thread that takes reads next_free of the first cell before its CAS. If the CAS succeeds, no cell
 * was given back in between, because each give changes the version. Without a give, a cell that was
 * taken does not become the first one again. So next_free was right.
 *
 * Growth: a thread that finds no free cell allocates the next chunk and installs its address by a
 * CAS. It keeps the first cell and gives the others. Another thread that finds no free cell
 * meanwhile does not wait for it. It allocates a loose cell, which is in no chunk and is freed after
 * its use.
 *
 * Edges           from                       to                         carries
 *   inbox.cell    acq_rel CAS, cells_give()  acquire load and CAS,      the address of the chunk; that
 *                                            fji_inbox_cell_take()      the last user has finished
 */
#include "inbox_cells.h"

#include "plat/atomic.h"
#include "plat/plat.h"

#define NUMBER_BITS 24
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)

_Static_assert(((uint64_t)FJI_INBOX_CELLS << FJI_INBOX_CHUNKS) <= 1u << NUMBER_BITS,
               "the number of a cell has too many bits");

static uint32_t chunk_cells(uint32_t k)
{
    return (uint32_t)FJI_INBOX_CELLS << k;
}

/* Returns the number of the first cell of chunk k. */
static uint32_t chunk_first(uint32_t k)
{
    return chunk_cells(k) - FJI_INBOX_CELLS + 1;
}

static fji_inbox_cell *cell_of(const fji_inbox_cells *s, uint32_t number)
{
    uint32_t k = 31 - (uint32_t)__builtin_clz((number - 1) / FJI_INBOX_CELLS + 1);
    /* relaxed: the caller has the number from a list whose head it has read with acquire, and the
     * chunk was installed before its cells were in a list [inbox.cell]. */
    fji_inbox_cell *chunk = (fji_inbox_cell *)(uintptr_t)fji_load_relaxed(&s->chunk[k]);

    return &chunk[number - chunk_first(k)];
}

void fji_inbox_cells_init(fji_inbox_cells *s)
{
    *s = (fji_inbox_cells){.free = FJI_START_64 << NUMBER_BITS};
}

void fji_inbox_cells_fini(fji_inbox_cells *s)
{
    for (int k = 0; k < FJI_INBOX_CHUNKS; k++) fji_plat_free((void *)(uintptr_t)s->chunk[k]);
}

/* ---- Giving back ----------------------------------------------------------------------------- */

/* Makes the cells from `first` to `last`, which are linked by next_free, free. */
static void cells_give(fji_inbox_cells *s, uint32_t first, fji_inbox_cell *last)
{
    uint64_t old = fji_load_relaxed(&s->free); /* relaxed: the CAS checks it */
    uint64_t next;

    do {
        /* relaxed: a thread that takes reads it, and its CAS fails if the value was not the one
         * that the CAS below publishes. */
        fji_store_relaxed(&last->next_free, (uint32_t)old & NUMBER_MASK);
        next = ((old >> NUMBER_BITS) + 1) << NUMBER_BITS | first;
        /* [inbox.cell] acq_rel -> acquire in fji_inbox_cell_take(): next_free of the cells, their
         * chunk, and that the calling thread has finished with them. */
    } while (!fji_cas_acq_rel_64(&s->free, &old, next));
}

void fji_inbox_used_add(fji_inbox_used *used, fji_inbox_cell *c)
{
    if (c->number == 0) {
        fji_plat_free(c);
        return;
    }
    /* relaxed: as in cells_give() */
    fji_store_relaxed(&c->next_free, used->first != NULL ? used->first->number : 0u);
    if (used->first == NULL) used->last = c;
    used->first = c;
    used->n++;
}

void fji_inbox_used_give_back(fji_inbox_cells *s, fji_inbox_used *used)
{
    if (used->first == NULL) return;
    cells_give(s, used->first->number, used->last);
    *used = (fji_inbox_used){0};
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* Allocates the next chunk. Returns its first cell, which is not in the list, or NULL if there is no
 * memory, if another thread is allocating this chunk, or if all chunks exist. */
static fji_inbox_cell *cells_grow(fji_inbox_cells *s)
{
    /* relaxed: the CAS below decides which thread installs chunk k. */
    uint32_t k = fji_load_relaxed(&s->chunks);
    uint64_t none = 0;

    /* relaxed: compared with 0 only, to avoid an allocation; the CAS below decides. */
    if (k == FJI_INBOX_CHUNKS || fji_load_relaxed(&s->chunk[k]) != 0) return NULL;
    uint32_t n = chunk_cells(k), first = chunk_first(k);
    fji_inbox_cell *chunk = fji_plat_alloc(n * sizeof *chunk);
    if (chunk == NULL) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        chunk[i].number = first + i;
        chunk[i].next_free = first + i + 1;
    }
    /* relaxed: cells_give() publishes the chunk [inbox.cell]. The CAS only decides which thread
     * installs it. */
    if (!fji_cas_relaxed(&s->chunk[k], &none, (uint64_t)(uintptr_t)chunk)) {
        fji_plat_free(chunk);
        return NULL;
    }
    if (n > 1) cells_give(s, first + 1, &chunk[n - 1]);
    fji_store_relaxed(&s->chunks, k + 1); /* relaxed: as above; only this thread stores k + 1 */
    return chunk;
}

fji_inbox_cell *fji_inbox_cell_take(fji_inbox_cells *s)
{
    /* [inbox.cell] acquire <- acq_rel in cells_give(): the first cell. */
    uint64_t old = fji_load_acquire(&s->free);

    while (((uint32_t)old & NUMBER_MASK) != 0) {
        fji_inbox_cell *c = cell_of(s, (uint32_t)old & NUMBER_MASK);
        /* relaxed: the head of this file says why the value is right if the CAS succeeds. */
        uint64_t next = (old & ~(uint64_t)NUMBER_MASK) | fji_load_relaxed(&c->next_free);
        /* [inbox.cell] acquire <- acq_rel in cells_give(): the cell; on failure, the next one. */
        if (fji_cas_acq_rel_64(&s->free, &old, next)) return c;
    }
    fji_inbox_cell *c = cells_grow(s);
    if (c == NULL) c = fji_plat_alloc(sizeof *c); /* a loose cell: its number is 0 */
    return c;
}
