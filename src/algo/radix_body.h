/* SPDX-License-Identifier: MIT */
/*
 * radix_body.h - sorts by digits for one type of element, included by radix.c for each type
 *
 * This file is a template. The macros below are its parameters: radix.c defines them before each
 * inclusion, and the end of this file undefines them. radix.c explains leaves, digits and buckets,
 * and radix.h explains how keys are mapped.
 *
 *      ELEMENT     the type of an element
 *      KEY         the unsigned type of its key
 *      KEY_OF(e)   the key of element e, as it is stored
 *      MAPPED(e, m)    element e with its key mapped by the fji_key_map *m
 *      UNMAPPED(e, m)  element e, whose key is mapped by *m, with its original key
 *      HAS_VALUE   1 if an element is a key and a value, 0 if it is only a key
 *      MADE_OF(k)  the element with key k; used only if HAS_VALUE is 0
 *      N(name)     the name of a function or struct for this type
 *      SORT_SMALL(a, n)  sorts a[0] to a[n - 1] by their keys; stable; n is at most SMALL_MAX
 */

/* clang-format is off because it takes the type N(msd) for a function call. */
/* clang-format off */

/* ---- One pass -------------------------------------------------------------------------------- */

/* Returns a mask of the bits that are not the same in all keys of n elements. n is at least 1. */
static KEY N(differ)(const ELEMENT *a, size_t n)
{
    const KEY first = KEY_OF(a[0]);
    KEY all = 0;

    for (size_t i = 1; i < n; i++) all |= (KEY)(KEY_OF(a[i]) ^ first);
    return all;
}

/* As N(differ), but also loads the memory at `other`, which has space for n elements, into the
 * cache. The next pass writes there in no order, and should not wait for the memory. */
static KEY N(differ_prefetch)(const ELEMENT *a, const ELEMENT *other, size_t n)
{
    enum { LINE = LINE_BYTES / sizeof(ELEMENT) };
    const KEY first = KEY_OF(a[0]);
    KEY all = 0;
    size_t i = 0;

    for (; n - i >= LINE; i += LINE) {
        __builtin_prefetch(other + i, 1);
        for (size_t k = 0; k < LINE; k++) all |= (KEY)(KEY_OF(a[i + k]) ^ first);
    }
    for (; i < n; i++) all |= (KEY)(KEY_OF(a[i]) ^ first);
    return all;
}

/* Copies n elements, whose keys are mapped by *map, from `from` to `to`, and maps the keys of the
 * copies back to the original ones. `from` and `to` may be the same. */
static void N(copy_unmapped)(const ELEMENT *from, ELEMENT *to, size_t n, const fji_key_map *map)
{
    if (map->always != 0) {
        for (size_t i = 0; i < n; i++) to[i] = UNMAPPED(from[i], map);
    } else if (from != to) {
        memcpy(to, from, n * sizeof *to);
    }
}

/* One pass: copies n > 0 elements from `from` to `to`, in the order of the digit that consists of
 * `digit` bits of the key from bit `shift` on. Elements with the same digit keep their order. On
 * entry count[d] is the number of elements whose digit is d; the pass overwrites `count`. If all
 * elements have the same digit, copies nothing and returns false; otherwise returns true. */
static bool N(move)(const ELEMENT *from, ELEMENT *to, size_t n, unsigned shift, unsigned digit,
                    uint32_t *count)
{
    const KEY mask = (KEY)(((KEY)1 << digit) - 1);
    uint32_t at = 0;

    if (count[(KEY_OF(from[0]) >> shift) & mask] == n) return false;
    for (size_t i = 0; i <= mask; i++) {
        uint32_t here = count[i];
        count[i] = at;
        at += here;
    }
    for (size_t i = 0; i < n; i++) to[count[(KEY_OF(from[i]) >> shift) & mask]++] = from[i];
    return true;
}

/* ---- Leaves ---------------------------------------------------------------------------------- */

/* Sorts n > 0 elements in `from` by the `width` bits of their keys from bit `low` on, in at most
 * two passes. Elements that agree in these bits keep their order. `width` is at most
 * 2 * LEAF_DIGIT_MAX. `other` has space for n elements. Returns the array in which the elements are
 * then, `from` or `other`; the contents of the other one are unspecified. The function is not
 * inlined, so that the memory of `count` is not on the stack while N(groups) sorts the groups. */
