/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - items that pass through stages
 *
 * The problem: an item may arrive at a serial stage while another item is in it, or at an ordered
 * stage before its turn. A worker that waited for the stage would be idle.
 *
 * The idea: the worker stores the item at the stage and takes another item, which may enter its
 * stage.
 *
 * Items. Each call of the first stage makes an item, or ends the input. The item occupies one of
 * `max_in_flight` slots from that call until the item has left the last stage; during this time it
 * is in flight. Items are numbered 0, 1, 2, ... in the order in which their calls of the first
 * stage end.
 *
 * Gates. A stage that processes one item at a time, a serial or an ordered stage, has a gate. The
 * gate is closed while an item is in the stage. At the first stage this is all that a gate does,
 * because items do not arrive there. At a later stage, items enter in the order of their turns.
 * The turn of an item at an ordered stage is the number of the item. At a serial stage, the first
 * item that arrives has turn 0, the second one turn 1, and so on. The gate has `next`, the turn of
 * the item that may enter next, and a ring, an array of at least max_in_flight entries. An item
 * that arrives at an open gate and whose turn is `next` enters at once. Any other item is stored in
 * the ring, in the entry for its turn. A parallel stage has no gate: an item that arrives enters at
 * once.
 *
 *     gate   closed: an item is in the stage   ring   [ . . . . 9 ]    8 has not arrived yet:
 *            open:   next = 8                                          no item can enter
 *
 * A stage may set an item to NULL. The item then still passes through the ordered stages, so that
 * later items get their turn, but no stage function is called for it. It keeps its slot until it
 * has passed the last ordered stage. So every item that was made and whose turn is `next` or later
 * is in flight. There are at most max_in_flight of them, and no two of them need the same entry of
 * a ring.
 *
 * Runners. A runner is a task that moves items through stages. An item is ready if it is stored at
 * an open gate and its turn is `next`. Work is ready if an item is ready, or if the first stage may
 * be called: a slot is free, the first stage has not ended the input, and its gate is open, or it
 * is parallel and has no gate. A runner takes the ready item that is at the latest stage, so that
 * items leave the pipeline, or else calls the first stage. It runs the stage, and then the
 * following stages of the item, until the item is stored at a gate or leaves the pipeline. Then it
 * takes the next work that is ready.
 *
 * Before a runner runs a stage, it tests whether more work is ready and there is demand. If so, it
 * forks another runner, its child. A child that no worker has begun to run is the offer. There is
 * at most one offer in the pipeline at a time; when the child begins, or when its forker has taken
 * it back, any runner may make the next one.
 *
 * A runner that finds no ready work takes back or joins one of its children, looks for ready work
 * again, and so on, and returns when it has no child left. A runner never waits for an item. But
 * before it joins a child that a thief has taken, the runner lingers: it looks for ready work up to
 * LINGER_MAX more times, because the join may last as long as the pipeline.
 *
 * A worker that waits in a join does no work for the pipeline, or has to be replaced by another
 * thread. Therefore a runner whose forker waits for it in a join returns early, although work may
 * be ready, when it has no item and one of two conditions holds: at least WAITING_MAX runners wait
 * in joins, or its only child is an offer that no thief has taken for OFFER_TICKS. Its forker then
 * continues to work, and the worker of the runner that returned may steal the forker's next offer.
 * So few runners wait at any time. This also limits the stack of a worker: while a runner waits for
 * a child, its worker may run a runner that this child has forked, on the same stack.
 *
 * One lock protects the gates, the rings, the list of free slots, the offer and the number of
 * runners that wait in joins. A runner holds it for a few instructions, never while it runs a
 * stage.
 *
 * Why no item is forgotten, unless the job ends
 *   L1  A runner returns only when it has no item and has joined all its children. The first runner
 *       also returns only if it has found no ready work after the last of these joins. So the last
 *       look for ready work in the pipeline is one of the first runner, when there is no other
 *       runner, and it finds none.
 *   L2  During this look no item is in a stage, so every gate is open. Suppose that items are still
 *       stored at gates, and consider the one with the lowest number. If it is at a serial stage,
 *       the item whose turn is `next` is stored there too, and is ready. If it is at an ordered
 *       stage, all items with lower numbers have passed that stage, because none of them is stored
 *       at a gate or in a stage. So its turn is `next`, and it is ready. Both contradict L1.
 *   L3  So no item is left at the end, all slots are free, and every gate is open. By L1 the first
 *       stage may not be called either, so it has ended the input.
 *   Work that becomes ready is found soon: the runner that makes it ready looks for ready work as
 *   soon as it has no item, or returns early to its forker, which does.
 *
 * Errors. An error code or a cancellation ends the job: no stage function is called any more, and
 * every runner returns as soon as the stage function that it runs has returned and its children are
 * joined. When all runners have returned, the thread that called fj_pipeline() passes the items
 * that are left in slots to drop(), one after the other, unless `drop` is NULL. This includes an
 * item whose stage function has failed, unless the function has set the item to NULL.
 *
 * Ordering. The lock orders all accesses to the gates and the rings, and what a stage wrote before
 * what the next stage of the same item reads: see plat/lock.c.
 */
