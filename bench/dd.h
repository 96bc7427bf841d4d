/* SPDX-License-Identifier: MIT */
/*
 * dd.h - the kernel of the workload dd: binary decision diagrams
 *
 * A binary decision diagram is a graph that represents a Boolean function. A node tests one
 * variable and has two children: `low` is the function that remains if the variable is false, and
 * `high` the one that remains if it is true. Every path tests the variables in ascending order, and
 * equal functions are the same node. A function is therefore identified by the index of its first
 * node. The indices 0 and 1 are the constants false and true.
 *
 * The workload places n queens on a board of n * n squares. Each square is a variable: a queen is
 * on it. The program of a runtime builds the conjunction of all constraints, one after the other.
 * The conjunction of two functions recurses into both children of their nodes, and these two calls
 * can run in parallel:
 *
 *     uint32_t conjoin(uint32_t a, uint32_t b)
 *     {
 *         dd_step s;
 *         uint32_t low, high;
 *
 *         if (dd_known(&s, a, b)) return s.result;
 *         fork: high = conjoin(s.high_a, s.high_b);
 *         low = conjoin(s.low_a, s.low_b);
 *         join
 *         return dd_finish(&s, low, high);
 *     }
 *
 * Every call whose result is not known forks once. With one worker the number of forks is always
 * the same. With several workers it varies a little, because two workers may compute the same
 * conjunction at the same time, and because other entries of the cache are replaced.
 *
 * All workers share two tables without locks:
 *
 *   unique table     a hash table of all nodes. A node is one 64-bit word, and its index is its
 *                    slot in the table. A worker adds a node by a compare-and-swap of that slot.
 *                    The table does not grow, and no node is removed.
 *   operation cache  a hash table of known conjunctions with one slot per hash value. A new entry
 *                    replaces the old one. An entry is one 64-bit word, so no worker can read a
 *                    half-written entry. The word has no space for the whole key. It contains the
 *                    part of the key that does not follow from the number of the slot.
 *
 * The header compiles as C11 and as C++17.
 */
#ifndef BENCH_DD_H
#define BENCH_DD_H

#include <stdio.h>

#include "workload.h"

#define DD_FALSE 0u
#define DD_TRUE 1u

enum {
    DD_INDEX_BITS = 24,
    DD_KEY_BITS = 2 * DD_INDEX_BITS /* the key of a conjunction consists of two indices */
};

#define DD_INDEX_MASK ((UINT64_C(1) << DD_INDEX_BITS) - 1)
#define DD_KEY_MASK ((UINT64_C(1) << DD_KEY_BITS) - 1)
#define DD_CACHED (UINT64_C(1) << 63) /* set in every entry of the cache, so that 0 is "empty" */

/*
 * The two tables of the program.
 *
 *   node   a word is 0 if the slot is empty. Otherwise it consists of the variable, from 1 on, the
 *          index `low` and the index `high`. The slots 0 and 1 belong to the constants. All their
 *          bits are 1, so their variable is greater than every variable of a function.
 *   cache  a word is 0 if the slot is empty. Otherwise it consists of DD_CACHED, the high bits of
 *          the key and the index of the result.
 */
static struct dd_tables {
    uint64_t *node, *cache;
    uint32_t node_mask;  /* number of slots - 1 */
    unsigned cache_bits; /* log2 of the number of slots */
} dd;

/* Empties the tables. They have 2^(2n + 4) nodes and 2^(2n + 2) cached operations for n queens,
 * which is enough for n = 6 to 8. They keep their memory for the next run. */
static inline void dd_init(uint32_t n)
{
    size_t nodes = (size_t)1 << (2 * n + 4), operations = nodes / 4;

    dd.node = (uint64_t *)bench_array((nodes + operations) * sizeof *dd.node);
    dd.cache = dd.node + nodes;
    dd.node_mask = (uint32_t)(nodes - 1);
    dd.cache_bits = 2 * n + 2;
    memset(dd.node, 0, (nodes + operations) * sizeof *dd.node);
    dd.node[DD_FALSE] = dd.node[DD_TRUE] = UINT64_MAX;
}

/* ---- nodes ---- */

/* relaxed: the thread that has the index got it from an acquire load of this header, or from a fork
 * or a join. Each of these orders the store of the node before this load. */
static inline uint64_t dd_word(uint32_t f)
{
    return __atomic_load_n(&dd.node[f], __ATOMIC_RELAXED);
}

static inline uint32_t dd_var(uint64_t word)
{
    return (uint32_t)(word >> DD_KEY_BITS);
}

static inline uint32_t dd_low(uint64_t word)
{
    return (uint32_t)(word >> DD_INDEX_BITS & DD_INDEX_MASK);
}

static inline uint32_t dd_high(uint64_t word)
{
    return (uint32_t)(word & DD_INDEX_MASK);
}

static inline void dd_full(void)
{
    fprintf(stderr, "dd: the table of nodes is full\n");
    exit(1);
}

