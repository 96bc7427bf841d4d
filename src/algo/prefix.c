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
 *   chain.mark    release store, table_folded()       acquire, table_move()   value, note of it
 */
#include "prefix.h"

#include <string.h>

#include "../plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    PARTS_MOST = 16384,
    HELPERS = 2,           /* that one worker has forked at a time */
    AHEAD = 4,             /* parts for each worker */
    OWN = 2,               /* folded by one, to be emitted by the same */
    PART_BYTES = 1 << 17,  /* folded and emitted soon after, by the cache of one core */
    TABLE_BYTES = 1 << 24, /* fewer parts rather than more memory for large values, */
    PARTS_LEAST = 64,      /* but so many anyway */
    GROWTH = 16,           /* alone, a part is at most so many times the one before */
    BITS = 15,             /* of a field of the word: up to PARTS_MOST, inclusive */
};

/* A part of the table takes no longer, if it may be smaller. */
#define PART_TICKS (2 * FJI_PART_TICKS)

typedef struct table {
    _Alignas(FJI_APART) uint64_t word;
    uint32_t helpers; /* forked so far */
    _Alignas(FJI_APART) fji_chain *chain;
    size_t begin, end;
    size_t part;           /* elements */
    size_t parts;          /* how many */
    uint32_t most;         /* helpers at a time */
    uint32_t ahead;        /* parts that may be claimed from known on */
    size_t room;           /* of a value */
    size_t note;           /* words of a note */
    unsigned char *carry;  /* owned by who has part `known` */
    unsigned char *spare;  /* a value, likewise */
    unsigned char *values; /* a fold's result, from known on; below, the prefix */
    uint64_t *notes;
    uint32_t *marks; /* FOLDED, TAKEN */
} table;

enum { FOLDED = 1, TAKEN = 2 };

/* Who takes part, and the last parts he has folded, the oldest first. */
typedef struct hand {
    uint32_t own[OWN];
    unsigned owns;
} hand;

/* A task that takes part. */
typedef struct helper {
    fj_task task;
    table *table;
    uint32_t left; /* it is about to end */
} helper;

/* What the calling thread has. */
typedef struct whole {
    fj_task task;
    fji_chain *chain;
    size_t begin, end;
    unsigned char *carry;
    /* How large its parts are while it is alone. */
    size_t part;
    uint64_t ticks; /* what the last one took for each element, times 256; 0: not known */
    uint64_t at;    /* when it ended */
    bool refused;   /* there is no memory for the table */
} whole;

/* ---- The word ------------------------------------------------------------------------------------ */

#define FIELD ((1u << BITS) - 1)
#define ONE_NEXT ((uint64_t)1)
#define ONE_KNOWN (ONE_NEXT << BITS)
#define ONE_GIVEN (ONE_KNOWN << BITS)
#define ONE_FOLDS (ONE_GIVEN << BITS)

static uint32_t word_next(uint64_t w)
{
    return (uint32_t)(w & FIELD);
}

static uint32_t word_known(uint64_t w)
{
    return (uint32_t)(w / ONE_KNOWN & FIELD);
}

static uint32_t word_given(uint64_t w)
{
    return (uint32_t)(w / ONE_GIVEN & FIELD);
}

static uint64_t word_look(table *t)
{
    /* [chain.word] acquire <- release in word_change(): values and marks. */
    return fji_load_acquire(&t->word);
}

/* False: it is another by now, *w. */
static bool word_change(table *t, uint64_t *w, uint64_t to)
{
    FJI_GAP();
    /* [chain.word] acq_rel <-> the same, and acquire in word_look(): what was done before. */
    return fji_cas_acq_rel_64(&t->word, w, to);
}

/* ---- Parts --------------------------------------------------------------------------------------- */

static size_t part_begin(const table *t, size_t k)
{
    return t->begin + k * t->part;
}

static size_t part_end(const table *t, size_t k)
{
    return k + 1 == t->parts ? t->end : part_begin(t, k + 1);
}

static unsigned char *part_value(const table *t, size_t k)
{
    return t->values + k * t->room;
}

static uint64_t *part_note(const table *t, size_t k)
{
    return t->notes + k * t->note;
}

