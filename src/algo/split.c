/* SPDX-License-Identifier: MIT */
/*
 * split.c - the loop that hands out its second half when somebody is there to take it
 */
#include "split.h"

#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"

enum {
    ROOM = 128,  /* accumulators up to this size need no memory */
    GROWTH = 16, /* a part is at most so many times as large as the one before */
    SHARE = 64,  /* a part is at most one of so many of what is left, unless that is short */
    LONGEST = 4, /* times FJI_PART_TICKS */
};

#define PART_MOST 0x1p62f           /* elements; pointers have 64 bits */
#define TICKS_MOST (UINT64_MAX / 2) /* of a part */

/* How large the parts are, as its worker has found. */
typedef struct pace {
    size_t part; /* elements */
    float ticks; /* what the last one took for each element */
    bool known;  /* not by the first one alone, which may have found everything cold */
    uint64_t at; /* when it ended */
} pace;

/* The right half of somebody's range, while it is forked. */
typedef struct half {
    fj_task task;
    fji_split *split;
    size_t lo, hi;
    pace pace;
    void *acc; /* its own, once it is begun; NULL: not begun, or no memory for it */
    _Alignas(max_align_t) unsigned char room[ROOM];
} half;

/* ---- Pace --------------------------------------------------------------------------------------- */

/* Parts and halves are so many times this, but for what ends at the end of the whole. */
static size_t part_unit(const fji_job *j)
{
    return j->grain != 0 ? j->grain : j->min_grain;
}

static size_t part_within(const fji_job *j, size_t n)
{
    size_t most = n > j->max_grain ? j->max_grain : n;
    return n < j->min_grain ? j->min_grain : most - most % j->min_grain;
}

static void pace_start(pace *p, const fji_job *j)
{
    p->part = j->grain != 0 ? j->grain : part_within(j, 1);
    p->ticks = 0;
    p->known = false;
    p->at = j->grain != 0 ? 0 : fji_ticks();
}

/* How long the next part should take if `rest` elements are left. Each part costs the few
 * hundred nanoseconds in which the processor ends one loop and begins another: longer ones cost
 * less, as long as they are only a small share of what somebody may be waiting for. */
static float pace_aim(const pace *p, size_t rest)
{
    float share = (float)rest / SHARE * p->ticks;

    if (share < FJI_PART_TICKS) return FJI_PART_TICKS;
    return share < LONGEST * FJI_PART_TICKS ? share : LONGEST * FJI_PART_TICKS;
}

/* The time a part of n elements took says how large the next should be, of `rest`. */
static void pace_next(pace *p, const fji_job *j, size_t n, size_t rest)
{
    uint64_t now = fji_ticks(), took = now - p->at;

    p->at = now;
    p->known = p->ticks != 0 || took > FJI_WORTH_TICKS;
    if (took - 1 > TICKS_MOST) took = 1; /* the counters of two processors differ */
    p->ticks = (float)took / (float)n;
    float aim = pace_aim(p, rest), is = (float)p->part * p->ticks;
    if (is >= aim * .75f && is <= aim * 1.5f) return;

    float fit = aim / p->ticks, most = (float)n * GROWTH;
    if (fit > most) fit = most;
    p->part = part_within(j, fit < 1 ? 1 : fit < PART_MOST ? (size_t)fit : (size_t)PART_MOST);
}

/* Whether n elements take long enough for two. */
static bool pace_worth(const pace *p, const fji_job *j, size_t n)
{
    if (n <= p->part) return false;
    return j->grain != 0 || (p->known && (float)n * p->ticks > FJI_WORTH_TICKS);
}

/* ---- Halves ------------------------------------------------------------------------------------- */

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, pace *p);

/* The body of a half that somebody has taken. */
static int half_run(fj_task *t)
{
    half *h = (half *)(void *)t;
    fji_split *s = h->split;

    if (s->combine != NULL) {
        h->acc = s->size <= ROOM ? h->room : fji_algo_alloc(s->size);
        if (h->acc == NULL) return FJ_OK; /* left to whoever forked it */
        if (s->identity != NULL)
            memcpy(h->acc, s->identity, s->size);
        else
            memset(h->acc, 0, s->size);
    }
    if (s->job.grain == 0) h->pace.at = fji_ticks();
    split_range(s, h->lo, h->hi, h->acc, &h->pace);
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
    if (s->size > ROOM) fji_algo_free(h->acc);
    return true;
}

/* Gives lo <= i < hi away in two halves; returns from where on it is still to be done here. */
static size_t split_halves(fji_split *s, size_t lo, size_t hi, void *acc, pace *p)
{
    size_t unit = part_unit(&s->job), units = (hi - lo) / unit;
    size_t mid = lo + (units - units / 2) * unit;
    half h;

    fj_task_init(&h.task, half_run);
    h.split = s;
    h.lo = mid;
    h.hi = hi;
    h.pace = *p;
    h.acc = NULL;
    fj_fork(&h.task);
    split_range(s, lo, mid, acc, p);
    if (fj_unfork(&h.task)) return mid;
    int code = fj_join_stolen(&h.task);
    if (s->job.grain == 0) p->at = fji_ticks();
    if (code != FJ_OK) fji_job_fail(&s->job, code);
    return half_combine(&h, acc) ? hi : mid;
}

/* ---- Ranges ------------------------------------------------------------------------------------- */

/* One part at lo; returns where it ends. */
static size_t split_part(fji_split *s, size_t lo, size_t hi, void *acc, pace *p)
{
    size_t n = hi - lo < p->part ? hi - lo : p->part;
    int code = s->step(s->context, lo, lo + n, acc);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&s->job, code);
        return hi;
    }
    fji_job_did(&s->job, n);
    if (s->job.grain == 0 && n < hi - lo) pace_next(p, &s->job, n, hi - lo - n);
    return lo + n;
}

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, pace *p)
{
    while (lo < hi && fji_job_goes_on(&s->job)) {
        if (pace_worth(p, &s->job, hi - lo) && fji_split_wanted())
            lo = split_halves(s, lo, hi, acc, p);
        else
            lo = split_part(s, lo, hi, acc, p);
    }
}

/* ---- The whole ----------------------------------------------------------------------------------- */

typedef struct whole {
    fj_task task;
    fji_split *split;
    size_t begin, end;
    void *acc;
} whole;

static int whole_run(fj_task *t)
{
    whole *w = (whole *)t;
    pace p;

    pace_start(&p, &w->split->job);
    size_t lo = w->begin;
    if (w->split->job.grain == 0) lo = split_part(w->split, lo, w->end, w->acc, &p);
    split_range(w->split, lo, w->end, w->acc, &p);
    return FJ_OK;
}

int fji_split_run(fji_split *s, const fj_algo_options *how, size_t begin, size_t end, void *acc)
{
    whole w;

    if (begin == end) return FJ_OK;
    fj_task_init(&w.task, whole_run);
    w.split = s;
    w.begin = begin;
    w.end = end;
    w.acc = acc;
    return fji_job_run(&s->job, how, &w.task);
}