__attribute__((noinline)) static ELEMENT *N(two_passes)(ELEMENT *from, ELEMENT *other, size_t n,
                                                        unsigned low, unsigned width)
{
    uint32_t count[2][1 << LEAF_DIGIT_MAX];
    unsigned digit = width <= ONE_PASS_MAX ? 0 : width / 2, upper = width - digit;
    const KEY mask = (KEY)(((KEY)1 << digit) - 1), upper_mask = (KEY)(((KEY)1 << upper) - 1);

    memset(count[0], 0, sizeof(uint32_t) << digit);
    memset(count[1], 0, sizeof(uint32_t) << upper);
    for (size_t i = 0; i < n; i++) {
        KEY key = (KEY)(KEY_OF(from[i]) >> low);
        count[0][key & mask]++;
        count[1][(key >> digit) & upper_mask]++;
    }
    ELEMENT *at = from, *next = other;
    if (digit != 0 && N(move)(at, next, n, low, digit, count[0])) {
        at = other;
        next = from;
    }
    return N(move)(at, next, n, low + digit, upper, count[1]) ? next : at;
}

static void N(leaf)(ELEMENT *from, ELEMENT *other, size_t n, ELEMENT *to, const fji_key_map *map);

/* Completes the sort of n elements in `from`, whose keys are mapped by *map and which are sorted by
 * the bits of their keys from bit `low` on. Elements that agree in these bits are neighbours and
 * form a group. Sorts each group by the bits below `low`, into `to`, which is `from` or `other`,
 * and maps the keys back to the original ones. */
static void N(groups)(ELEMENT *from, ELEMENT *other, size_t n, ELEMENT *to, unsigned low,
                      const fji_key_map *map)
{
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && KEY_OF(from[j]) >> low == KEY_OF(from[i]) >> low;) j++;
        if (j - i == 1)
            to[i] = UNMAPPED(from[i], map);
        else
            N(leaf)(from + i, other + i, j - i, to + i, map);
    }
}

/* Sorts n elements in `from`, whose keys are mapped by *map, into `to`, which is `from` or `other`.
 * Both arrays have space for n elements, and both may be overwritten. The keys in `to` are mapped
 * back to the original ones. Runs on the calling thread, and does not test for a cancellation. */
static void N(leaf)(ELEMENT *from, ELEMENT *other, size_t n, ELEMENT *to, const fji_key_map *map)
{
    if (n <= SMALL_MAX) {
        if (n > 1) SORT_SMALL(from, n);
        N(copy_unmapped)(from, to, n, map);
        return;
    }
    unsigned bits = bits_of(N(differ_prefetch)(from, other, n));
    unsigned width = leaf_width(n, bits), low = bits - width;
    ELEMENT *at = width != 0 ? N(two_passes)(from, other, n, low, width) : from;
    if (low == 0)
        N(copy_unmapped)(at, to, n, map);
    else
        N(groups)(at, at == from ? other : from, n, to, low, map);
}

/* ---- Buckets --------------------------------------------------------------------------------- */

/* A range that is divided into buckets, chunk by chunk, and then sorted bucket by bucket. Chunk i
 * consists of the elements from N(chunk_at)(m, i) to N(chunk_at)(m, i + 1). */
