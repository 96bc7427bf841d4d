/* SPDX-License-Identifier: MIT */
/*
 * queue_threads.c - a worker's queue with one owner and one to three thieves
 *
 * The thread that gets a task counts this in the task, and adds the value of the task to its own
 * sum. At the end every count is 1, and the sums add up to the sum of all values. Thieves sleep now
 * and then, so that the queue closes and has to be opened again.
 */
#include <pthread.h>
#include <stdlib.h>

#include "owner.h"

#define THIEVES 3
#define DONE 1u

struct item {
    fj_task task;
    uint64_t value;
    uint32_t runs;
};

struct thief {
    fji_queue *q;
    pthread_t thread;
    uint64_t sum, random;
};

static struct thief thieves[THIEVES];
static uint32_t stop;

static uint64_t run(struct item *it)
{
    fji_add_relaxed(&it->runs, 1u);
    return it->value;
}

static int action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static void *thief_main(void *arg)
{
    struct thief *me = arg;
    fji_taken taken;

    while (fji_load_acquire(&stop) == 0) {
        fji_steal_result got = fji_queue_steal(me->q, &taken);
        if (got != FJI_STEAL_SUCCESS) {
            if (got == FJI_STEAL_EMPTY) fji_plat_yield();
            continue;
        }
        if (taken.item == FJI_ACTION) {
            me->sum += run((struct item *)taken.arg);
        } else {
            me->sum += run((struct item *)taken.item);
            fji_or_acq_rel(&taken.cell->state, DONE);
        }
        if (fjt_random(&me->random) % 64 == 0) fjt_sleep_us(300);
    }
    return NULL;
}

static void start_thieves(fji_queue *q, int n)
{
    fji_store_release(&stop, 0u);
    for (int i = 0; i < n; i++) {
        thieves[i] = (struct thief){.q = q, .random = fjt_seed() + (uint64_t)i};
        CHECK_EQ(pthread_create(&thieves[i].thread, NULL, thief_main, &thieves[i]), 0);
    }
}

/* Stops the thieves and returns the sum of their sums. */
static uint64_t end_thieves(int n)
{
    uint64_t sum = 0;

    fji_store_release(&stop, 1u);
    for (int i = 0; i < n; i++) {
        pthread_join(thieves[i].thread, NULL);
        sum += thieves[i].sum;
    }
    return sum;
}

/* Takes the task back and returns its value, or waits for its thief and returns 0. */
static uint64_t join(fji_queue *q, struct item *it)
{
    fj_cell *c = it->task.cell;

    if (owner_take(q, c)) return run(it);
    for (int i = 0; fji_load_acquire(&c->state) != DONE; i++)
        if (i % 64 == 63) fji_plat_yield();
    owner_give_back(q, c);
    return 0;
}

/* Pushes and joins n items. Returns the sum of the values that the owner got. */
typedef uint64_t owner_fn(fji_queue *q, struct item *items, long n);

static void for_thieves(uint32_t first, uint32_t limit, long n, owner_fn *owner)
{
    struct item *items = calloc((size_t)n, sizeof *items);
    bool barrier = fji_plat_has_barrier();

    CHECK(items != NULL);
    for (int k = 1; k <= THIEVES; k++)
        for (int asymmetric = 0; asymmetric <= (barrier ? 1 : 0); asymmetric++) {
            fji_queue *q = owner_new(first, limit, asymmetric != 0);
            uint64_t want = 0;
            for (long i = 0; i < n; i++) {
                items[i].value = (uint64_t)i * 3 + 1;
                items[i].runs = 0;
                want += items[i].value;
            }
            start_thieves(q, k);
            uint64_t got = owner(q, items, n);
            got += end_thieves(k);
            for (long i = 0; i < n; i++) CHECK_EQ(items[i].runs, 1);
            CHECK(got == want);
            owner_check(q);
            owner_free(q);
        }
    free(items);
}

/* ---- Access patterns of the owner ------------------------------------------------------------ */

/* A binary tree: pushes a task, handles half of the others, joins the task, handles the rest. */
static uint64_t tree(fji_queue *q, struct item *items, long n)
{
    uint64_t sum = 0;

    if (n == 0) return 0;
    CHECK(owner_push_task(q, &items[0].task));
    sum += tree(q, items + 1, (n - 1) / 2);
    sum += join(q, &items[0]);
    return sum + tree(q, items + 1 + (n - 1) / 2, n - 1 - (n - 1) / 2);
}

FJ_TEST(every_task_of_a_tree_is_taken_once, 60)
{
    for_thieves(2, 4096, fjt_rounds(1000000), tree);
}

static uint64_t all_then_joins(fji_queue *q, struct item *items, long n)
{
    uint64_t sum = 0;

    for (long i = 0; i < n; i++) CHECK(owner_push_task(q, &items[i].task));
    for (long i = n; i-- > 0;) sum += join(q, &items[i]);
    CHECK(q->fast.top == q->cells);
    return sum;
}

FJ_TEST(every_task_is_taken_once_while_the_queue_grows_from_2, 120)
{
    for_thieves(2, 1u << 20, fjt_rounds(1000000), all_then_joins);
}

