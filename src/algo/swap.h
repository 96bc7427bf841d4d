/* SPDX-License-Identifier: MIT */
/*
 * swap.h - exchanging, reversing and rotating elements whose size is known at run time only
 */
#ifndef FJI_ALGO_SWAP_H
#define FJI_ALGO_SWAP_H

#include <stddef.h>

/* Exchanges the first `bytes` bytes at x with those at y. The areas are the same or do not
 * overlap. */
void fji_swap_bytes(void *x, void *y, size_t bytes);

/* Reverses the order of the n elements of `size` bytes at `base`. */
void fji_reverse(void *base, size_t n, size_t size);

/* Exchanges two neighbouring areas: the first `left` bytes at `base` and the `right` bytes after
 * them. */
void fji_rotate(void *base, size_t left, size_t right);

#endif /* FJI_ALGO_SWAP_H */
