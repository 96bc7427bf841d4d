/* SPDX-License-Identifier: MIT */
/*
 * sort_inline.c - what both typed sorts begin with
 */
#include "sort_inline.h"

#include <string.h>

enum { CHECK_EVERY = 1 << 16 }; /* pairs between two looks at the job */

void fji_sort_swap(char *x, char *y, size_t size)
{
    char copy[64];

    for (size_t at = 0; at < size; at += sizeof copy) {
        size_t n = size - at < sizeof copy ? size - at : sizeof copy;
        memcpy(copy, x + at, n);
        memmove(x + at, y + at, n);
        memcpy(y + at, copy, n);
    }
}

void fji_sort_exchange(char *x, char *y, size_t bytes)
{
    char copy[1024];

    for (size_t n; bytes > 0; bytes -= n, x += n, y += n) {
        n = bytes < sizeof copy ? bytes : sizeof copy;
        memcpy(copy, x, n);
        memcpy(x, y, n);
        memcpy(y, copy, n);
    }
}

/* Where the size is known, and at most 8: by two loads and two stores. */
FJI_INLINE void swap_word(char *x, char *y, size_t size)
{
    char a[8], b[8];

    memcpy(a, x, size);
    memcpy(b, y, size);
    memcpy(x, b, size);
    memcpy(y, a, size);
}

void fji_sort_reverse(char *a, size_t n, size_t size)
{
    char *x = a, *y = a + n * size;

    for (size_t i = 0; i < n / 2; i++, x += size) {
        y -= size;
        if (size == 4) {
            swap_word(x, y, 4);
        } else if (size == 8) {
            swap_word(x, y, 8);
        } else {
            fji_sort_swap(x, y, size);
        }
    }
}

bool fji_sort_presorted(fji_job *j, const fji_sort_kind *kind, char *a, size_t n)
{
    int first = 0, descending = 0;

    for (size_t at = 0; n - at > 1;) {
        size_t pairs = n - at - 1 < CHECK_EVERY ? n - at - 1 : CHECK_EVERY;
        size_t run = kind->run(a + at * kind->size, pairs + 1, &descending);
        if (at == 0) first = descending;
        if (descending != first || run != pairs + 1 || !fji_job_should_continue(j)) return false;
        at += pairs;
    }
    if (first) fji_sort_reverse(a, n, kind->size);
    return true;
}
