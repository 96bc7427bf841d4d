/* SPDX-License-Identifier: MIT */
/*
 * prefix.c - loops in which each chunk needs the combined value of all chunks left of it
 *
 * prefix.h explains prefix, fold, emit and note.
 *
 * The problem: the prefix of a chunk is known only when all chunks left of it are folded or
 * emitted. A worker that waited for the prefix would be idle.
 *
 * The idea: a worker never waits for a prefix. If there is a chunk whose prefix is known, the
 * worker emits that chunk. If not, the worker folds the next chunk, because the prefixes of the
 * chunks right of it need that fold. The chunk is emitted later, when its prefix is known.
 *
 * Sequential phase. The calling thread begins without helpers and emits one chunk after the other:
 * one pass over the data, and no memory. When there is demand, and the rest of the range takes long
 * enough, the calling thread divides the rest into chunks and allocates a table for them. From then
 * on the calling thread is one of the participants that work on the table. The other participants
 * are helpers: tasks that participants fork when there is demand. If there is no memory for the
 * table, never any demand, or too little left to divide, the sequential phase lasts until the end.
 *
 * The table has for each chunk a value, a state and, in a loop with notes, a note. The value is the
 * fold of the chunk, and later its prefix. The table also has one carry, and one word with four
 * fields: `claimed`, `known`, `taken` and `folds`. The carry is the prefix of chunk `known`; only
 * while a participant advances `known` is it the prefix of a later chunk. Participants change the
 * word only by compare-and-swap.
 *
 *     claimed  each chunk below this was claimed by a participant, in order to fold it or to emit
 *              it without a fold
 *     known    the prefix of each chunk below this is known: if the chunk was folded, its value is
 *              the prefix now
 *     taken    each chunk below this was taken by a participant, in order to emit it
 *     folds    how many folds were published so far; changes the word at each of them
 *
 *     0 <= taken <= known <= claimed <= chunks
 *
 *     chunks  |...emitted, being emitted...|..prefix known..|..folded, being folded..|...free...|
 *                                          taken            known                    claimed
 *
 * The state of a chunk is 0, FOLDED or TAKEN. The state of a chunk below `known` is FOLDED or
 * TAKEN. To take a chunk is to change its state from FOLDED to TAKEN; the participant that does
 * this emits the chunk. The participant that has claimed chunk `known` owns the carry, until it has
 * moved `known` behind that chunk. Only the owner reads and writes the carry.
 *
 * A participant repeats the first of these steps that is possible:
 *
 *   1. emit    Possible if one of the last KEEP chunks that the participant has folded itself is
 *              below `known` and not taken. The participant takes this chunk and emits it, while
 *              the data of the chunk is still in the cache of the processor.
 *   2. direct  Possible if known == claimed < chunks. The participant claims chunk `claimed`, and
 *              thereby owns the carry. It emits the chunk without a fold, which changes the carry
 *              to the prefix of the next chunk. It sets the state of the chunk to TAKEN, and
 *              advances `known` from the next chunk on.
 *   3. fold    Possible if known < claimed < chunks, claimed - known < max_ahead, and the
 *              participant remembers fewer than KEEP chunks that it has folded and that are not
 *              below `known` yet. The participant claims chunk `claimed`, folds it, sets its state
 *              to FOLDED, and adds 1 to `folds`. If the chunk is chunk `known` at that moment, the
 *              participant owns the carry and advances `known` from this chunk on.
 *   4. sweep   Possible if taken < known. The participant takes and emits the first chunk from
 *              `taken` on that no participant has taken, if there is one below `known`. It moves
 *              `taken` over the chunks that are taken.
 *   5. fold    As step 3, if the participant remembers KEEP chunks. It forgets the oldest of them,
 *              which a participant will emit in a sweep.
 *   6. leave   No other step is possible: taken == known, and no chunk may be claimed. The
 *              participant returns. The chunks that are left become possible steps when another
 *              participant ends its fold or direct emit, or advances `known`. That participant then
 *              continues with them, and forks new helpers if there is demand.
 *
 *   The owner of the carry advances `known` from a chunk on as follows. It goes over the chunks up
 *   to the first one that is not claimed or whose state is 0. At each chunk it combines the carry
 *   with the value of the chunk, which is the fold, and stores the old carry as the new value of
 *   the chunk, which is the prefix. Then it stores the index of the chunk at which it stopped as
 *   `known`. If the word has changed meanwhile, it does not store `known`, but continues
 *   with the chunk at which it stopped.
 *
 * A single participant therefore emits every chunk directly, in one pass over the data. Two
 * participants mostly emit the chunks that each has folded itself, from the cache. No participant
 * waits for another one, except to join a helper that it has forked. max_ahead limits how far
 * participants fold ahead of `known`, because the data of a chunk that was folded long ago is no
 * longer in a cache. If the system suspends the participant that folds chunk `known`, the others
 * leave when they have reached that limit.
 *
 * Why the carry has one owner. Only the owner of the carry changes `known`. The new `known` is a
 * chunk that is not claimed, or a claimed chunk whose state the owner has seen as 0. In the second
 * case the fold of the chunk is not yet counted in `folds` when the owner stores `known`, because
 * the count would have changed the word. When the participant that folds the chunk counts its fold,
 * it finds that the chunk is chunk `known`, and is the next owner. In the first case the next owner
 * is the participant that claims the chunk and emits it directly. It may also happen that the owner
 * sees the state FOLDED before the fold is counted, and moves `known` behind the chunk. If the
 * count follows after that, the participant that counts finds its chunk below `known` and does not
 * become an owner. If the count comes before that, the store of `known` fails, and the participant
 * finds its chunk above the old `known`.
 *
 * Why each chunk is emitted exactly once, and after its fold. `known` moves over a chunk only if
 * the chunk was folded, or emitted directly with the state TAKEN. A participant takes a chunk only
 * if the chunk is below `known`, by a change of its state from FOLDED to TAKEN. This succeeds for
 * one participant, and never for a chunk that was emitted directly.
 *
 * Why no chunk is forgotten. `taken` moves only over chunks that are taken. While known < claimed,
 * some participant owns the carry, and it will move `known`. So when no participant folds, emits
 * directly or advances `known` any more, known == claimed. The participant that stored `known` last
 * has loaded the word after that. It left only because taken == known and claimed == chunks, since
 * claimed - known is 0, below the limit. All chunks are taken then, and the caller returns only
 * after it has joined the participants that emit them.
 *
 * An error or a cancellation ends the job. Every participant tests the job before each step, and
 * leaves if the job has ended. The chunks that are left are then neither folded nor emitted.
 *
 * Edges             from                                 to                       carries
 *   prefix.word     every CAS of the word                every load and CAS       values, carry,
 *                                                                                 what was emitted
 *   prefix.state    release store, table_publish_fold()  acquire, table_advance() value and note
 */