#include <string.h>

#include "plat/plat.h"
#include "plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    CHILDREN_MAX = 8, /* the most tasks that a runner has forked and not joined, at a time */
    WAITING_MAX = 8,  /* if this many runners wait in joins, a runner that has no item, and for
                       * which its forker waits, returns although work may be ready */
    LINGER_MAX = 20,  /* how often a runner that finds no ready work spins and looks again before
                       * it joins a stolen child */
};

/* Times in ticks, which are about nanoseconds. LINGER_TICKS: how long a runner that found no ready
 * work spins before it looks again. OFFER_TICKS: if the only child of a runner has not begun to run
 * within this time, and the forker of the runner waits for it in a join, the runner returns early
 * to its forker. */
#define LINGER_TICKS 500u
#define OFFER_TICKS 50000u

typedef struct runner runner;

/* A slot, and the item that occupies it. */
typedef struct item {
    /* The pointer that the stage functions get. NULL: the slot is free, the first stage has not
     * returned yet, or a stage has set the item to NULL. */
    void *data;
    size_t number;     /* 0 for the first item that the first stage has made, then 1, 2, ...; set
                        * when the first stage has returned the item */
    struct item *next; /* if this slot is free: the next slot in the list of free slots */
} item;

/* The gate of a serial or ordered stage: decides which item may enter the stage, and when. Items
 * enter in the order of their turns, which are numbers from 0 on. */
typedef struct gate {
    item **ring; /* the items that have arrived and have not entered yet: an item with turn t is
                  * in entry t & mask of the pipeline. An entry without an item is NULL. `ring`
                  * itself is NULL at the first stage and at parallel stages */
    size_t next; /* the turn of the item that may enter next; not used at the first stage */
    size_t end;  /* of a serial stage: the turn that the next item to arrive gets */
    bool closed; /* true: an item is in the stage, so that no other item may enter */
} gate;

typedef struct pipeline {
    fji_job job;
    const fj_stage *stages;
    size_t n;             /* number of stages */
    size_t max_in_flight; /* number of slots */
    size_t mask;          /* number of entries of each ring, a power of two, minus 1 */
    size_t last_ordered;  /* index of the last ordered stage after the first; 0: there is none */
    gate *gates;          /* array of n gates, one for each stage; not used for parallel stages */
    item *items;          /* array of max_in_flight slots */

    _Alignas(64) fji_lock lock; /* protects all members below, the gates, their rings, and
                                 * `awaited` of each child */
    bool ended;                 /* true: a call of the first stage has ended the input */
    runner *offerer;            /* the runner that forks, or has forked, a runner that has not
                                 * begun to run; NULL: there is no such runner */
    uint64_t offered_at;        /* the time, in ticks (plat/ticks.h), at which `offerer` was last
                                 * set to a runner */
    int waiting;                /* number of runners that wait in a join for a stolen child */
    size_t ready;               /* number of gates at which an item is ready: the gate is open, and
                                 * the item whose turn is next is in its ring */
    size_t used;                /* items[0] to items[used - 1] were occupied at least once */
    item *free;                 /* list of the slots that were occupied and are free again */
    size_t next_number;         /* the number that the next item of the first stage gets */
} pipeline;

/* A child: a runner that another runner, its forker, has forked. */
typedef struct child {
    fj_task task;
    pipeline *pipe;
    bool used;    /* true: the child is forked, and neither joined nor taken back */
    bool awaited; /* true: the forker waits for the child in a join; protected by pipe->lock */
    int ending;   /* 1: the child has done all its work and is about to return */
} child;

struct runner {
    pipeline *pipe;
    child *self;  /* this runner's entry in the array `child` of its forker; NULL: the first
                   * runner of the pipeline, which no runner has forked */
    int children; /* number of entries of `child` whose `used` is true */
    int lingered; /* how often the runner has spun for LINGER_TICKS since it last found work */
    child child[CHILDREN_MAX];
};

