/* SPDX-License-Identifier: MIT */
/*
 * inconsistent.h - sorts, merges, filters and searches whose comparison contradicts itself
 *
 * A trial is one call on elements that can be recognised. The trial determines what the comparison
 * returns. Whatever it returns, the call ends after a number of comparisons in the order of n log
 * n, the result holds the same elements, the comparison is called only with elements, and nothing
 * outside the arrays is written. Guard bytes surround each array; AddressSanitizer also reports
 * reads of them.
 *
 * The file that includes this header defines INCONSISTENT_FAIL(...), which ends the program with a
 * message. Only one trial runs at a time.
 */
#ifndef INCONSISTENT_H
#define INCONSISTENT_H

#include <forkjoin/sort.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INCONSISTENT_POISON 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define INCONSISTENT_POISON 1
#endif

#ifdef INCONSISTENT_POISON
#include <sanitizer/asan_interface.h>
#define ROOM_CLOSE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ROOM_OPEN(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define ROOM_CLOSE(p, n) ((void)(p), (void)(n))
#define ROOM_OPEN(p, n) ((void)(p), (void)(n))
#endif

/* ---- A trial -------------------------------------------------------------------------------- */

/* The function to call. */
enum call {
    CALL_SORT,
    CALL_STABLE_SORT,
    CALL_QSORT,
    CALL_MERGE,
    CALL_TYPED_SORT,
    CALL_TYPED_STABLE_SORT,
    CALL_TYPED_MERGE,
    CALL_FILTER,
    CALL_PARTITION,
    CALL_FIND,
    CALLS
};

/* What the comparison returns. */
enum answer {
    ANSWER_TRUTH,
    ANSWER_RANDOM,
    ANSWER_NEVER,
    ANSWER_ALWAYS,
    ANSWER_ALTERNATES,
    ANSWER_NOT_AFTER,  /* less than or equal, where less than is expected */
    ANSWER_ROUND,      /* a cycle: a before b before c before a */
    ANSWER_OFTEN_TRUE, /* wrong in about one call of 16 */
    ANSWER_TURNS,      /* reverses its order after every 128 calls */
    ANSWER_BOTH,       /* x before y if and only if y before x */
    ANSWER_BY_ADDRESS, /* by the addresses of the elements */
    ANSWER_COPY_FIRST, /* a copy of an element is before all elements in the array */
    ANSWER_SCRIPT,     /* one bit of `script` for each call */
    ANSWERS
};

enum { SIZE_MOST = 300 };

struct trial {
    enum call call;
    enum answer answer;
    size_t size;       /* bytes of an element; the typed calls take one of typed_sizes[] */
    size_t n;          /* elements; for a merge, those of both runs */
    size_t na;         /* elements of the first run of a merge, at most n */
    unsigned keys;     /* 0: ascending, 1: descending, else the number of different keys */
    uint64_t seed;     /* of the random answers */
    bool no_memory;    /* every allocation of the library fails, in builds with faults */
    unsigned long end; /* the comparison that cancels the call, from 1; 0: none */
    const uint8_t *script;
    size_t script_bytes;
    fj_pool *pool;
    size_t grain;
};

static struct {
    const struct trial *is;
    unsigned ids; /* the numbers of the elements are below this */
    atomic_ulong calls;
    fj_token token;
    const unsigned char *array; /* the array that is sorted */
} trial_now;

/* ---- Elements ------------------------------------------------------------------------------- */

/* The number of an element is in its first four bytes, or in all bytes if it has fewer. The number
 * determines the other bytes. */

