/* SPDX-License-Identifier: MIT */
/*
 * queue_open.c - a worker's queue: opening, closing, and late thieves
 *
 * One thread is both owner and thief. A late thief has read the base word some time ago. Whatever
 * happened since, its CAS must fail unless the task that it saw is still there.
 */
#include "owner.h"

#define LIMIT 4096

/* ---- Opening and closing -------------------------------------------------------------------- */

static fji_queue *closable(void)
{
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    return owner_new(64, LIMIT, true);
}

/* Pushes and takes one task until the queue is closed. Returns the number of takes, or 0 if the
 * queue stays open. */
static int takes_until_closed(fji_queue *q)
{
    for (int n = 1; n <= 3 * FJI_CLOSE_AFTER; n++) {
        CHECK(owner_push_task(q, &tasks[MANY - 1]));
        take_one(q, MANY - 1);
        if (fji_base_state(q->base) == FJI_BASE_CLOSED) return n;
    }
    return 0;
}

FJ_TEST(queue_begins_closed_and_a_thief_opens_it, 10)
{
    fji_queue *q = closable();

    CHECK_EQ(fji_base_state(q->base), FJI_BASE_CLOSED);
    push_all(q, 2);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_CLOSED);
    steal_one(q, 0);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_OPEN);
    CHECK_EQ(q->openings - FJI_START_64, 1);
    CHECK_EQ(q->barriers - FJI_START_64, 1);
    CHECK(q->fast.floor == UINTPTR_MAX);
    owner_free(q);
}

FJ_TEST(open_queue_needs_no_more_heavy_fences, 10)
{
    fji_queue *q = closable();

    push_all(q, MANY);
    for (int i = 0; i < MANY; i++) steal_one(q, i);
    CHECK_EQ(q->openings - FJI_START_64, 1);
    CHECK_EQ(q->barriers - FJI_START_64, 1);
    owner_free(q);
}

FJ_TEST(queue_closes_after_as_many_takes_without_a_steal, 10)
{
    fji_queue *q = closable();

    push_all(q, 3);
    steal_one(q, 0);
    int n = takes_until_closed(q);
    CHECK(n == FJI_CLOSE_AFTER || n == FJI_CLOSE_AFTER + 1);
    CHECK(q->fast.floor == (uintptr_t)(q->cells + 1));
    steal_one(q, 1);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_OPEN);
    CHECK_EQ(q->openings - FJI_START_64, 2);
    n = takes_until_closed(q);
    CHECK(n == FJI_CLOSE_AFTER || n == FJI_CLOSE_AFTER + 1);
    take_one(q, 2);
    join_stolen(q, 1);
    join_stolen(q, 0);
    check_start(q);
    owner_free(q);
}

FJ_TEST(steal_puts_off_the_closing, 10)
{
    fji_queue *q = closable();

    push_all(q, 3);
    steal_one(q, 0);
    for (int i = 0; i < FJI_CLOSE_AFTER - 10; i++) {
        CHECK(owner_push_task(q, &tasks[MANY - 1]));
        take_one(q, MANY - 1);
    }
    steal_one(q, 1);
    CHECK(takes_until_closed(q) >= FJI_CLOSE_AFTER - 1);
    owner_free(q);
}

FJ_TEST(queue_with_tombs_stays_open, 10)
{
    fji_queue *q = closable();

    push_all(q, 3);
    take_one(q, 1);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_OPEN);
    CHECK_EQ(takes_until_closed(q), 0);
    take_one(q, 2);
    CHECK(takes_until_closed(q) != 0);
    owner_free(q);
}

FJ_TEST(symmetric_queue_never_closes, 10)
{
    fji_queue *q = owner_new(64, LIMIT, false);

    push_all(q, 3);
    CHECK_EQ(takes_until_closed(q), 0);
    CHECK_EQ(q->openings - FJI_START_64, 0);
    owner_free(q);
}

FJ_TEST(stolen_cell_comes_back_into_a_closed_queue, 10)
{
    fji_queue *q = closable();

    push_all(q, 2);
    steal_one(q, 0);
    steal_one(q, 1);
    CHECK(takes_until_closed(q) != 0);
    join_stolen(q, 1);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_CLOSED);
    CHECK_EQ(fji_base_index(q->base), 1);
    CHECK(q->fast.floor == (uintptr_t)(q->cells + 1));
    join_stolen(q, 0);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_CLOSED);
    CHECK(q->fast.floor == (uintptr_t)q->cells);
    check_start(q);
    owner_free(q);
}

