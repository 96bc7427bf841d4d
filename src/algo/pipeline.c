/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - items on their way through stages
 *
 * An item has one of `max_in_flight` places from the call of the first stage that makes it until it
 * has left the last. When it is made it gets a number: 0, 1, 2, ...
 *
 * A stage that takes one item at a time is a gate with a ring of places, one for each item
 * there can be, and the position of the next to go in: its number at an ordered stage, the
 * order of arrival at a serial one. An item that comes when it is its turn and the gate is
 * open goes in at once; else it lies down at its position. A parallel stage has no gate: who
 * brings an item goes on with it.
 *
 *     gate   shut: somebody is in      ring   [ . . 7 . 9 ]     8 is still on its way:
 *            open: next = 8                                     nobody can go in
 *
 * An item that a stage has set to NULL keeps its place and its number until it is through the
 * last ordered stage, without being shown to any stage: so the numbers from `next` on are all
 * under way, there are at most as many of them as places, and no two want the same position
 * of a ring.
 *
 * Runners. Something is ready when an item lies at the open gate of its turn, or when the
 * first stage may be called: a place is free, it is not the end, the gate is open. A runner
 * takes something that is ready, the latest stage first so that items leave, runs the stage,
 * and goes on with the item as far as it can. If more is ready then, and if somebody wants it,
 * it forks another runner; one is on offer at a time, and whoever takes it may offer the next.
 * A runner that finds nothing ready joins one of those it has forked, looks again, and so on
 * until it has none; then it returns. It never waits for an item, but looks some times more
 * before it joins one that somebody has taken, since that may take as long as the pipeline.
 *
 * A worker that waits in a join is lost to the pipeline, or has to be replaced by another
 * thread. Therefore a runner that is waited for goes home, that is, returns with an empty hand
 * although something may be ready, if nobody has come for a while for what it offers, or if
 * many wait. Then the one that waits goes on, and its own worker may come for what that offers.
 * So those that wait stay few, also those that wait below others on one stack: a worker that
 * waits for a runner may run one that this has forked.
 *
 * All this is changed under one lock, held for some instructions and never while a stage runs.
 *
 * Nothing is left lying
 *   L1  A runner returns with an empty hand, all it has forked joined. The first one returns
 *       only if it has found nothing ready after the last of these joins. Of any other one the
 *       forker looks again after having joined it. So the last look of all is that of the
 *       first runner, when there is no other one any more, and finds nothing ready.
 *   L2  When there is no runner but one that looks, nothing is in a stage, so every gate is
 *       open. Of all that lie at gates take the item with the lowest number: at a serial stage
 *       some item is ready. At an ordered one all lower numbers are through, as they are not
 *       under way at all: it is its turn, and it is ready.
 *   L3  So by L1 and L2 there is no item at the end, all places are free, every gate is open:
 *       as the first stage may not be called either, it has said that it is the end.
 *   Everything that becomes ready is looked at soon: whoever makes it ready is a runner, and
 *   comes to look with an empty hand, or goes home to one that does.
 *
 * Errors. A code, or that it is cancelled, ends the job: no stage is called any more, every
 * runner returns as soon as its stage does. An item whose stage has run, and has not set it to
 * NULL, is under way also if that is the stage that failed. When all runners are gone the
 * caller drops what is left in the places, one after the other.
 */
#include <string.h>

#include "../plat/plat.h"
#include "../plat/ticks.h"
#include "scratch.h"
#include "split.h"

enum {
    CHILDREN_MAX = 8, /* runners that one may have forked */
    WAITING_MAX = 8,  /* of those that wait */
    LINGER_MAX = 20,  /* looks before a join */
};

/* About nanoseconds: between two looks of one that lingers; how long an offer is left standing
 * by one that could go home. */
#define LINGER_TICKS 500u
#define OFFER_TICKS 50000u

typedef struct runner runner;

/* The place of an item. */
typedef struct item {
    void *data; /* NULL: none, or it goes no further */
    size_t number;
    struct item *next; /* free places */
} item;

/* The state of a stage that takes one item at a time. */
typedef struct gate {
    item **ring;
    size_t next; /* position that goes in next */
    size_t end;  /* of a serial stage: positions given so far */
    bool closed;
} gate;

