/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a worker's queue, step by step and without threads
 *
 * One thread is both owner and thief. So each test can write down an interleaving of whole steps,
 * and can check the queue after each step. Most properties are checked for queues that start with
 * 2, 4 and 64 cells, with and without the asymmetric fence.
 */
#include "owner.h"

#define LIMIT 4096

static void for_shapes(uint32_t limit, void (*check)(fji_queue *q))
{
    static const uint32_t firsts[] = {2, 4, 64};
    bool barrier = fji_plat_has_barrier();

    for (int i = 0; i < 6; i++) {
        bool asymmetric = i % 2 == 1;
        if (asymmetric && !barrier) continue;
        fji_queue *q = owner_new(firsts[i / 2], limit, asymmetric);
        check(q);
        owner_check(q);
        owner_free(q);
    }
}

/* ---- The base word --------------------------------------------------------------------------- */

static const uint64_t epochs[] = {0, 1, 1ull << 33, (1ull << 34) - 2, (1ull << 34) - 1};
static const uint32_t indices[] = {0, 1, 2, 1u << 27, (1u << 28) - 2, (1u << 28) - 1};

FJ_TEST(base_word_keeps_its_fields_apart, 10)
{
    for (int e = 0; e < 5; e++)
        for (int i = 0; i < 6; i++)
            for (unsigned s = FJI_BASE_CLOSED; s <= FJI_BASE_LOCKED; s++) {
                uint64_t b = fji_base_make(epochs[e], indices[i], s);
                CHECK_EQ(fji_base_epoch(b), epochs[e]);
                CHECK_EQ(fji_base_index(b), indices[i]);
                CHECK_EQ(fji_base_state(b), s);
            }
}

FJ_TEST(base_epoch_wraps_and_leaves_the_rest, 10)
{
    for (int i = 0; i < 6; i++)
        for (unsigned s = FJI_BASE_CLOSED; s <= FJI_BASE_LOCKED; s++) {
            uint64_t b = fji_base_make((1ull << 36) - 1, indices[i], s);
            CHECK(fji_base_make(fji_base_epoch(b) + 1, indices[i], s) ==
                  fji_base_make(0, indices[i], s));
        }
}

static void run_with_last_epoch(fji_queue *q)
{
    q->base = fji_base_make((1ull << 36) - 2, 0, fji_base_state(q->base));
    for (int round = 0; round < 4; round++) {
        push_all(q, 3);
        steal_one(q, 0);
        for (int i = 2; i > 0; i--) take_one(q, i);
        join_stolen(q, 0);
    }
    CHECK(fji_base_epoch(q->base) < 100);
    check_start(q);
}

FJ_TEST(queue_works_on_when_the_epoch_wraps, 10)
{
    for_shapes(LIMIT, run_with_last_epoch);
}

/* ---- Push and take -------------------------------------------------------------------------- */

FJ_TEST(new_queue_is_empty, 10)
{
    for_shapes(LIMIT, check_start);
}

static void find_boundary(fji_queue *q)
{
    for (int n = 0; n < 70; n++) {
        fj_cell *b = q->cells + n;
        for (uint32_t i = 0; i <= q->capacity; i++) CHECK(fji_queue_boundary(q, q->cells + i) == b);
        CHECK(fji_queue_boundary(q, q->cells - 1) == b);
        CHECK(owner_push_task(q, &tasks[n]));
        owner_check(q);
    }
}

FJ_TEST(boundary_is_found_from_everywhere, 10)
{
    for_shapes(LIMIT, find_boundary);
}

static void youngest_first(fji_queue *q)
{
    for (int n = 1; n <= MANY; n++) {
        push_all(q, n);
        CHECK_EQ(fji_queue_count(q), n);
        CHECK(fji_queue_maybe(q));
        for (int i = n; i-- > 0;) {
            take_one(q, i);
            CHECK(q->fast.top == q->cells + i);
        }
        check_start(q);
    }
}

FJ_TEST(takes_youngest_first_end_where_they_began, 20)
{
    for_shapes(LIMIT, youngest_first);
}

