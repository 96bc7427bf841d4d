/* SPDX-License-Identifier: MIT */
/*
 * prefix.c - work of which each part needs what all parts left of it come to
 *
 * Alone. The calling thread begins alone, and emits one part after the other: one pass, no
 * memory. When somebody is there to help, and what is left is worth it, what is left is cut
 * into parts for a table, in which all who take part from then on find what to do. Without
 * memory for the table, or without helpers, it stays as it was.
 *
 * The table has for each part k its value, its mark and its note. `carry` is the prefix of the
 * first part that has none in its value. One word says what may be begun, and every step
 * but the taking of a part is one compare-and-swap of it:
 *
 *     next    parts below are claimed, by those who fold or emit them
 *     known   parts below have their prefix; carry is the prefix of part `known`
 *     given   parts below are taken by those who emit them
 *     folds   how often somebody has finished to fold
 *
 *     0 <= given <= known <= next <= parts
 *
 *     part    |...emitted or being so...|..prefix known..|..being folded, folded..|...free...|
 *                                       given            known                    next
 *
 * The mark of a part says how far it is: 0, FOLDED, TAKEN. A part left of known is folded or
 * taken; whoever turns its mark from FOLDED to TAKEN emits it. Whoever has claimed part `known`
 * owns carry, until he has set known to what comes after it.
 *
 * What a worker does next, the first of these that can be done:
 *
 *   emit     one of the last parts that he has folded himself is left of known, and not taken:
 *            it lies in the cache of his processor.
 *   direct   known == next < parts: claims part `next`, and so owns carry; emits the part
 *            without having folded it, into carry; marks it TAKEN; then moves on, from the part
 *            after it.
 *   fold     known < next < parts, not too far ahead of known, and few of those that he has
 *            folded are waiting: claims part `next`, folds it, marks it FOLDED, and then counts
 *            it in folds. If at that step it is the part at known, moves on from it.
 *   sweep    given < known: takes the first that is not taken from given on, and emits it.
 *   fold     the same, with many waiting: he forgets the oldest of them, which will be swept.
 *   leave    given == known, and nothing can be folded. What is left waits for somebody who
 *            folds, emits directly or moves on, and who will look again, and fork others in
 *            place of those who have left.
 *
 *   move on  with the word as it is: for each part from there on that has its mark, its value
 *            is swapped for carry, and carry combined with it; then known is set, if the word
 *            has not changed since: else it looks again.
 *
 * Alone in the table a worker therefore only emits directly: one pass. With two, each folds and
 * emits what it has folded, from its cache; nobody waits for somebody else but by joining a
 * task he has forked. How far ahead they fold is limited, since what was folded long ago is in
 * no cache any more: if one is stopped by the system while all wait for his part, the others
 * leave.
 *
 * Why carry has one owner: known changes only by its owner, to a part that was free, or whose
 * mark he did not see although nobody had counted since he looked for it. If somebody has
 * claimed that part he has not counted it, and will find it at known when he does: he is the
 * next owner. If nobody has, the next one is who claims it, directly. A part that was passed by
 * its mark before it was counted lies left of known when it is, and is nobody's.
 *
 * Why each part is emitted exactly once, after it is folded, if it is: by its mark, which goes
 * from FOLDED to TAKEN once. Nobody takes a part before it is left of known, and known goes over
 * a part only by its mark: FOLDED, or TAKEN by whoever has emitted it directly.
 *
 * Why none is forgotten: given goes only over parts that are taken. While known < next somebody
 * owns carry, and he sets known. So when nobody folds, emits directly or moves on any more,
 * known == next; and whoever set known last has looked again at the word after that, and left
 * only when given == known and next == parts, as nothing was ahead: all is taken, and whoever
 * took it is joined.
 *
 * Errors and cancels end the job; everybody looks at it before each part. What the table says
 * is then of no interest.
 *
 * Edges           from                              to                      carries
 *   chain.word    every CAS of the word             every load and CAS      values, carry, what
 *                                                                           was emitted
 *   chain.mark    release store, table_publish_fold()       acquire, table_advance()   value, note of it
 */
#include "prefix.h"

#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    CHUNKS_MAX = 16384,
    HELPERS = 2,           /* that one worker has forked at a time */
    AHEAD = 4,             /* parts for each worker */
    KEEP = 2,              /* folded by one, to be emitted by the same */
    CHUNK_BYTES = 1 << 17, /* folded and emitted soon after, by the cache of one core */
    TABLE_BYTES = 1 << 24, /* fewer parts rather than more memory for large values, */
    CHUNKS_MIN = 64,       /* but so many anyway */
    GROWTH = 16,           /* alone, a part is at most so many times the one before */
    BITS = 15,             /* of a field of the word: up to CHUNKS_MAX, inclusive */
};

