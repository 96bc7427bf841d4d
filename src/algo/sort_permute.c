/* SPDX-License-Identifier: MIT */
/*
 * sort_permute.c - bringing elements into the order of pointers to them
 *
 * Every place gets the element of another one, that one of a third, and so on until it comes
 * back to the first: a permutation is a set of cycles, as a rule a few, one of them long. To
 * let many work on it, some places are cuts. The elements of these are saved. Then a path leads
 * from each cut to the next one on its cycle: every place on the path gets the element of its
 * successor, the last one that of the cut where the path ends, as saved.
 *
 *     cut 0 <- 17 <- 5 <- 40 <- cut 8 <- 3 <- cut 0
 *
 * A path touches no place of another one, but for what was saved. A place that is done is its
 * own successor. What is not done when all paths are, are the cycles without a cut.
 *
 * What is moved next is far away as a rule: it is fetched some steps before.
 */
#include "sort_permute.h"

#include <forkjoin/algo.h>
#include <string.h>

#include "../atomic.h"

enum {
    CUT_DISTANCE_MIN = 256, /* places from one cut to the next, at least */
    CUTS_MAX = 2048,        /* cuts at the most */
    PREFETCH_AHEAD = 8,     /* what is fetched is so many steps ahead */
    CACHE_BYTES = 1 << 16,  /* bytes of elements that need no fetching */
    LINE = 64,
    PREFETCH_MAX = 512,       /* bytes of an element that are fetched: the rest follows by itself */
    PARALLEL_BYTES = 1 << 16, /* bytes that are worth being moved by many */
};

/* From one cut to the next: a power of two. */
static size_t cut_distance(size_t n)
{
    size_t distance = CUT_DISTANCE_MIN;

    while (n / distance >= CUTS_MAX) distance *= 2;
    return distance;
}

size_t fji_permute_cuts(size_t n)
{
    return n / cut_distance(n) + 1;
}

/* Calls body for n things that have `size` bytes each, by many if it is worth while. */
static int permute_for(fji_permutation *p, size_t n, fj_for_fn *body)
{
    return p->parallel && p->n * p->size >= PARALLEL_BYTES ? fj_for(0, n, body, p, NULL)
                                                           : body(0, n, p);
}

/* x with x * odd = 1, modulo 2 to the 64: each step doubles the bits that are right. */
static uint64_t inverse_of_odd(uint64_t odd)
{
    uint64_t x = odd; /* three bits are */

    for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
    return x;
}

/* Turns pointers into numbers of places. They are multiples of the size, so that a
 * multiplication does for a division. */
static int permute_find_successors(size_t begin, size_t end, void *arg)
{
    fji_permutation *p = arg;
    int twos = __builtin_ctzll(p->size);
    uint64_t inverse = inverse_of_odd(p->size >> twos);
    bool moved = false;

    for (size_t i = begin; i < end; i++) {
        uint64_t k = ((uint64_t)(p->pointers[i] - p->base) >> twos) * inverse;
        p->successor[i] = k;
        moved |= k != i;
    }
    if (moved) fji_store_relaxed(&p->moved, 1); /* relaxed: read when all have been joined */
    return FJ_OK;
}

static int permute_save_cuts(size_t begin, size_t end, void *arg)
{
    fji_permutation *p = arg;
    size_t distance = cut_distance(p->n);

    for (size_t c = begin; c < end; c++)
        memcpy(p->saved + c * p->size, p->base + c * distance * p->size, p->size);
    return FJ_OK;
}

static void permute_prefetch(const fji_permutation *p, size_t place)
{
    const unsigned char *e = p->base + place * p->size;
    size_t max = p->size < PREFETCH_MAX ? p->size : PREFETCH_MAX;

    for (size_t i = 0; i < max; i += LINE) __builtin_prefetch(e + i);
}

/* Whether a path ends at `place`: at a cut, or where it began. */
static bool path_ends(size_t place, size_t start, size_t distance)
{
    return (place & (distance - 1)) == 0 || place == start;
}

/* The path, or the cycle, from `start`, of which the element is saved. */
static void permute_path(fji_permutation *p, size_t start, size_t distance)
{
    size_t size = p->size, place = start, from = p->successor[start], ahead = from;

    if (p->n * size <= CACHE_BYTES) ahead = start; /* ends at once */
    for (int i = 0; i < PREFETCH_AHEAD && !path_ends(ahead, start, distance); i++) {
        ahead = p->successor[ahead];
        permute_prefetch(p, ahead);
    }
    while (!path_ends(from, start, distance)) {
        p->successor[place] = place;
        memcpy(p->base + place * size, p->base + from * size, size);
        place = from;
        from = p->successor[place];
        if (path_ends(ahead, start, distance)) continue;
        ahead = p->successor[ahead];
        permute_prefetch(p, ahead);
    }
    p->successor[place] = place;
    size_t saved = (from & (distance - 1)) == 0 ? from / distance : 0;
    memcpy(p->base + place * size, p->saved + saved * size, size);
}

static int permute_paths(size_t begin, size_t end, void *arg)
{
    fji_permutation *p = arg;
    size_t distance = cut_distance(p->n);

    for (size_t c = begin; c < end; c++)
        if (p->successor[c * distance] != c * distance) permute_path(p, c * distance, distance);
    return FJ_OK;
}

int fji_permute(fji_permutation *p)
{
    size_t distance = cut_distance(p->n), cuts = (p->n - 1) / distance + 1;
    int code = permute_for(p, p->n, permute_find_successors);

    if (code != FJ_OK || !p->moved) return code;
    code = permute_for(p, cuts, permute_save_cuts);
    if (code != FJ_OK) return code;
    /* From here on elements are missing: it has to be done to the end. */
    if (permute_for(p, cuts, permute_paths) != FJ_OK) (void)permute_paths(0, cuts, p);
    for (size_t i = 0; i < p->n; i++)
        if (p->successor[i] != i) {
            memcpy(p->saved, p->base + i * p->size, p->size);
            permute_path(p, i, distance);
        }
    return FJ_OK;
}
