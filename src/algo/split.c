/* SPDX-License-Identifier: MIT */
/*
 * split.c - the loop that forks its right half when another worker would take it
 */
#include "split.h"

#include <string.h>

#include "plat/ticks.h"
#include "scratch.h"

enum {
    INLINE_ACC = 128, /* bytes of an accumulator that is stored in the record of its half */
    GROWTH = 16,      /* a chunk is at most 16 times as large as the one before it */
    SHARE = 64,       /* a chunk takes at most a 64th of the rest, unless the rest is short */
    TARGET_MAX = 4,   /* a chunk takes at most 4 * FJI_CHUNK_TICKS */
};

#define CHUNK_MAX 0x1p62f          /* elements; more would not fit into a size_t */
#define TICKS_MAX (UINT64_MAX / 2) /* a longer duration means that the counter went back */

/* The size of the next chunk, and the measurements of the worker from which it follows. */
typedef struct chunk_timing {
    size_t chunk;            /* elements */
    float ticks_per_element; /* ticks of the last chunk for each element */
    bool reliable;           /* false after the first chunk alone, whose data may not be cached */
    uint64_t last_end;       /* when the last chunk ended */
} chunk_timing;

/* The right half of a range, while it is forked. */
typedef struct half {
    fj_task task;
    fji_split *split;
    size_t lo, hi;
    chunk_timing timing;
    void *acc; /* the accumulator of the thief; NULL: no thief has begun, or the thief has no
                * memory */
    _Alignas(max_align_t) unsigned char inline_acc[INLINE_ACC];
} half;

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Returns the unit of the sizes of chunks and halves. Each size is a multiple of the unit, except
 * at the end of the loop. */
static size_t chunk_unit(const fji_job *j)
{
    return j->grain != 0 ? j->grain : j->min_grain;
}

/* Returns n, limited to min_grain and max_grain of the job and rounded down to a multiple of
 * min_grain. */
static size_t chunk_clamp(const fji_job *j, size_t n)
{
    size_t max = n > j->max_grain ? j->max_grain : n;
    return n < j->min_grain ? j->min_grain : max - max % j->min_grain;
}

static void timing_start(chunk_timing *t, const fji_job *j)
{
    t->chunk = j->grain != 0 ? j->grain : chunk_clamp(j, 1);
    t->ticks_per_element = 0;
    t->reliable = false;
    t->last_end = j->grain != 0 ? 0 : fji_ticks();
}

/* Returns how many ticks the next chunk should take if `rest` elements are left. Between two chunks
 * the processor ends one loop and begins another, which costs a few hundred nanoseconds. Long
 * chunks therefore cost less in total. A thief may have to wait until a chunk ends, so a chunk
 * takes only a small share of the rest. */
static float timing_target(const chunk_timing *t, size_t rest)
{
    float share = (float)rest / SHARE * t->ticks_per_element;

    if (share < FJI_CHUNK_TICKS) return FJI_CHUNK_TICKS;
    return share < TARGET_MAX * FJI_CHUNK_TICKS ? share : TARGET_MAX * FJI_CHUNK_TICKS;
}

/* Chooses the size of the next chunk after a chunk of n elements, if `rest` elements are left. */
static void timing_update(chunk_timing *t, const fji_job *j, size_t n, size_t rest)
{
    uint64_t now = fji_ticks(), elapsed = now - t->last_end;

    t->last_end = now;
    t->reliable = t->ticks_per_element != 0 || elapsed > FJI_FORK_MIN_TICKS;
    if (elapsed - 1 > TICKS_MAX) elapsed = 1; /* the counters of two processors differ */
    t->ticks_per_element = (float)elapsed / (float)n;
    float target = timing_target(t, rest), current = (float)t->chunk * t->ticks_per_element;
    if (current >= target * .75f && current <= target * 1.5f) return;

    float fit = target / t->ticks_per_element, max = (float)n * GROWTH;
    if (fit > max) fit = max;
    t->chunk = chunk_clamp(j, fit < 1 ? 1 : fit < CHUNK_MAX ? (size_t)fit : (size_t)CHUNK_MAX);
}

/* Returns whether n elements take long enough to be divided between two workers. */
static bool fork_is_worthwhile(const chunk_timing *t, const fji_job *j, size_t n)
{
    if (n <= t->chunk) return false;
    return j->grain != 0 || (t->reliable && (float)n * t->ticks_per_element > FJI_FORK_MIN_TICKS);
}

/* ---- Halves ---------------------------------------------------------------------------------- */

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *t);

