/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - items that pass through stages
 *
 * The problem: an item may arrive at a serial stage while another item is in it, or at an ordered
 * stage before its turn. A worker that waited for the stage would be idle.
 *
 * The idea: the worker leaves the item at the stage and takes another item that is ready.
 *
 * Items. An item has one of `max_in_flight` slots from the call of the first stage, which makes it,
 * until it has left the last stage. Items are numbered 0, 1, 2, ... in the order in which they are
 * made.
 *
 * Gates. A stage that processes one item at a time has a gate. The gate has a ring with one entry
 * for each item that there can be, and the position of the next item that may enter: the number of
 * the item at an ordered stage, the order of arrival at a serial stage. An item that arrives in its
 * turn at an open gate enters at once. Otherwise it is stored in the ring at its position. A
 * parallel stage has no gate: a worker that brings an item continues with it.
 *
 *     gate   closed: an item is in the stage   ring   [ . . 7 . 9 ]    8 has not arrived yet:
 *            open:   next = 8                                          no item can enter
 *
 * A stage may set an item to NULL. The item then keeps its slot and its number until it has passed
 * the last ordered stage, but no stage function sees it. So all numbers from `next` on are in
 * flight, there are at most as many of them as slots, and no two items need the same entry of a
 * ring.
 *
 * Runners. A runner is a task that moves items. Something is ready if the item whose turn it is has
 * arrived at an open gate, or if the first stage may be called: a slot is free, the input has not
 * ended, and the gate is open. A runner takes something that is ready, at the latest stage first so
 * that items leave the pipeline. The runner runs the stage, and continues with the item as far as
 * possible. If more is ready then, and there is demand, the runner forks another runner. Only one
 * fork is on offer at a time, that is, forked and not yet begun; a runner that begins may offer the
 * next one. A runner that finds nothing ready joins one of the runners it has forked, looks again,
 * and so on until it has none, and then returns. A runner never waits for an item. But before it
 * joins a runner that a thief has taken, it looks several times more for something ready, because
 * that join may last as long as the pipeline.
 *
 * A worker that waits in a join does no work for the pipeline, or has to be replaced by another
 * thread. Therefore a runner whose forker waits for it returns without an item, although something
 * may be ready, if no thief has come for its own offer for a while, or if many runners wait. Its
 * forker then continues, and the worker that returned may take what the forker offers. So few
 * runners wait at any time. The small number of waiting runners also bounds the stack of a worker
 * that waits for a runner and meanwhile runs another runner, which the first one has forked.
 *
 * One lock protects the gates, the rings, the slots and the offers. The lock is held for a few
 * instructions, never while a stage runs.
 *
 * No item is forgotten
 *   L1  A runner returns without an item, and has joined all runners that it has forked. The first
 *       runner returns only if it has found nothing ready after the last of these joins. The forker
 *       of any other runner looks again after it has joined that runner. So the last look of all is
 *       one of the first runner, when there is no other runner, and it finds nothing ready.
 *   L2  When the only runner is one that looks, no item is in a stage, so every gate is open.
 *       Consider the item with the lowest number of all that are stored at gates. If it is at a
 *       serial stage, some item is ready there. If it is at an ordered stage, all lower numbers
 *       have passed that stage, because none of them is in flight. It is its turn, and it is
 *       ready.
 *   L3  So by L1 and L2 no item is left at the end, all slots are free, and every gate is open. The
 *       first stage may not be called either, so it has ended the input.
 *   What becomes ready is seen soon: the runner that makes it ready looks for something ready when
 *   it has no item, or returns to a forker that does.
 *
 * Errors. An error code or a cancellation ends the job: no stage function is called any more, and
 * every runner returns as soon as its stage does. An item is in flight if its stage has run and has
 * not set it to NULL, also if that stage has failed. When all runners have returned, the caller
 * passes the items that are left in slots to drop(), one after the other.
 *
 * Ordering. The lock orders the gates, the rings, and what stages did: see plat/lock.c.
 */
#include <string.h>