#include "prefix.h"

#include <string.h>

#include "plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    CHUNKS_MAX = 16384, /* the most chunks of a table */
    HELPERS = 2, /* the most tasks that one participant has forked and not joined, at a time */
    AHEAD = 4,   /* for each participant that there can be, this many chunks may be claimed whose
                  * prefix is not known yet */
    KEEP = 2,    /* the most folded chunks that a participant remembers, to emit them itself */
    CHUNK_BYTES = 1 << 17, /* without a grain: a chunk should access at most this many bytes, so
                            * that they fit into a cache */
    TABLE_BYTES = 1 << 24, /* without a grain: limit for the bytes of all values of a table, so that
                            * large values allow fewer chunks */
    CHUNKS_MIN = 64,       /* but a table may have this many chunks with values of any size */
    GROWTH = 16, /* a chunk of the sequential phase is at most 16 times as large as the last one,
                  * unless min_grain of the options is larger */
    BITS = 15,   /* bits of each field of table.word, for numbers from 0 to CHUNKS_MAX */
};

/* Time in ticks, which are about nanoseconds. If the options set no grain, the size of a chunk of
 * the table is chosen such that the chunk takes at most about this time, unless min_grain or
 * chunks_max() requires larger chunks. */
#define TABLE_CHUNK_TICKS (2 * FJI_CHUNK_TICKS)