typedef struct N(msd) {
    fji_job *job;
    ELEMENT *from, *other; /* `from`: the unsorted range; `other`: space for n elements, to which
                            * the elements are moved bucket by bucket */
    ELEMENT *to;           /* where the sorted elements are written: `from` or `other` */
    size_t n;              /* number of elements of the range */
    const fji_key_map *map;         /* maps keys to unsigned numbers; keys in `other` are mapped */
    const fji_key_map *pending_map; /* maps a key of `from` when it is read: `map`, or the
                                     * identity if the keys in `from` are already mapped */
    size_t chunks; /* number of chunks, at most CHUNKS_MAX */
    /* The number of the bucket of a key is in `digit` bits of the key, from bit `shift` on. */
    unsigned shift, digit;
    /* true: elements have no values and are equal within a bucket. No element is moved: bucket b is
     * written to `to` as copies of one element, made from `base` and b. */
    bool fill;
    KEY base;  /* if `fill` is true: the bits above the digit, which are the same in all keys */
    KEY differ[CHUNKS_MAX]; /* of each chunk: the bits in which some key differs from that
                             * of from[0] */
    size_t start[(1u << COUNT_DIGIT_MAX) + 1]; /* start[b]: index in `other`, and later in
                                                * `to`, at which bucket b begins */
    /* done[b]: 1 if bucket b was processed, so that all its elements are in `to`, in order unless
     * the call is cancelled. If 0 after a cancellation, they still have to be written to `to`. */
    unsigned char done[1u << COUNT_DIGIT_MAX];
    /* count[c][b] is first how many elements of chunk c belong to bucket b. Then it is the index in
     * `other` to which the next element of chunk c that belongs to bucket b is moved. */
    size_t (*count)[1u << COUNT_DIGIT_MAX];
} N(msd);

static size_t N(chunk_at)(const N(msd) *m, size_t i)
{
    return m->n / m->chunks * i + (i < m->n % m->chunks ? i : m->n % m->chunks);
}

static int N(msd_differ)(void *context, size_t lo, size_t hi, void *acc)
{
    N(msd) *m = context;

    (void)acc;
    for (size_t i = lo; i < hi; i++) {
        size_t at = N(chunk_at)(m, i), end = N(chunk_at)(m, i + 1);
        m->differ[i] = (KEY)(N(differ)(m->from + at, end - at) |
                             (KEY)(KEY_OF(m->from[at]) ^ KEY_OF(m->from[0])));
    }
    return FJ_OK;
}

/* N(count_chunk) if pending_map is *by. The function is inlined, so that the compiler removes the
 * map from the loop if `by` is &identity_map. */
__attribute__((always_inline)) static inline void N(count_chunk_by)(const N(msd) *m, size_t c,
                                                                    const fji_key_map *by)
{
    const KEY mask = (KEY)(((KEY)1 << m->digit) - 1);
    const unsigned shift = m->shift;
    const fji_key_map map = *by;
    size_t *count = m->count[c], end = N(chunk_at)(m, c + 1);

    memset(count, 0, sizeof *count << m->digit);
    for (size_t i = N(chunk_at)(m, c); i < end; i++) {
        ELEMENT e = MAPPED(m->from[i], &map);
        count[(KEY_OF(e) >> shift) & mask]++;
    }
}

/* Counts the elements of chunk c by bucket. */
static void N(count_chunk)(const N(msd) *m, size_t c)
{
    if (m->pending_map->always == 0)
        N(count_chunk_by)(m, c, &identity_map);
    else
        N(count_chunk_by)(m, c, m->pending_map);
}

static int N(msd_count)(void *context, size_t lo, size_t hi, void *acc)
{
    (void)acc;
    for (size_t c = lo; c < hi; c++) N(count_chunk)(context, c);
    return FJ_OK;
}

/* N(move_chunk) if pending_map is *by. Inlined for the same reason as N(count_chunk_by). */
__attribute__((always_inline)) static inline void N(move_chunk_by)(const N(msd) *m, size_t c,
                                                                   const fji_key_map *by)
{
    const KEY mask = (KEY)(((KEY)1 << m->digit) - 1);
    const unsigned shift = m->shift;
    const fji_key_map map = *by;
    const ELEMENT *from = m->from;
    ELEMENT *other = m->other;
    size_t *to = m->count[c], end = N(chunk_at)(m, c + 1);

    for (size_t i = N(chunk_at)(m, c); i < end; i++) {
        ELEMENT e = MAPPED(from[i], &map);
        other[to[(KEY_OF(e) >> shift) & mask]++] = e;
    }
}

/* Moves the elements of chunk c to their buckets, with mapped keys. */
static void N(move_chunk)(const N(msd) *m, size_t c)
{
    if (m->pending_map->always == 0)
        N(move_chunk_by)(m, c, &identity_map);
    else
        N(move_chunk_by)(m, c, m->pending_map);
}

