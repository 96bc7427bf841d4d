/* SPDX-License-Identifier: MIT */
/*
 * range.h - a range of addresses for an array that grows without moving
 *
 * Addresses are reserved for the largest size. Memory is committed as the array grows. An array has n
 * elements of `size` bytes, and `extra` further elements for its ENDs.
 */
#ifndef FJI_RANGE_H
#define FJI_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fji_range {
    char *start;     /* NULL: no range */
    size_t reserved; /* bytes */
    size_t size;     /* bytes of an element */
    uint32_t extra;
    uint32_t limit; /* most elements */
} fji_range;

/*
 * Reserves addresses for `limit` elements and commits memory for the first `first`. If the system
 * refuses so many addresses, r->limit is less: a half, a quarter, and so on, but at least `first`.
 * Returns false if there are no addresses or no memory for `first` elements.
 */
bool fji_range_init(fji_range *r, size_t size, uint32_t extra, uint32_t first, uint32_t limit);

/* Returns the addresses and the memory to the system. */
void fji_range_fini(fji_range *r);

/* Commits memory for twice as many elements as n, or for the limit if that is less. Returns the number of
 * elements, or n if the limit is reached or there is no memory. */
uint32_t fji_range_grow(fji_range *r, uint32_t n);

/* Returns the memory of all but the first `kept` of n elements to the system. Returns false if nothing
 * was changed. */
bool fji_range_shrink(fji_range *r, uint32_t n, uint32_t kept);

#endif /* FJI_RANGE_H */