#include "plat/plat.h"
#include "plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    CHILDREN_MAX = 8, /* runners that one runner may have forked */
    WAITING_MAX = 8,  /* runners that wait; if there are as many, runners return early */
    LINGER_MAX = 20,  /* how often a runner looks again before a join */
};

/* Ticks, which are about nanoseconds: the time between two looks of a runner that lingers, and how
 * long an offer stands before a runner may return early because of it. */
#define LINGER_TICKS 500u
#define OFFER_TICKS 50000u

typedef struct runner runner;

/* A slot, and the item in it. */
typedef struct item {
    void *data; /* NULL: no item, or one that a stage has set to NULL */
    size_t number;
    struct item *next; /* in the list of free slots */
} item;

/* The state of a stage that processes one item at a time. */
typedef struct gate {
    item **ring;
    size_t next; /* the position that may enter next */
    size_t end;  /* of a serial stage: the position of the next item that arrives */
    bool closed;
} gate;

typedef struct pipeline {
    fji_job job;
    const fj_stage *stages;
    size_t n;
    size_t max_in_flight;
    size_t mask;         /* size of a ring - 1 */
    size_t last_ordered; /* the last ordered stage; 0: none, or the first one */
    gate *gates;         /* one for each stage; parallel stages do not use theirs */
    item *items;

    _Alignas(64) fji_lock lock; /* protects all members below, the gates and the rings */
    bool ended;                 /* the first stage has ended the input */
    runner *offerer;            /* has forked a runner that has not begun; NULL: no offer */
    uint64_t offered_at;        /* the time of the offer, in ticks */
    int waiting;                /* runners that wait in a join */
    size_t ready;               /* gates at which an item is ready */
    size_t used;                /* slots with an index below `used` were used at least once */
    item *free;                 /* the list of those used slots that are free */
    size_t next_number;         /* the number of the next item */
} pipeline;

/* A runner that another runner has forked: a child of that runner. */
typedef struct child {
    fj_task task;
    pipeline *pipe;
    bool used;    /* the runner is forked and not yet joined */
    bool awaited; /* the forker waits for this runner; protected by the lock */
    int ending;   /* 1: the runner is about to return */
} child;

struct runner {
    pipeline *pipe;
    child *self;  /* NULL: this is the first runner */
    int children; /* number of entries of `child` that are in use */
    int lingered; /* how often the runner has lingered since something was ready */
    child child[CHILDREN_MAX];
};

/* What a runner works on: an item, and the stage that the item may enter. If `item` is NULL, the
 * runner works on nothing. */
typedef struct position {
    item *item;
    size_t stage;
} position;

/* ---- Gates (under the lock) ------------------------------------------------------------------ */

static bool has_gate(const pipeline *p, size_t stage)
{
    return p->stages[stage].kind != FJ_STAGE_PARALLEL;
}

/* Item x arrives at the gate of `stage`. Returns true if x enters the stage at once; otherwise
 * stores x in the ring and returns false. */
static bool gate_arrive(pipeline *p, size_t stage, item *x)
{
    gate *g = &p->gates[stage];
    size_t at = p->stages[stage].kind == FJ_STAGE_ORDERED ? x->number : g->end++;

    if (at == g->next && !g->closed) {
        g->next++;
        g->closed = true;
        return true;
    }
    g->ring[at & p->mask] = x;
    return false;
}

/* Opens the gate of `stage`, because the item that was in the stage has left it. */
static void gate_open(pipeline *p, size_t stage)
{
    gate *g = &p->gates[stage];

    g->closed = false;
    if (stage != 0 && g->ring[g->next & p->mask] != NULL) p->ready++;
}

/* Takes the item that is ready at the latest gate. The caller has checked that an item is ready
 * (p->ready != 0). */
static position gate_take(pipeline *p)
{
    for (size_t s = p->n - 1;; s--) {
        gate *g = &p->gates[s];
        if (g->ring == NULL || g->closed || g->ring[g->next & p->mask] == NULL) continue;
        position at = {g->ring[g->next & p->mask], s};
        g->ring[g->next++ & p->mask] = NULL;
        g->closed = true;
        p->ready--;
        return at;
    }
}

/* ---- Slots (under the lock) ------------------------------------------------------------------ */

