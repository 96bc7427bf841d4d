/* SPDX-License-Identifier: MIT */
/*
 * find.c - searches: the first match, any match, and whether any or all elements match
 *
 * A search is the loop of split.h. Its tasks share `best`, the lowest index of a match that any of
 * them has found so far. Before a task searches a group of elements, it compares `best` with the
 * first index of the group, and skips the group if it does not begin left of `best`. If any match
 * is sufficient, the task that finds a match also ends the job with the code ANY_FOUND, as an error
 * would. The caller's function may return the same code as an error. The task therefore sets `hit`
 * if its match, and not an earlier error or cancellation, has ended the job. The search then
 * succeeds.
 *
 * A group is a whole chunk of the loop or, if the options set a grain, at most `grain` elements of
 * it. With a grain, a chunk of the loop may be several times as large as the grain, so that there
 * are at most about CHUNKS_MAX chunks and the loop passes quickly over the chunks right of a match.
 *
 * Edges         from                       to                         carries
 *   find.best   acq_rel CAS, best_lower()  acquire load, best_load()  only the index itself
 */
#include "split.h"

enum {
    CHUNKS_MAX = 1 << 16, /* with a grain, the range has at most about this many chunks */
    ANY_FOUND = FJ_EBUSY, /* ends the job after a match; any code other than FJ_OK would do */
};

typedef struct search {
    fji_split split;
    fj_find_fn *find; /* NULL: search_test() calls `test` for each element */
    fj_test_fn *test;
    void *arg;
    const unsigned char *base; /* the elements for `test`, of `size` bytes */
    size_t size;
    bool expected; /* with `test`: an element matches if (result of test > 0) equals this */
    bool any;      /* true: any match ends the search; false: the lowest match is needed */
    size_t grain;  /* the most elements of one call of search_chunk(); 0: those of a whole chunk */
    fj_progress *progress; /* NULL: no progress is reported */
    uint64_t done;         /* elements that search_chunk() has added to `progress` */
    uint64_t best;         /* lowest index of a match so far; the end of the range: no match yet */
    uint32_t hit;          /* 1: a match, not an error, has ended the job */
} search;

/* ---- The best match so far ------------------------------------------------------------------- */

static size_t best_load(search *s)
{
    /* [find.best] acquire <- acq_rel in best_lower(): reads only the index; no other data depends
     * on the order. */
    return (size_t)fji_load_acquire(&s->best);
}

/* Called for a match with the index `at`: lowers s->best to `at` if it is higher. If any match is
 * sufficient, also ends the job and, if the job had not ended before, sets s->hit. */
static void best_lower(search *s, size_t at)
{
    uint64_t best = best_load(s);

    /* [find.best] acq_rel -> acquire in best_load(): publishes only the index; no other data
     * depends on the order. */
    while (at < best && !fji_cas_acq_rel_64(&s->best, &best, at)) continue;
    if (s->any && fji_job_fail(&s->split.job, ANY_FOUND))
        fji_store_relaxed(&s->hit, 1u); /* relaxed: search_run() reads it after all joins */
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* Stores the index of the first match of lo <= i < hi in *at. Leaves *at unchanged if no element
 * matches. Returns FJ_OK, or the negative code that `test` returned. */
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

/* Searches lo <= i < hi, and records the match if there is one. Returns FJ_OK, or the code with
 * which the caller's function failed. */
static int search_chunk(search *s, size_t lo, size_t hi)
{
    size_t at = hi;
    int code = s->find != NULL ? s->find(lo, hi, &at, s->arg) : search_test(s, lo, hi, &at);

    if (FJI_UNLIKELY(code != FJ_OK)) return code;
    if (at >= lo && at < hi) best_lower(s, at);
    if (s->progress != NULL) {
        fj_progress_add(s->progress, hi - lo);
        /* relaxed: search_run() reads the sum after all tasks are joined. */
        (void)fji_add_relaxed(&s->done, hi - lo);
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
        n = fji_min(hi - lo, grain);
        code = search_chunk(s, lo, lo + n);
    }
    return code;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Returns the number of elements in a chunk of the loop: a multiple of `grain`, which is not 0,
 * that divides n elements into at most about CHUNKS_MAX chunks. Returns `grain` if that multiple
 * would overflow. */
static size_t search_grain(size_t n, size_t grain)
{
    size_t factor = n / grain / CHUNKS_MAX + 1, chunk;

    return __builtin_mul_overflow(grain, factor, &chunk) ? grain : chunk;
}

/* Runs the search over begin <= i < end. If it returns FJ_OK, s->best is the lowest index of a
 * match or, if s->any is true, the index of some match. It is `end` if no element matches. Returns
 * FJ_OK also if a match has ended the job with ANY_FOUND. */
static int search_run(search *s, size_t begin, size_t end, const fj_algo_options *how)
{
    fji_job *j = &s->split.job;
    int code = fji_job_init(j, how, end - begin);

    if (code != FJ_OK) return code;
    s->split.step = search_step;
    s->split.context = s;
    s->progress = j->progress;
    j->progress = NULL; /* search_chunk() adds to s->progress; the loop would also add the
                         * elements that are skipped */
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

/* Checks the arguments and runs the search of fj_any() or fj_all(). If it returns FJ_OK, *yes is
 * s->expected if there is a match, and the opposite otherwise. For fj_any() a match is an element
 * for which `test` returns a positive number. For fj_all() a match is an element for which `test`
 * returns 0. */
static int match_run(search *s, size_t n, int *yes, const fj_algo_options *how)
{
    if (s->test == NULL || yes == NULL || s->size == 0) return FJ_EINVAL;
    if (!fji_array_ok(s->base, n, s->size)) return FJ_EINVAL;
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
