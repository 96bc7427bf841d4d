/* SPDX-License-Identifier: MIT */
/*
 * for_each.c - a loop over a work list that grows while it is processed
 *
 * The list is a set of chunks. A chunk is a child of one group, so the call ends when the group
 * ends. Each chunk is in one of these places:
 *
 *     queued    in a queue of the pool, as a child of the group
 *     `in`      of the feeder of a worker: the worker calls the body for its items, the last first
 *     `out`     of the same feeder: the bodies add items to it
 *     free      `spare` of the same feeder, or in the list `spares`
 *
 *     out --(full, or another worker has nothing to do)--> queued --(a worker takes it)--> in
 *     out --(in is empty)--> in --(all items done)--> free --(an item is added)--> out
 *
 * So a worker moves its own items from `out` to `in` without a queue, as long as each of its chunks
 * is done before the next one is full. If its own queue has no task that another worker could steal
 * (each_has_demand()), the worker queues its `out`, or divides its `in`: the first half of the items
 * goes into a new chunk.
 *
 * The items of the first chunk are in the caller's array, and so are those of its halves. The items
 * of the other chunks are in the memory of the chunk. `at` is where the items begin.
 *
 * Only the worker that has a chunk touches the chunk. The queue publishes it. The lock protects
 * `spares` and `all`.
 */
#include <forkjoin/for_each.h>
#include <forkjoin/group.h>
#include <string.h>

#include "algo/job.h"
#include "plat/atomic.h"
#include "plat/memory.h"
#include "plat/plat.h"
#include "plat/ticks.h"

#define CHUNK_BYTES ((size_t)1024)
#define CHUNK_ITEMS ((size_t)64)
#define CHUNK_BYTES_MAX ((size_t)1 << 30)

/* After each turn a worker checks whether the call is cancelled, whether thieves need items, and how
 * long the turn took. A turn has one item at first. If it took less than TURN_TICKS, which are about
 * nanoseconds, the next one has twice as many items, at most TURN_MAX; if it took more, only one. */
#define TURN_TICKS ((uint64_t)500)
#define TURN_MAX ((size_t)32)

typedef struct chunk {
    fj_group_task task;
    struct each *each;
    struct chunk *next;      /* in the list `spares` */
    struct chunk *allocated; /* in the list `all` */
    char *at;                /* the items that are left */
    size_t n;                /* how many items are left */
    bool borrowed;           /* the items are in the caller's array */
    _Alignas(16) char own[]; /* space for `capacity` items; not in the first chunk of a call */
} chunk;

/* One call of fj_for_each(). */
typedef struct each {
    fj_group group;
    fji_job job;
    fj_each_fn *body;
    void *arg;
    size_t size;     /* of an item */
    size_t capacity; /* items of a chunk */
    chunk *first;    /* the first chunk, on the stack of the caller */
    fji_lock lock;
    chunk *spares; /* free chunks */
    chunk *all;    /* all chunks that were allocated */
} each;

struct fj_feeder {
    each *each;
    chunk *in, *out; /* `out` is NULL until an item is added */
    chunk *spare;    /* a free chunk, or NULL */
    size_t added;    /* items that were added, and that the progress does not count yet */
    size_t done;     /* items that are done, and that the progress does not count yet */
    size_t turn;     /* how many items are processed between two looks at the clock; see TURN_MAX */
    uint32_t generation; /* the fork generation in which the chunk was taken */
};

/* ---- Chunks ---------------------------------------------------------------------------------- */

static int chunk_run(fj_group_task *t);

/* Allocates a chunk. Returns NULL if there is no memory. */
static FJI_COLD chunk *each_add_chunk(each *e)
{
    chunk *c = fji_pool_block(fji_root_pool(&e->group.root), FJI_MEMORY_OTHER,
                              sizeof *c + e->capacity * e->size);

    if (c == NULL) return NULL;
    fj_group_task_init(&c->task, chunk_run);
    c->each = e;
    fji_lock_take(&e->lock);
    c->allocated = e->all;
    e->all = c;
    fji_lock_drop(&e->lock);
    return c;
}

/* Returns whether this is a child process that a body of the chunk has made by fork(). There the list
 * must not be used: threads that do not exist may have its lock and its memory (pool/atfork.c). Asked
 * after each turn, so the body may be called there for the other items of the turn. */