/* Returns whether the first stage may be called. */
static bool can_make(const pipeline *p)
{
    return !p->ended && !p->gates[0].closed && (p->free != NULL || p->used < p->max_in_flight);
}

/* Takes a free slot for the item that the first stage makes. The caller has checked by can_make()
 * that a slot is free. */
static position slot_take(pipeline *p)
{
    item *x = p->free;

    if (x != NULL)
        p->free = x->next;
    else
        x = &p->items[p->used++];
    x->data = NULL;
    p->gates[0].closed = has_gate(p, 0);
    return (position){x, 0};
}

static void slot_free(pipeline *p, item *x)
{
    x->data = NULL;
    x->next = p->free;
    p->free = x;
}

/* ---- Stages (under the lock) ----------------------------------------------------------------- */

/* Returns the next stage of x after `stage`, or p->n if x leaves the pipeline. */
static size_t stage_after(const pipeline *p, size_t stage, const item *x)
{
    if (FJI_LIKELY(x->data != NULL)) return stage + 1;
    do stage++;
    while (stage <= p->last_ordered && p->stages[stage].kind != FJ_STAGE_ORDERED);
    return stage <= p->last_ordered ? stage : p->n;
}

/* An item has passed its stage. Returns the same item at its next stage if it may enter that stage,
 * else a position without an item. */
static position advance(pipeline *p, position at)
{
    const position nothing = {NULL, 0};
    item *x = at.item;

    if (has_gate(p, at.stage)) gate_open(p, at.stage);
    if (at.stage == 0) {
        if (x->data == NULL) {
            p->ended = true;
            slot_free(p, x);
            return nothing;
        }
        x->number = p->next_number++;
    }
    at.stage = stage_after(p, at.stage, x);
    if (at.stage < p->n)
        return !has_gate(p, at.stage) || gate_arrive(p, at.stage, x) ? at : nothing;
    slot_free(p, x);
    return nothing;
}

/* ---- Runners --------------------------------------------------------------------------------- */

static int child_run(fj_task *t);

/* Ends the offer, so that a runner may fork the next one: the forked runner begins, was taken back
 * by its forker, or could not be forked. */
static void offer_end(pipeline *p)
{
    fji_lock_take(&p->lock);
    p->offerer = NULL;
    fji_lock_drop(&p->lock);
}

static void child_release(runner *r, child *c)
{
    c->used = false;
    r->children--;
}

/* Joins c, a child of r that a thief has taken. */
static void child_wait(runner *r, child *c)
{
    pipeline *p = r->pipe;

    fji_lock_take(&p->lock);
    c->awaited = true;
    p->waiting++;
    fji_lock_drop(&p->lock);
    int code = fj_join_stolen(&c->task);
    if (code != FJ_OK) fji_job_fail(&p->job, code);
    fji_lock_take(&p->lock);
    p->waiting--;
    fji_lock_drop(&p->lock);
    child_release(r, c);
}

/* Returns an entry of r->child that is not in use, or NULL if all are in use. */
static child *child_get(runner *r)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        child *c = &r->child[i];
        /* relaxed: only a hint */
        if (r->children == CHILDREN_MAX && fji_load_relaxed(&c->ending) != 0) child_wait(r, c);
        if (!c->used) return c;
    }
    return NULL;
}

/* Waits for LINGER_TICKS and returns true. Returns false at once if the runner has lingered
 * LINGER_MAX times, or if the job has ended. */
static bool runner_linger(runner *r)
{
    /* relaxed: the code orders no other data. */
    if (r->lingered == LINGER_MAX || fji_load_relaxed(&r->pipe->job.code) != FJ_OK) return false;
    r->lingered++;
    for (uint64_t begin = fji_ticks(); fji_ticks() - begin < LINGER_TICKS;) fji_pause();
    return true;
}

/* Called by r if it finds nothing to do, or before it returns: joins one of the children of r, or
 * lingers before it joins. Returns false if r has no child. */