/* A part of the table takes no longer, if it may be smaller. */
#define TABLE_CHUNK_TICKS (2 * FJI_CHUNK_TICKS)

typedef struct table {
    _Alignas(FJI_APART) uint64_t word;
    uint32_t helpers; /* forked so far */
    _Alignas(FJI_APART) fji_prefix_loop *loop;
    size_t begin, end;
    size_t chunk;          /* elements */
    size_t chunks;         /* how many */
    uint32_t max_helpers;  /* helpers at a time */
    uint32_t max_ahead;    /* parts that may be claimed from known on */
    size_t stride;         /* of a value */
    size_t note_words;     /* words of a note */
    unsigned char *carry;  /* owned by who has part `known` */
    unsigned char *spare;  /* a value, likewise */
    unsigned char *values; /* a fold's result, from known on; below, the prefix */
    uint64_t *notes;
    uint32_t *states; /* FOLDED, TAKEN */
} table;

enum { FOLDED = 1, TAKEN = 2 };

/* Who takes part, and the last parts he has folded, the oldest first. */
typedef struct participant {
    uint32_t folded[KEEP];
    unsigned nfolded;
} participant;

/* A task that takes part. */
typedef struct helper {
    fj_task task;
    table *table;
    uint32_t leaving; /* it is about to end */
} helper;

/* What the calling thread has. */
typedef struct call {
    fj_task task;
    fji_prefix_loop *loop;
    size_t begin, end;
    unsigned char *carry;
    /* How large its parts are while it is alone. */
    size_t chunk;
    uint64_t
        ticks_per_element; /* what the last one took for each element, times 256; 0: not known */
    uint64_t last_end;     /* when it ended */
    bool table_failed;     /* there is no memory for the table */
} call;

/* ---- The word -------------------------------------------------------------------------------- */

#define FIELD ((1u << BITS) - 1)
#define ONE_CLAIMED ((uint64_t)1)
#define ONE_KNOWN (ONE_CLAIMED << BITS)
#define ONE_TAKEN (ONE_KNOWN << BITS)
#define ONE_FOLDS (ONE_TAKEN << BITS)

static uint32_t word_claimed(uint64_t w)
{
    return (uint32_t)(w & FIELD);
}

static uint32_t word_known(uint64_t w)
{
    return (uint32_t)(w / ONE_KNOWN & FIELD);
}

static uint32_t word_taken(uint64_t w)
{
    return (uint32_t)(w / ONE_TAKEN & FIELD);
}

static uint64_t word_load(table *t)
{
    /* [prefix.word] acquire <- release in word_cas(): values and marks. */
    return fji_load_acquire(&t->word);
}

