/* SPDX-License-Identifier: MIT */
/*
 * queue_random.c - a worker's queue compared with a simple model, by random steps
 *
 * The model is a list of the tasks that were pushed and not yet joined, oldest first. A flag says
 * whether a task is stolen. A thief must get the oldest task without that flag. A joiner must get
 * its task if the flag is not set. In addition, a value of the base word must never occur again
 * with another task in the cell at its index, because only this makes the CAS of a late thief fail.
 */
#include <string.h>

#include "owner.h"

enum kind { PLAIN, TYPED, ACTION };

#define ITEMS 60

struct item {
    fj_task task;
    fj_type type;
    fj_cell *cell; /* of a typed task */
    enum kind kind;
    bool used, stolen;
    uint64_t stamp; /* the number of its push */
};

struct model {
    fji_queue *q;
    uint64_t random, pushes;
    struct item item[ITEMS];
    struct item *list[ITEMS]; /* pushed and not joined, oldest first */
    int n;
    uint64_t seen_base, seen_stamp; /* the last base word, and the task at its index; 0: none */
    int pushed, taken, stolen, closed, refused;
};

static int action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static int below(struct model *m, int n)
{
    return (int)(fjt_random(&m->random) % (uint64_t)n);
}

static uintptr_t what_of(const struct item *it)
{
    if (it->kind == ACTION) return FJI_ACTION;
    return it->kind == TYPED ? (uintptr_t)&it->type + FJI_TAG_TYPED : (uintptr_t)&it->task;
}

static fj_cell *cell_of(const struct item *it)
{
    return it->kind == TYPED ? it->cell : it->task.cell;
}

static void forget(struct model *m, int i)
{
    m->list[i]->used = false;
    memmove(&m->list[i], &m->list[i + 1], (size_t)(--m->n - i) * sizeof m->list[0]);
}

/* Returns the stamp of the task in the cell, or 0 if there is none. */
static uint64_t stamp_in(const struct model *m, const fj_cell *c)
{
    uintptr_t what = c->item;

    if (what <= FJI_SPECIAL) return 0;
    if (what == FJI_ACTION)
        return ((struct item *)((const uintptr_t *)(const void *)c->args)[1])->stamp;
    for (int i = 0; i < m->n; i++)
        if (what_of(m->list[i]) == what) return m->list[i]->stamp;
    return UINT64_MAX;
}

/* ---- After every step ----------------------------------------------------------------------- */

static void check_views(struct model *m)
{
    uint64_t b = m->q->base;
    const fj_cell *c = m->q->cells + fji_base_index(b);
    uint64_t stamp = stamp_in(m, c);

    if (fji_base_state(b) == FJI_BASE_OPEN && b == m->seen_base && m->seen_stamp != 0)
        CHECK(stamp == m->seen_stamp || c->item == FJI_TOMBSTONE);
    m->seen_base = b;
    m->seen_stamp = stamp;
}

static void check_model(struct model *m)
{
    uint32_t queued = 0;

    owner_check(m->q);
    for (int i = 0; i < m->n; i++) {
        const struct item *it = m->list[i];
        if (!it->stolen) queued++;
        if (it->kind != ACTION) CHECK(cell_of(it)->item == what_of(it));
    }
    CHECK_EQ(fji_queue_count(m->q), queued);
    CHECK(queued == 0 || fji_queue_maybe(m->q));
    check_views(m);
}

/* ---- The steps ------------------------------------------------------------------------------ */

/* Checks that there really is no space: compaction could not free a cell either. */
static void check_full(const fji_queue *q)
{
    uint32_t index = fji_base_index(q->base);

    CHECK_EQ(q->capacity, q->range.limit);
    for (uint32_t i = q->capacity; i-- > 0;) {
        uintptr_t what = q->cells[i].item;
        bool dead = what == FJI_TOMBSTONE || (i < index && (what & FJI_TAG_DETACHED) != 0);
        CHECK(!dead);
        if (i < index || (what & FJI_TAG_TYPED) != 0) return;
    }
}

static void push(struct model *m, enum kind kind)
{
    struct item *it = m->item;
    bool ok;

    while (it < m->item + ITEMS && it->used) it++;
    if (it == m->item + ITEMS) return;
    it->kind = kind;
    it->stolen = false;
    it->stamp = ++m->pushes;
    if (kind == TYPED)
        ok = (it->cell = owner_push(m->q, what_of(it))) != NULL;
    else if (kind == PLAIN)
        ok = owner_push_task(m->q, &it->task);
    else
        ok = owner_push_action(m->q, action, it);
    m->refused += !ok;
    if (!ok) {
        check_full(m->q);
        return;
    }
    it->used = true;
    m->list[m->n++] = it;
    m->pushed++;
}

