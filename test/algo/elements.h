/* SPDX-License-Identifier: MIT */
/*
 * elements.h - arrays of elements of any size that the tests can recognise
 *
 * An element of `size` bytes holds its number, which is its index before the sort, in its first
 * four bytes (in all of them if `size` is below 4). The number determines the other bytes. The key
 * of an element is in a table, at the index of that number. A comparison can therefore check that
 * each of its arguments is an element. A check of the result can tell whether it holds each element
 * exactly once and undamaged, and whether equal elements have kept their order.
 */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include <forkjoin/algo.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"

struct elements {
    size_t n, size;
    unsigned char *base;
    unsigned *key;       /* of each element, by its number */
    atomic_ulong calls;  /* calls of the comparison so far */
    int lie;             /* how the comparison contradicts itself, an `enum lie` */
    fj_token *token;     /* cancelled by the comparison */
    unsigned long at;    /* the call that cancels it, counted from 1; 0: none */
    fj_progress *look;   /* if not NULL, checked in each call of the comparison */
    uint64_t most;       /* the largest value that it may show */
    atomic_ullong shown; /* the largest value that it has shown */
};

/* Whether to try a case of n elements. Arrays of up to 16 elements are always tried. A run with a
 * small scale tries only some of the larger ones; the seed determines which. */
static inline bool case_is_tried(size_t n)
{
    static atomic_ulong cases;
    unsigned long rounds = (unsigned long)fjt_rounds(100), every = rounds >= 25 ? 1 : 25 / rounds;

    if (n <= 16) return true;
    return (fjt_seed() + atomic_fetch_add(&cases, 1)) % every == 0;
}

static inline size_t id_bytes(size_t size)
{
    return size < 4 ? size : 4;
}

static inline uint32_t id_of(const void *e, size_t size)
{
    uint32_t id = 0;

    memcpy(&id, e, id_bytes(size));
    return id;
}

static inline unsigned char rest_of(uint32_t id, size_t i)
{
    return (unsigned char)(id * 31 + i * 7 + 5);
}

static inline void element_make(unsigned char *e, size_t size, uint32_t id)
{
    memcpy(e, &id, id_bytes(size));
    for (size_t i = 4; i < size; i++) e[i] = rest_of(id, i);
}

/* Fails the test unless the bytes at e are an element. Returns the number of the element. */
static inline uint32_t element_check(const struct elements *s, const unsigned char *e, int line)
{
    uint32_t id = id_of(e, s->size);

    if (id >= s->n) fjt_fail(__FILE__, line, "not an element: number %u of %zu", id, s->n);
    for (size_t i = 4; i < s->size; i++)
        if (e[i] != rest_of(id, i))
            fjt_fail(__FILE__, line, "element %u: byte %zu is wrong", id, i);
    return id;
}

/* The largest number of elements that have different numbers. */
static inline size_t elements_most(size_t size)
{
    return size == 1 ? 256 : size == 2 ? 65536 : (size_t)1 << 24;
}

static inline void elements_fill(struct elements *s)
{
    for (size_t i = 0; i < s->n; i++) element_make(s->base + i * s->size, s->size, (uint32_t)i);
    atomic_store(&s->calls, 0);
    atomic_store(&s->shown, 0);
}

static inline void elements_init(struct elements *s, size_t n, size_t size)
{
    memset(s, 0, sizeof *s);
    if (n > elements_most(size)) n = elements_most(size);
    s->n = n;
    s->size = size;
    /* The exact size, so that a sanitizer reports accesses beyond it. */
    s->base = malloc(n * size + (n == 0));
    s->key = calloc(n + 1, sizeof *s->key);
    CHECK(s->base != NULL && s->key != NULL);
    elements_fill(s);
}

static inline void elements_free(struct elements *s)
{
    free(s->base);
    free(s->key);
}

enum pattern { RANDOM, SORTED, REVERSED, EQUAL, ORGAN, FEW_KEYS, NEARLY, SAW, PATTERNS };