static bool feeder_is_foreign(const fj_feeder *f)
{
    return FJI_UNLIKELY(f->generation != fji_generation());
}

/* Returns a chunk without items, or NULL if there is no memory, or in a child process. */
static chunk *feeder_new_chunk(fj_feeder *f)
{
    each *e = f->each;
    chunk *c = f->spare;

    if (feeder_is_foreign(f)) return NULL;
    f->spare = NULL;
    if (c == NULL) {
        fji_lock_take(&e->lock);
        c = e->spares;
        if (c != NULL) e->spares = c->next;
        fji_lock_drop(&e->lock);
    }
    if (c == NULL) c = each_add_chunk(e);
    if (c == NULL) return NULL;
    c->at = c->own;
    c->n = 0;
    c->borrowed = false;
    return c;
}

/* Puts the chunk c, which may be NULL, into the list of free chunks. The first chunk of a call has
 * no space for items, so it is not used again. */
static void each_free_chunk(each *e, chunk *c)
{
    if (c == NULL || c == e->first) return;
    fji_lock_take(&e->lock);
    c->next = e->spares;
    e->spares = c;
    fji_lock_drop(&e->lock);
}

/* Queues the chunk c. The caller is a child of the group, so this cannot fail. */
static void each_queue(each *e, chunk *c)
{
    int err = fj_group_run(&e->group, &c->task);
    (void)err;
}

/* Queues the first half of the items of `in`, unless there is no memory for another chunk. Items in
 * the caller's array are not copied. */
static void feeder_divide(fj_feeder *f)
{
    each *e = f->each;
    chunk *in = f->in, *half = feeder_new_chunk(f);
    size_t n = in->n / 2, bytes = n * e->size;

    if (half == NULL) return;
    if (in->borrowed)
        half->at = in->at;
    else
        memcpy(half->own, in->at, bytes);
    half->borrowed = in->borrowed;
    half->n = n;
    in->at += bytes;
    in->n -= n;
    each_queue(e, half);
}

