/* SPDX-License-Identifier: MIT */
/*
 * split.c - the loop that forks its right half when another worker would take it
 */
#include "split.h"

#include <string.h>

#include "plat/ticks.h"
#include "scratch.h"

enum {
    INLINE_ACC = 128,   /* an accumulator of at most this many bytes is stored in a struct half */
    GROWTH = 64,        /* without a grain, a chunk has at most 64 times as many elements as the one
                         * before it */
    SHARE = 64,         /* a chunk should take a 64th of the time that the rest of the range takes,
                         * within the limits at TARGET_MAX */
    PROBE_SHARE = 8,    /* a chunk that only measures should take an 8th of fork_min_ticks() */
    RELIABLE_SHARE = 3, /* a first chunk of more than a third of fork_min_ticks() is reliable */
    TARGET_MAX = 4,     /* a chunk should take at least FJI_CHUNK_TICKS, at most 4 times as long */
};

#define CHUNK_MAX 0x1p62f          /* the most elements of a chunk; fits a size_t */
#define TICKS_MAX (UINT64_MAX / 2) /* a larger unsigned difference of ticks means a negative one */

/* The size of the next chunk of this worker, and the measurements from which the size is computed.
 * If the options set a grain, only `chunk` is used. */
typedef struct chunk_timing {
    size_t chunk;            /* elements of the next chunk */
    float ticks_per_element; /* measured in the last chunk; 0: no chunk was measured yet */
    /* ticks_per_element may decide about a fork: two chunks were measured, or the first one took
     * longer than a third of fork_min_ticks(). A short first chunk may be slow only because its data
     * is not in a cache. */
    bool reliable;
    uint64_t last_end; /* the tick counter when the next chunk begins: when the last chunk ended, or
                        * when the loop began, a thief began its half or a stolen half was joined */
} chunk_timing;

/*
 * The loops without a grain that the calling thread has run one after the other, with pauses of at
 * most RECENT_PAUSE_TICKS between them. A worker that has taken part in a loop searches for about
 * this long before it sleeps. So if such a sequence of short loops takes long enough in total, it
 * pays to wake a worker for one of them: the worker then finds the others by searching.
 */
#define RECENT_PAUSE_TICKS ((uint64_t)20000)
#define RECENT_MIN_TICKS (4 * FJI_FORK_MIN_TICKS) /* "long enough" */
static __thread struct {
    uint64_t end;   /* the tick counter when the last loop ended */
    uint64_t ticks; /* how long the loops took since the last one that was divided */
} recent;

/* The right half of a range, while it is forked. */
typedef struct half {
    fj_task task;
    fji_split *split;
    size_t lo, hi;       /* the half is lo <= i < hi */
    chunk_timing timing; /* the forker's measurements, with which a thief begins */
    void *acc; /* the accumulator of the thief; NULL: no thief has begun, the thief has no memory,
                * or the loop has no accumulators */
    _Alignas(max_align_t) unsigned char inline_acc[INLINE_ACC];
} half;

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Returns the number of elements of which the size of every chunk and half is a multiple, except at
 * the end of the loop: the grain or, if the options set none, min_grain. */
static size_t chunk_unit(const fji_job *j)
{
    return j->grain != 0 ? j->grain : j->min_grain;
}

/* Returns the size of a chunk that should have n elements, if the options set no grain: at least
 * min_grain and at most max_grain of the job, rounded down to a multiple of min_grain. */
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

/* Whether the pool of the calling thread has more workers than CPUs. The answer is kept, because it
 * takes a system call. */
#define CROWDED_TICKS ((uint64_t)100000000)
static __thread struct {
    const fj_pool *pool; /* the pool that `is` belongs to; NULL: none yet */
    uint64_t at;         /* the tick counter when `is` was found out */
    bool is;
} crowded;

static bool pool_is_crowded(const fj_pool *pool)
{
    uint64_t now = fji_ticks();

    if (crowded.pool != pool || now - crowded.at > CROWDED_TICKS) {
        crowded.pool = pool;
        crowded.at = now;
        crowded.is = fj_pool_parallelism(pool) > fj_available_parallelism();
    }
    return crowded.is;
}

/* Returns how many ticks a range has to take at least, so that another worker gets a half of it. A
 * searching worker takes a short range at once only if it has a CPU. */
static uint64_t fork_min_ticks(void)
{
    const fj_pool *pool = fj_current_pool();
    bool awake = pool != NULL &&
                 (recent.ticks > RECENT_MIN_TICKS || fj_pool_searching_count(pool) != 0);
    return awake && !pool_is_crowded(pool) ? FJI_FORK_AWAKE_TICKS : FJI_FORK_MIN_TICKS;
}

/* Called when a loop without a grain begins, at the tick `begin`. If the last loop ended too long ago,
 * a new sequence begins. */
static void recent_begin(uint64_t begin)
{
    if (begin - recent.end > RECENT_PAUSE_TICKS) recent.ticks = 0;
}

