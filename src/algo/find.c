/* SPDX-License-Identifier: MIT */
/*
 * find.c - the first, or any, that is looked for
 *
 * A loop that keeps the lowest index found so far where all see it, and skips what lies right of
 * it. Where any will do, the first hit ends the job by a code of its own, like an error, and says
 * that it was the hit: every code may also be that of a body.
 *
 * A given grain is what the caller's function gets at a time. The loop itself has parts of
 * several of these if there are very many, so that going over those that are skipped is short.
 *
 * Edges         from                       to                        carries
 *   find.best   acq_rel CAS, best_lower()  acquire load, best_load()  nothing: the index alone
 */
#include "split.h"

enum {
    CHUNKS_MAX = 1 << 16, /* of a given grain, in one search */
    ANY_FOUND = FJ_EBUSY, /* ends a job in which any will do; any code but FJ_OK */
};

typedef struct search {
    fji_split split;
    fj_find_fn *find; /* NULL: test, on elements */
    fj_test_fn *test;
    void *arg;
    const unsigned char *base;
    size_t size;
    bool expected; /* what test has to say */
    bool any;
    size_t grain; /* elements that find gets at a time; 0: all that there are */
    size_t begin, end;
    fj_progress *progress;
    uint64_t done; /* elements counted in progress */
    uint64_t best; /* the lowest found; end: none */
    uint32_t hit;  /* the job was ended by a hit */
} search;

/* ---- The best so far ------------------------------------------------------------------------- */

static size_t best_load(search *s)
{
    /* [find.best] acquire <- acq_rel in best_lower(). */
    return (size_t)fji_load_acquire(&s->best);
}

static void best_lower(search *s, size_t at)
{
    uint64_t best = best_load(s);

    /* [find.best] acq_rel -> acquire in best_load(). */
    while (at < best && !fji_cas_acq_rel_64(&s->best, &best, at)) continue;
    if (s->any && fji_job_fail(&s->split.job, ANY_FOUND))
        fji_store_relaxed(&s->hit, 1u); /* relaxed: read when all has ended */
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* The first element from lo on for which test says what is wanted, in *at. */
static int search_test(const search *s, size_t lo, size_t hi, size_t *at)
{
    const unsigned char *x = s->base + lo * s->size;

    for (size_t i = lo; i < hi; i++, x += s->size) {
        int result = s->test(x, s->arg);
        if (FJI_UNLIKELY(result < 0)) return result;
        if ((result > 0) != s->expected) continue;
        *at = i;
        break;
    }
    return FJ_OK;
}

static int search_chunk(search *s, size_t lo, size_t hi)
{
    size_t at = hi;
    int code = s->find != NULL ? s->find(lo, hi, &at, s->arg) : search_test(s, lo, hi, &at);

    if (FJI_UNLIKELY(code != FJ_OK)) return code;
    if (at >= lo && at < hi) best_lower(s, at);
    if (s->progress != NULL) {
        fj_progress_add(s->progress, hi - lo);
        (void)fji_add_relaxed(&s->done, hi - lo); /* relaxed: read when all has ended */
    }
    return FJ_OK;
}

static int search_step(void *context, size_t lo, size_t hi, void *acc)
{
    search *s = context;
    size_t grain = s->grain != 0 ? s->grain : hi - lo;
    int code = FJ_OK;

    (void)acc;
    for (size_t n; lo < hi && code == FJ_OK; lo += n) {
        if (lo >= best_load(s) || !fji_job_should_continue(&s->split.job)) break;
        n = hi - lo < grain ? hi - lo : grain;
        code = search_chunk(s, lo, lo + n);
    }
    return code;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* So many times the grain that there are not too many parts. */
static size_t search_grain(size_t n, size_t grain)
{
    size_t factor = n / grain / CHUNKS_MAX + 1, chunk;

    return __builtin_mul_overflow(grain, factor, &chunk) ? grain : chunk;
}

/* Searches; FJ_OK and s->best. */
static int search_run(search *s, size_t begin, size_t end, const fj_algo_options *how)
{
    fji_job *j = &s->split.job;
    int code = fji_job_init(j, how, end - begin);

    if (code != FJ_OK) return code;
    s->split.step = search_step;
    s->split.context = s;
    s->progress = j->progress;
    j->progress = NULL; /* what is skipped is counted when it is over */
    s->grain = j->grain;
    if (j->grain != 0) j->grain = search_grain(end - begin, j->grain);
    s->best = end;
    code = fji_split_run(&s->split, how, begin, end, NULL);
    if (s->hit != 0) code = FJ_OK;
    if (code == FJ_OK && s->progress != NULL) fj_progress_add(s->progress, end - begin - s->done);
    return code;
}

static int find_run(search *s, size_t begin, size_t end, size_t *at, const fj_algo_options *how)
{
    if (s->find == NULL || at == NULL || begin > end) return FJ_EINVAL;
    int code = search_run(s, begin, end, how);
    if (code == FJ_OK) *at = (size_t)s->best;
    return code;
}

int fj_find(size_t begin, size_t end, fj_find_fn *find, void *arg, size_t *at,
            const fj_algo_options *how)
{
    search s = {.find = find, .arg = arg};

    return find_run(&s, begin, end, at, how);
}

int fj_find_any(size_t begin, size_t end, fj_find_fn *find, void *arg, size_t *at,
                const fj_algo_options *how)
{
    search s = {.find = find, .arg = arg, .any = true};

    return find_run(&s, begin, end, at, how);
}

/* Whether an element is found for which test says `wanted`. */
static int match_run(search *s, size_t n, int *yes, const fj_algo_options *how)
{
    if (s->test == NULL || yes == NULL || s->size == 0) return FJ_EINVAL;
    if (!fji_fits(n, s->size) || (n != 0 && s->base == NULL)) return FJ_EINVAL;
    int code = search_run(s, 0, n, how);
    if (code == FJ_OK) *yes = (s->best < n) == s->expected;
    return code;
}

int fj_any(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg, int *yes,
           const fj_algo_options *how)
{
    search s = {
        .test = test, .arg = arg, .base = base, .size = size, .expected = true, .any = true};

    return match_run(&s, n, yes, how);
}

int fj_all(const void *base, size_t n, size_t size, fj_test_fn *test, void *arg, int *yes,
           const fj_algo_options *how)
{
    search s = {.test = test, .arg = arg, .base = base, .size = size, .any = true};

    return match_run(&s, n, yes, how);
}