typedef struct table {
    _Alignas(FJI_CACHE_PAIR) uint64_t word; /* the fields claimed, known, taken and folds */
    uint32_t helpers; /* number of helpers that all participants have forked and not yet joined */
    _Alignas(FJI_CACHE_PAIR) fji_prefix_loop *loop;
    size_t begin, end;     /* the elements begin <= i < end are divided into chunks */
    size_t chunk;          /* elements of a chunk; the last one may have fewer */
    size_t chunks;         /* number of chunks */
    uint32_t max_helpers;  /* limit for `helpers`: the parallelism of the pool. Participants that
                            * fork at the same time may exceed it */
    uint32_t max_ahead;    /* the most chunks that may be claimed while their prefix is not known */
    size_t stride;         /* bytes from one value to the next: a value, and what fold and emit use
                            * behind it */
    size_t note_words;     /* 64-bit words of the note of a chunk; 0: the loop has no notes */
    unsigned char *carry;  /* the combined value of all elements left of chunk `known`, the first
                            * chunk whose prefix is not stored yet. Only the participant that has
                            * claimed this chunk uses it */
    unsigned char *spare;  /* scratch memory for one value, for the participant that uses `carry` */
    unsigned char *values; /* of each chunk: at first the combined value of its elements; when
                            * `known` is above the chunk, that of all elements left of it */
    uint64_t *notes;  /* of each chunk, if the loop has notes: one bit for each element, stored by
                       * the fold function */
    uint32_t *states; /* of each chunk: 0, FOLDED or TAKEN */
} table;

/* States of a chunk. 0: neither of these. FOLDED: its elements are combined, and its results are
 * not written. TAKEN: a participant writes its results, or has written them. */
enum { FOLDED = 1, TAKEN = 2 };

/* What a participant remembers: the indices of the last nfolded chunks that it has folded itself
 * and that it may still emit, the oldest first. */
typedef struct participant {
    uint32_t folded[KEEP];
    unsigned nfolded;
} participant;

/* A forked task that is a participant. */
typedef struct helper {
    fj_task task;
    table *table;
    uint32_t leaving; /* 1: the helper has found no more work, or the job has ended, and the helper
                       * is about to return */
} helper;

/* The call. begin <= i < end is the rest of the range, which is not processed yet. */
typedef struct call {
    fj_task task;
    fji_prefix_loop *loop;
    size_t begin, end;
    unsigned char *carry;       /* the combined value of all elements left of `begin` */
    size_t chunk;               /* elements of the next chunk of the sequential phase */
    uint64_t ticks_per_element; /* about 256 times the ticks for one element of the last chunk; 0:
                                 * not measured yet, or the options set a grain */
    uint64_t last_end;          /* the tick counter when the last chunk ended, or when the call
                                 * began; not used if the options set a grain */
    bool table_failed;          /* true: a table was tried, but was too large or there was no memory
                                 * for it; no new attempt is made. A successful attempt also sets
                                 * it, but it is not read after that */
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
    /* [prefix.word] acquire <- acq_rel in word_cas(): the values, the states and the carry that
     * another participant wrote before its CAS are visible. */
    return fji_load_acquire(&t->word);
}

/* Changes t->word from *w to `to` and returns true. If t->word is not *w, changes nothing, stores
 * t->word in *w and returns false. */