typedef struct pipeline {
    fji_job job;
    const fj_stage *stages;
    size_t n;
    size_t max_in_flight;
    size_t mask;         /* of positions in a ring */
    size_t last_ordered; /* the last ordered stage; 0: none, or the first */
    gate *gates;         /* one for each stage */
    item *items;

    _Alignas(64) fji_lock lock; /* of all below, the gates and the rings */
    bool ended;                 /* the first stage has no more */
    runner *offerer;            /* has forked a runner that nobody has begun; NULL: there is none */
    uint64_t offered_at;        /* when, in ticks */
    int waiting;                /* runners that wait for another */
    size_t ready;               /* gates that an item may go in at */
    size_t used;                /* places that were ever used, all before this */
    item *free;                 /* of these, those that are free */
    size_t next_number;         /* the next number */
} pipeline;

/* A runner that somebody has forked. */
typedef struct child {
    fj_task task;
    pipeline *pipe;
    bool used;
    bool awaited; /* its forker waits for it; under the lock */
    int ending;   /* it is about to return */
} child;

struct runner {
    pipeline *pipe;
    child *self;  /* NULL: the first runner */
    int children; /* how many are used */
    int lingered; /* how often, since something was ready */
    child child[CHILDREN_MAX];
};

/* What a runner has in hand: an item that may go through a stage. NULL: nothing. */
typedef struct position {
    item *item;
    size_t stage;
} position;

/* ---- Gates (under the lock) ------------------------------------------------------------------ */

static bool has_gate(const pipeline *p, size_t stage)
{
    return p->stages[stage].kind != FJ_STAGE_PARALLEL;
}

/* x comes to a gate: true if it goes in, else it lies down there. */
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

static void gate_open(pipeline *p, size_t stage)
{
    gate *g = &p->gates[stage];

    g->closed = false;
    if (stage != 0 && g->ring[g->next & p->mask] != NULL) p->ready++;
}

/* Takes the item whose turn it is at the latest gate where there is one. */
static position gate_take(pipeline *p)
{
    for (size_t s = p->n - 1;; s--) {
        gate *g = &p->gates[s];
        if (g->ring == NULL || g->closed || g->ring[g->next & p->mask] == NULL) continue;
        position h = {g->ring[g->next & p->mask], s};
        g->ring[g->next++ & p->mask] = NULL;
        g->closed = true;
        p->ready--;
        return h;
    }
}

/* ---- Places (under the lock) ----------------------------------------------------------------- */

/* Whether the first stage may be called. */
static bool can_make(const pipeline *p)
{
    return !p->ended && !p->gates[0].closed && (p->free != NULL || p->used < p->max_in_flight);
}

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

/* ---- Going on (under the lock) --------------------------------------------------------------- */

/* The stage that x comes to after `stage`; p->n: it is through. */
static size_t stage_after(const pipeline *p, size_t stage, const item *x)
{
    if (FJI_LIKELY(x->data != NULL)) return stage + 1;
    do stage++;
    while (stage <= p->last_ordered && p->stages[stage].kind != FJ_STAGE_ORDERED);
    return stage <= p->last_ordered ? stage : p->n;
}

/* h has been through its stage; what is in hand then: the same item, or nothing. */
static position advance(pipeline *p, position h)
{
    const position nothing = {NULL, 0};
    item *x = h.item;

    if (has_gate(p, h.stage)) gate_open(p, h.stage);
    if (h.stage == 0) {
        if (x->data == NULL) {
            p->ended = true;
            slot_free(p, x);
            return nothing;
        }
        x->number = p->next_number++;
    }
    h.stage = stage_after(p, h.stage, x);
    if (h.stage < p->n) return !has_gate(p, h.stage) || gate_arrive(p, h.stage, x) ? h : nothing;
    slot_free(p, x);
    return nothing;
}

/* ---- Runners --------------------------------------------------------------------------------- */

static int child_run(fj_task *t);

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

/* One that is not in use; NULL: there is none. */
static child *child_get(runner *r)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        child *c = &r->child[i];
        /* relaxed: its join gives the order, and does not take long. */
        if (r->children == CHILDREN_MAX && fji_load_relaxed(&c->ending) != 0) child_wait(r, c);
        if (!c->used) return c;
    }
    return NULL;
}