/* Calls emit for part k; *acc is its prefix. False: the job ends. */
static bool part_emit(table *t, size_t k, void *acc, uint64_t *note)
{
    fji_chain *c = t->chain;
    size_t lo = part_begin(t, k), hi = part_end(t, k);
    int code = c->emit(c->context, lo, hi, acc, note);

    if (FJI_LIKELY(code == FJ_OK)) {
        fji_job_did(&c->job, hi - lo);
        return true;
    }
    fji_job_fail(&c->job, code);
    return false;
}

/* The value of part k is swapped for carry, which is combined with it. */
static bool part_pass(table *t, size_t k)
{
    fji_chain *c = t->chain;
    unsigned char *value = part_value(t, k);

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
static void table_move(table *t, uint32_t known, uint32_t from)
{
    uint64_t w = word_look(t);
    uint32_t to = known, given;

    do {
        /* [chain.mark] acquire <- release in table_folded(): the value and the note. */
        for (; known < word_next(w) && fji_load_acquire(&t->marks[known]) != 0; known++)
            if (!part_pass(t, known)) return;
        given = word_given(w) == from ? to : word_given(w);
    } while (!word_change(t, &w,
                          word_next(w) * ONE_NEXT + known * ONE_KNOWN + given * ONE_GIVEN +
                              (w & (FIELD * ONE_FOLDS))));
}

/* ---- What a worker does -------------------------------------------------------------------------- */

/* Part k, left of known, is the caller's to emit. */
static bool table_take(table *t, uint32_t k)
{
    uint32_t mark = FOLDED;

    /* relaxed: only who is first; what is there to be read came with the word. */
    return fji_cas_relaxed(&t->marks[k], &mark, (uint32_t)TAKEN);
}

static void table_emit(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char room[FJI_CHAIN_ROOM];
    size_t size = t->chain->size;
    unsigned char *acc = part_value(t, k);

    if (size <= sizeof room) acc = memcpy(room, acc, size);
    (void)part_emit(t, k, acc, part_note(t, k));
}

/* Emits the first part that is folded and not taken, if there is one, of those from given to
 * known in w, and moves given over those that are. */
static void table_sweep(table *t, uint64_t w)
{
    uint32_t k = word_given(w), known = word_known(w);
    bool mine = false;

    while (k < known && !mine) mine = table_take(t, k++);
    /* Parts are taken in other orders too: given may be further by now. */
    while (word_given(w) < k && !word_change(t, &w, w + (k - word_given(w)) * ONE_GIVEN)) continue;
    if (mine) table_emit(t, k - 1);
}

static void table_direct(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char room[FJI_CHAIN_ROOM];
    size_t size = t->chain->size;
    unsigned char *acc = t->carry;

    if (size <= sizeof room) acc = memcpy(room, acc, size);
    if (!part_emit(t, k, acc, NULL)) return;
    if (acc == room) memcpy(t->carry, acc, size);
    fji_store_relaxed(&t->marks[k], (uint32_t)TAKEN); /* relaxed: the word makes it known */
    table_move(t, k + 1, k);
}

/* Part k is folded: says so, and moves on if that is up to the caller. */
static void table_folded(table *t, uint32_t k)
{
    uint64_t w = word_look(t);

    /* [chain.mark] release -> acquire in table_move(): the value and the note. */
    fji_store_release(&t->marks[k], (uint32_t)FOLDED);
    while (!word_change(t, &w, w + ONE_FOLDS)) continue;
    if (word_known(w) == k) table_move(t, k, UINT32_MAX);
}

static void table_fold(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char room[FJI_CHAIN_ROOM];
    fji_chain *c = t->chain;
    bool small = c->size <= sizeof room;
    unsigned char *acc = small ? room : part_value(t, k);

    memcpy(acc, c->identity, c->size);
    int code = c->fold(c->context, part_begin(t, k), part_end(t, k), acc, part_note(t, k));
    if (code != FJ_OK) {
        fji_job_fail(&c->job, code);
        return;
    }
    if (small) memcpy(part_value(t, k), acc, c->size);
    table_folded(t, k);
}

/* The oldest of the caller's own parts, no longer his. */
static uint32_t hand_oldest(hand *h)
{
    uint32_t k = h->own[0];

    memmove(h->own, h->own + 1, --h->owns * sizeof *h->own);
    return k;
}

static void hand_fold(hand *h, table *t, uint32_t k)
{
    if (h->owns == OWN) (void)hand_oldest(h);
    h->own[h->owns++] = k;
    table_fold(t, k);
}

/* Claims something and does it. False: there is nothing that could be begun. */
static bool hand_step(hand *h, table *t)
{
    for (uint64_t w = word_look(t);;) {
        uint32_t next = word_next(w), known = word_known(w);
        bool ahead = next < t->parts && next - known < t->ahead;

        if (h->owns != 0 && h->own[0] < known) {
            uint32_t k = hand_oldest(h);
            if (!table_take(t, k)) continue;
            table_emit(t, k);
        } else if (ahead && (next == known || h->owns < OWN || word_given(w) == known)) {
            if (!word_change(t, &w, w + ONE_NEXT)) continue;
            if (next == known)
                table_direct(t, next);
            else
                hand_fold(h, t, next);
        } else if (word_given(w) < known) {
            table_sweep(t, w);
        } else {
            return false;
        }
        return true;
    }
}

/* ---- Helpers ------------------------------------------------------------------------------------- */

static void table_work(table *t);

static int helper_run(fj_task *task)
{
    helper *h = (helper *)task;

    table_work(h->table);
    fji_store_relaxed(&h->left, 1u); /* relaxed: a hint; the join gives the order */
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
static bool helper_wanted(table *t)
{
    /* relaxed: an estimate, and so is next. */
    if (fji_load_relaxed(&t->helpers) >= t->most) return false;
    if (word_next(fji_load_relaxed(&t->word)) + 2 > t->parts) return false; /* relaxed: same */
    return fji_split_wanted();
}

/* Forks one more if it is wanted, in place of one that has left. Returns how many there are. */
static unsigned helpers_more(table *t, helper *h, unsigned n)
{
    /* relaxed: a hint. */
    while (n != 0 && fji_load_relaxed(&h[n - 1].left) != 0) helper_join(&h[--n]);
    if (n == HELPERS || !helper_wanted(t)) return n;
    (void)fji_add_relaxed(&t->helpers, 1u); /* relaxed: only counted */
    h[n].table = t;
    h[n].left = 0;
    fj_task_init(&h[n].task, helper_run);
    fj_fork(&h[n].task);
    return n + 1;
}

/* Takes part until there is nothing to begin. */
static void table_work(table *t)
{
    helper h[HELPERS];
    hand own = {.owns = 0};
    unsigned n = 0;

    while (fji_job_goes_on(&t->chain->job)) {
        n = helpers_more(t, h, n);
        if (!hand_step(&own, t)) break;
    }
    while (n != 0) helper_join(&h[--n]);
}

/* ---- The table ----------------------------------------------------------------------------------- */

/* n, or what is next to it of what a part may have; at least 1. */
static size_t within(const fji_job *j, size_t n)
{
    if (n > j->max_grain) n = j->max_grain;
    if (n < j->min_grain) n = j->min_grain;
    return n != 0 ? n : 1;
}

/* How many parts a table of this chain may have. */
static size_t parts_most(const fji_chain *c)
{
    size_t fit = TABLE_BYTES / (c->size + c->own);

    return c->job.grain != 0 || fit > PARTS_MOST ? PARTS_MOST
           : fit < PARTS_LEAST                   ? PARTS_LEAST
                                                 : fit;
}

/* Elements of a part, if n are left. */
static size_t part_size(const whole *w, size_t n)
{
    const fji_chain *c = w->chain;
    size_t most = parts_most(c), part = c->job.grain, least = n / most + (n % most != 0);

    if (part == 0) {
        part = c->stride == 0 ? PART_BYTES : PART_BYTES / c->stride;
        if (w->ticks != 0 && part > PART_TICKS * 256 / w->ticks) part = PART_TICKS * 256 / w->ticks;
        part = within(&c->job, part);
    }
    if (part < least) part = least;
    if (c->noted && part > 64 && part < SIZE_MAX - 64) part = (part + 63) / 64 * 64;
    return part;
}

/* One stretch of memory for all; addresses are set from *at on, which is moved. */
static void *carve(size_t *at, unsigned char *base, size_t bytes)
{
    unsigned char *p = base != NULL ? base + *at : NULL;

    *at += (bytes + 15) / 16 * 16;
    return p;
}

static size_t table_layout(table *t, unsigned char *base)
{
    size_t at = 0;

    t->values = carve(&at, base, t->parts * t->room);
    t->spare = carve(&at, base, t->room);
    t->notes = carve(&at, base, t->parts * t->note * sizeof *t->notes);
    t->marks = carve(&at, base, t->parts * sizeof *t->marks);
    return at;
}

/* Sets up *t for what is left. False: it is not worth it, or there is no memory. */
static bool table_make(table *t, whole *w)
{
    fji_chain *c = w->chain;
    size_t n = w->end - w->begin, part = part_size(w, n);

    if (n <= part) return false;
    *t = (table){.chain = c, .begin = w->begin, .end = w->end, .part = part, .carry = w->carry};
    t->parts = (n - 1) / part + 1;
    t->room = c->size + (c->size > FJI_CHAIN_ROOM ? c->own : 0);
    t->note = c->noted ? (part + 63) / 64 : 0;
    w->refused = true;
    if (t->room > PTRDIFF_MAX / 2 / t->parts || t->note > PTRDIFF_MAX / 32 / t->parts) return false;
    unsigned char *base = fji_algo_alloc(table_layout(t, NULL));
    if (base == NULL) return false;
    (void)table_layout(t, base);
    memset(t->marks, 0, t->parts * sizeof *t->marks);
    int workers = fj_pool_parallelism(fj_current_pool());
    t->most = workers > 0 ? (uint32_t)workers : 0;
    t->ahead = AHEAD * (t->most + 1);
    return true;
}

/* ---- Alone --------------------------------------------------------------------------------------- */

/* The time a part of n elements took says how large the next should be. */
static void alone_pace(whole *w, size_t n)
{
    const fji_job *j = &w->chain->job;
    uint64_t now = fji_ticks(), took = now - w->at;

    w->at = now;
    if (took > UINT64_MAX / 512) took = 0; /* the counters of two processors differ */
    w->ticks = (uint64_t)((float)took * 256 / (float)n) + 1;
    if (took >= FJI_PART_TICKS / 2 && took <= 2 * FJI_PART_TICKS) return;
    uint64_t fit = FJI_PART_TICKS * 256 / w->ticks;
    size_t most = n > SIZE_MAX / GROWTH ? SIZE_MAX : n * GROWTH;
    w->part = within(j, fit < most ? (size_t)fit : most);
}

/* Whether what is left is enough for two. */
static bool alone_worth(const whole *w)
{
    size_t n = w->end - w->begin;

    if (w->refused || n <= w->part) return false;
    if (w->chain->job.grain != 0) return true;
    return w->ticks != 0 && n > FJI_WORTH_TICKS * 256 / w->ticks;
}

static bool alone_part(whole *w)
{
    fji_chain *c = w->chain;
    size_t lo = w->begin, n = w->end - lo < w->part ? w->end - lo : w->part;
    int code = c->emit(c->context, lo, lo + n, w->carry, NULL);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&c->job, code);
        return false;
    }
    fji_job_did(&c->job, n);
    w->begin += n;
    if (c->job.grain == 0 && w->begin < w->end) alone_pace(w, n);
    return true;
}