static bool word_cas(table *t, uint64_t *w, uint64_t to)
{
    FJI_CHAOS_POINT();
    /* [prefix.word] acq_rel <-> the same CAS of other participants, and -> acquire in word_load():
     * publishes everything that this participant wrote before. */
    return fji_cas_acq_rel_64(&t->word, w, to);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

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

/* Emits chunk k, whose prefix is *acc: the function `emit` of the loop writes its results. If the
 * chunk was folded before, `note` is its note, which `emit` reads if the loop has notes. Otherwise
 * `note` is NULL, and `emit` changes *acc to the prefix of chunk k + 1. Returns true, or false if
 * `emit` fails, which ends the job. */
static bool chunk_emit(table *t, size_t k, void *acc, uint64_t *note)
{
    fji_prefix_loop *loop = t->loop;
    size_t lo = chunk_begin(t, k), hi = chunk_end(t, k);
    int code = loop->emit(loop->context, lo, hi, acc, note);

    if (FJI_LIKELY(code == FJ_OK)) {
        fji_job_add_progress(&loop->job, hi - lo);
        return true;
    }
    fji_job_fail(&loop->job, code);
    return false;
}

/* t->carry is the combined value of all elements left of chunk k, and the value of chunk k is that
 * of its own elements. Stores the carry as the new value of chunk k, and combines the carry with
 * the old value, so that it includes the elements of chunk k. Returns true, or false if `combine`
 * fails, which ends the job. */
static bool chunk_pass_carry(table *t, size_t k)
{
    fji_prefix_loop *loop = t->loop;
    unsigned char *value = chunk_value(t, k);

    memcpy(t->spare, t->carry, loop->size);
    int code = loop->combine(t->carry, value, loop->arg);
    if (code != FJ_OK) {
        fji_job_fail(&loop->job, code);
        return false;
    }
    memcpy(value, t->spare, loop->size);
    return true;
}

/* Called by the participant that alone may use t->carry at this moment (see the head of this file).
 * Argument `known`: the chunk whose prefix the carry is now. Moves the field `known` of t->word to
 * this chunk, and from there over the folded chunks up to the first chunk that is not folded. If a
 * combination fails, the job ends and t->word does not change.
 * Argument `from`: the chunk before that one if the caller has emitted it directly, without a fold,
 * else UINT32_MAX. The field `taken` of t->word may move over the emitted chunk only if all chunks
 * before it are taken too. So if `taken` is `from`, the function adds 1 to it; otherwise `taken`
 * does not change. */
static void table_advance(table *t, uint32_t known, uint32_t from)
{
    uint64_t w = word_load(t);
    uint32_t to = known, taken;

    do {
        /* [prefix.state] acquire <- release in table_publish_fold(): the value and the note of
         * chunk `known`. */
        for (; known < word_claimed(w) && fji_load_acquire(&t->states[known]) != 0; known++)
            if (!chunk_pass_carry(t, known)) return;
        taken = word_taken(w) == from ? to : word_taken(w);
    } while (!word_cas(t, &w,
                       word_claimed(w) * ONE_CLAIMED + known * ONE_KNOWN + taken * ONE_TAKEN +
                           (w & (FIELD * ONE_FOLDS))));
}

/* ---- Steps of a participant ------------------------------------------------------------------ */

/* Tries to take chunk k, whose prefix is known: k is below the field `known` of t->word. Returns
 * true if the calling participant has taken the chunk and has to emit it, false if the chunk was
 * already taken. */
static bool table_take(table *t, uint32_t k)
{
    uint32_t state = FOLDED;

    /* relaxed: only decides which participant takes the chunk; the participant has loaded the word
     * before, which made the value and the note of the chunk visible. */
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

/* Takes the first chunk k with taken <= k < known that no participant has taken, if there is one,
 * and emits it. `taken` and `known` are the fields of w, the value of t->word that the caller has
 * loaded. Moves the field `taken` of t->word over all chunks that were found taken, and over chunk
 * k. */
static void table_sweep(table *t, uint64_t w)
{
    uint32_t k = word_taken(w), known = word_known(w);
    bool found = false;

    while (k < known && !found) found = table_take(t, k++);
    /* Another participant may have moved `taken` to k or further meanwhile. */
    while (word_taken(w) < k && !word_cas(t, &w, w + (k - word_taken(w)) * ONE_TAKEN)) continue;
    if (found) table_emit(t, k - 1);
}

/* Emits chunk k without a fold. The calling participant has claimed the chunk while k was the field
 * `known` of t->word, so that it alone may use t->carry, which is the prefix of chunk k. Then moves
 * `known` over chunk k. If the emit fails, the job ends and t->word does not change. */
static void table_direct(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    size_t size = t->loop->size;
    unsigned char *acc = t->carry;

    if (size <= sizeof stack) acc = memcpy(stack, acc, size);
    if (!chunk_emit(t, k, acc, NULL)) return;
    if (acc == stack) memcpy(t->carry, acc, size);
    /* relaxed: the CAS of the word in table_advance() publishes the state. */
    fji_store_relaxed(&t->states[k], (uint32_t)TAKEN);
    table_advance(t, k + 1, k);
}

/* Called by the participant that has folded chunk k. Sets the state of the chunk to FOLDED and adds
 * 1 to the field `folds` of t->word. If the field `known` of t->word is k then, t->carry is the
 * prefix of chunk k, and this participant alone may use it: it moves `known` over chunk k and the
 * folded chunks that follow it. */
static void table_publish_fold(table *t, uint32_t k)
{
    uint64_t w = word_load(t);

    /* [prefix.state] release -> acquire in table_advance(): the value and the note of chunk k. */
    fji_store_release(&t->states[k], (uint32_t)FOLDED);
    while (!word_cas(t, &w, w + ONE_FOLDS)) continue;
    if (word_known(w) == k) table_advance(t, k, UINT32_MAX);
}

static void table_fold(table *t, uint32_t k)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    fji_prefix_loop *loop = t->loop;
    bool small = loop->size <= sizeof stack;
    unsigned char *acc = small ? stack : chunk_value(t, k);

    memcpy(acc, loop->identity, loop->size);
    int code = loop->fold(loop->context, chunk_begin(t, k), chunk_end(t, k), acc, chunk_note(t, k));
    if (code != FJ_OK) {
        fji_job_fail(&loop->job, code);
        return;
    }
    if (small) memcpy(chunk_value(t, k), acc, loop->size);
    table_publish_fold(t, k);
}

/* Removes the oldest chunk from the chunks that the participant remembers. Returns its index. */
static uint32_t participant_forget_oldest(participant *p)
{
    uint32_t k = p->folded[0];

    memmove(p->folded, p->folded + 1, --p->nfolded * sizeof *p->folded);
    return k;
}

static void participant_fold(participant *p, table *t, uint32_t k)
{
    if (p->nfolded == KEEP) (void)participant_forget_oldest(p);
    p->folded[p->nfolded++] = k;
    table_fold(t, k);
}

/* Does one step: the first of the steps 1 to 5 at the head of this file that is possible. Returns
 * true, or false if none of them is possible. */
static bool participant_step(participant *p, table *t)
{
    for (uint64_t w = word_load(t);;) {
        uint32_t claimed = word_claimed(w), known = word_known(w);
        bool can_claim = claimed < t->chunks && claimed - known < t->max_ahead;

        if (p->nfolded != 0 && p->folded[0] < known) {
            uint32_t k = participant_forget_oldest(p);
            if (!table_take(t, k)) continue;
            table_emit(t, k);
        } else if (can_claim && (claimed == known || p->nfolded < KEEP || word_taken(w) == known)) {
            if (!word_cas(t, &w, w + ONE_CLAIMED)) continue;
            if (claimed == known)
                table_direct(t, claimed);
            else
                participant_fold(p, t, claimed);
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
    /* relaxed: only a hint. The participant that has forked h may join h now (helpers_fork()),
     * because the join will not take long. */
    fji_store_relaxed(&h->leaving, 1u);
    return FJ_OK;
}

/* Joins the helper h: takes it back if it is still in the queue, otherwise waits until it has
 * returned. Subtracts it from the number of helpers. */
static void helper_join(helper *h)
{
    /* The code of the task is ignored: helper_run() always returns FJ_OK. If the helper was not
     * run, for example because the pool has stopped, it has claimed no chunk. */
    if (!fj_unfork(&h->task)) (void)fj_join_stolen(&h->task);
    (void)fji_add_relaxed(&h->table->helpers, (uint32_t)-1); /* relaxed: only a count */
}

/* Returns whether a participant should fork a helper now: the limit for helpers is not reached, at
 * least two chunks are not claimed, and there is demand. */
static bool helper_has_demand(table *t)
{
    /* relaxed: the decision may be based on old values. */
    uint32_t helpers = fji_load_relaxed(&t->helpers);
    uint32_t claimed = word_claimed(fji_load_relaxed(&t->word));

    return helpers < t->max_helpers && claimed + 2 <= t->chunks && fji_has_demand();
}

/* The first n entries of h are the helpers that the calling participant has forked and not joined,
 * the newest one last. Joins the newest ones as long as they are about to return. Then forks one
 * more if there are fewer than HELPERS of them and helper_has_demand() returns true. Returns the
 * new number of helpers in h. */
static unsigned helpers_fork(table *t, helper *h, unsigned n)
{
    /* relaxed: if this thread sees an old value, it only joins the helper later. */
    while (n != 0 && fji_load_relaxed(&h[n - 1].leaving) != 0) helper_join(&h[--n]);
    if (n == HELPERS || !helper_has_demand(t)) return n;
    (void)fji_add_relaxed(&t->helpers, 1u); /* relaxed: only a count */
    h[n].table = t;
    h[n].leaving = 0;
    fj_task_init(&h[n].task, helper_run);
    fj_fork(&h[n].task);
    return n + 1;
}

/* Takes part in the work on the table until no step is possible or the job has ended. Forks helpers
 * if there is demand, and joins them before it returns. */
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

/* Returns the most chunks that a table may have: CHUNKS_MAX. If the options set no grain, fewer if
 * the values would need more than TABLE_BYTES, but at least CHUNKS_MIN. */
static size_t chunks_max(const fji_prefix_loop *loop)
{
    size_t fit = TABLE_BYTES / (loop->size + loop->extra);

    return loop->job.grain != 0 || fit > CHUNKS_MAX ? CHUNKS_MAX
           : fit < CHUNKS_MIN                       ? CHUNKS_MIN
                                                    : fit;
}

/* Returns the number of elements in a chunk of a table for n elements, the rest of the range. It is
 * the grain if the options set one. Otherwise a chunk accesses at most CHUNK_BYTES and takes at
 * most about TABLE_CHUNK_TICKS, within min_grain and max_grain. In both cases chunks are larger if
 * the table would have more than chunks_max() of them. In a loop with notes, a size above 64 is
 * rounded up to a multiple of 64. */
static size_t chunk_size(const call *c, size_t n)
{
    const fji_prefix_loop *loop = c->loop;
    size_t max = chunks_max(loop), chunk = loop->job.grain, min = fji_div_up(n, max);

    if (chunk == 0) {
        chunk = loop->stride == 0 ? CHUNK_BYTES : CHUNK_BYTES / loop->stride;
        if (c->ticks_per_element != 0 && chunk > TABLE_CHUNK_TICKS * 256 / c->ticks_per_element)
            chunk = TABLE_CHUNK_TICKS * 256 / c->ticks_per_element;
        chunk = fji_job_chunk_size(&loop->job, chunk);
    }
    if (chunk < min) chunk = min;
    if (loop->has_notes && chunk > 64 && chunk < SIZE_MAX - 64) chunk = (chunk + 63) / 64 * 64;
    return chunk;
}

/* Reserves `bytes` bytes of the memory block `base`: returns the address at *offset, and adds
 * `bytes`, rounded up to a multiple of 16, to *offset. If `base` is NULL, returns NULL and only
 * adds. */
static void *carve(size_t *offset, unsigned char *base, size_t bytes)
{
    unsigned char *p = base != NULL ? base + *offset : NULL;

    *offset += (bytes + 15) / 16 * 16;
    return p;
}

/* Sets the pointers to the arrays of *t, which are all in the memory block `base`. Returns the size
 * of the block in bytes. If `base` is NULL, only computes the size. */
static size_t table_layout(table *t, unsigned char *base)
{
    size_t offset = 0;

    t->values = carve(&offset, base, t->chunks * t->stride);
    t->spare = carve(&offset, base, t->stride);
    t->notes = carve(&offset, base, t->chunks * t->note_words * sizeof *t->notes);
    t->states = carve(&offset, base, t->chunks * sizeof *t->states);
    return offset;
}

/* Sets up *t for the rest of the range, c->begin <= i < c->end, which the sequential phase has not
 * processed, allocates its arrays, and returns true. Returns false if the rest is a single chunk.
 * Also returns false if the arrays would be too large or there is no memory for them. Sets
 * c->table_failed to true unless the rest is a single chunk, even if it returns true; but after a
 * successful call c->table_failed is not read. */
static bool table_make(table *t, call *c)
{
    fji_prefix_loop *loop = c->loop;
    size_t n = c->end - c->begin, chunk = chunk_size(c, n);

    if (n <= chunk) return false;
    *t = (table){.loop = loop, .begin = c->begin, .end = c->end, .chunk = chunk, .carry = c->carry};
    t->chunks = (n - 1) / chunk + 1;
    t->stride = loop->size + (loop->size > FJI_PREFIX_INLINE_BYTES ? loop->extra : 0);
    t->note_words = loop->has_notes ? (chunk + 63) / 64 : 0;
    c->table_failed = true;
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

/* ---- The sequential phase -------------------------------------------------------------------- */

/* Called after a chunk of n elements in the sequential phase, if the options set no grain: measures
 * its time. If this was not about FJI_CHUNK_TICKS, chooses the size of the next chunk such that it
 * takes about that time, but has at most GROWTH * n elements, and is within min_grain and
 * max_grain. */
static void sequential_timing(call *c, size_t n)
{
    const fji_job *j = &c->loop->job;
    uint64_t now = fji_ticks(), elapsed = now - c->last_end;

    c->last_end = now;
    /* If the thread has moved to a processor whose counter is behind, the time is negative. */
    if (elapsed > UINT64_MAX / 512) elapsed = 0;
    c->ticks_per_element = (uint64_t)((float)elapsed * 256 / (float)n) + 1;
    if (elapsed >= FJI_CHUNK_TICKS / 2 && elapsed <= 2 * FJI_CHUNK_TICKS) return;
    uint64_t fit = FJI_CHUNK_TICKS * 256 / c->ticks_per_element;
    size_t max = n > SIZE_MAX / GROWTH ? SIZE_MAX : n * GROWTH;
    c->chunk = fji_job_chunk_size(j, fit < max ? (size_t)fit : max);
}

/* Returns whether the rest of the range is long enough for more than one participant: it is more
 * than one chunk and, if the options set no grain, takes longer than FJI_FORK_MIN_TICKS. Returns
 * false if no chunk was measured yet and the options set no grain, or if there was no memory for a
 * table before. */
static bool table_is_worthwhile(const call *c)
{
    size_t n = c->end - c->begin;

    if (c->table_failed || n <= c->chunk) return false;
    if (c->loop->job.grain != 0) return true;
    return c->ticks_per_element != 0 && n > FJI_FORK_MIN_TICKS * 256 / c->ticks_per_element;
}

/* Emits the next chunk of the sequential phase. Returns true, or false if `emit` fails, which ends
 * the job. */
static bool sequential_chunk(call *c)
{
    fji_prefix_loop *loop = c->loop;
    size_t lo = c->begin, n = c->end - lo < c->chunk ? c->end - lo : c->chunk;
    int code = loop->emit(loop->context, lo, lo + n, c->carry, NULL);

    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&loop->job, code);
        return false;
    }
    fji_job_add_progress(&loop->job, n);
    c->begin += n;
    if (loop->job.grain == 0 && c->begin < c->end) sequential_timing(c, n);
    return true;
}

/* Processes the rest of the range with a table, until all of it is processed or the job ends, and
 * returns true. Returns false if table_make() does; nothing is processed then. */
static bool table_run(call *c)
{
    table t;

    if (!table_make(&t, c)) return false;
    table_work(&t);
    fji_algo_free(t.values);
    c->begin = c->end;
    return true;
}

static int call_run(fj_task *task)
{
    call *c = (call *)task;
    fji_prefix_loop *loop = c->loop;

    c->chunk = fji_job_chunk_size(&loop->job, 1);
    c->last_end = loop->job.grain != 0 ? 0 : fji_ticks();
    while (c->begin < c->end && fji_job_should_continue(&loop->job)) {
        if (table_is_worthwhile(c) && fji_has_demand() && table_run(c)) break;
        if (!sequential_chunk(c)) break;
    }
    return FJ_OK;
}

int fji_prefix_run(fji_prefix_loop *loop, const fj_algo_options *how, size_t begin, size_t end,
                   void *total)
{
    _Alignas(max_align_t) unsigned char stack[FJI_PREFIX_INLINE_BYTES];
    call c = {.loop = loop, .begin = begin, .end = end, .carry = stack};
    int code = FJ_OK;

    if (loop->size > sizeof stack) c.carry = fji_algo_alloc_for(how, loop->size + loop->extra);
    if (c.carry == NULL) return FJ_ENOMEM;
    memcpy(c.carry, loop->identity, loop->size);
    fj_task_init(&c.task, call_run);
    if (begin < end) code = fji_job_run(&loop->job, how, &c.task);
    if (code == FJ_OK && total != NULL) memcpy(total, c.carry, loop->size);
    if (c.carry != stack) fji_algo_free(c.carry);
    return code;
}
