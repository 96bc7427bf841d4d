/* SPDX-License-Identifier: MIT */
/*
 * range.h - a range of addresses for an array that grows without moving
 *
 * Addresses are reserved for the largest size that the array can have. Memory is committed as the
 * array grows. The array has n elements of `size` bytes, and `extra` further elements of the same
 * size for its END sentinels. The caller stores n.
 */
#ifndef FJI_RANGE_H
#define FJI_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fji_range {
    char *start;      /* lowest address of the range; NULL: no range */
    size_t reserved;  /* size of the range in bytes */
    size_t committed; /* how many bytes at the front of the range have memory */
    size_t size;      /* size of an element in bytes */
    uint32_t extra;   /* number of elements besides the n, for END sentinels */
    uint32_t limit;   /* the largest n, without the extra elements */
} fji_range;

/*
 * Initialises *r for elements of `size` bytes and `extra` further elements. Reserves addresses for
 * `limit` elements and commits memory for `first` elements, both with the extra elements. If the
 * system refuses to reserve the addresses, tries a half, a quarter and so on of `limit`, but not
 * less than `first`. r->limit becomes the number for which it has reserved addresses. Returns false
 * if the system refuses the addresses for each of these numbers, or refuses the memory.
 */
bool fji_range_init(fji_range *r, size_t size, uint32_t extra, uint32_t first, uint32_t limit);

/* Returns how many bytes n elements and the r->extra further elements take, rounded up to whole
 * pages. */
size_t fji_range_bytes(const fji_range *r, uint32_t n);

/* Gives back the addresses and the memory of *r (fji_plat_release()). Does nothing if *r has no range. */
void fji_range_fini(fji_range *r);

/* The array has n elements. Commits memory for 2 * n elements, or for r->limit elements if that is
 * less. Returns the new number of elements, or n if n is r->limit or there is no memory. */
uint32_t fji_range_grow(fji_range *r, uint32_t n);

/* The array has n elements. Keeps the memory of the first `kept` elements and of the extra elements,
 * and returns the rest to the system; the addresses stay reserved. Returns false if the system
 * refuses; the memory is then unchanged. */
bool fji_range_shrink(fji_range *r, uint32_t n, uint32_t kept);

#endif /* FJI_RANGE_H */