static int N(msd_move)(void *context, size_t lo, size_t hi, void *acc)
{
    (void)acc;
    for (size_t c = lo; c < hi; c++) N(move_chunk)(context, c);
    return FJ_OK;
}

/* Replaces each count[c][b] by the index in `other` at which chunk c begins to write into bucket b.
 * The buckets follow each other, and so do the chunks within a bucket. Sets start[b] to the index
 * at which bucket b begins, and the element of `start` after the last bucket to n. */
static void N(msd_places)(N(msd) *m)
{
    size_t at = 0, b;

    for (b = 0; b < (size_t)1 << m->digit; b++) {
        m->start[b] = at;
        for (size_t c = 0; c < m->chunks; c++) {
            size_t here = m->count[c][b];
            m->count[c][b] = at;
            at += here;
        }
    }
    m->start[b] = at;
}

static int N(msd_sort)(fji_job *j, ELEMENT *from, ELEMENT *other, size_t n, ELEMENT *to,
                       const fji_key_map *map, bool mapped);

/* Writes the elements of bucket b to `to`. Called only if m->fill is true: all elements of the
 * bucket are equal. */
static void N(msd_fill)(const N(msd) *m, size_t b)
{
    const ELEMENT e = UNMAPPED(MADE_OF((KEY)(m->base | b)), m->map);

    for (size_t i = m->start[b]; i < m->start[b + 1]; i++) m->to[i] = e;
}

static int N(msd_bucket)(N(msd) *m, size_t b)
{
    size_t at = m->start[b], n = m->start[b + 1] - at;
    int code = FJ_OK;

    if (n == 0) return code;
    if (m->fill)
        N(msd_fill)(m, b);
    else if (m->shift == 0)
        N(copy_unmapped)(m->other + at, m->to + at, n, m->map);
    else if (n <= LEAF_BYTES / sizeof(ELEMENT))
        N(leaf)(m->other + at, m->from + at, n, m->to + at, m->map);
    else
        code = N(msd_sort)(m->job, m->other + at, m->from + at, n, m->to + at, m->map, true);
    m->done[b] = 1;
    if (n <= LEAF_BYTES / sizeof(ELEMENT) || m->fill || m->shift == 0)
        fji_job_add_progress(m->job, n);
    return code;
}

static int N(msd_buckets)(void *context, size_t lo, size_t hi, void *acc)
{
    int code = FJ_OK;

    (void)acc;
    for (size_t b = lo; b < hi && code == FJ_OK; b++) code = N(msd_bucket)(context, b);
    return code;
}

/* Sorts the buckets into `to`, and maps the keys back to the original ones. If the call is
 * cancelled, buckets that are not sorted yet are copied to `to` in the order that they have, except
 * that a bucket of equal elements is written from its count. Returns FJ_OK or FJ_ECANCELED. */
static int N(msd_finish)(N(msd) *m)
{
    size_t buckets = (size_t)1 << m->digit;

    memset(m->done, 0, buckets);
    int code = fji_split_run_nested(m->job, N(msd_buckets), m, buckets, 0);
    for (size_t b = 0; code != FJ_OK && b < buckets; b++) {
        if (m->done[b]) continue;
        size_t at = m->start[b];
        if (m->fill)
            N(msd_fill)(m, b);
        else
            N(copy_unmapped)(m->other + at, m->to + at, m->start[b + 1] - at, m->map);
    }
    return code;
}

/* Chooses the digit, sets m->fill, and divides the range into buckets: copies the elements, with
 * mapped keys, to their buckets in `other` or, if m->fill is true, only counts them. Does not
 * change `from`. Returns FJ_OK, or FJ_ECANCELED if the call is cancelled: the buckets are then
 * incomplete. */
