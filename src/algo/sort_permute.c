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
    CUT_LEAST = 256,  /* places from one cut to the next, at least */
    CUTS_MOST = 2048, /* cuts at the most */
    STEPS = 8,        /* what is fetched is so many steps ahead */
    NEAR = 1 << 16,   /* bytes of elements that need no fetching */
    LINE = 64,
    FETCH_MOST = 512, /* bytes of an element that are fetched: the rest follows by itself */
    BULK = 1 << 16,   /* bytes that are worth being moved by many */
};

/* From one cut to the next: a power of two. */
static size_t paths_every(size_t n)
{
    size_t every = CUT_LEAST;

    while (n / every >= CUTS_MOST) every *= 2;
    return every;
}

size_t fji_paths_cuts(size_t n)
{
    return n / paths_every(n) + 1;
}

/* Calls body for n things that have `size` bytes each, by many if it is worth while. */
static int paths_each(fji_paths *p, size_t n, fj_for_fn *body)
{
    return p->many && p->n * p->size >= BULK ? fj_for(0, n, body, p, NULL) : body(0, n, p);
}

/* x with x * odd = 1, modulo 2 to the 64: each step doubles the bits that are right. */
static uint64_t paths_inverse(uint64_t odd)
{
    uint64_t x = odd; /* three bits are */

    for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
    return x;
}

/* Turns pointers into numbers of places. They are multiples of the size, so that a
 * multiplication does for a division. */
static int paths_number(size_t begin, size_t end, void *arg)
{
    fji_paths *p = arg;
    int even = __builtin_ctzll(p->size);
    uint64_t inverse = paths_inverse(p->size >> even);
    bool moved = false;

    for (size_t i = begin; i < end; i++) {
        uint64_t k = ((uint64_t)(p->pointers[i] - p->base) >> even) * inverse;
        p->next[i] = k;
        moved |= k != i;
    }
    if (moved) fji_store_relaxed(&p->moved, 1); /* relaxed: read when all have been joined */
    return FJ_OK;
}

static int paths_save(size_t begin, size_t end, void *arg)
{
    fji_paths *p = arg;
    size_t every = paths_every(p->n);

    for (size_t c = begin; c < end; c++)
        memcpy(p->saved + c * p->size, p->base + c * every * p->size, p->size);
    return FJ_OK;
}

static void paths_fetch(const fji_paths *p, size_t place)
{
    const unsigned char *e = p->base + place * p->size;
    size_t most = p->size < FETCH_MOST ? p->size : FETCH_MOST;

    for (size_t i = 0; i < most; i += LINE) __builtin_prefetch(e + i);
}

/* Whether a path ends at `place`: at a cut, or where it began. */
static bool paths_end(size_t place, size_t start, size_t every)
{
    return (place & (every - 1)) == 0 || place == start;
}

/* The path, or the cycle, from `start`, of which the element is saved. */
static void paths_walk(fji_paths *p, size_t start, size_t every)
{
    size_t size = p->size, place = start, from = p->next[start], ahead = from;

    if (p->n * size <= NEAR) ahead = start; /* ends at once */
    for (int i = 0; i < STEPS && !paths_end(ahead, start, every); i++) {
        ahead = p->next[ahead];
        paths_fetch(p, ahead);
    }
    while (!paths_end(from, start, every)) {
        p->next[place] = place;
        memcpy(p->base + place * size, p->base + from * size, size);
        place = from;
        from = p->next[place];
        if (paths_end(ahead, start, every)) continue;
        ahead = p->next[ahead];
        paths_fetch(p, ahead);
    }
    p->next[place] = place;
    size_t saved = (from & (every - 1)) == 0 ? from / every : 0;
    memcpy(p->base + place * size, p->saved + saved * size, size);
}

static int paths_follow(size_t begin, size_t end, void *arg)
{
    fji_paths *p = arg;
    size_t every = paths_every(p->n);

    for (size_t c = begin; c < end; c++)
        if (p->next[c * every] != c * every) paths_walk(p, c * every, every);
    return FJ_OK;
}

int fji_paths_run(fji_paths *p)
{
    size_t every = paths_every(p->n), cuts = (p->n - 1) / every + 1;
    int code = paths_each(p, p->n, paths_number);

    if (code != FJ_OK || !p->moved) return code;
    code = paths_each(p, cuts, paths_save);
    if (code != FJ_OK) return code;
    /* From here on elements are missing: it has to be done to the end. */
    if (paths_each(p, cuts, paths_follow) != FJ_OK) (void)paths_follow(0, cuts, p);
    for (size_t i = 0; i < p->n; i++)
        if (p->next[i] != i) {
            memcpy(p->saved, p->base + i * p->size, p->size);
            paths_walk(p, i, every);
        }
    return FJ_OK;
}