/* What a runner works on: an item, and the stage that the item has entered. If `item` is NULL, the
 * runner has no item. */
typedef struct position {
    item *item;
    size_t stage;
} position;

/* ---- Gates (under the lock) ------------------------------------------------------------------ */

static bool has_gate(const pipeline *p, size_t stage)
{
    return p->stages[stage].kind != FJ_STAGE_PARALLEL;
}

/* Called when item x arrives at `stage`, which is serial or ordered. Returns true if x enters the
 * stage at once. Otherwise stores x in the ring of the stage's gate, where x waits for its turn,
 * and returns false. */
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

/* Called when an item has left `stage`, which is serial or ordered: opens the gate, so that another
 * item may enter. If the item whose turn is next has arrived already, adds 1 to p->ready. No item
 * arrives at the first stage, so there the function only opens the gate. */
static void gate_open(pipeline *p, size_t stage)
{
    gate *g = &p->gates[stage];

    g->closed = false;
    if (stage != 0 && g->ring[g->next & p->mask] != NULL) p->ready++;
}

/* Of the items that wait at a gate and may enter their stage now, takes the one at the latest
 * stage, and lets it enter. The caller has checked that there is one (p->ready != 0). */
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

/* Returns whether the first stage may be called: it has not ended the input, a slot is free, and,
 * unless it is a parallel stage, no other call of it is running. */
static bool can_make(const pipeline *p)
{
    return !p->ended && !p->gates[0].closed && (p->free != NULL || p->used < p->max_in_flight);
}

/* Takes a free slot for the item that the first stage makes, and closes the gate of the first stage
 * unless that stage is parallel. The caller has checked by can_make() that a slot is free and that
 * the gate is open. */
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

/* Returns the next stage of item x after `stage`, or p->n if x leaves the pipeline. If a stage has
 * set x to NULL, this is the next ordered stage, or p->n if there is none. */
static size_t stage_after(const pipeline *p, size_t stage, const item *x)
{
    if (FJI_LIKELY(x->data != NULL)) return stage + 1;
    do stage++;
    while (stage <= p->last_ordered && p->stages[stage].kind != FJ_STAGE_ORDERED);
    return stage <= p->last_ordered ? stage : p->n;
}

/* Called when an item has passed its stage. Returns the same item and its next stage if it enters
 * that stage at once. Otherwise stores the item at the gate of that stage, or frees the slot if the
 * item leaves the pipeline, and returns a position without an item. If the first stage has made no
 * item, records the end of the input and frees the slot. */
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

/* Lets any runner fork the next child. At most one forked runner that has not begun to run, the
 * offer, exists at a time. The caller has ended this state: the child has begun to run, its forker
 * has taken it back, or it could not be forked. */
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

/* Joins c, a child of r that is no longer in the queue of r, and releases its entry. If c was
 * cancelled before it began, for example because the pool has stopped, ends the job with the code
 * of c, FJ_ECANCELED. A child that has run always returns FJ_OK. */
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

/* Returns an entry of r->child that is not in use. If all are in use, first joins a child that is
 * about to return, and returns its entry. Returns NULL if there is no such child either. */
static child *child_get(runner *r)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        child *c = &r->child[i];
        /* relaxed: if this thread sees an old value, it only joins the child later. */
        if (r->children == CHILDREN_MAX && fji_load_relaxed(&c->ending) != 0) child_wait(r, c);
        if (!c->used) return c;
    }
    return NULL;
}

/* Spins for LINGER_TICKS, in which work may become ready, and returns true. Returns false at once
 * if the runner has done this LINGER_MAX times since it last found work, or if the job has
 * ended. */
static bool runner_linger(runner *r)
{
    /* relaxed: the code orders no other data. */
    if (r->lingered == LINGER_MAX || fji_load_relaxed(&r->pipe->job.code) != FJ_OK) return false;
    r->lingered++;
    for (uint64_t begin = fji_ticks(); fji_ticks() - begin < LINGER_TICKS;) fji_pause();
    return true;
}

/* Called when r finds no ready work, or before it returns. Returns false if r has no child.
 * Otherwise returns true, after one of these: it has taken back a child that no thief has taken,
 * spun for LINGER_TICKS, or joined a child that a thief has taken. */
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