FJ_TEST(thief_that_only_asked_costs_one_opening, 10)
{
    fji_queue *q = closable();

    push_all(q, 4);
    q->fast.floor = UINTPTR_MAX; /* what a thief stores before its fence */
    take_one(q, 3);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_OPEN);
    CHECK_EQ(q->openings - FJI_START_64, 1);
    for (int i = 2; i >= 0; i--) take_one(q, i);
    check_start(q);
    owner_free(q);
}

FJ_TEST(refused_heavy_fence_takes_nothing, 10)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_queue *q = closable();
    fji_taken taken;

    push_all(q, 2);
    fji_fault_set(FJI_FAULT_BARRIER, 1, 1);
    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_RETRY);
    CHECK_EQ(fji_base_index(q->base), 0);
    owner_check(q);
    steal_one(q, 0);
    take_one(q, 1);
    join_stolen(q, 0);
    check_start(q);
    owner_free(q);
}

/* ---- A late thief ---------------------------------------------------------------------------- */

/* Does the CAS of a thief that has read `b` earlier. Returns whether it succeeds. */
static bool late_take(fji_queue *q, uint64_t b)
{
    uint64_t next = fji_base_make(fji_base_epoch(b), fji_base_index(b) + 1, FJI_BASE_OPEN);
    return fji_cas_acq_rel_64(&q->base, &b, next);
}

FJ_TEST(late_thief_fails_after_its_task_was_taken_back, 10)
{
    fji_queue *q = owner_new(4, LIMIT, false);

    push_all(q, 1);
    uint64_t b = q->base;
    take_one(q, 0);
    CHECK(!late_take(q, b));
    owner_free(q);
}

/* The same two tasks and the same cells are used again and again, so only the epoch has changed. */
FJ_TEST(late_thief_fails_after_cell_and_task_were_used_again, 10)
{
    fji_queue *q = owner_new(2, 2, false);

    for (int n = 1; n <= 2; n++)
        for (int laps = 1; laps < 10; laps++) {
            push_all(q, n);
            uint64_t b = q->base;
            for (int i = 0; i < laps; i++) {
                for (int k = n; k-- > 0;) take_one(q, k);
                push_all(q, n);
            }
            CHECK(!late_take(q, b));
            for (int k = n; k-- > 0;) take_one(q, k);
        }
    owner_free(q);
}

FJ_TEST(late_thief_fails_after_another_stole_and_the_cell_came_back, 10)
{
    fji_queue *q = owner_new(2, 2, false);

    push_all(q, 1);
    uint64_t b = q->base;
    steal_one(q, 0);
    CHECK(!late_take(q, b));
    join_stolen(q, 0);
    CHECK(!late_take(q, b));
    push_all(q, 1);
    CHECK(!late_take(q, b));
    owner_free(q);
}

FJ_TEST(late_thief_fails_after_tombs_were_freed, 10)
{
    fji_queue *q = owner_new(4, LIMIT, false);

    push_all(q, 3);
    take_one(q, 0);
    uint64_t b = q->base; /* the thief is about to skip the tombstone */
    take_one(q, 2);
    take_one(q, 1);
    push_all(q, 1);
    CHECK(!late_take(q, b));
    owner_free(q);
}

FJ_TEST(late_thief_fails_after_a_closing, 10)
{
    fji_queue *q = closable();

    push_all(q, 2);
    steal_one(q, 0);
    uint64_t b = q->base;
    CHECK(takes_until_closed(q) != 0);
    CHECK(!late_take(q, b));
    owner_free(q);
}

/* While the queue is closed, the owner changes cells without changing the base word. So the base
 * word must differ after the queue is opened again. */
FJ_TEST(late_thief_fails_after_a_closing_and_an_opening, 10)
{
    fji_queue *q = closable();

    push_all(q, 3);
    steal_one(q, 0);
    uint64_t b = q->base; /* the thief is about to take task 1 */
    CHECK(takes_until_closed(q) != 0);
    take_one(q, 2);
    take_one(q, 1);
    for (int i = 5; i < 7; i++) CHECK(owner_push_task(q, &tasks[i]));
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_CLOSED);
    q->fast.floor = UINTPTR_MAX; /* what a thief stores to have the queue opened */
    take_one(q, 6);
    CHECK_EQ(fji_base_state(q->base), FJI_BASE_OPEN);
    CHECK(tasks[5].cell == q->cells + 1);
    CHECK(!late_take(q, b));
    owner_free(q);
}

FJ_TEST(late_thief_fails_after_a_compaction, 10)
{
    fji_queue *q = owner_new(4, 4, false);

    push_all(q, 4);
    take_one(q, 1);
    uint64_t b = q->base;
    CHECK(owner_push_task(q, &tasks[4]));
    owner_check(q);
    CHECK(!late_take(q, b));
    owner_free(q);
}