static inline void elements_keys(struct elements *s, enum pattern p, uint64_t *seed)
{
    size_t n = s->n;

    for (size_t i = 0; i < n; i++) {
        uint64_t r = fjt_random(seed), k = 0;
        switch (p) {
            case RANDOM: k = r >> 40; break;
            case SORTED: k = i; break;
            case REVERSED: k = n - i; break;
            case EQUAL: k = 7; break;
            case ORGAN: k = i < n / 2 ? i : n - i; break;
            case FEW_KEYS: k = (r >> 20) % 4; break;
            case NEARLY: k = (r >> 50) == 0 || i % 100 == 99 ? r >> 40 : i; break;
            default: k = i % 37; break;
        }
        s->key[i] = (unsigned)k;
    }
}

enum lie {
    TRUTH,
    AT_RANDOM,
    ALWAYS_1,
    ALWAYS_MINUS_1,
    ALWAYS_0,
    EXTREME,
    NEVER_EQUAL,
    BY_TURNS,
    LIES
};

/* The result of the comparison number `call`, of the keys x and y, if it contradicts itself as
 * `lie` says. */
static inline int lie_say(int lie, unsigned long call, unsigned x, unsigned y)
{
    uint64_t r = call * 0x9e3779b97f4a7c15u;

    r ^= r >> 29;
    switch (lie) {
        case AT_RANDOM: return (int)(r * 0xbf58476d1ce4e5b9u >> 40) % 3 - 1;
        case ALWAYS_1: return 1;
        case ALWAYS_MINUS_1: return -1;
        case ALWAYS_0: return 0;
        case EXTREME: return x < y ? INT32_MIN : x > y ? INT32_MAX : 0; /* consistent */
        case NEVER_EQUAL: return x < y ? -1 : 1;
        case BY_TURNS: return call % 2 == 0 ? 1 : -1;
        default: return (x > y) - (x < y);
    }
}

/* Checks that the progress does not decrease and does not exceed its maximum. */
static inline void element_look(struct elements *s)
{
    unsigned long long before = atomic_load(&s->shown), now = fj_progress_done(s->look);

    CHECK(now >= before && now <= s->most);
    while (before < now && !atomic_compare_exchange_weak(&s->shown, &before, now)) continue;
}

static inline int element_compare(const void *a, const void *b, void *arg)
{
    struct elements *s = arg;
    unsigned x = s->key[element_check(s, a, __LINE__)], y = s->key[element_check(s, b, __LINE__)];
    unsigned long call = atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed) + 1;

    if (call == s->at) fj_token_cancel(s->token);
    if (s->look != NULL) element_look(s);
    return lie_say(s->lie, call, x, y);
}

/* Checks that the array at `at` holds every element once. */
static inline void elements_check_all(const struct elements *s, const unsigned char *at, int line)
{
    unsigned char *seen = calloc(s->n + 1, 1);

    CHECK(seen != NULL);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t id = element_check(s, at + i * s->size, line);
        if (seen[id]++) fjt_fail(__FILE__, line, "element %u occurs twice, of %zu", id, s->n);
    }
    free(seen);
}

/* Checks also that they are in order. If `stable`, equal ones are in the order of their numbers. */
static inline void elements_check_sorted(const struct elements *s, const unsigned char *at,
                                         bool stable, int line)
{
    elements_check_all(s, at, line);
    for (size_t i = 1; i < s->n; i++) {
        uint32_t p = id_of(at + (i - 1) * s->size, s->size), q = id_of(at + i * s->size, s->size);
        if (s->key[p] > s->key[q] || (stable && s->key[p] == s->key[q] && p > q))
            fjt_fail(__FILE__, line,
                     "wrong order: %u before %u at %zu of %zu, size %zu, keys %u %u", p, q, i, s->n,
                     s->size, s->key[p], s->key[q]);
    }
}

#endif /* ELEMENTS_H */