/* Queues `out`, so that another worker can take it. */
static void feeder_flush(fj_feeder *f)
{
    each_queue(f->each, f->out);
    f->out = NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Returns whether the call should continue: neither the group nor the calling task is cancelled. */
static bool each_continues(const each *e)
{
    bool by_caller = e->job.caller != NULL && fj_token_is_cancelled(e->job.caller);

    return FJI_LIKELY(!by_caller && !fj_is_cancelled());
}

/* Returns whether the queue of the calling worker has no task for thieves. fj_worker_surplus() would
 * also count the workers that are idle, but its time is proportional to the length of the queue. */
static bool each_has_demand(void)
{
    return fj_peek_local() == NULL;
}

/* Returns whether a part of `in` should be queued: it has more items than the grain, or more than
 * one if there is no grain, and thieves find no other task. */
static bool feeder_should_divide(const fj_feeder *f)
{
    size_t grain = f->each->job.grain;

    return f->in->n > (grain != 0 ? grain : 1) && each_has_demand();
}

/* Calls the body for the last n items of `in`. Returns FJ_OK or the code of a body. */
static int feeder_turn(fj_feeder *f, size_t n)
{
    const each *e = f->each;
    chunk *in = f->in;
    char *item = in->at + in->n * e->size;

    in->n -= n;
    for (; n != 0; n--) {
        item -= e->size;
        int code = e->body(item, f, e->arg);
        if (FJI_UNLIKELY(code != FJ_OK)) return code;
        f->done++;
    }
    return FJ_OK;
}

/* Calls the body for all items of `in`. Returns FJ_OK, the code of a body, or FJ_ECANCELED. */
static int feeder_run(fj_feeder *f)
{
    chunk *in = f->in;
    uint64_t begin = fji_ticks();

    while (in->n != 0) {
        if (!each_continues(f->each)) return FJ_ECANCELED;
        if (feeder_should_divide(f)) feeder_divide(f);
        int code = feeder_turn(f, f->turn < in->n ? f->turn : in->n);
        if (feeder_is_foreign(f)) return FJ_ECANCELED;
        if (FJI_UNLIKELY(code != FJ_OK)) return code;
        uint64_t end = fji_ticks();
        f->turn = end - begin > TURN_TICKS ? 1 : f->turn < TURN_MAX ? 2 * f->turn : TURN_MAX;
        begin = end;
    }
    return FJ_OK;
}

/* Adds the items that were added and done to the progress of the call. */
static void feeder_count(fj_feeder *f)
{
    fj_progress *p = f->each->job.progress;

    if (FJI_LIKELY(p == NULL)) return;
    /* relaxed: the total is only displayed. */
    if (p->adds && f->added != 0) (void)fji_add_relaxed(&p->total, (uint64_t)f->added);
    fj_progress_add(p, f->done);
    f->added = f->done = 0;
}

/* The body of a chunk: processes its items, and those that are added meanwhile and not queued. */
static int chunk_run(fj_group_task *t)
{
    chunk *c = (chunk *)(void *)t;
    fj_feeder f = {.each = c->each, .in = c, .turn = 1, .generation = fji_generation()};
    int code;

    for (;;) {
        code = feeder_run(&f);
        if (feeder_is_foreign(&f)) return code;
        feeder_count(&f);
        if (code != FJ_OK || f.out == NULL) break;
        if (f.spare == NULL && f.in != f.each->first)
            f.spare = f.in;
        else
            each_free_chunk(f.each, f.in);
        f.in = f.out;
        f.out = NULL;
    }
    each_free_chunk(f.each, f.in);
    each_free_chunk(f.each, f.out);
    each_free_chunk(f.each, f.spare);
    return code;
}

int fj_for_each_add(fj_feeder *f, const void *item)
{
    if (f == NULL || item == NULL) return FJ_EINVAL;
    const each *e = f->each;
    if (f->out == NULL) f->out = feeder_new_chunk(f);
    chunk *out = f->out;
    if (FJI_UNLIKELY(out == NULL)) return FJ_ENOMEM;
    memcpy(out->own + out->n * e->size, item, e->size);
    out->n++;
    f->added++;
    /* In a turn of several items the bodies are short, so thieves need not see each item at once. */
    bool shares = f->turn == 1 && e->job.grain == 0 && each_has_demand();
    if (out->n == e->capacity || shares) feeder_flush(f);
    return FJ_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Sets the capacity of the chunks. Returns false if a chunk would be too large. */
static bool each_set_capacity(each *e)
{
    size_t n = CHUNK_BYTES / e->size, bytes;

    if (n > CHUNK_ITEMS) n = CHUNK_ITEMS;
    if (n < 1) n = 1;
    if (e->job.grain != 0) n = e->job.grain;
    e->capacity = n;
    return !__builtin_mul_overflow(n, e->size, &bytes) && bytes <= CHUNK_BYTES_MAX;
}

/* Runs the loop over the items of e->first. All members of *e are set, except the group. */
static int each_run(each *e, const fj_algo_options *how)
{
    fj_token *token = how != NULL ? how->token : NULL;
    const fj_token *caller = fj_current_token();
    fj_group_options o = {.pool = how != NULL ? how->pool : NULL,
                          .token = token != NULL ? token : caller,
                          .cancel_on_error = 1};
    chunk *c, *before;

    if (fj_is_cancelled()) return FJ_ECANCELED;
    if (token != NULL) e->job.caller = caller;
    int err = fj_group_init(&e->group, &o);
    if (err != FJ_OK) return err;
    fj_group_task_init(&e->first->task, chunk_run);
    err = fj_group_run(&e->group, &e->first->task);
    int code = fj_group_fini(&e->group);
    for (c = e->all; c != NULL; c = before) {
        before = c->allocated;
        fji_block_free(c);
    }
    return err != FJ_OK ? err : code;
}

int fj_for_each(void *items, size_t n, size_t size, fj_each_fn *body, void *arg,
                const fj_algo_options *how)
{
    each e = {.body = body, .arg = arg, .size = size};
    chunk first = {.each = &e, .at = items, .n = n, .borrowed = true};

    if (body == NULL || size == 0 || !fji_array_ok(items, n, size)) return FJ_EINVAL;
    int err = fji_job_init(&e.job, how, n);
    if (err != FJ_OK) return err;
    if (!each_set_capacity(&e)) return FJ_EINVAL;
    e.first = &first;
    return n != 0 ? each_run(&e, how) : FJ_OK;
}
