/* SPDX-License-Identifier: MIT */
/*
 * inbox_cells.h - the cells in which an inbox keeps posted callbacks
 *
 * Any thread may call these functions, unless a comment says otherwise. None of them waits.
 */
#ifndef FJI_INBOX_CELLS_H
#define FJI_INBOX_CELLS_H

#include <forkjoin/inbox.h>
#include <stdbool.h>

#include "plat/config.h"

/* A cell: an item of the library, and what fj_future_notify() needs. */
typedef struct fji_inbox_cell {
    fj_inbox_item item; /* first */
    uint32_t number;    /* the number of this cell; 0 if it is in no chunk */
    uint32_t next_free; /* in a list of free cells: the number of the next cell, or 0 */
    /* The members below are valid only in a cell of fj_future_notify(). */
    fj_inbox *inbox;
    fj_done_fn *done;
    fj_future *future; /* set when the future is done */
    fj_listener listener;
} fji_inbox_cell;

/* The cells of an inbox. Everything 0 is not a valid initial state: see fji_inbox_cells_init(). */
typedef struct fji_inbox_cells {
    uint64_t free;                    /* the list of free cells: version, number of the first */
    uint32_t chunks;                  /* number of chunks whose cells were added to the list */
    uint64_t chunk[FJI_INBOX_CHUNKS]; /* the addresses of the chunks, or 0 */
} fji_inbox_cells;

void fji_inbox_cells_init(fji_inbox_cells *s);

/* Frees the chunks. No other thread uses the cells. */
void fji_inbox_cells_fini(fji_inbox_cells *s);

/* Takes a free cell. Allocates memory only if there is none. Returns NULL if there is no memory. */
fji_inbox_cell *fji_inbox_cell_take(fji_inbox_cells *s);

/* Cells that a thread has used and will give back together; zero: none. */
typedef struct fji_inbox_used {
    fji_inbox_cell *first, *last;
    int n;
} fji_inbox_used;

/* Adds a cell to *used. The caller no longer accesses the cell. A cell that is in no chunk is freed
 * instead. */
void fji_inbox_used_add(fji_inbox_used *used, fji_inbox_cell *c);

/* Makes all cells of *used free. */
void fji_inbox_used_give_back(fji_inbox_cells *s, fji_inbox_used *used);

#endif /* FJI_INBOX_CELLS_H */