/* Finds the word in the table, or adds it. Returns its slot. */
static inline uint32_t dd_insert(uint64_t word)
{
    uint32_t slot = (uint32_t)bench_mix(word) & dd.node_mask;

    for (uint32_t probes = 0; probes <= dd.node_mask; probes++) {
        uint64_t found = __atomic_load_n(&dd.node[slot], __ATOMIC_ACQUIRE);
        /* If another worker fills the slot first, the exchange fails and `found` is its word. */
        if (found == 0 && __atomic_compare_exchange_n(&dd.node[slot], &found, word, false,
                                                      __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            return slot;
        if (found == word) return slot;
        slot = (slot + 1) & dd.node_mask;
    }
    dd_full();
    return DD_FALSE;
}

/* Returns the function "if var then high else low". All variables of low and high are greater than
 * var. */
static inline uint32_t dd_node(uint32_t var, uint32_t low, uint32_t high)
{
    if (low == high) return low;
    return dd_insert((uint64_t)var << DD_KEY_BITS | (uint64_t)low << DD_INDEX_BITS | high);
}

/* ---- conjunction ---- */

/* One call of the conjunction. */
typedef struct dd_step {
    uint32_t result;       /* if dd_known() returned true */
    uint32_t low_a, low_b; /* otherwise: the arguments of the two recursive calls */
    uint32_t high_a, high_b;
    uint32_t var; /* the variable of the result */
    uint64_t key; /* the mixed key of the operation */
} dd_step;

/* Mixes the key of 48 bits. Different keys stay different, because each step can be inverted. */
static inline uint64_t dd_mix(uint64_t key)
{
    key = key * UINT64_C(0x9e3779b97f4a7c15) & DD_KEY_MASK;
    key ^= key >> DD_INDEX_BITS;
    key = key * UINT64_C(0xbf58476d1ce4e5b9) & DD_KEY_MASK;
    return key ^ key >> DD_INDEX_BITS;
}

/* The low bits of a mixed key are the number of the slot. */
static inline uint64_t *dd_cache_slot(uint64_t key)
{
    return &dd.cache[key & ((UINT64_C(1) << dd.cache_bits) - 1)];
}

/* The entry of a mixed key, with the result 0. */
static inline uint64_t dd_cache_entry(uint64_t key)
{
    return DD_CACHED | key >> dd.cache_bits << DD_INDEX_BITS;
}

static inline bool dd_cached(dd_step *s)
{
    uint64_t entry = __atomic_load_n(dd_cache_slot(s->key), __ATOMIC_ACQUIRE);

    s->result = (uint32_t)(entry & DD_INDEX_MASK);
    return (entry & ~DD_INDEX_MASK) == dd_cache_entry(s->key);
}

static inline void dd_split(dd_step *s, uint32_t a, uint32_t b)
{
    uint64_t x = dd_word(a), y = dd_word(b);
    bool in_a = dd_var(x) <= dd_var(y), in_b = dd_var(y) <= dd_var(x);

    s->var = dd_var(in_a ? x : y);
    s->low_a = in_a ? dd_low(x) : a;
    s->high_a = in_a ? dd_high(x) : a;
    s->low_b = in_b ? dd_low(y) : b;
    s->high_b = in_b ? dd_high(y) : b;
}

/* Begins the conjunction of a and b. Returns true if s->result is the result. Otherwise the caller
 * computes two conjunctions and passes their results to dd_finish(). */
static inline bool dd_known(dd_step *s, uint32_t a, uint32_t b)
{
    uint32_t less = a < b ? a : b, more = a < b ? b : a;

    s->result = less == DD_FALSE ? DD_FALSE : more;
    if (less <= DD_TRUE || less == more) return true;
    s->key = dd_mix((uint64_t)less << DD_INDEX_BITS | more);
    if (dd_cached(s)) return true;
    dd_split(s, a, b);
    return false;
}

/* Ends the conjunction and stores the result in the cache. */
static inline uint32_t dd_finish(const dd_step *s, uint32_t low, uint32_t high)
{
    uint32_t result = dd_node(s->var, low, high);

    __atomic_store_n(dd_cache_slot(s->key), dd_cache_entry(s->key) | result, __ATOMIC_RELEASE);
    return result;
}

/* ---- the queens ---- */

/* Returns whether two queens on the squares i and j attack each other. */
static inline bool dd_attacks(int n, int i, int j)
{
    int rows = i / n - j / n, columns = i % n - j % n;

    return rows == 0 || columns == 0 || rows == columns || rows == -columns;
}

/* If a queen is on the square, there is none on the squares that it attacks. The loop adds the
 * variables in descending order. */
static inline uint32_t dd_square(int n, int square)
{
    uint32_t none = dd_node((uint32_t)square + 1, DD_TRUE, DD_FALSE), f = DD_TRUE;

    for (int i = n * n - 1; i >= 0; i--) {
        if (i == square)
            f = dd_node((uint32_t)i + 1, DD_TRUE, f);
        else if (dd_attacks(n, i, square))
            f = dd_node((uint32_t)i + 1, f, i > square ? DD_FALSE : none);
    }
    return f;
}

/* The row has at least one queen. */
static inline uint32_t dd_row(int n, int row)
{
    uint32_t f = DD_FALSE;

    for (int column = n; column > 0; column--)
        f = dd_node((uint32_t)(row * n + column), f, DD_TRUE);
    return f;
}

/* Returns the number of constraints. Their conjunction is true if and only if the n queens do not
 * attack each other. */
static inline uint32_t dd_constraints(uint32_t n)
{
    return n * n + n;
}

/* Returns constraint number i: first those of the squares, then those of the rows. */
static inline uint32_t dd_constraint(uint32_t n, uint32_t i)
{
    return i < n * n ? dd_square((int)n, (int)i) : dd_row((int)n, (int)(i - n * n));
}

/* Returns how many assignments of the variables var to last make f true. The function of the queens
 * has few paths, so no node has to be marked as counted. */
static inline double dd_count(uint32_t f, uint32_t var, uint32_t last)
{
    uint64_t word = dd_word(f);

    if (f == DD_FALSE) return 0;
    if (var > last) return 1;
    if (dd_var(word) > var) return 2 * dd_count(f, var + 1, last);
    return dd_count(dd_low(word), var + 1, last) + dd_count(dd_high(word), var + 1, last);
}

/* Returns the answer of the workload from the conjunction of all constraints. */
static inline double dd_answer(uint32_t n, uint32_t f)
{
    return dd_count(f, 1, n * n);
}

#endif
