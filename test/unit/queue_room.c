/* SPDX-License-Identifier: MIT */
/*
 * queue_room.c - memory of a worker's queue: growth, the limit, compaction, reset
 *
 * Cells never move when the array grows. At the limit, compaction moves tasks down over dead cells.
 * It can move only plain tasks and actions: the position of a typed task is in a register of its
 * forker, and the position of a stolen task is known to its thief.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <string.h>
#include <sys/resource.h>

#include "owner.h"

static const fj_type some_type = {NULL, "some"};

static uintptr_t typed_what(void)
{
    return (uintptr_t)&some_type + FJI_TAG_TYPED;
}

static int action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

/* The argument of an action, which distinguishes it from the others. */
static void *number(long n)
{
    return (void *)(uintptr_t)n;
}

static void steal_action(fji_queue *q, long n)
{
    fji_taken taken;

    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_SUCCESS);
    CHECK(taken.item == FJI_ACTION);
    CHECK(taken.fn == (uintptr_t)action);
    CHECK(taken.arg == (uintptr_t)n);
    owner_check(q);
}

/* ---- Growth --------------------------------------------------------------------------------- */

FJ_TEST(growth_doubles_and_moves_nothing, 10)
{
    fji_queue *q = owner_new(2, 1024, false);
    fj_cell *cells = q->cells;
    uint32_t capacity = 2;

    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(owner_push_task(q, &tasks[i]));
        if (i == capacity) capacity *= 2;
        CHECK_EQ(q->capacity, capacity);
        CHECK(tasks[i].cell == cells + i);
        owner_check(q);
    }
    CHECK_EQ(fji_queue_count(q), MANY);
    for (int i = MANY; i-- > 0;) take_one(q, i);
    CHECK_EQ(q->capacity, capacity);
    check_start(q);
    owner_free(q);
}

FJ_TEST(growth_ends_at_the_limit, 10)
{
    static const uint32_t limits[] = {2, 3, 4, 5, 7, 64, 100};

    for (int k = 0; k < 7; k++) {
        fji_queue *q = owner_new(2, limits[k], false);
        push_all(q, (int)limits[k]);
        CHECK_EQ(q->capacity, limits[k]);
        CHECK(fji_queue_room(q, q->fast.top) == NULL);
        CHECK(!owner_push_task(q, &tasks[MANY - 1]));
        owner_check(q);
        take_one(q, (int)limits[k] - 1);
        CHECK(owner_push_task(q, &tasks[MANY - 1]));
        CHECK(!owner_push_task(q, &tasks[MANY - 2]));
        take_one(q, MANY - 1);
        for (int i = (int)limits[k] - 1; i-- > 0;) take_one(q, i);
        check_start(q);
        owner_free(q);
    }
}

FJ_TEST(queue_without_memory_to_grow_has_no_room_for_now, 10)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_queue *q = owner_new(4, 1024, false);

    push_all(q, 4);
    fji_fault_set(FJI_FAULT_COMMIT, 1, 2);
    CHECK(!owner_push_task(q, &tasks[4]));
    owner_check(q);
    CHECK(!owner_push_task(q, &tasks[4]));
    CHECK(owner_push_task(q, &tasks[4]));
    owner_check(q);
    CHECK_EQ(q->capacity, 8);
    for (int i = 5; i-- > 0;) take_one(q, i);
    check_start(q);
    owner_free(q);
}

FJ_TEST(queue_is_not_made_without_memory, 10)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_queue *q = fji_plat_alloc(sizeof *q);

    fji_fault_set(FJI_FAULT_COMMIT, 1, 1);
    CHECK(!fji_queue_init(q, 4, 1024, false));
    CHECK(fji_queue_init(q, 4, 1024, false));
    owner_free(q);
}

