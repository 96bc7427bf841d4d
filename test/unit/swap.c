/* SPDX-License-Identifier: MIT */
/*
 * swap.c - exchanges, reversals and rotations against the same done byte by byte
 */
#include "algo/swap.h"

#include <string.h>

#include "fjtest.h"

enum { SIZE = 160, GUARD = 8 };

/* Fills memory with bytes that are all different within 251 bytes. */
static void fill(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(i % 251);
}

FJ_TEST(areas_of_every_size_are_exchanged, 10)
{
    unsigned char got[2 * SIZE + 3 * GUARD], all[sizeof got];

    fill(all, sizeof all);
    for (size_t n = 0; n <= SIZE; n++) {
        unsigned char *x = got + GUARD, *y = got + 2 * GUARD + SIZE;
        memcpy(got, all, sizeof got);
        fji_swap_bytes(x, y, n);
        for (size_t i = 0; i < n; i++) {
            CHECK_EQ(x[i], all[GUARD + i + GUARD + SIZE]);
            CHECK_EQ(y[i], all[GUARD + i]);
        }
        fji_swap_bytes(y, x, n);
        CHECK(memcmp(got, all, sizeof got) == 0); /* nothing else has changed */
    }
}

FJ_TEST(area_may_be_exchanged_with_itself, 10)
{
    unsigned char got[SIZE], all[SIZE];

    fill(all, SIZE);
    for (size_t n = 0; n <= SIZE; n++) {
        memcpy(got, all, SIZE);
        fji_swap_bytes(got, got, n);
        CHECK(memcmp(got, all, SIZE) == 0);
    }
}

FJ_TEST(elements_of_every_size_are_reversed, 10)
{
    unsigned char got[SIZE + GUARD], all[sizeof got];

    fill(all, sizeof all);
    for (size_t size = 1; size <= 40; size++)
        for (size_t n = 0; n * size <= SIZE; n++) {
            memcpy(got, all, sizeof got);
            fji_reverse(got, n, size);
            for (size_t i = 0; i < n; i++)
                CHECK(memcmp(got + i * size, all + (n - 1 - i) * size, size) == 0);
            CHECK(memcmp(got + n * size, all + n * size, sizeof got - n * size) == 0);
        }
}

FJ_TEST(neighbours_of_all_lengths_change_places, 10)
{
    unsigned char got[SIZE + GUARD], all[sizeof got];

    fill(all, sizeof all);
    for (size_t left = 0; left <= SIZE; left++)
        for (size_t right = 0; left + right <= SIZE; right++) {
            memcpy(got, all, sizeof got);
            fji_rotate(got, left, right);
            CHECK(memcmp(got, all + left, right) == 0);
            CHECK(memcmp(got + right, all, left) == 0);
            CHECK(memcmp(got + left + right, all + left + right, GUARD) == 0);
        }
}