/* Called at the end of a loop without a grain that began at the tick `begin`. */
static void recent_end(uint64_t begin)
{
    recent.end = fji_ticks();
    if (recent.end - begin <= TICKS_MAX) recent.ticks += recent.end - begin;
}

/* Returns how many ticks the next chunk should take if `rest` elements are left. Each chunk costs a
 * few hundred nanoseconds more than its elements, because the processor ends one loop and begins
 * another. Long chunks therefore cost less in total. But a half is forked only between two chunks,
 * and idle workers wait for that. A chunk should therefore take only a small share of the rest. */
static float timing_target(const chunk_timing *t, size_t rest)
{
    float share = (float)rest / SHARE * t->ticks_per_element;

    if (share < FJI_CHUNK_TICKS) return FJI_CHUNK_TICKS;
    return share < TARGET_MAX * FJI_CHUNK_TICKS ? share : TARGET_MAX * FJI_CHUNK_TICKS;
}

/* Measures the chunk of n elements that has just ended. `rest` elements are left. Chooses another
 * size for the next chunk, unless a chunk of the current size would take 0.75 to 1.5 times the
 * ticks that timing_target() returns. */
static void timing_update(chunk_timing *t, const fji_job *j, size_t n, size_t rest)
{
    uint64_t now = fji_ticks(), elapsed = now - t->last_end;

    t->last_end = now;
    uint64_t fork_min = fork_min_ticks();
    t->reliable = t->ticks_per_element != 0 || elapsed > fork_min / RELIABLE_SHARE;
    if (elapsed - 1 > TICKS_MAX) elapsed = 1; /* 0, or negative: two processors' counters differ */
    t->ticks_per_element = (float)elapsed / (float)n;
    /* A short first chunk is followed by one that only makes the measurement reliable. It is short,
     * because a searching worker waits meanwhile. */
    float target = t->reliable ? timing_target(t, rest) : (float)fork_min / PROBE_SHARE;
    float current = (float)t->chunk * t->ticks_per_element;
    if (current >= target * .75f && current <= target * 1.5f) return;

    float fit = target / t->ticks_per_element, max = (float)n * GROWTH;
    if (fit > max) fit = max;
    t->chunk = chunk_clamp(j, fit < 1 ? 1 : fit < CHUNK_MAX ? (size_t)fit : (size_t)CHUNK_MAX);
}

/* Returns whether n elements are worth dividing between two workers. If the options set a grain,
 * they are if they are more than one chunk. Otherwise they are if they take longer than
 * fork_min_ticks() according to a reliable measurement. */
static bool fork_is_worthwhile(const chunk_timing *t, const fji_job *j, size_t n)
{
    if (n <= chunk_unit(j)) return false;
    if (j->grain != 0) return true;
    return t->reliable && (float)n * t->ticks_per_element > (float)fork_min_ticks();
}

/* ---- Halves ---------------------------------------------------------------------------------- */

static void split_range(fji_split *s, size_t lo, size_t hi, void *acc, chunk_timing *t);

/* The body of the task of a half. It runs in a thief or, if there is no memory to queue the task,
 * inside of fj_fork(). If the forker takes the task back, it does not run. */
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

/* Combines *acc, the result of the left half, with the result of the right half h, which a thief
 * has taken and finished, and returns true. If the job has ended, discards that result. Does
 * nothing and returns true if the loop has no accumulators. Returns false if h has no accumulator,
 * because the thief had no memory for it or the task was cancelled before it ran: the caller then
 * has to process the right half. */
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

/* Forks the right half of the range lo <= i < hi and processes the left half. Returns the index
 * from which the caller has to continue: hi if a thief has processed the right half, otherwise the
 * first index of the right half. */
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
    recent.ticks = 0;
    fj_fork(&h.task);
    split_range(s, lo, mid, acc, t);
    if (!fji_job_join(&s->job, &h.task)) return mid;
    if (s->job.grain == 0) t->last_end = fji_ticks();
    return half_combine(&h, acc) ? hi : mid;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Processes the first chunk of lo <= i < hi, adds it to the progress and, if the options set no
 * grain, chooses the size of the next chunk. Returns the end of the chunk. If the step function
 * fails, ends the job and returns hi. */
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
    if (c->split->job.grain != 0) {
        split_range(c->split, c->begin, c->end, c->acc, &t);
        return FJ_OK;
    }
    uint64_t begin = t.last_end;
    recent_begin(begin);
    size_t lo = split_chunk(c->split, c->begin, c->end, c->acc, &t);
    if (lo == c->end) return FJ_OK; /* one chunk: too short to count */
    split_range(c->split, lo, c->end, c->acc, &t);
    recent_end(begin);
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
    (void)fji_job_init(&s->job, how, 0); /* cannot fail: the library passes valid options */
    s->job.caller = outer->caller;
}

int fji_split_run_nested(const fji_job *outer, fji_step *step, void *context, size_t n,
                         size_t grain)
{
    fji_split s;

    fji_split_init_nested(&s, outer, step, context, &(fj_algo_options){.grain = grain});
    return fji_split_run(&s, NULL, 0, n, NULL);
}
