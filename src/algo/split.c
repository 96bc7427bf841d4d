/* SPDX-License-Identifier: MIT */
/*
 * split.c - the loop that hands out its second half when somebody is there to take it
 */
#include "split.h"

#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"

enum {
    INLINE_ACC = 128, /* accumulators up to this size need no memory */
    GROWTH = 16,      /* a part is at most so many times as large as the one before */
    SHARE = 64,       /* a part is at most one of so many of what is left, unless that is short */
    TARGET_MAX = 4,   /* times FJI_CHUNK_TICKS */
};

#define CHUNK_MAX 0x1p62f          /* elements; pointers have 64 bits */
#define TICKS_MAX (UINT64_MAX / 2) /* of a part */

/* How large the parts are, as its worker has found. */
typedef struct chunk_timing {
    size_t chunk;            /* elements */
    float ticks_per_element; /* what the last one took for each element */
    bool reliable;           /* not by the first one alone, which may have found everything cold */
    uint64_t last_end;       /* when it ended */
} chunk_timing;

/* The right half of somebody's range, while it is forked. */
typedef struct half {
    fj_task task;
    fji_split *split;
    size_t lo, hi;
    chunk_timing timing;
    void *acc; /* its own, once it is begun; NULL: not begun, or no memory for it */
    _Alignas(max_align_t) unsigned char inline_acc[INLINE_ACC];
} half;

/* ---- Pace ------------------------------------------------------------------------------------ */

/* Parts and halves are so many times this, but for what ends at the end of the whole. */
static size_t chunk_unit(const fji_job *j)
{
    return j->grain != 0 ? j->grain : j->min_grain;
}

static size_t chunk_clamp(const fji_job *j, size_t n)
{
    size_t max = n > j->max_grain ? j->max_grain : n;
    return n < j->min_grain ? j->min_grain : max - max % j->min_grain;
}

static void timing_start(chunk_timing *p, const fji_job *j)
{
    p->chunk = j->grain != 0 ? j->grain : chunk_clamp(j, 1);
    p->ticks_per_element = 0;
    p->reliable = false;
    p->last_end = j->grain != 0 ? 0 : fji_ticks();
}

/* How long the next part should take if `rest` elements are left. Each part costs the few
 * hundred nanoseconds in which the processor ends one loop and begins another: longer ones cost
 * less, as long as they are only a small share of what somebody may be waiting for. */
static float timing_target(const chunk_timing *p, size_t rest)
{
    float share = (float)rest / SHARE * p->ticks_per_element;

    if (share < FJI_CHUNK_TICKS) return FJI_CHUNK_TICKS;
    return share < TARGET_MAX * FJI_CHUNK_TICKS ? share : TARGET_MAX * FJI_CHUNK_TICKS;
}

/* The time a part of n elements took says how large the next should be, of `rest`. */
static void timing_update(chunk_timing *p, const fji_job *j, size_t n, size_t rest)
{
    uint64_t now = fji_ticks(), elapsed = now - p->last_end;

    p->last_end = now;
    p->reliable = p->ticks_per_element != 0 || elapsed > FJI_FORK_MIN_TICKS;
    if (elapsed - 1 > TICKS_MAX) elapsed = 1; /* the counters of two processors differ */
    p->ticks_per_element = (float)elapsed / (float)n;
    float target = timing_target(p, rest), current = (float)p->chunk * p->ticks_per_element;
    if (current >= target * .75f && current <= target * 1.5f) return;

    float fit = target / p->ticks_per_element, max = (float)n * GROWTH;
    if (fit > max) fit = max;
    p->chunk = chunk_clamp(j, fit < 1 ? 1 : fit < CHUNK_MAX ? (size_t)fit : (size_t)CHUNK_MAX);
}

/* Whether n elements take long enough for two. */
static bool fork_is_worthwhile(const chunk_timing *p, const fji_job *j, size_t n)
{
    if (n <= p->chunk) return false;
    return j->grain != 0 || (p->reliable && (float)n * p->ticks_per_element > FJI_FORK_MIN_TICKS);
}