static inline size_t id_bytes(size_t size)
{
    return size < 4 ? size : 4;
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

/* Checks that there is an element at e, by comparing every `step`th byte and the last one. Returns
 * its number. */
static inline uint32_t element_check(const unsigned char *e, size_t step, int line)
{
    size_t size = trial_now.is->size;
    uint32_t id = 0;

    memcpy(&id, e, id_bytes(size));
    bool fine = id < trial_now.ids && (size <= 4 || e[size - 1] == rest_of(id, size - 1));
    for (size_t i = 4; fine && i < size; i += step) fine = e[i] == rest_of(id, i);
    if (!fine)
        INCONSISTENT_FAIL("line %d: not an element: call %d, answer %d, size %zu, n %zu, id %u",
                          line, trial_now.is->call, trial_now.is->answer, size, trial_now.is->n,
                          id);
    return id;
}

/* How many different numbers the n elements have. Elements of less than four bytes may share
 * numbers. */
static inline unsigned ids_of(size_t n, size_t size)
{
    size_t most = size < 4 ? (size_t)1 << 8 * size : (size_t)1 << 30;

    return (unsigned)(n < most ? n : most);
}

/* Checks that each element of the trial is at `at` as often as it was made. */
static inline void elements_check(const unsigned char *at)
{
    const struct trial *t = trial_now.is;
    size_t n = t->n, ids = trial_now.ids;
    unsigned *count = calloc(ids + 1, sizeof *count);

    if (count == NULL) INCONSISTENT_FAIL("no memory");
    for (size_t i = 0; i < n; i++) count[element_check(at + i * t->size, 1, __LINE__)]++;
    for (size_t id = 0; id < ids; id++)
        if (count[id] != n / ids + (id < n % ids))
            INCONSISTENT_FAIL("element %zu occurs %u times: call %d, answer %d, size %zu, n %zu",
                              id, count[id], t->call, t->answer, t->size, n);
    free(count);
}

/* ---- Arrays --------------------------------------------------------------------------------- */

enum { ROOM_GUARD = 1024, ROOM_FILL = 0xe7 };

/* An array between two regions of guard bytes. */
struct room {
    unsigned char *all, *base;
    size_t bytes;
};

static inline struct room room_make(size_t bytes)
{
    struct room r = {.all = malloc(bytes + 2 * ROOM_GUARD), .bytes = bytes};

    if (r.all == NULL) INCONSISTENT_FAIL("no memory");
    r.base = r.all + ROOM_GUARD;
    memset(r.all, ROOM_FILL, bytes + 2 * ROOM_GUARD);
    ROOM_CLOSE(r.all, ROOM_GUARD);
    ROOM_CLOSE(r.base + bytes, ROOM_GUARD);
    return r;
}

/* An array of n elements of the trial, numbered from `first` on. */
static inline struct room room_of(size_t first, size_t n)
{
    size_t size = trial_now.is->size;
    struct room r = room_make(n * size);

    for (size_t i = 0; i < n; i++)
        element_make(r.base + i * size, size, (uint32_t)((first + i) % trial_now.ids));
    return r;
}

/* Checks that no byte was written except the first `used` bytes of the array. Frees the array. */
static inline void room_end(struct room *r, size_t used)
{
    const struct trial *t = trial_now.is;

    ROOM_OPEN(r->all, ROOM_GUARD);
    ROOM_OPEN(r->base + r->bytes, ROOM_GUARD);
    for (size_t i = 0; i < r->bytes + 2 * ROOM_GUARD; i++) {
        if (i >= ROOM_GUARD && i < ROOM_GUARD + used) continue;
        if (r->all[i] != ROOM_FILL)
            INCONSISTENT_FAIL("byte %td of %zu was written: call %d, answer %d, size %zu, n %zu",
                              r->all + i - r->base, r->bytes, t->call, t->answer, t->size, t->n);
    }
    free(r->all);
}

/* Checks that the array still holds the elements that room_of(first, n) made, in the same order. */
static inline void room_check_same(const struct room *r, size_t first, size_t n)
{
    size_t size = trial_now.is->size;

    for (size_t i = 0; i < n; i++)
        if (element_check(r->base + i * size, 1, __LINE__) != (first + i) % trial_now.ids)
            INCONSISTENT_FAIL("a call changed its input");
}

/* ---- Answers -------------------------------------------------------------------------------- */

static inline uint64_t answer_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint32_t answer_key(uint32_t id)
{
    const struct trial *t = trial_now.is;

    return t->keys == 0   ? id
           : t->keys == 1 ? ~id
                          : (uint32_t)(answer_mix(id + 1 + t->seed) % t->keys);
}

/* Returns one bit of the script. After its end the script starts again. If the seed is odd, every
 * second pass is inverted. */
static inline bool answer_script(unsigned long call)
{
    const struct trial *t = trial_now.is;
    size_t bits = t->script_bytes * 8;

    if (bits == 0) return false;
    size_t i = call % bits;
    bool turned = (t->seed & 1) != 0 && call / bits % 2 != 0;
    return (t->script[i / 8] >> i % 8 & 1) != turned;
}

static inline bool in_array(const void *e)
{
    const struct trial *t = trial_now.is;

    return (uintptr_t)e - (uintptr_t)trial_now.array < t->n * t->size;
}

/* Whether the comparison says that *a is before *b. */
static inline bool answer_less(const void *a, const void *b)
{
    const struct trial *t = trial_now.is;
    uint32_t i = element_check(a, 29, __LINE__), j = element_check(b, 29, __LINE__);
    uint32_t x = answer_key(i), y = answer_key(j);
    unsigned long call = atomic_fetch_add_explicit(&trial_now.calls, 1, memory_order_relaxed);
    uint64_t random = answer_mix(call + t->seed);

    if (t->end != 0 && call + 1 == t->end) fj_token_cancel(&trial_now.token);
    switch (t->answer) {
        case ANSWER_RANDOM: return random & 1;
        case ANSWER_NEVER: return false;
        case ANSWER_ALWAYS: return true;
        case ANSWER_ALTERNATES: return call & 1;
        case ANSWER_NOT_AFTER: return x <= y;
        case ANSWER_ROUND: return (x - y) % 3 == 1;
        case ANSWER_OFTEN_TRUE: return (x < y) != (random % 16 == 0);
        case ANSWER_TURNS: return (call >> 7 & 1) != 0 ? x > y : x < y;
        case ANSWER_BOTH: return answer_mix(i ^ j) & 1;
        case ANSWER_BY_ADDRESS: return (uintptr_t)a < (uintptr_t)b;
        case ANSWER_COPY_FIRST:
            if (call < 2) /* The array is neither ascending nor descending. */
                return call != 0;
            return in_array(b) && !in_array(a);
        case ANSWER_SCRIPT: return answer_script(call);
        default: return x < y;
    }
}

/* The same answer as a number. "Not before" is 0 or 1, depending on the seed. In one call of 8 the
 * number is extreme. */
static inline int answer_compare(const void *a, const void *b, void *arg)
{
    bool less = answer_less(a, b);
    unsigned long call = atomic_load_explicit(&trial_now.calls, memory_order_relaxed);

    if (arg != &trial_now) INCONSISTENT_FAIL("wrong argument");
    if (trial_now.is->answer == ANSWER_TRUTH) {
        uint32_t x = answer_key(element_check(a, 29, __LINE__));
        uint32_t y = answer_key(element_check(b, 29, __LINE__));
        return (x > y) - (x < y);
    }
    if (call % 8 == 0) return less ? INT32_MIN : INT32_MAX;
    return less ? -1 : (trial_now.is->seed >> 1 & 1) != 0;
}

static inline int answer_test(const void *x, void *arg)
{
    if (arg != &trial_now) INCONSISTENT_FAIL("wrong argument");
    return answer_less(x, x);
}

/* Sets *at to an index inside the chunk, before it or behind it, or leaves it. */
static inline int answer_find(size_t begin, size_t end, size_t *at, void *arg)
{
    unsigned long call = atomic_fetch_add_explicit(&trial_now.calls, 1, memory_order_relaxed);
    uint64_t random = answer_mix(call + trial_now.is->seed);

    (void)arg;
    if (*at != end) INCONSISTENT_FAIL("*at is not the end");
    switch (random % 8) {
        case 0: *at = begin + (size_t)(random >> 8) % (end - begin); break;
        case 1: *at = begin - 1 - (size_t)(random >> 60); break;
        case 2: *at = end + (size_t)(random >> 60); break;
        default: break;
    }
    return FJ_OK;
}

/* ---- Types ---------------------------------------------------------------------------------- */

#define ANSWER_LESS(x, y) answer_less(&(x), &(y))

/* clang-format off */
#define TYPED_SIZES(X)                                                                        \
    X(1) X(2) X(3) X(4) X(5) X(8) X(12) X(16) X(24) X(32) X(48) X(63) X(64) X(65) X(72) X(96) \
    X(100) X(128) X(200) X(255) X(256) X(300)
/* clang-format on */

#define TYPED_MAKE(bytes)                                                                       \
    typedef struct {                                                                            \
        unsigned char b[bytes];                                                                 \
    } bytes_##bytes;                                                                            \
    FJ_SORT(sort_##bytes, bytes_##bytes, ANSWER_LESS);                                          \
    FJ_STABLE_SORT(stable_##bytes, bytes_##bytes, ANSWER_LESS);                                 \
    FJ_MERGE(merge_##bytes, bytes_##bytes, ANSWER_LESS);                                        \
    static int call_sort_##bytes(void *a, size_t n, const fj_algo_options *how)                 \
    {                                                                                           \
        return sort_##bytes(a, n, how);                                                         \
    }                                                                                           \
    static int call_stable_##bytes(void *a, size_t n, const fj_algo_options *how)               \
    {                                                                                           \
        return stable_##bytes(a, n, how);                                                       \
    }                                                                                           \
    static int call_merge_##bytes(const void *a, size_t na, const void *b, size_t nb, void *to, \
                                  const fj_algo_options *how)                                   \
    {                                                                                           \
        return merge_##bytes(a, na, b, nb, to, how);                                            \
    }

#define TYPED_ROW(bytes) {bytes, call_sort_##bytes, call_stable_##bytes, call_merge_##bytes},

TYPED_SIZES(TYPED_MAKE)

static const struct typed {
    size_t size;
    int (*sort)(void *a, size_t n, const fj_algo_options *how);
    int (*stable)(void *a, size_t n, const fj_algo_options *how);
    int (*merge)(const void *a, size_t na, const void *b, size_t nb, void *out,
                 const fj_algo_options *how);
} typed_sizes[] = {TYPED_SIZES(TYPED_ROW)};

enum { TYPED = sizeof typed_sizes / sizeof typed_sizes[0] };

/* The type for elements of `size` bytes, or the next larger type. */
static inline const struct typed *typed_of(size_t size)
{
    size_t i = 0;

    while (i + 1 < TYPED && typed_sizes[i].size < size) i++;
    return &typed_sizes[i];
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* An upper bound of the comparisons that a call may make, whatever they return. */
static inline unsigned long calls_most(size_t n)
{
    unsigned long most = 100;

    for (size_t i = n; i > 0; i /= 2) most += 10 * (unsigned long)n;
    return most;
}

static inline void trial_sort(const struct trial *t, const fj_algo_options *how)
{
    struct room r = room_of(0, t->n);
    int code = FJ_OK;

    trial_now.array = r.base;
    switch (t->call) {
        case CALL_SORT:
            code = fj_sort(r.base, t->n, t->size, answer_compare, &trial_now, how);
            break;
        case CALL_STABLE_SORT:
            code = fj_stable_sort(r.base, t->n, t->size, answer_compare, &trial_now, how);
            break;
        case CALL_TYPED_SORT: code = typed_of(t->size)->sort(r.base, t->n, how); break;
        case CALL_TYPED_STABLE_SORT: code = typed_of(t->size)->stable(r.base, t->n, how); break;
        default: fj_qsort(r.base, t->n, t->size, answer_compare, &trial_now); break;
    }
    if (code != FJ_OK && (code != FJ_ECANCELED || t->end == 0)) INCONSISTENT_FAIL("code %d", code);
    elements_check(r.base);
    for (size_t i = 1; i < t->n && t->answer == ANSWER_TRUTH && code == FJ_OK && t->end == 0; i++) {
        uint32_t x = element_check(r.base + (i - 1) * t->size, 1, __LINE__);
        uint32_t y = element_check(r.base + i * t->size, 1, __LINE__);
        if (answer_key(x) > answer_key(y)) INCONSISTENT_FAIL("not sorted");
    }
    room_end(&r, r.bytes);
}

static inline void trial_merge(const struct trial *t, const fj_algo_options *how)
{
    size_t nb = t->n - t->na;
    struct room a = room_of(0, t->na), b = room_of(t->na, nb), out = room_make(t->n * t->size);
    int code = t->call == CALL_MERGE
                   ? fj_merge(a.base, t->na, b.base, nb, t->size, out.base, answer_compare,
                              &trial_now, how)
                   : typed_of(t->size)->merge(a.base, t->na, b.base, nb, out.base, how);

    if (code != FJ_OK && (code != FJ_ECANCELED || t->end == 0)) INCONSISTENT_FAIL("code %d", code);
    if (code == FJ_OK) elements_check(out.base);
    room_check_same(&a, 0, t->na);
    room_check_same(&b, t->na, nb);
    room_end(&a, a.bytes);
    room_end(&b, b.bytes);
    room_end(&out, out.bytes);
}

static inline void trial_filter(const struct trial *t, const fj_algo_options *how)
{
    struct room in = room_of(0, t->n), out = room_make(t->n * t->size);
    size_t count = 0;
    bool all = t->call == CALL_PARTITION;
    int code = all ? fj_partition(in.base, t->n, t->size, out.base, answer_test, &trial_now, &count,
                                  how)
                   : fj_filter(in.base, t->n, t->size, out.base, answer_test, &trial_now, &count,
                               how);

    if (code != FJ_OK && (code != FJ_ECANCELED || t->end == 0)) INCONSISTENT_FAIL("code %d", code);
    if (count > t->n) INCONSISTENT_FAIL("a filter kept %zu of %zu elements", count, t->n);
    if (code == FJ_OK && all) elements_check(out.base);
    for (size_t i = 0; i < count; i++) (void)element_check(out.base + i * t->size, 1, __LINE__);
    if (atomic_load(&trial_now.calls) > t->n)
        INCONSISTENT_FAIL("the predicate was called more than once for an element");
    room_check_same(&in, 0, t->n);
    room_end(&in, in.bytes);
    room_end(&out, code == FJ_OK && !all ? count * t->size : out.bytes);
}

static inline void trial_find(const struct trial *t, const fj_algo_options *how)
{
    struct room r = room_of(0, t->n);
    size_t begin = t->na, end = t->n, at = SIZE_MAX;
    int yes = -1;

    int code = fj_find(begin, end, answer_find, &trial_now, &at, how);
    if (code != FJ_OK || at < begin || at > end) INCONSISTENT_FAIL("found %zu, code %d", at, code);
    code = fj_find_any(begin, end, answer_find, &trial_now, &at, how);
    if (code != FJ_OK || at < begin || at > end) INCONSISTENT_FAIL("found %zu, code %d", at, code);
    code = fj_any(r.base, t->n, t->size, answer_test, &trial_now, &yes, how);
    if ((code != FJ_OK || (yes != 0 && yes != 1)) && t->end == 0) INCONSISTENT_FAIL("any");
    code = fj_all(r.base, t->n, t->size, answer_test, &trial_now, &yes, how);
    if ((code != FJ_OK || (yes != 0 && yes != 1)) && t->end == 0) INCONSISTENT_FAIL("all");
    room_check_same(&r, 0, t->n);
    room_end(&r, r.bytes);
}

/* Makes the call and checks its result. */
static inline void trial_run(struct trial t)
{
    fj_algo_options how = {.pool = t.pool, .grain = t.grain};

    if (t.call >= CALL_TYPED_SORT && t.call <= CALL_TYPED_MERGE) t.size = typed_of(t.size)->size;
    trial_now.is = &t;
    trial_now.ids = ids_of(t.n, t.size);
    atomic_store(&trial_now.calls, 0);
    fj_token_init(&trial_now.token, NULL);
    if (t.call == CALL_QSORT || t.call == CALL_FIND) t.end = 0; /* these calls take no token here */
    if (t.end != 0) how.token = &trial_now.token;
    if (t.no_memory) fji_algo_fail_after(0);
    switch (t.call) {
        case CALL_MERGE:
        case CALL_TYPED_MERGE: trial_merge(&t, &how); break;
        case CALL_FILTER:
        case CALL_PARTITION: trial_filter(&t, &how); break;
        case CALL_FIND: trial_find(&t, &how); break;
        default: trial_sort(&t, &how); break;
    }
    fji_algo_fail_after(-1);
    unsigned long calls = atomic_load(&trial_now.calls);
    if (calls > calls_most(t.n))
        INCONSISTENT_FAIL("%lu comparisons: call %d, answer %d, size %zu, n %zu", calls, t.call,
                          t.answer, t.size, t.n);
    trial_now.is = NULL;
}

#endif /* INCONSISTENT_H */