static void join(struct model *m, int i)
{
    struct item *it = m->list[i];
    fj_cell *c = cell_of(it);

    if (it->kind == ACTION) return;
    bool ours = owner_take(m->q, c);
    CHECK_EQ(ours, !it->stolen);
    m->taken += ours;
    if (!ours) {
        check_model(m);
        owner_give_back(m->q, c);
    }
    forget(m, i);
}

static void join_youngest(struct model *m)
{
    for (int i = m->n; i-- > 0;)
        if (m->list[i]->kind != ACTION) {
            join(m, i);
            return;
        }
}

static void steal(struct model *m)
{
    fji_taken taken;
    fji_steal_result got = fji_queue_steal(m->q, &taken);
    int i = 0;

    while (i < m->n && m->list[i]->stolen) i++;
    if (i == m->n) {
        CHECK_EQ(got, FJI_STEAL_EMPTY);
        return;
    }
    struct item *it = m->list[i];
    CHECK_EQ(got, FJI_STEAL_SUCCESS);
    CHECK(taken.item == what_of(it));
    m->stolen++;
    if (it->kind == ACTION) {
        CHECK(taken.fn == (uintptr_t)action && taken.arg == (uintptr_t)it);
        forget(m, i);
    } else {
        CHECK(taken.cell == cell_of(it));
        it->stolen = true;
    }
}

/* If the topmost cell holds an action, takes it, as a worker does that empties its queue. */
static void drain_one(struct model *m)
{
    fji_queue *q = m->q;
    fj_cell *c = q->fast.top - 1;

    if (c->item != FJI_ACTION) return;
    uintptr_t arg = ((const uintptr_t *)(const void *)c->args)[1];
    if (!owner_take(q, c)) {
        owner_give_back(q, c);
        return;
    }
    CHECK(m->n > 0 && (uintptr_t)m->list[m->n - 1] == arg);
    forget(m, m->n - 1);
    m->taken++;
}

static void drain_all(struct model *m)
{
    while (m->q->fast.top > m->q->cells) {
        fj_cell *c = m->q->fast.top - 1;
        if (c->item == FJI_ACTION)
            drain_one(m);
        else
            join_youngest(m);
        check_model(m);
    }
    CHECK_EQ(m->n, 0);
    CHECK_EQ(fji_base_index(m->q->base), 0);
}

static void wild_step(struct model *m)
{
    switch (below(m, 10)) {
        case 0:
        case 1:
        case 2: push(m, PLAIN); break;
        case 3: push(m, ACTION); break;
        case 4:
            if (below(m, 4) == 0) push(m, TYPED);
            break;
        case 5:
        case 6: join_youngest(m); break;
        case 7:
            if (m->n > 0) join(m, below(m, m->n));
            break;
        case 8: steal(m); break;
        default: drain_one(m);
    }
}

/* A step without a thief. After enough of them the queue closes. */
static void quiet_step(struct model *m)
{
    if (m->n < 5 && below(m, 2) == 0)
        push(m, below(m, 2) == 0 ? PLAIN : TYPED);
    else
        join_youngest(m);
    m->closed += fji_base_state(m->q->base) == FJI_BASE_CLOSED;
}

static void walk(uint32_t first, uint32_t limit, bool asymmetric)
{
    static struct model all;
    struct model *m = &all;
    long steps = fjt_rounds(100000);

    memset(m, 0, sizeof *m);
    m->q = owner_new(first, limit, asymmetric);
    m->random = fjt_seed() + first * 1000 + limit;
    for (long i = 0; i < steps; i++) {
        bool quiet = i / 20000 % 2 == 1;
        if (i % 20000 == 0) drain_all(m);
        if (quiet)
            quiet_step(m);
        else
            wild_step(m);
        check_model(m);
    }
    drain_all(m);
    CHECK(m->pushed > 0);
    CHECK_EQ(m->taken + m->stolen, m->pushed);
    if (asymmetric && steps >= 40000) CHECK(m->closed > 0);
    owner_free(m->q);
}

FJ_TEST(random_steps_agree_with_a_list, 60)
{
    walk(2, 4096, false);
    walk(64, 4096, false);
}

FJ_TEST(random_steps_agree_with_a_list_when_it_closes, 60)
{
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    walk(2, 4096, true);
    walk(64, 4096, true);
}

FJ_TEST(random_steps_agree_with_a_list_at_the_limit, 60)
{
    static const uint32_t limits[] = {2, 4, 16, 30, 64};

    for (int i = 0; i < 5; i++) walk(2, limits[i], false);
}

FJ_TEST(random_steps_agree_with_a_list_at_the_limit_when_it_closes, 60)
{
    static const uint32_t limits[] = {8, 16, 30, 64};

    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    for (int i = 0; i < 4; i++) walk(2, limits[i], true);
}
