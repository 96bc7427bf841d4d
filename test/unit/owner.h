/* SPDX-License-Identifier: MIT */
/*
 * owner.h - a worker's queue without a worker: helpers for the tests of the queue
 *
 * Push and take are fj_fork() and fj_join() without the pool: first the same fast path (fji_pop()),
 * then the same slow path. The boundary is in hot.top, as for plain tasks.
 */
#ifndef FJT_OWNER_H
#define FJT_OWNER_H

#include "fjtest.h"
#include "queue/queue.h"

static inline fji_queue *owner_new(uint32_t first, uint32_t limit, bool asymmetric)
{
    fji_queue *q = fji_plat_alloc(sizeof *q);

    CHECK(q != NULL);
    CHECK(fji_queue_init(q, first, limit, asymmetric));
    return q;
}

static inline void owner_free(fji_queue *q)
{
    fji_queue_fini(q);
    fji_plat_free(q);
}

/* Checks a queue that no thread is using: its invariants, and that hot.top is the boundary. */
static inline void owner_check(fji_queue *q)
{
    unsigned state = fji_base_state(q->base);

    CHECK(fji_queue_valid(q));
    CHECK(fji_queue_boundary(q, q->fast.top) == q->fast.top);
    CHECK(q->fast.top->item == FJI_FREE || q->fast.top->item == FJI_END);
    CHECK(q->fast.top[-1].item != FJI_FREE);
    if (state == FJI_BASE_OPEN) CHECK(q->fast.floor == UINTPTR_MAX);
    if (!q->asymmetric) CHECK_EQ(state, FJI_BASE_OPEN);
}

/* Returns the cell, or NULL if there was no space. */
static inline fj_cell *owner_push(fji_queue *q, uintptr_t what)
{
    fj_cell *p = fji_queue_room(q, q->fast.top);

    if (p == NULL) return NULL;
    q->fast.top = p + 1;
    fji_store_release(&p->item, what);
    FJI_LIGHT_FENCE();
    return p;
}

static inline bool owner_push_task(fji_queue *q, fj_task *t)
{
    fj_cell *p = fji_queue_room(q, q->fast.top);

    if (p == NULL) return false;
    t->cell = p;
    t->location = fji_queue_position(q, p);
    q->fast.top = p + 1;
    fji_store_release(&p->item, (uintptr_t)t);
    FJI_LIGHT_FENCE();
    return true;
}

static inline bool owner_push_action(fji_queue *q, fj_action_fn *fn, void *arg)
{
    fj_cell *p = fji_queue_room(q, q->fast.top);

    if (p == NULL) return false;
    fji_cell_put_action(p, fn, arg);
    q->fast.top = p + 1;
    fji_store_release(&p->item, FJI_ACTION);
    FJI_LIGHT_FENCE();
    return true;
}

/* Returns true if the owner got the task, false if a thief has it. */
static inline bool owner_take(fji_queue *q, fj_cell *c)
{
    fj_cell *boundary = q->fast.top;
    uintptr_t what = c->item;
    int got = fji_pop(&q->fast, c);

    if (got > 0) {
        q->fast.top = c;
        return true;
    }
    if (!fji_queue_take(q, c, what, got < 0, &boundary)) return false;
    q->fast.top = fji_queue_reclaim(q, boundary, q->cells);
    return true;
}

/* Gives the cell c back after its thief has finished the task. */
static inline void owner_give_back(fji_queue *q, fj_cell *c)
{
    fji_store_relaxed(&c->state, 0u);
    q->fast.top = fji_queue_reclaim(q, fji_queue_give_back(q, c), q->cells);
}

/* ---- The tasks of a test ------------------------------------------------------------------- */

#define MANY 300

static fj_task tasks[MANY];

static inline void push_all(fji_queue *q, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK(owner_push_task(q, &tasks[i]));
        owner_check(q);
    }
}

static inline void take_one(fji_queue *q, int i)
{
    CHECK(tasks[i].cell->item == (uintptr_t)&tasks[i]);
    CHECK(owner_take(q, tasks[i].cell));
    owner_check(q);
}

static inline fj_cell *steal_one(fji_queue *q, int i)
{
    fji_taken taken;

    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_SUCCESS);
    CHECK(taken.item == (uintptr_t)&tasks[i]);
    CHECK(taken.cell == tasks[i].cell);
    owner_check(q);
    return taken.cell;
}

static inline void steal_nothing(fji_queue *q)
{
    fji_taken taken;

    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_EMPTY);
    CHECK_EQ(fji_queue_count(q), 0);
}

/* The joiner finds its task stolen, the thief finishes, and the joiner gives the cell back. */
static inline void join_stolen(fji_queue *q, int i)
{
    fj_cell *c = tasks[i].cell;
    fj_cell *top = q->fast.top;

    CHECK(!owner_take(q, c));
    CHECK(c->item == (uintptr_t)&tasks[i]);
    CHECK(q->fast.top == top);
    owner_check(q);
    owner_give_back(q, c);
    owner_check(q);
}

static inline void check_start(fji_queue *q)
{
    CHECK(q->fast.top == q->cells);
    CHECK_EQ(fji_base_index(q->base), 0);
    CHECK_EQ(q->tombstones, 0);
    steal_nothing(q);
}

#endif /* FJT_OWNER_H */