/* Lets a moment pass, unless there were enough of them: false. */
static bool runner_linger(runner *r)
{
    /* relaxed: a code is all there is to know. */
    if (r->lingered == LINGER_MAX || fji_load_relaxed(&r->pipe->job.code) != FJ_OK) return false;
    r->lingered++;
    for (uint64_t begin = fji_ticks(); fji_ticks() - begin < LINGER_TICKS;) fji_pause();
    return true;
}

/* Nothing is ready: joins one of the children, or lingers; false: there is none. */
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

/* Whether there is something for another runner (under the lock), which is then to be forked. */
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

    if (c == NULL) { /* the others may offer one */
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

/* Whether a runner with an empty hand is of more use at home (under the lock). */
static bool runner_should_return(runner *r)
{
    pipeline *p = r->pipe;

    if (r->self == NULL || !r->self->awaited) return false;
    if (p->waiting >= WAITING_MAX) return true;
    if (p->offerer != r || r->children != 1) return false;
    return fji_ticks() - p->offered_at > OFFER_TICKS;
}

/* Runs a stage on an item; false: the job is over. */
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

/* Runs the stage, and those that follow as far as no gate has to be opened or passed. */
static bool position_run(pipeline *p, position *h)
{
    if (!stage_run(p, h->item, h->stage)) return false;
    while (h->stage != 0 && h->item->data != NULL && !has_gate(p, h->stage) &&
           h->stage + 1 < p->n && !has_gate(p, h->stage + 1))
        if (!stage_run(p, h->item, ++h->stage)) return false;
    return true;
}

/* Something that is ready (under the lock). */
static position runner_take(pipeline *p)
{
    if (p->ready != 0) return gate_take(p);
    return can_make(p) ? slot_take(p) : (position){NULL, 0};
}

/* Takes and runs until nothing is ready; false: the job is over, or it goes home. */
static bool runner_work(runner *r)
{
    pipeline *p = r->pipe;
    bool on = true;

    fji_lock_take(&p->lock);
    position h = runner_take(p);
    if (h.item != NULL) r->lingered = 0;
    while (h.item != NULL) {
        bool offers = runner_should_offer(r);
        fji_lock_drop(&p->lock);
        if (FJI_UNLIKELY(offers)) runner_fork(r);
        on = position_run(p, &h);
        fji_lock_take(&p->lock);
        if (!on) break;
        h = advance(p, h);
        if (h.item != NULL) continue;
        on = !runner_should_return(r);
        if (on) h = runner_take(p);
    }
    fji_lock_drop(&p->lock);
    return on;
}

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
    fji_store_relaxed(&c->ending, 1); /* relaxed: a hint */
    return FJ_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

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

/* Adds a * b to *sum; false: too much. */
static bool add_product(size_t *sum, size_t a, size_t b)
{
    size_t bytes;
    return !__builtin_mul_overflow(a, b, &bytes) && !__builtin_add_overflow(*sum, bytes, sum);
}

/* One block for gates, places and rings. */
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

/* Everything has ended: what is left in the places is nobody's. */
static void pipe_drop(pipeline *p, void (*drop)(void *item))
{
    for (size_t i = 0; i < p->used; i++)
        if (p->items[i].data != NULL) drop(p->items[i].data);
}

int fj_pipeline(const fj_stage *stages, size_t n, size_t max_in_flight, void (*drop)(void *item),
                const fj_algo_options *how)
{
    pipeline p = {.stages = stages, .n = n, .max_in_flight = max_in_flight};
    call w = {.pipe = &p};

    if (stages == NULL || n == 0 || max_in_flight == 0 || !fji_fits(n, sizeof *stages))
        return FJ_EINVAL;
    if (!stages_valid(stages, n)) return FJ_EINVAL;
    int err = fji_job_init(&p.job, how, 0);
    if (err != FJ_OK) return err;
    for (size_t i = 1; i < n; i++)
        if (stages[i].kind == FJ_STAGE_ORDERED) p.last_ordered = i;
    if (!pipe_alloc(&p)) return FJ_ENOMEM;
    fj_task_init(&w.task, call_run);
    err = fji_job_run(&p.job, how, &w.task);
    if (drop != NULL) pipe_drop(&p, drop);
    fji_algo_free(p.gates);
    return err;
}