/* False: it is another by now, *w. */
static bool word_cas(table *t, uint64_t *w, uint64_t to)
{
    FJI_GAP();
    /* [prefix.word] acq_rel <-> the same, and acquire in word_load(): what was done before. */
    return fji_cas_acq_rel_64(&t->word, w, to);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static size_t chunk_begin(const table *t, size_t k)
{
    return t->begin + k * t->chunk;
}

static size_t chunk_end(const table *t, size_t k)
{
    return k + 1 == t->chunks ? t->end : chunk_begin(t, k + 1);
}

static unsigned char *chunk_value(const table *t, size_t k)
{
    return t->values + k * t->stride;
}

static uint64_t *chunk_note(const table *t, size_t k)
{
    return t->notes + k * t->note_words;
}

/* Calls emit for part k; *acc is its prefix. False: the job ends. */
static bool chunk_emit(table *t, size_t k, void *acc, uint64_t *note)
{
    fji_prefix_loop *c = t->loop;
    size_t lo = chunk_begin(t, k), hi = chunk_end(t, k);
    int code = c->emit(c->context, lo, hi, acc, note);

    if (FJI_LIKELY(code == FJ_OK)) {
        fji_job_add_progress(&c->job, hi - lo);
        return true;
    }
    fji_job_fail(&c->job, code);
    return false;
}

/* The value of part k is swapped for carry, which is combined with it. */
static bool chunk_pass_carry(table *t, size_t k)
{
    fji_prefix_loop *c = t->loop;
    unsigned char *value = chunk_value(t, k);

    memcpy(t->spare, t->carry, c->size);
    int code = c->combine(t->carry, value, c->arg);
    if (code != FJ_OK) {
        fji_job_fail(&c->job, code);
        return false;
    }
    memcpy(value, t->spare, c->size);
    return true;
}

/* The caller owns carry, which is the prefix of `known`: known goes there, and over all that is
 * folded. given goes along if it was at `from`. */
static void table_advance(table *t, uint32_t known, uint32_t from)
{
    uint64_t w = word_load(t);
    uint32_t to = known, taken;

    do {
        /* [prefix.state] acquire <- release in table_publish_fold(): the value and the note. */
        for (; known < word_claimed(w) && fji_load_acquire(&t->states[known]) != 0; known++)
            if (!chunk_pass_carry(t, known)) return;
        taken = word_taken(w) == from ? to : word_taken(w);
    } while (!word_cas(t, &w,
                       word_claimed(w) * ONE_CLAIMED + known * ONE_KNOWN + taken * ONE_TAKEN +
                           (w & (FIELD * ONE_FOLDS))));
}

/* ---- What a worker does ---------------------------------------------------------------------- */

/* Part k, left of known, is the caller's to emit. */
static bool table_take(table *t, uint32_t k)
{
    uint32_t state = FOLDED;

    /* relaxed: only who is first; what is there to be read came with the word. */
    return fji_cas_relaxed(&t->states[k], &state, (uint32_t)TAKEN);
}

static void table_emit(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    size_t size = t->loop->size;
    unsigned char *acc = chunk_value(t, k);

    if (size <= sizeof stack) acc = memcpy(stack, acc, size);
    (void)chunk_emit(t, k, acc, chunk_note(t, k));
}

/* Emits the first part that is folded and not taken, if there is one, of those from given to
 * known in w, and moves given over those that are. */
static void table_sweep(table *t, uint64_t w)
{
    uint32_t k = word_taken(w), known = word_known(w);
    bool found = false;

    while (k < known && !found) found = table_take(t, k++);
    /* Parts are taken in other orders too: given may be further by now. */
    while (word_taken(w) < k && !word_cas(t, &w, w + (k - word_taken(w)) * ONE_TAKEN)) continue;
    if (found) table_emit(t, k - 1);
}

static void table_direct(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    size_t size = t->loop->size;
    unsigned char *acc = t->carry;

    if (size <= sizeof stack) acc = memcpy(stack, acc, size);
    if (!chunk_emit(t, k, acc, NULL)) return;
    if (acc == stack) memcpy(t->carry, acc, size);
    fji_store_relaxed(&t->states[k], (uint32_t)TAKEN); /* relaxed: the word makes it known */
    table_advance(t, k + 1, k);
}

/* Part k is folded: says so, and moves on if that is up to the caller. */
static void table_publish_fold(table *t, uint32_t k)
{
    uint64_t w = word_load(t);

    /* [prefix.state] release -> acquire in table_advance(): the value and the note. */
    fji_store_release(&t->states[k], (uint32_t)FOLDED);
    while (!word_cas(t, &w, w + ONE_FOLDS)) continue;
    if (word_known(w) == k) table_advance(t, k, UINT32_MAX);
}

static void table_fold(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    fji_prefix_loop *c = t->loop;
    bool small = c->size <= sizeof stack;
    unsigned char *acc = small ? stack : chunk_value(t, k);

    memcpy(acc, c->identity, c->size);
    int code = c->fold(c->context, chunk_begin(t, k), chunk_end(t, k), acc, chunk_note(t, k));
    if (code != FJ_OK) {
        fji_job_fail(&c->job, code);
        return;
    }
    if (small) memcpy(chunk_value(t, k), acc, c->size);
    table_publish_fold(t, k);
}

/* The oldest of the caller's own parts, no longer his. */
static uint32_t participant_forget_oldest(participant *h)
{
    uint32_t k = h->folded[0];

    memmove(h->folded, h->folded + 1, --h->nfolded * sizeof *h->folded);
    return k;
}

static void participant_fold(participant *h, table *t, uint32_t k)
{
    if (h->nfolded == KEEP) (void)participant_forget_oldest(h);
    h->folded[h->nfolded++] = k;
    table_fold(t, k);
}

/* Claims something and does it. False: there is nothing that could be begun. */
static bool participant_step(participant *h, table *t)
{
    for (uint64_t w = word_load(t);;) {
        uint32_t claimed = word_claimed(w), known = word_known(w);
        bool can_claim = claimed < t->chunks && claimed - known < t->max_ahead;

        if (h->nfolded != 0 && h->folded[0] < known) {
            uint32_t k = participant_forget_oldest(h);
            if (!table_take(t, k)) continue;
            table_emit(t, k);
        } else if (can_claim && (claimed == known || h->nfolded < KEEP || word_taken(w) == known)) {
            if (!word_cas(t, &w, w + ONE_CLAIMED)) continue;
            if (claimed == known)
                table_direct(t, claimed);
            else
                participant_fold(h, t, claimed);
        } else if (word_taken(w) < known) {
            table_sweep(t, w);
        } else {
            return false;
        }
        return true;
    }
}

/* ---- Helpers --------------------------------------------------------------------------------- */

static void table_work(table *t);

static int helper_run(fj_task *task)
{
    helper *h = (helper *)task;

    table_work(h->table);
    fji_store_relaxed(&h->leaving, 1u); /* relaxed: a hint; the join gives the order */
    return FJ_OK;
}

/* Waits for it, unless nobody has begun it. */
static void helper_join(helper *h)
{
    /* One that never began has left nothing undone, also if the pool has stopped. */
    if (!fj_unfork(&h->task)) (void)fj_join_stolen(&h->task);
    (void)fji_add_relaxed(&h->table->helpers, (uint32_t)-1); /* relaxed: only counted */
}

/* Whether another one would come, and find enough to do. */
static bool helper_has_demand(table *t)
{
    /* relaxed: an estimate, and so is next. */
    if (fji_load_relaxed(&t->helpers) >= t->max_helpers) return false;
    if (word_claimed(fji_load_relaxed(&t->word)) + 2 > t->chunks) return false; /* relaxed: same */
    return fji_has_demand();
}

/* Forks one more if it is wanted, in place of one that has left. Returns how many there are. */
static unsigned helpers_fork(table *t, helper *h, unsigned n)
{
    /* relaxed: a hint. */
    while (n != 0 && fji_load_relaxed(&h[n - 1].leaving) != 0) helper_join(&h[--n]);
    if (n == HELPERS || !helper_has_demand(t)) return n;
    (void)fji_add_relaxed(&t->helpers, 1u); /* relaxed: only counted */
    h[n].table = t;
    h[n].leaving = 0;
    fj_task_init(&h[n].task, helper_run);
    fj_fork(&h[n].task);
    return n + 1;
}

/* Takes part until there is nothing to begin. */
static void table_work(table *t)
{
    helper h[HELPERS];
    participant self = {.nfolded = 0};
    unsigned n = 0;

    while (fji_job_should_continue(&t->loop->job)) {
        n = helpers_fork(t, h, n);
        if (!participant_step(&self, t)) break;
    }
    while (n != 0) helper_join(&h[--n]);
}

/* ---- The table ------------------------------------------------------------------------------- */

/* n, or what is next to it of what a part may have; at least 1. */
static size_t clamp_chunk(const fji_job *j, size_t n)
{
    if (n > j->max_grain) n = j->max_grain;
    if (n < j->min_grain) n = j->min_grain;
    return n != 0 ? n : 1;
}

/* How many parts a table of this chain may have. */
static size_t chunks_max(const fji_prefix_loop *c)
{
    size_t fit = TABLE_BYTES / (c->size + c->extra);

    return c->job.grain != 0 || fit > CHUNKS_MAX ? CHUNKS_MAX : fit < CHUNKS_MIN ? CHUNKS_MIN : fit;
}

/* Elements of a part, if n are left. */
static size_t chunk_size(const call *w, size_t n)
{
    const fji_prefix_loop *c = w->loop;
    size_t max = chunks_max(c), chunk = c->job.grain, min = n / max + (n % max != 0);

    if (chunk == 0) {
        chunk = c->stride == 0 ? CHUNK_BYTES : CHUNK_BYTES / c->stride;
        if (w->ticks_per_element != 0 && chunk > TABLE_CHUNK_TICKS * 256 / w->ticks_per_element)
            chunk = TABLE_CHUNK_TICKS * 256 / w->ticks_per_element;
        chunk = clamp_chunk(&c->job, chunk);
    }
    if (chunk < min) chunk = min;
    if (c->has_notes && chunk > 64 && chunk < SIZE_MAX - 64) chunk = (chunk + 63) / 64 * 64;
    return chunk;
}

/* One stretch of memory for all; addresses are set from *at on, which is moved. */
static void *carve(size_t *offset, unsigned char *base, size_t bytes)
{
    unsigned char *p = base != NULL ? base + *offset : NULL;

    *offset += (bytes + 15) / 16 * 16;
    return p;
}

static size_t table_layout(table *t, unsigned char *base)
{
    size_t offset = 0;

    t->values = carve(&offset, base, t->chunks * t->stride);
    t->spare = carve(&offset, base, t->stride);
    t->notes = carve(&offset, base, t->chunks * t->note_words * sizeof *t->notes);
    t->states = carve(&offset, base, t->chunks * sizeof *t->states);
    return offset;
}

/* Sets up *t for what is left. False: it is not worth it, or there is no memory. */
static bool table_make(table *t, call *w)
{
    fji_prefix_loop *c = w->loop;
    size_t n = w->end - w->begin, chunk = chunk_size(w, n);

    if (n <= chunk) return false;
    *t = (table){.loop = c, .begin = w->begin, .end = w->end, .chunk = chunk, .carry = w->carry};
    t->chunks = (n - 1) / chunk + 1;
    t->stride = c->size + (c->size > FJI_PREFIX_INLINE_BYTES ? c->extra : 0);
    t->note_words = c->has_notes ? (chunk + 63) / 64 : 0;
    w->table_failed = true;
    if (t->stride > PTRDIFF_MAX / 2 / t->chunks || t->note_words > PTRDIFF_MAX / 32 / t->chunks)
        return false;
    unsigned char *base = fji_algo_alloc(table_layout(t, NULL));
    if (base == NULL) return false;
    (void)table_layout(t, base);
    memset(t->states, 0, t->chunks * sizeof *t->states);
    int workers = fj_pool_parallelism(fj_current_pool());
    t->max_helpers = workers > 0 ? (uint32_t)workers : 0;
    t->max_ahead = AHEAD * (t->max_helpers + 1);
    return true;
}

/* ---- Alone ----------------------------------------------------------------------------------- */

/* The time a part of n elements took says how large the next should be. */
static void sequential_timing(call *w, size_t n)
{
    const fji_job *j = &w->loop->job;
    uint64_t now = fji_ticks(), elapsed = now - w->last_end;

    w->last_end = now;
    if (elapsed > UINT64_MAX / 512) elapsed = 0; /* the counters of two processors differ */
    w->ticks_per_element = (uint64_t)((float)elapsed * 256 / (float)n) + 1;
    if (elapsed >= FJI_CHUNK_TICKS / 2 && elapsed <= 2 * FJI_CHUNK_TICKS) return;
    uint64_t fit = FJI_CHUNK_TICKS * 256 / w->ticks_per_element;
    size_t max = n > SIZE_MAX / GROWTH ? SIZE_MAX : n * GROWTH;
    w->chunk = clamp_chunk(j, fit < max ? (size_t)fit : max);
}

/* Whether what is left is enough for two. */
static bool table_is_worthwhile(const call *w)
{
    size_t n = w->end - w->begin;

    if (w->table_failed || n <= w->chunk) return false;
    if (w->loop->job.grain != 0) return true;
    return w->ticks_per_element != 0 && n > FJI_FORK_MIN_TICKS * 256 / w->ticks_per_element;
}

static bool sequential_chunk(call *w)
{
    fji_prefix_loop *c = w->loop;
    size_t lo = w->begin, n = w->end - lo < w->chunk ? w->end - lo : w->chunk;
    int code = c->emit(c->context, lo, lo + n, w->carry, NULL);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&c->job, code);
        return false;
    }
    fji_job_add_progress(&c->job, n);
    w->begin += n;
    if (c->job.grain == 0 && w->begin < w->end) sequential_timing(w, n);
    return true;
}