static bool runner_join_one(runner *r)
{
    if (r->children == 0) return false;
    for (int i = CHILDREN_MAX - 1;; i--) {
        child *c = &r->child[i];
        if (!c->used) continue;
        if (fj_unfork(&c->task)) {
            offer_end(r->pipe);
            child_release(r, c);
        } else if (!runner_linger(r)) {
            child_wait(r, c);
        }
        return true;
    }
}

/* Returns whether r has to fork another runner now. If so, records that r makes the offer: until
 * the forked runner begins, no other runner is forked. Under the lock. */
static bool runner_should_offer(runner *r)
{
    pipeline *p = r->pipe;

    if (p->offerer != NULL || (p->ready == 0 && !can_make(p))) return false;
    if (!fji_has_demand()) return false;
    p->offerer = r;
    p->offered_at = fji_ticks();
    return true;
}

static void runner_fork(runner *r)
{
    child *c = child_get(r);

    if (c == NULL) { /* r cannot fork: another runner may make the next offer */
        offer_end(r->pipe);
        return;
    }
    fj_task_init(&c->task, child_run);
    c->pipe = r->pipe;
    c->used = true;
    c->awaited = false;
    c->ending = 0;
    r->children++;
    fj_fork(&c->task);
}

/* Returns whether a runner without an item should return to its forker. Under the lock. */
static bool runner_should_return(runner *r)
{
    pipeline *p = r->pipe;

    if (r->self == NULL || !r->self->awaited) return false;
    if (p->waiting >= WAITING_MAX) return true;
    if (p->offerer != r || r->children != 1) return false;
    return fji_ticks() - p->offered_at > OFFER_TICKS;
}

/* Runs a stage on an item. Returns false if the job has ended or ends with an error of the
 * stage. */
static bool stage_run(pipeline *p, item *x, size_t stage)
{
    const fj_stage *s = &p->stages[stage];
    void *data = x->data;

    if (data == NULL && stage != 0) return true;
    if (FJI_UNLIKELY(!fji_job_should_continue(&p->job))) return false;
    int code = s->fn(&data, s->arg);
    x->data = data;
    if (FJI_UNLIKELY(code != FJ_OK)) {
        fji_job_fail(&p->job, code);
        return false;
    }
    if ((data == NULL && stage != 0) || (data != NULL && stage + 1 == p->n))
        fji_job_add_progress(&p->job, 1);
    return true;
}

/* Runs the stage of *at, and the following stages as long as no gate has to be opened or entered.
 * Returns false if the job ends. */
static bool position_run(pipeline *p, position *at)
{
    if (!stage_run(p, at->item, at->stage)) return false;
    while (at->stage != 0 && at->item->data != NULL && !has_gate(p, at->stage) &&
           at->stage + 1 < p->n && !has_gate(p, at->stage + 1))
        if (!stage_run(p, at->item, ++at->stage)) return false;
    return true;
}

/* Takes an item that is ready at a gate or, if there is none, a free slot for a call of the first
 * stage. Returns a position without an item if nothing is ready: no item is ready at a gate, and
 * the first stage may not be called. Under the lock. */
static position runner_take(pipeline *p)
{
    if (p->ready != 0) return gate_take(p);
    return can_make(p) ? slot_take(p) : (position){NULL, 0};
}

/* Takes and runs items until nothing is ready. Returns false if the job ends, or if the runner has
 * to return to its forker. */
static bool runner_work(runner *r)
{
    pipeline *p = r->pipe;
    bool more = true;

    fji_lock_take(&p->lock);
    position at = runner_take(p);
    if (at.item != NULL) r->lingered = 0;
    while (at.item != NULL) {
        bool offers = runner_should_offer(r);
        fji_lock_drop(&p->lock);
        if (FJI_UNLIKELY(offers)) runner_fork(r);
        more = position_run(p, &at);
        fji_lock_take(&p->lock);
        if (!more) break;
        at = advance(p, at);
        if (at.item != NULL) continue;
        more = !runner_should_return(r);
        if (more) at = runner_take(p);
    }
    fji_lock_drop(&p->lock);
    return more;
}

/* The body of a runner. self: the entry of the runner in its forker, or NULL if it is the first
 * runner. Works until nothing in the pipeline is ready, the job ends, or runner_should_return()
 * tells it to return. Joins all runners that it has forked before it returns. */