static void middle_take(fji_queue *q)
{
    push_all(q, 3);
    take_one(q, 1);
    CHECK(q->cells[1].item == FJI_TOMBSTONE);
    CHECK_EQ(q->tombstones, 1);
    CHECK(q->fast.top == q->cells + 3);
    CHECK_EQ(fji_queue_count(q), 2);
    take_one(q, 2);
    CHECK_EQ(q->tombstones, 0);
    CHECK(q->fast.top == q->cells + 1);
    take_one(q, 0);
    check_start(q);
}

FJ_TEST(take_from_the_middle_leaves_a_tomb_that_is_freed_later, 10)
{
    for_shapes(LIMIT, middle_take);
}

static void oldest_first(fji_queue *q)
{
    push_all(q, 1);
    fj_cell *low = q->fast.top;
    for (int n = 1; n < MANY; n++) {
        for (int i = 1; i <= n; i++) CHECK(owner_push_task(q, &tasks[i]));
        for (int i = 1; i <= n; i++) take_one(q, i);
        CHECK(q->fast.top == low);
        CHECK_EQ(q->tombstones, 0);
    }
    take_one(q, 0);
    check_start(q);
}

FJ_TEST(takes_oldest_first_end_where_they_began, 20)
{
    for_shapes(LIMIT, oldest_first);
}

/* Typed code keeps the position of its next fork in a register, so the cells below must stay. */
static void settle_from(fji_queue *q)
{
    push_all(q, 6);
    for (int i = 1; i < 5; i++) take_one(q, i);
    fj_cell *b = q->cells + 6;
    CHECK(fji_queue_take(q, q->cells + 5, q->cells[5].item, false, &b));
    CHECK(b == q->cells + 5);
    b = fji_queue_reclaim(q, b, q->cells + 3);
    CHECK(b == q->cells + 3);
    CHECK_EQ(q->tombstones, 2);
    CHECK(fji_queue_reclaim(q, b, b) == b);
    q->fast.top = b;
    owner_check(q);
    q->fast.top = fji_queue_reclaim(q, b, q->cells);
    CHECK(q->fast.top == q->cells + 1);
    owner_check(q);
    take_one(q, 0);
    check_start(q);
}

FJ_TEST(settling_frees_no_tomb_below_its_bound, 10)
{
    for_shapes(LIMIT, settle_from);
}

static void random_order(fji_queue *q)
{
    uint64_t random = fjt_seed();
    int order[MANY];

    for (int n = 1; n <= MANY; n++) {
        push_all(q, n);
        for (int i = 0; i < n; i++) {
            int k = (int)(fjt_random(&random) % (uint64_t)(i + 1));
            order[i] = order[k];
            order[k] = i;
        }
        for (int i = 0; i < n; i++) take_one(q, order[i]);
        check_start(q);
    }
}

FJ_TEST(takes_in_random_order_end_where_they_began, 20)
{
    for_shapes(LIMIT, random_order);
}

/* ---- Steal ---------------------------------------------------------------------------------- */

static void steal_in_order(fji_queue *q)
{
    push_all(q, MANY);
    for (int i = 0; i < MANY; i++) steal_one(q, i);
    steal_nothing(q);
    for (int i = MANY; i-- > 0;) join_stolen(q, i);
    check_start(q);
}

FJ_TEST(thief_takes_the_oldest_first, 10)
{
    for_shapes(LIMIT, steal_in_order);
}

static void steal_over_tombs(fji_queue *q)
{
    push_all(q, 9);
    for (int i = 0; i < 9; i++)
        if (i % 4 != 3) take_one(q, i);
    CHECK_EQ(fji_queue_count(q), 2);
    steal_one(q, 3);
    steal_one(q, 7);
    steal_nothing(q);
    join_stolen(q, 3);
    join_stolen(q, 7);
    check_start(q);
}

FJ_TEST(thief_steps_over_tombs, 10)
{
    for_shapes(LIMIT, steal_over_tombs);
}

static void tombs_taken_by_a_thief(fji_queue *q)
{
    fji_taken taken;

    push_all(q, 5);
    for (int i = 0; i < 4; i++) take_one(q, i);
    /* Below the youngest task there are only tombstones. Its thief takes all of them, too. */
    steal_one(q, 4);
    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_EMPTY);
    CHECK_EQ(q->tombstones, 4);
    join_stolen(q, 4);
    check_start(q);
}