/* ---- Halves ---------------------------------------------------------------------------------- */

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *p);

/* The body of a half that somebody has taken. */
static int half_run(fj_task *t)
{
    half *h = (half *)(void *)t;
    fji_split *s = h->split;

    if (s->combine != NULL) {
        h->acc = s->size <= INLINE_ACC ? h->inline_acc : fji_algo_alloc(s->size);
        if (h->acc == NULL) return FJ_OK; /* left to whoever forked it */
        if (s->identity != NULL)
            memcpy(h->acc, s->identity, s->size);
        else
            memset(h->acc, 0, s->size);
    }
    if (s->job.grain == 0) h->timing.last_end = fji_ticks();
    split_range(s, h->lo, h->hi, h->acc, &h->timing);
    return FJ_OK;
}

/* What a half found belongs right of what is in *acc. False: it was not done. */
static bool half_combine(half *h, void *acc)
{
    fji_split *s = h->split;

    if (s->combine == NULL) return true;
    if (h->acc == NULL) return false;
    /* relaxed: a code means that what was found does not matter. */
    if (fji_load_relaxed(&s->job.code) == FJ_OK) {
        int code = s->combine(acc, h->acc, s->arg);
        if (code != FJ_OK) fji_job_fail(&s->job, code);
    }
    if (s->size > INLINE_ACC) fji_algo_free(h->acc);
    return true;
}

/* Gives lo <= i < hi away in two halves; returns from where on it is still to be done here. */
static size_t split_fork_half(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *p)
{
    size_t unit = chunk_unit(&s->job), units = (hi - lo) / unit;
    size_t mid = lo + (units - units / 2) * unit;
    half h;

    fj_task_init(&h.task, half_run);
    h.split = s;
    h.lo = mid;
    h.hi = hi;
    h.timing = *p;
    h.acc = NULL;
    fj_fork(&h.task);
    split_range(s, lo, mid, acc, p);
    if (fj_unfork(&h.task)) return mid;
    int code = fj_join_stolen(&h.task);
    if (s->job.grain == 0) p->last_end = fji_ticks();
    if (code != FJ_OK) fji_job_fail(&s->job, code);
    return half_combine(&h, acc) ? hi : mid;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* One part at lo; returns where it ends. */
static size_t split_chunk(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *p)
{
    size_t n = hi - lo < p->chunk ? hi - lo : p->chunk;
    int code = s->step(s->context, lo, lo + n, acc);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&s->job, code);
        return hi;
    }
    fji_job_add_progress(&s->job, n);
    if (s->job.grain == 0 && n < hi - lo) timing_update(p, &s->job, n, hi - lo - n);
    return lo + n;
}

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *p)
{
    while (lo < hi && fji_job_should_continue(&s->job)) {
        if (fork_is_worthwhile(p, &s->job, hi - lo) && fji_has_demand())
            lo = split_fork_half(s, lo, hi, acc, p);
        else
            lo = split_chunk(s, lo, hi, acc, p);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    fji_split *split;
    size_t begin, end;
    void *acc;
} call;

static int call_run(fj_task *t)
{
    call *w = (call *)t;
    chunk_timing p;

    timing_start(&p, &w->split->job);
    size_t lo = w->begin;
    if (w->split->job.grain == 0) lo = split_chunk(w->split, lo, w->end, w->acc, &p);
    split_range(w->split, lo, w->end, w->acc, &p);
    return FJ_OK;
}

int fji_split_run(fji_split *s, const fj_algo_options *how, size_t begin, size_t end, void *acc)
{
    call w;

    if (begin == end) return FJ_OK;
    fj_task_init(&w.task, call_run);
    w.split = s;
    w.begin = begin;
    w.end = end;
    w.acc = acc;
    return fji_job_run(&s->job, how, &w.task);
}