/* Does the rest with others; false: it is not to be had. */
static bool table_run(call *w)
{
    table t;

    if (!table_make(&t, w)) return false;
    table_work(&t);
    fji_algo_free(t.values);
    w->begin = w->end;
    return true;
}

static int call_run(fj_task *task)
{
    call *w = (call *)task;
    fji_prefix_loop *c = w->loop;

    w->chunk = c->job.grain != 0 ? c->job.grain : clamp_chunk(&c->job, 1);
    w->last_end = c->job.grain != 0 ? 0 : fji_ticks();
    while (w->begin < w->end && fji_job_should_continue(&c->job)) {
        if (table_is_worthwhile(w) && fji_has_demand() && table_run(w)) break;
        if (!sequential_chunk(w)) break;
    }
    return FJ_OK;
}

int fji_prefix_run(fji_prefix_loop *c, const fj_algo_options *how, size_t begin, size_t end,
                   void *total)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    call w = {.loop = c, .begin = begin, .end = end, .carry = stack};
    int code = FJ_OK;

    if (c->size > sizeof stack) w.carry = fji_algo_alloc(c->size + c->extra);
    if (w.carry == NULL) return FJ_ENOMEM;
    memcpy(w.carry, c->identity, c->size);
    fj_task_init(&w.task, call_run);
    if (begin < end) code = fji_job_run(&c->job, how, &w.task);
    if (code == FJ_OK && total != NULL) memcpy(total, w.carry, c->size);
    if (w.carry != stack) fji_algo_free(w.carry);
    return code;
}