/* The queue asks for 2 GiB of addresses, and far fewer are available. */
FJ_TEST(queue_takes_fewer_addresses_when_there_are_fewer, 10)
{
    struct rlimit few = {512ul << 20, 512ul << 20};
    uint32_t limit = 1u << 25;

    if (fjt_sanitized()) fjt_skip("the sanitizer needs the addresses");
    CHECK_EQ(setrlimit(RLIMIT_AS, &few), 0);
    size_t committed;
    void *all = fji_plat_reserve((size_t)2 << 30, &committed);
    if (all != NULL) {
        fji_plat_release(all, (size_t)2 << 30, committed);
        fjt_skip("addresses cannot be limited here"); /* under an emulator */
    }
    fji_queue *q = owner_new(4, limit, false);
    CHECK(q->range.limit < limit);
    CHECK(q->range.limit >= 1024);
    push_all(q, MANY);
    for (int i = MANY; i-- > 0;) take_one(q, i);
    check_start(q);
    owner_free(q);
}

FJ_TEST(reset_queue_is_as_new, 10)
{
    fji_queue *q = owner_new(4, 1024, false);
    uint64_t b;

    push_all(q, 9);
    steal_one(q, 0);
    take_one(q, 3);
    tasks[0].cell->state = 1;
    b = q->base;
    fji_queue_reset(q);
    owner_check(q);
    check_start(q);
    CHECK(fji_base_epoch(q->base) != fji_base_epoch(b));
    push_all(q, 9);
    for (int i = 9; i-- > 0;) take_one(q, i);
    owner_free(q);
}

/* ---- Compaction ----------------------------------------------------------------------------- */

/* Forks a task and joins the oldest one, again and again. `wide` tasks are queued at a time. */
static void slide(fji_queue *q, int wide, int rounds)
{
    uint32_t others = fji_queue_count(q);

    for (int i = 0; i < wide; i++) CHECK(owner_push_task(q, &tasks[i]));
    for (int i = 0; i < rounds; i++) {
        CHECK(owner_push_task(q, &tasks[(i + wide) % MANY]));
        owner_check(q);
        take_one(q, i % MANY);
        CHECK_EQ(fji_queue_count(q), others + (uint32_t)wide);
    }
    for (int i = rounds; i < rounds + wide; i++) take_one(q, i % MANY);
}

FJ_TEST(window_of_plain_tasks_slides_beyond_the_limit, 20)
{
    for (int wide = 1; wide < 20; wide++)
        for (int asymmetric = 0; asymmetric < 2; asymmetric++) {
            fji_queue *q = owner_new(2, (uint32_t)wide + 2, asymmetric != 0);
            slide(q, wide, 2000);
            check_start(q);
            owner_free(q);
        }
}

FJ_TEST(full_window_has_no_room, 10)
{
    fji_queue *q = owner_new(2, 8, false);

    push_all(q, 8);
    CHECK(!owner_push_task(q, &tasks[8]));
    take_one(q, 2);
    CHECK(owner_push_task(q, &tasks[8]));
    owner_check(q);
    CHECK(!owner_push_task(q, &tasks[9]));
    for (int i = 0; i < 9; i++)
        if (i != 2) take_one(q, i);
    check_start(q);
    owner_free(q);
}

FJ_TEST(compaction_keeps_the_order_for_thieves, 10)
{
    fji_queue *q = owner_new(2, 16, false);

    push_all(q, 16);
    for (int i = 1; i < 16; i += 2)
        if (i != 15) take_one(q, i);
    CHECK(owner_push_task(q, &tasks[16]));
    owner_check(q);
    for (int i = 0; i < 16; i += 2) steal_one(q, i);
    steal_one(q, 15);
    steal_one(q, 16);
    CHECK(!fji_queue_maybe(q));
    owner_free(q);
}

FJ_TEST(compaction_leaves_a_typed_task_in_its_cell, 10)
{
    fji_queue *q = owner_new(2, 16, false);

    CHECK(owner_push_task(q, &tasks[MANY - 1]));
    fj_cell *typed = owner_push(q, typed_what());
    CHECK(typed != NULL);
    memset(typed->args, 0x5a, sizeof typed->args);
    slide(q, 3, 200);
    CHECK(typed->item == typed_what());
    for (size_t i = 0; i < sizeof typed->args; i++) CHECK_EQ(typed->args[i], 0x5a);
    CHECK(q->fast.top == typed + 1);
    CHECK(owner_take(q, typed));
    take_one(q, MANY - 1);
    check_start(q);
    owner_free(q);
}