/* Up to 100 tasks are queued. Usually the youngest is joined, sometimes any other. The boundary may
 * then move up, and stolen tasks keep their cells, so the queue may become full. A task that finds
 * no space is run at once, as by a fork. */
static uint64_t any_order(fji_queue *q, struct item *items, long n)
{
    struct item *out[100];
    uint64_t random = fjt_seed(), sum = 0;
    long next = 0;
    int wide = 0;

    while (next < n || wide > 0) {
        uint64_t r = fjt_random(&random);
        if (next < n && wide < 100 && r % 8 < 4) {
            struct item *it = &items[next++];
            if (owner_push_task(q, &it->task))
                out[wide++] = it;
            else
                sum += run(it);
        } else if (wide > 0) {
            int i = r % 8 == 7 ? (int)(r / 8 % (uint64_t)wide) : wide - 1;
            struct item *it = out[i];
            for (; i < wide - 1; i++) out[i] = out[i + 1];
            wide--;
            sum += join(q, it);
        }
    }
    CHECK(q->fast.top == q->cells);
    return sum;
}

FJ_TEST(every_task_is_taken_once_when_joined_in_any_order, 60)
{
    for_thieves(2, 4096, fjt_rounds(1000000), any_order);
}

static uint64_t oldest_first(fji_queue *q, struct item *items, long n)
{
    uint64_t sum = 0;

    for (long i = 0; i < n;) {
        long wide = i % 37 + 1 < n - i ? i % 37 + 1 : n - i;
        for (long k = 0; k < wide; k++) CHECK(owner_push_task(q, &items[i + k].task));
        for (long k = 0; k < wide; k++) sum += join(q, &items[i + k]);
        CHECK(q->fast.top == q->cells);
        i += wide;
    }
    return sum;
}

FJ_TEST(every_task_is_taken_once_when_joined_oldest_first, 60)
{
    for_thieves(4, 4096, fjt_rounds(1000000), oldest_first);
}

/* A sliding window: the queue is compacted while thieves use it. */
static uint64_t window(fji_queue *q, struct item *items, long n)
{
    uint64_t sum = 0;
    long oldest = 0;

    for (long i = 0; i < n; i++) {
        while (!owner_push_task(q, &items[i].task)) sum += join(q, &items[oldest++]);
        if (i - oldest >= 10) sum += join(q, &items[oldest++]);
    }
    while (oldest < n) sum += join(q, &items[oldest++]);
    CHECK(q->fast.top == q->cells);
    return sum;
}

FJ_TEST(every_task_of_a_sliding_window_is_taken_once, 60)
{
    for_thieves(2, 16, fjt_rounds(1000000), window);
}

/* The owner runs the actions that find no space, and at the end those that no thief has taken. */
static uint64_t actions(fji_queue *q, struct item *items, long n)
{
    uint64_t sum = 0;

    for (long i = 0; i < n; i++)
        if (!owner_push_action(q, action, &items[i])) sum += run(&items[i]);
    while (q->fast.top > q->cells) {
        fj_cell *c = q->fast.top - 1;
        struct item *it = (struct item *)((const uintptr_t *)(const void *)c->args)[1];
        if (owner_take(q, c))
            sum += run(it);
        else
            owner_give_back(q, c);
    }
    return sum;
}

FJ_TEST(every_action_is_taken_once_while_the_queue_is_compacted, 60)
{
    for_thieves(2, 16, fjt_rounds(1000000), actions);
}

/* ---- The same addresses again and again ------------------------------------------------------ */

/* Two tasks in two cells. A late thief may find the task that it saw in the cell where it saw it,
 * and still must not get it. */
static void two_tasks(int n, bool asymmetric, long rounds)
{
    static struct item two[2];
    fji_queue *q = owner_new(2, 2, asymmetric);
    uint64_t want = 0, got = 0;

    two[0].runs = two[1].runs = 0;
    start_thieves(q, n);
    for (long i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++) {
            two[k].value = (uint64_t)(i * 2 + k);
            want += two[k].value;
            CHECK(owner_push_task(q, &two[k].task));
        }
        int first = i % 3 == 0 ? 0 : 1;
        got += join(q, &two[first]);
        got += join(q, &two[1 - first]);
        for (int k = 0; k < 2; k++) CHECK_EQ(fji_load_relaxed(&two[k].runs), i + 1);
    }
    got += end_thieves(n);
    CHECK(got == want);
    owner_check(q);
    owner_free(q);
}

FJ_TEST(two_tasks_in_two_cells_are_taken_once_each_time, 60)
{
    for (int n = 1; n <= THIEVES; n++) two_tasks(n, false, fjt_rounds(300000));
}

FJ_TEST(two_tasks_in_two_cells_are_taken_once_each_time_when_it_closes, 60)
{
    if (!fji_plat_has_barrier()) fjt_skip("there is no heavy fence");
    for (int n = 1; n <= THIEVES; n++) two_tasks(n, true, fjt_rounds(300000));
}