/* Does the rest with others; false: it is not to be had. */
static bool alone_no_more(whole *w)
{
    table t;

    if (!table_make(&t, w)) return false;
    table_work(&t);
    fji_algo_free(t.values);
    w->begin = w->end;
    return true;
}

static int whole_run(fj_task *task)
{
    whole *w = (whole *)task;
    fji_chain *c = w->chain;

    w->part = c->job.grain != 0 ? c->job.grain : within(&c->job, 1);
    w->at = c->job.grain != 0 ? 0 : fji_ticks();
    while (w->begin < w->end && fji_job_goes_on(&c->job)) {
        if (alone_worth(w) && fji_split_wanted() && alone_no_more(w)) break;
        if (!alone_part(w)) break;
    }
    return FJ_OK;
}

int fji_chain_run(fji_chain *c, const fj_algo_options *how, size_t begin, size_t end, void *total)
{
    _Alignas(max_align_t) unsigned char room[FJI_CHAIN_ROOM];
    whole w = {.chain = c, .begin = begin, .end = end, .carry = room};
    int code = FJ_OK;

    if (c->size > sizeof room) w.carry = fji_algo_alloc(c->size + c->own);
    if (w.carry == NULL) return FJ_ENOMEM;
    memcpy(w.carry, c->identity, c->size);
    fj_task_init(&w.task, whole_run);
    if (begin < end) code = fji_job_run(&c->job, how, &w.task);
    if (code == FJ_OK && total != NULL) memcpy(total, w.carry, c->size);
    if (w.carry != room) fji_algo_free(w.carry);
    return code;
}