FJ_TEST(window_of_typed_tasks_ends_at_the_limit, 10)
{
    fji_queue *q = owner_new(2, 16, false);
    fj_cell *cell[17];
    int n = 0;

    cell[n++] = owner_push(q, typed_what());
    while ((cell[n] = owner_push(q, typed_what())) != NULL) {
        CHECK(n < 16);
        CHECK(owner_take(q, cell[n - 1]));
        owner_check(q);
        n++;
    }
    CHECK_EQ(n, 16);
    CHECK(cell[15] == q->cells + 15);
    CHECK(owner_take(q, cell[15]));
    owner_check(q);
    check_start(q);
    owner_free(q);
}

FJ_TEST(compaction_leaves_stolen_tasks_in_their_cells, 10)
{
    fji_queue *q = owner_new(2, 16, false);

    CHECK(owner_push_task(q, &tasks[MANY - 1]));
    CHECK(owner_push_task(q, &tasks[MANY - 2]));
    steal_one(q, MANY - 1);
    steal_one(q, MANY - 2);
    tasks[MANY - 1].cell->state = 1;
    tasks[MANY - 2].cell->state = 2;
    slide(q, 3, 200);
    for (int i = MANY - 2; i < MANY; i++) {
        fj_cell *c = tasks[i].cell;
        CHECK(c == q->cells + (MANY - 1 - i));
        CHECK_EQ(c->state, MANY - i);
        CHECK(!owner_take(q, c));
        owner_give_back(q, c);
        owner_check(q);
    }
    check_start(q);
    owner_free(q);
}

FJ_TEST(compaction_drops_actions_that_were_taken, 10)
{
    fji_queue *q = owner_new(2, 8, false);

    for (long n = 0; n < 1000; n++) {
        CHECK(owner_push_action(q, action, number(n)));
        owner_check(q);
        steal_action(q, n);
    }
    owner_free(q);
}

FJ_TEST(compaction_moves_actions_with_their_arguments, 10)
{
    fji_queue *q = owner_new(2, 8, false);

    for (long n = 0; n < 5; n++) CHECK(owner_push_action(q, action, number(n)));
    for (long n = 5; n < 1000; n++) {
        CHECK(owner_push_action(q, action, number(n)));
        owner_check(q);
        steal_action(q, n - 5);
    }
    for (long n = 995; n < 1000; n++) steal_action(q, n);
    owner_free(q);
}

FJ_TEST(stolen_action_is_a_copy, 10)
{
    fji_queue *q = owner_new(2, 2, false);
    fji_taken taken;

    CHECK(owner_push_action(q, action, number(1)));
    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_SUCCESS);
    for (long n = 2; n < 9; n++) {
        CHECK(owner_push_action(q, action, number(n)));
        steal_action(q, n);
    }
    CHECK(taken.item == FJI_ACTION && taken.arg == 1);
    owner_free(q);
}

/* Compaction updates the position of a task that typed code has forked, and of a submitted task. */
FJ_TEST(compaction_tells_tasks_their_new_position, 10)
{
    fji_queue *q = owner_new(8, 8, false);
    fj_cell elsewhere[2];
    fj_task *far = &tasks[100], *submitted = &tasks[101];

    push_all(q, 2);
    CHECK(owner_push_task(q, far));
    far->cell = elsewhere;
    CHECK(owner_push(q, (uintptr_t)submitted | FJI_TAG_DETACHED) == q->cells + 3);
    submitted->cell = elsewhere;
    submitted->location = FJI_LOCATION_LOCAL | 3;
    for (int i = 4; i < 8; i++) CHECK(owner_push_task(q, &tasks[i]));
    take_one(q, 0);
    take_one(q, 1);
    CHECK(owner_push_task(q, &tasks[8]));
    owner_check(q);
    CHECK(far->cell == elsewhere && submitted->cell == elsewhere);
    CHECK_EQ(far->location, 0);
    CHECK_EQ(submitted->location, FJI_LOCATION_LOCAL | 1);
    CHECK(q->cells[0].item == (uintptr_t)far);
    CHECK(q->cells[1].item == ((uintptr_t)submitted | FJI_TAG_DETACHED));
    owner_free(q);
}