static int N(msd_split)(N(msd) *m)
{
    KEY all = 0;
    int code = fji_split_run_nested(m->job, N(msd_differ), m, m->chunks, 1);

    if (code != FJ_OK) return code;
    for (size_t c = 0; c < m->chunks; c++) all |= m->differ[c];
    unsigned bits = bits_of(all);
    m->fill = !HAS_VALUE && bits <= COUNT_DIGIT_MAX;
    m->digit = m->fill ? bits : msd_digit(m->n, sizeof(ELEMENT), bits);
    m->shift = bits - m->digit;
    m->base = (KEY)(KEY_OF(MAPPED(m->from[0], m->pending_map)) >> m->digit << m->digit);
    code = fji_split_run_nested(m->job, N(msd_count), m, m->chunks, 1);
    if (code != FJ_OK) return code;
    N(msd_places)(m);
    return m->fill ? FJ_OK : fji_split_run_nested(m->job, N(msd_move), m, m->chunks, 1);
}

/* Sorts n elements in `from` into `to`, which is `from` or `other`. If `mapped` is true, the keys
 * in `from` are already mapped by *map; otherwise they are original keys, and `to` must be `from`.
 * The keys in `to` are original ones. Returns FJ_OK, or FJ_ECANCELED if the call is cancelled: then
 * `to` has all elements too, in some order. */
static int N(msd_sort)(fji_job *j, ELEMENT *from, ELEMENT *other, size_t n, ELEMENT *to,
                       const fji_key_map *map, bool mapped)
{
    size_t one_chunk[1][1u << COUNT_DIGIT_MAX];
    N(msd) m = {.job = j, .from = from, .other = other, .to = to, .n = n, .map = map};

    m.pending_map = mapped ? &identity_map : map;
    m.chunks = msd_chunks(n);
    void *scratch = m.chunks > 1 ? fji_algo_alloc(m.chunks * sizeof *m.count) : NULL;
    m.count = scratch != NULL ? scratch : one_chunk;
    if (scratch == NULL) m.chunks = 1;
    int code = N(msd_split)(&m);
    if (code == FJ_OK)
        code = N(msd_finish)(&m);
    else if (mapped)
        N(copy_unmapped)(from, to, n, map);
    fji_algo_free(scratch);
    return code;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Returns the length of the longest run at the front of n >= 2 elements: the keys of the run,
 * mapped by *map, do not descend or, if `descending` is true, strictly descend. */
static size_t N(run)(const ELEMENT *a, size_t n, bool descending, const fji_key_map *map)
{
    size_t i = 1;
    KEY last = KEY_OF(MAPPED(a[0], map));

    for (; i < n; i++) {
        KEY key = KEY_OF(MAPPED(a[i], map));
        if (descending ? key >= last : key < last) break;
        last = key;
    }
    return i;
}

/* Returns true if all n elements are in order, and also if they are strictly descending: then it
 * reverses them. Returns false for any other order, or if the job ends; no element has moved
 * then. The keys in `a` are original ones. */
static bool N(sorted)(fji_job *j, ELEMENT *a, size_t n, const fji_key_map *map)
{
    bool descending = n > 1 && N(run)(a, 2, false, map) < 2;

    for (size_t at = 0, pairs; n - at > 1; at += pairs) {
        pairs = fji_min(n - at - 1, CHECK_EVERY);
        if (N(run)(a + at, pairs + 1, descending, map) <= pairs) return false;
        if (!fji_job_should_continue(j)) return false;
    }
    for (size_t i = 0, k = n; descending && i + 1 < k; i++) {
        ELEMENT e = a[i];
        a[i] = a[--k];
        a[k] = e;
    }
    return true;
}

static int N(sort)(fji_job *j, ELEMENT *a, ELEMENT *buffer, size_t n, const fji_key_map *map)
{
    if (N(sorted)(j, a, n, map)) {
        fji_job_add_progress(j, n);
        return FJ_OK;
    }
    if (n > LEAF_BYTES / sizeof *a) return N(msd_sort)(j, a, buffer, n, a, map, false);
    if (map->always != 0)
        for (size_t i = 0; i < n; i++) a[i] = MAPPED(a[i], map);
    N(leaf)(a, buffer, n, a, map);
    fji_job_add_progress(j, n);
    return FJ_OK;
}

/* clang-format on */

#undef ELEMENT
#undef KEY
#undef KEY_OF
#undef MAPPED
#undef UNMAPPED
#undef HAS_VALUE
#undef MADE_OF
#undef N
#undef SORT_SMALL