/* Returns whether r has to fork a child now: every forked runner has begun to run or was taken
 * back, more work is ready, and there is demand. If so, stores r in p->offerer, so that no other
 * runner forks a child before this child has begun to run or was taken back. The caller holds
 * p->lock. */
static bool runner_should_offer(runner *r)
{
    pipeline *p = r->pipe;

    if (p->offerer != NULL || (p->ready == 0 && !can_make(p))) return false;
    if (!fji_has_demand()) return false;
    p->offerer = r;
    p->offered_at = fji_ticks();
    return true;
}

/* Forks a child of r. If r already has CHILDREN_MAX children, and none of them is about to return,
 * forks nothing. r is p->offerer. */
static void runner_fork(runner *r)
{
    child *c = child_get(r);

    if (c == NULL) { /* r has CHILDREN_MAX children: another runner may fork one */
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

/* Returns whether r, which has no item, should return although work may be ready. It should if its
 * forker waits for it in a join, and either at least WAITING_MAX runners wait in joins, or r has
 * one child, which has not begun to run for more than OFFER_TICKS. The forker then continues the
 * work. Always false for the first runner of the pipeline. The caller holds p->lock. */
static bool runner_should_return(runner *r)
{
    pipeline *p = r->pipe;

    if (r->self == NULL || !r->self->awaited) return false;
    if (p->waiting >= WAITING_MAX) return true;
    if (p->offerer != r || r->children != 1) return false;
    return fji_ticks() - p->offered_at > OFFER_TICKS;
}

/* Calls the function of `stage` for item x, unless x was set to NULL by an earlier stage, and
 * stores the new pointer in x. If x has passed the last stage, or the function has set it to NULL
 * in a stage after the first, adds 1 to the progress. Returns false if the job has ended, or if the
 * function fails, which ends the job; otherwise true. */
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

/* Runs the stage of *at. If this is a parallel stage other than the first, also runs the parallel
 * stages that directly follow it, which needs no lock, until one of them sets the item to NULL.
 * at->stage is then the last stage that was run. Returns false if the job has ended, otherwise
 * true. The caller does not hold p->lock. */
static bool position_run(pipeline *p, position *at)
{
    if (!stage_run(p, at->item, at->stage)) return false;
    while (at->stage != 0 && at->item->data != NULL && !has_gate(p, at->stage) &&
           at->stage + 1 < p->n && !has_gate(p, at->stage + 1))
        if (!stage_run(p, at->item, ++at->stage)) return false;
    return true;
}

/* Takes a ready item or, if there is none, a free slot for a call of the first stage. Returns a
 * position without an item if no item is ready and the first stage may not be called. The caller
 * holds p->lock. */
static position runner_take(pipeline *p)
{
    if (p->ready != 0) return gate_take(p);
    return can_make(p) ? slot_take(p) : (position){NULL, 0};
}

/* Takes items and runs their stages until no work is ready, and then returns true. Before each
 * stage, forks a child if runner_should_offer() returns true. Returns false if the job has ended,
 * or if the runner has to return early to its forker. */
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

/* The body of a runner. `self` is the runner's entry in the array `child` of its forker, or NULL if
 * it is the first runner. Works until no work is ready and it has no child, the job has ended, or
 * runner_should_return() returns true. Joins or takes back all its children before it returns. */
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
    /* relaxed: only a hint. The runner that has forked c joins c early if it needs an entry for a
     * new child (child_get()), because the join will not take long. */
    fji_store_relaxed(&c->ending, 1);
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

/* Adds a * b to *sum and returns true. Returns false on overflow. */
static bool add_product(size_t *sum, size_t a, size_t b)
{
    size_t bytes;
    return !__builtin_mul_overflow(a, b, &bytes) && !__builtin_add_overflow(*sum, bytes, sum);
}

/* Allocates one memory block for the gates, the slots and the rings. Returns false if there is no
 * memory, or if the size of the block would overflow. */
static bool pipe_alloc(pipeline *p, const fj_algo_options *how)
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
    unsigned char *block = bytes <= PTRDIFF_MAX ? fji_algo_alloc_for(how, bytes) : NULL;
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

/* Passes the items that are left in slots to drop(), which is not NULL. Called after all runners
 * have returned; if the job has succeeded, no item is left. */
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
    if (!pipe_alloc(&p, how)) return FJ_ENOMEM;
    fj_task_init(&c.task, call_run);
    err = fji_job_run(&p.job, how, &c.task);
    if (drop != NULL) pipe_drop(&p, drop);
    fji_algo_free(p.gates);
    return err;
}
