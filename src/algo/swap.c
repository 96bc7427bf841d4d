/* SPDX-License-Identifier: MIT */
/*
 * swap.c - exchanging, reversing and rotating elements whose size is known at run time only
 *
 * The functions copy blocks of a few constant sizes, so that the compiler generates a few moves
 * instead of a call of memcpy(). Both blocks of an exchange are read before one is written, because
 * they may be the same.
 */
#include "swap.h"

#include <forkjoin/attr.h>
#include <string.h>

enum { BLOCK = 32 }; /* the most bytes that one swap_block() exchanges */

/* Exchanges `bytes` bytes at x with those at y. `bytes` is a constant of at most BLOCK. */
FJI_INLINE void swap_block(unsigned char *x, unsigned char *y, size_t bytes)
{
    unsigned char t[BLOCK], u[BLOCK];

    memcpy(t, x, bytes);
    memcpy(u, y, bytes);
    memcpy(x, u, bytes);
    memcpy(y, t, bytes);
}

void fji_swap_bytes(void *a, void *b, size_t bytes)
{
    unsigned char *x = a, *y = b;

    for (; bytes >= BLOCK; bytes -= BLOCK, x += BLOCK, y += BLOCK) swap_block(x, y, BLOCK);
    for (; bytes >= 8; bytes -= 8, x += 8, y += 8) swap_block(x, y, 8);
    for (; bytes > 0; bytes--, x++, y++) swap_block(x, y, 1);
}

void fji_reverse(void *base, size_t n, size_t size)
{
    unsigned char *x = base, *y = x + n * size;

    for (size_t i = 0; i < n / 2; i++, x += size) {
        y -= size;
        if (size == 4)
            swap_block(x, y, 4);
        else if (size == 8)
            swap_block(x, y, 8);
        else
            fji_swap_bytes(x, y, size);
    }
}

/* Each step exchanges the shorter area with as many bytes of the longer area, at the end that is
 * away from the shorter one. The bytes of the shorter area are then in their final place. What
 * remains is a rotation of fewer bytes: the lengths change as in Euclid's algorithm by
 * subtraction. */
void fji_rotate(void *base, size_t left, size_t right)
{
    unsigned char *a = base;

    while (left != 0 && right != 0) {
        if (left <= right) {
            fji_swap_bytes(a, a + right, left);
            right -= left;
        } else {
            fji_swap_bytes(a, a + left, right);
            a += right;
            left -= right;
        }
    }
}