/* The body of a half that a thief has taken. */
static int half_run(fj_task *task)
{
    half *h = (half *)(void *)task;
    fji_split *s = h->split;

    if (s->combine != NULL) {
        h->acc = s->size <= INLINE_ACC ? h->inline_acc : fji_algo_alloc(s->size);
        if (h->acc == NULL) return FJ_OK; /* the forker processes the half */
        if (s->identity != NULL)
            memcpy(h->acc, s->identity, s->size);
        else
            memset(h->acc, 0, s->size);
    }
    if (s->job.grain == 0) h->timing.last_end = fji_ticks();
    split_range(s, h->lo, h->hi, h->acc, &h->timing);
    return FJ_OK;
}

/* Combines *acc with the result of a half that a thief has taken. Returns false if the thief had no
 * memory, so that the half is still to be done. */
static bool half_combine(half *h, void *acc)
{
    fji_split *s = h->split;

    if (s->combine == NULL) return true;
    if (h->acc == NULL) return false;
    /* relaxed: only decides whether to combine; if the job has ended, the result is discarded. */
    if (fji_load_relaxed(&s->job.code) == FJ_OK) {
        int code = s->combine(acc, h->acc, s->arg);
        if (code != FJ_OK) fji_job_fail(&s->job, code);
    }
    if (s->size > INLINE_ACC) fji_algo_free(h->acc);
    return true;
}

/* Forks the right half of lo <= i < hi and processes the left half. Returns the index from which
 * the caller has to continue: hi if a thief has processed the right half, otherwise the beginning
 * of the right half. */
static size_t split_fork_half(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *t)
{
    size_t unit = chunk_unit(&s->job), units = (hi - lo) / unit;
    size_t mid = lo + (units - units / 2) * unit;
    half h;

    fj_task_init(&h.task, half_run);
    h.split = s;
    h.lo = mid;
    h.hi = hi;
    h.timing = *t;
    h.acc = NULL;
    fj_fork(&h.task);
    split_range(s, lo, mid, acc, t);
    if (!fji_job_join(&s->job, &h.task)) return mid;
    if (s->job.grain == 0) t->last_end = fji_ticks();
    return half_combine(&h, acc) ? hi : mid;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Processes the chunk that begins at lo. Returns the end of the chunk, or hi after an error. */
static size_t split_chunk(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *t)
{
    size_t n = hi - lo < t->chunk ? hi - lo : t->chunk;
    int code = s->step(s->context, lo, lo + n, acc);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&s->job, code);
        return hi;
    }
    fji_job_add_progress(&s->job, n);
    if (s->job.grain == 0 && n < hi - lo) timing_update(t, &s->job, n, hi - lo - n);
    return lo + n;
}

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *t)
{
    while (lo < hi && fji_job_should_continue(&s->job)) {
        if (fork_is_worthwhile(t, &s->job, hi - lo) && fji_has_demand())
            lo = split_fork_half(s, lo, hi, acc, t);
        else
            lo = split_chunk(s, lo, hi, acc, t);
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

typedef struct split_call {
    fj_task task;
    fji_split *split;
    size_t begin, end;
    void *acc;
} split_call;

static int split_call_run(fj_task *task)
{
    split_call *c = (split_call *)task;
    chunk_timing t;

    timing_start(&t, &c->split->job);
    size_t lo = c->begin;
    if (c->split->job.grain == 0) lo = split_chunk(c->split, lo, c->end, c->acc, &t);
    split_range(c->split, lo, c->end, c->acc, &t);
    return FJ_OK;
}

int fji_split_run(fji_split *s, const fj_algo_options *how, size_t begin, size_t end, void *acc)
{
    split_call c;

    if (begin == end) return FJ_OK;
    fj_task_init(&c.task, split_call_run);
    c.split = s;
    c.begin = begin;
    c.end = end;
    c.acc = acc;
    return fji_job_run(&s->job, how, &c.task);
}

/* ---- Nested loops ---------------------------------------------------------------------------- */

void fji_split_init_nested(fji_split *s, const fji_job *outer, fji_step *step, void *context,
                           const fj_algo_options *how)
{
    *s = (fji_split){.step = step, .context = context};
    (void)fji_job_init(&s->job, how, 0); /* the algorithms set no invalid options */
    s->job.caller = outer->caller;
}

int fji_split_run_nested(const fji_job *outer, fji_step *step, void *context, size_t n,
                         size_t grain)
{
    fji_split s;

    fji_split_init_nested(&s, outer, step, context, &(fj_algo_options){.grain = grain});
    return fji_split_run(&s, NULL, 0, n, NULL);
}
