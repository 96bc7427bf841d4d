/* SPDX-License-Identifier: MIT */
/*
 * sort_permute.c - moving elements into the order of pointers to them
 *
 * A place is an index of the array. The successor of a place is the place of the element that has
 * to be moved to it: pointers[i] points to the element of the successor of i.
 *
 * The problem: a permutation consists of cycles. Each place gets the element of its successor, the
 * successor gets the element of its own successor, and so on, back to the first place. There are
 * usually few cycles, and one of them is long. Workers cannot share one cycle as it is.
 *
 * The idea: every k-th place of the array is a cut. The elements of all cuts are saved first. A
 * path leads from each cut along the successors to the next cut on its cycle. Every place on the
 * path gets the element of its successor. The last place before the next cut gets the saved element
 * of that cut, whose place may already be overwritten.
 *
 *     cut 0 <- 17 <- 5 <- 42 <- cut 8 <- 3 <- cut 0        x <- y: place x gets the element of y
 *
 * Two paths have no place in common, except that one begins at the cut where the other ends.
 * Workers therefore follow different paths at the same time. A place that is done becomes its own
 * successor. The places that are not done after all paths are on cycles without a cut. The calling
 * thread alone follows these.
 *
 * The element that is moved next is usually not in a cache, unless the array is small. It is
 * therefore prefetched PREFETCH_AHEAD steps before it is moved.
 */
#include "sort_permute.h"

#include <forkjoin/algo.h>
#include <string.h>

#include "plat/atomic.h"

enum {
    CUT_DISTANCE_MIN = 256, /* the least distance of two cuts, as a number of elements */
    CUTS_MAX = 2048,        /* largest number of cuts of an array */
    PREFETCH_AHEAD = 8,     /* how many steps before its move an element is prefetched */
    CACHE_BYTES = 1 << 16,  /* if all elements fit into this many bytes, they are not prefetched */
    LINE = 64,              /* bytes of a cache line */
    PREFETCH_MAX = 512,     /* of a larger element, only the first 512 bytes are prefetched */
    PARALLEL_BYTES = 1 << 16, /* an array of fewer bytes is moved by one worker only */
};

/* Returns the distance of neighbouring cuts in an array of n elements, as a number of elements. It
 * is a power of two. */
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

/* Runs `body` for the indices 0 <= i < n, in parallel if p->parallel is true and the array has at
 * least PARALLEL_BYTES. Returns FJ_OK, or the code of fj_for() if that fails: some indices may then
 * be skipped. */
static int permute_for(fji_permutation *p, size_t n, fj_for_fn *body)
{
    return p->parallel && p->n * p->size >= PARALLEL_BYTES ? fj_for(0, n, body, p, NULL)
                                                           : body(0, n, p);
}

/* `odd` is an odd number. Returns x with x * odd = 1 modulo 2^64. Each step of the Newton iteration
 * doubles the number of correct bits. */
static uint64_t inverse_of_odd(uint64_t odd)
{
    uint64_t x = odd; /* 3 bits are correct */

    for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
    return x;
}

/* Computes the successors of the places begin <= i < end from the pointers. Sets p->moved to 1 if a
 * place is not its own successor. The offset of an element from `base` is a multiple of the size,
 * so instead of a division it is shifted and multiplied by the inverse of the odd factor of the
 * size. */
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
    if (moved) fji_store_relaxed(&p->moved, 1); /* relaxed: fji_permute() reads it after the loop */
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

/* Returns whether the path that begins at `start` ends at `place`: `place` is a cut, or `start`
 * again. `distance` is the distance of two cuts, a power of two. */
static bool path_ends(size_t place, size_t start, size_t distance)
{
    return (place & (distance - 1)) == 0 || place == start;
}

/* Moves the elements of the path that begins at the cut `start`, or of the cycle without a cut that
 * `start` is on, and makes each place of the path its own successor. The caller has saved the
 * elements of all cuts; of a cycle without a cut, it has saved the element of `start` as
 * saved[0]. */
static void permute_path(fji_permutation *p, size_t start, size_t distance)
{
    size_t size = p->size, place = start, from = p->successor[start], ahead = from;

    if (p->n * size <= CACHE_BYTES) ahead = start; /* no prefetches */
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
    /* permute_paths() overwrites elements that then exist only as saved copies, so it is completed
     * even after a cancellation. The second call skips the paths that are done. */
    if (permute_for(p, cuts, permute_paths) != FJ_OK) (void)permute_paths(0, cuts, p);
    for (size_t i = 0; i < p->n; i++)
        if (p->successor[i] != i) {
            memcpy(p->saved, p->base + i * p->size, p->size);
            permute_path(p, i, distance);
        }
    return FJ_OK;
}