static void runner_run(pipeline *p, child *self)
{
    runner r = {.pipe = p, .self = self};

    while (runner_work(&r) && runner_join_one(&r)) continue;
    r.lingered = LINGER_MAX;
    while (runner_join_one(&r)) continue;
}

static int child_run(fj_task *t)
{
    child *c = (child *)t;

    offer_end(c->pipe);
    runner_run(c->pipe, c);
    fji_store_relaxed(&c->ending, 1); /* relaxed: only a hint */
    return FJ_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

typedef struct call {
    fj_task task;
    pipeline *pipe;
} call;

static int call_run(fj_task *t)
{
    runner_run(((call *)t)->pipe, NULL);
    return FJ_OK;
}

static bool stage_known(int kind)
{
    return kind == FJ_STAGE_PARALLEL || kind == FJ_STAGE_SERIAL || kind == FJ_STAGE_ORDERED;
}

static bool stages_valid(const fj_stage *stages, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (stages[i].fn == NULL || !stage_known(stages[i].kind)) return false;
    return true;
}

/* Adds a * b to *sum. Returns false on overflow. */
static bool add_product(size_t *sum, size_t a, size_t b)
{
    size_t bytes;
    return !__builtin_mul_overflow(a, b, &bytes) && !__builtin_add_overflow(*sum, bytes, sum);
}

/* Allocates one block for the gates, the slots and the rings. Returns false if there is no
 * memory. */
static bool pipe_alloc(pipeline *p)
{
    size_t rings = 0, size = 1, bytes = 0;

    for (size_t i = 1; i < p->n; i++) rings += has_gate(p, i);
    while (size < p->max_in_flight && size <= SIZE_MAX / 2) size *= 2;
    if (size < p->max_in_flight || !add_product(&bytes, p->n, sizeof *p->gates) ||
        !add_product(&bytes, p->max_in_flight, sizeof *p->items))
        return false;
    size_t before = bytes;
    if (rings != 0 &&
        (!fji_fits(size, sizeof(item *)) || !add_product(&bytes, rings, size * sizeof(item *))))
        return false;
    unsigned char *block = bytes <= PTRDIFF_MAX ? fji_algo_alloc(bytes) : NULL;
    if (block == NULL) return false;

    p->mask = size - 1;
    p->gates = (gate *)(void *)block;
    p->items = (item *)(p->gates + p->n);
    memset(p->gates, 0, p->n * sizeof *p->gates);
    memset(block + before, 0, bytes - before);
    item **ring = (item **)(p->items + p->max_in_flight);
    for (size_t i = 1; i < p->n; i++)
        if (has_gate(p, i)) {
            p->gates[i].ring = ring;
            ring += size;
        }
    return true;
}

/* Passes the items that are left in slots to drop(). All runners have returned. */
static void pipe_drop(pipeline *p, void (*drop)(void *item))
{
    for (size_t i = 0; i < p->used; i++)
        if (p->items[i].data != NULL) drop(p->items[i].data);
}

int fj_pipeline(const fj_stage *stages, size_t n, size_t max_in_flight, void (*drop)(void *item),
                const fj_algo_options *how)
{
    pipeline p = {.stages = stages, .n = n, .max_in_flight = max_in_flight};
    call c = {.pipe = &p};

    if (stages == NULL || n == 0 || max_in_flight == 0 || !fji_fits(n, sizeof *stages))
        return FJ_EINVAL;
    if (!stages_valid(stages, n)) return FJ_EINVAL;
    int err = fji_job_init(&p.job, how, 0);
    if (err != FJ_OK) return err;
    for (size_t i = 1; i < n; i++)
        if (stages[i].kind == FJ_STAGE_ORDERED) p.last_ordered = i;
    if (!pipe_alloc(&p)) return FJ_ENOMEM;
    fj_task_init(&c.task, call_run);
    err = fji_job_run(&p.job, how, &c.task);
    if (drop != NULL) pipe_drop(&p, drop);
    fji_algo_free(p.gates);
    return err;
}