FJ_TEST(tombs_below_a_stolen_task_go_with_it, 10)
{
    for_shapes(LIMIT, tombs_taken_by_a_thief);
}

static void steal_between_takes(fji_queue *q)
{
    for (int n = 2; n <= 40; n++) {
        push_all(q, n);
        for (int i = 0; i < n / 2; i++) steal_one(q, i);
        for (int i = n; i-- > n / 2;) take_one(q, i);
        for (int i = n / 2; i-- > 0;) join_stolen(q, i);
        check_start(q);
    }
}

FJ_TEST(owner_and_thief_share_without_rest, 10)
{
    for_shapes(LIMIT, steal_between_takes);
}

static void give_back_in_any_order(fji_queue *q)
{
    static const int order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (int k = 0; k < 6; k++) {
        push_all(q, 3);
        for (int i = 0; i < 3; i++) steal_one(q, i);
        for (int i = 0; i < 3; i++) join_stolen(q, order[k][i]);
        check_start(q);
    }
}

FJ_TEST(stolen_cells_come_back_in_any_order, 10)
{
    for_shapes(LIMIT, give_back_in_any_order);
}

static void give_back_under_younger(fji_queue *q)
{
    push_all(q, 3);
    steal_one(q, 0);
    join_stolen(q, 0);
    CHECK(q->cells[0].item == FJI_TOMBSTONE);
    CHECK_EQ(q->tombstones, 1);
    CHECK(q->fast.top == q->cells + 3);
    take_one(q, 2);
    take_one(q, 1);
    check_start(q);
}

FJ_TEST(stolen_cell_under_younger_tasks_becomes_a_tomb, 10)
{
    for_shapes(LIMIT, give_back_under_younger);
}

static void not_asked_when_locked(fji_queue *q)
{
    fji_taken taken;
    uint64_t b = q->base;

    q->base = fji_base_make(fji_base_epoch(b), 0, FJI_BASE_LOCKED);
    CHECK_EQ(fji_queue_steal(q, &taken), FJI_STEAL_RETRY);
    CHECK(fji_queue_maybe(q));
    q->base = b;
    CHECK(!fji_queue_maybe(q));
}

FJ_TEST(locked_queue_may_have_tasks, 10)
{
    for_shapes(LIMIT, not_asked_when_locked);
}

static void steal_from_position(fji_queue *q)
{
    fji_taken taken;

    push_all(q, 3);
    CHECK_EQ(fji_queue_steal_for(q, 1, NULL, 0, 0, &taken), FJI_STEAL_EMPTY);
    steal_one(q, 0);
    CHECK_EQ(fji_queue_steal_for(q, 1, NULL, 0, 0, &taken), FJI_STEAL_SUCCESS);
    CHECK(taken.item == (uintptr_t)&tasks[1]);
    take_one(q, 2);
    join_stolen(q, 1);
    join_stolen(q, 0);
    check_start(q);
}

FJ_TEST(helper_takes_nothing_below_its_mark, 10)
{
    for_shapes(LIMIT, steal_from_position);
}

static void steal_while_linked(fji_queue *q)
{
    uint32_t first = 7, second = 8;
    fji_link links[2] = {{&first, 7}, {&second, 9}};
    fji_taken taken;

    push_all(q, 2);
    CHECK_EQ(fji_queue_steal_for(q, 0, links, 2, 0, &taken), FJI_STEAL_EMPTY);
    CHECK_EQ(fji_queue_steal_for(q, 0, links, 1, 0, &taken), FJI_STEAL_SUCCESS);
    second = 9;
    CHECK_EQ(fji_queue_steal_for(q, 0, links, 2, 0, &taken), FJI_STEAL_SUCCESS);
    join_stolen(q, 1);
    join_stolen(q, 0);
    check_start(q);
}

FJ_TEST(helper_takes_nothing_when_a_link_has_changed, 10)
{
    for_shapes(LIMIT, steal_while_linked);
}
