/* SPDX-License-Identifier: MIT */
/*
 * subq.c - the submission queue: first in, first out, several pushers under a lock
 *
 * The tests go step by step in one thread, then by random steps that are compared with a list, then
 * with threads that push, take back and steal at the same time. At the end of the last ones, the
 * sum of the values that were pushed is the sum of the values that were taken.
 */
#include <pthread.h>
#include <string.h>

#include "fjtest.h"
#include "queue/submission_queue.h"

#define MANY 300

static fj_task tasks[MANY];

static uintptr_t what_of(int i)
{
    return (uintptr_t)&tasks[i];
}

static int action(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static fji_submission_queue *subq_new(uint32_t first, uint32_t limit)
{
    fji_submission_queue *q = fji_plat_alloc(sizeof *q);

    CHECK(q != NULL);
    CHECK(fji_submission_queue_init(q, first, limit));
    return q;
}

static void subq_free(fji_submission_queue *q)
{
    fji_submission_queue_fini(q);
    fji_plat_free(q);
}

/* The caller holds the lock. */
static bool append(fji_submission_queue *q, const fji_taken *it, uint32_t *number)
{
    return fji_submission_queue_push(q, it, number);
}

static bool push(fji_submission_queue *q, int i)
{
    fji_taken it = {.item = what_of(i)};

    fji_lock_take(&q->lock);
    bool ok = append(q, &it, &tasks[i].number);
    fji_lock_drop(&q->lock);
    return ok;
}

static bool push_action(fji_submission_queue *q, long n)
{
    fji_taken it = {.item = FJI_ACTION, .fn = (uintptr_t)action, .arg = (uintptr_t)n};
    uint32_t number;

    fji_lock_take(&q->lock);
    bool ok = append(q, &it, &number);
    fji_lock_drop(&q->lock);
    return ok;
}

static bool take_back(fji_submission_queue *q, int i)
{
    fji_lock_take(&q->lock);
    bool ok = fji_submission_queue_remove(q, what_of(i), tasks[i].number);
    fji_lock_drop(&q->lock);
    return ok;
}

static void steal_is(fji_submission_queue *q, int i)
{
    fji_taken taken;

    CHECK(fji_submission_queue_maybe(q));
    CHECK_EQ(fji_submission_queue_steal(q, &taken), FJI_STEAL_SUCCESS);
    CHECK(taken.item == what_of(i));
    CHECK(taken.cell == NULL);
}

static void check_empty(fji_submission_queue *q)
{
    fji_taken taken;

    CHECK_EQ(fji_submission_queue_steal(q, &taken), FJI_STEAL_EMPTY);
    CHECK(!fji_submission_queue_maybe(q));
    CHECK_EQ(fji_submission_queue_count(q), 0);
}

/* ---- Step by step --------------------------------------------------------------------------- */

FJ_TEST(submissions_are_taken_first_in_first_out, 10)
{
    static const uint32_t firsts[] = {2, 4, 64};

    for (int k = 0; k < 3; k++) {
        fji_submission_queue *q = subq_new(firsts[k], 4096);
        check_empty(q);
        for (int i = 0; i < MANY; i++) {
            CHECK(push(q, i));
            CHECK_EQ(fji_submission_queue_count(q), i + 1);
        }
        for (int i = 0; i < MANY; i++) steal_is(q, i);
        check_empty(q);
        subq_free(q);
    }
}

FJ_TEST(submission_queue_doubles_and_moves_nothing, 10)
{
    fji_submission_queue *q = subq_new(2, 4096);
    const fji_slot *slots = q->slots;

    for (int i = 0; i < MANY; i++) CHECK(push(q, i));
    CHECK_EQ(q->capacity, 512);
    CHECK(q->slots == slots);
    for (int i = 0; i < MANY; i++) CHECK(slots[i].item == what_of(i));
    subq_free(q);
}

FJ_TEST(few_submissions_at_a_time_need_no_growth, 10)
{
    for (int wide = 1; wide < 8; wide++) {
        fji_submission_queue *q = subq_new(16, 4096);
        for (int i = 0; i < wide; i++) CHECK(push(q, i));
        for (int i = 0; i < 5000; i++) {
            CHECK(push(q, (i + wide) % MANY));
            steal_is(q, i % MANY);
            CHECK_EQ(fji_submission_queue_count(q), wide);
        }
        CHECK_EQ(q->capacity, 16);
        subq_free(q);
    }
}

FJ_TEST(full_submission_queue_refuses_and_changes_nothing, 10)
{
    fji_submission_queue *q = subq_new(2, 5);

    for (int i = 0; i < 5; i++) CHECK(push(q, i));
    CHECK_EQ(q->capacity, 5);
    CHECK(!push(q, 5));
    CHECK_EQ(fji_submission_queue_count(q), 5);
    CHECK_EQ(q->pushed - FJI_START_64, 5);
    steal_is(q, 0);
    CHECK(push(q, 5));
    CHECK(!push(q, 6));
    for (int i = 1; i <= 5; i++) steal_is(q, i);
    check_empty(q);
    subq_free(q);
}

FJ_TEST(submission_queue_without_memory_to_grow_refuses_for_now, 10)
{
    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_submission_queue *q = subq_new(2, 4096);

    CHECK(push(q, 0) && push(q, 1));
    fji_fault_set(FJI_FAULT_COMMIT, 1, 1);
    CHECK(!push(q, 2));
    CHECK(push(q, 2));
    for (int i = 0; i < 3; i++) steal_is(q, i);
    check_empty(q);
    subq_free(q);
    q = fji_plat_alloc(sizeof *q);
    fji_fault_set(FJI_FAULT_COMMIT, 1, 1);
    CHECK(!fji_submission_queue_init(q, 2, 4096));
    fji_plat_free(q);
}

FJ_TEST(submitted_action_keeps_function_and_argument, 10)
{
    fji_submission_queue *q = subq_new(4, 8);
    fji_taken taken;

    for (long n = 0; n < 5; n++) CHECK(push_action(q, n));
    for (long n = 5; n < 500; n++) {
        CHECK(push_action(q, n));
        CHECK_EQ(fji_submission_queue_steal(q, &taken), FJI_STEAL_SUCCESS);
        CHECK(taken.item == FJI_ACTION && taken.fn == (uintptr_t)action);
        CHECK_EQ(taken.arg, n - 5);
    }
    subq_free(q);
}

/* A batch has at most half of the queued actions, rounded up, oldest first. */
FJ_TEST(batch_of_actions_is_half_of_them_in_order, 10)
{
    fji_taken taken[FJI_SUBMISSIONS_BATCH];

    for (uint32_t n = 1; n < 40; n++) {
        fji_submission_queue *q = subq_new(4, 64);
        for (uint32_t i = 0; i < n; i++) CHECK(push_action(q, i));
        for (uint32_t next = 0; next < n;) {
            uint32_t got = 0, half = (n - next + 1) / 2;
            CHECK_EQ(fji_submission_queue_steal_some(q, taken, &got), FJI_STEAL_SUCCESS);
            CHECK(got >= 1 && got <= FJI_SUBMISSIONS_BATCH && got <= half);
            for (uint32_t i = 0; i < got; i++) {
                CHECK(taken[i].item == FJI_ACTION && taken[i].fn == (uintptr_t)action);
                CHECK_EQ(taken[i].arg, next++);
            }
            CHECK_EQ(fji_submission_queue_count(q), n - next);
        }
        check_empty(q);
        subq_free(q);
    }
}

FJ_TEST(batch_ends_before_a_task, 10)
{
    fji_submission_queue *q = subq_new(4, 64);
    fji_taken taken[FJI_SUBMISSIONS_BATCH];
    uint32_t got = 0, actions = 0;

    for (int i = 0; i < 3; i++) CHECK(push_action(q, i));
    CHECK(push(q, 0) && push(q, 1));
    for (int i = 3; i < 9; i++) CHECK(push_action(q, i));
    while (actions < 3) {
        CHECK_EQ(fji_submission_queue_steal_some(q, taken, &got), FJI_STEAL_SUCCESS);
        CHECK(taken[0].item == FJI_ACTION);
        actions += got;
    }
    CHECK_EQ(actions, 3);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fji_submission_queue_steal_some(q, taken, &got), FJI_STEAL_SUCCESS);
        CHECK_EQ(got, 1);
        CHECK(taken[0].item == what_of(i));
    }
    CHECK_EQ(fji_submission_queue_count(q), 6);
    subq_free(q);
}

FJ_TEST(submission_is_taken_back_from_everywhere, 10)
{
    for (int n = 1; n <= 20; n++)
        for (int k = 0; k < n; k++) {
            fji_submission_queue *q = subq_new(4, 64);
            for (int i = 0; i < n; i++) CHECK(push(q, i));
            CHECK(take_back(q, k));
            CHECK(!take_back(q, k));
            CHECK_EQ(fji_submission_queue_count(q), n - 1);
            CHECK(push(q, n));
            for (int i = 0; i <= n; i++)
                if (i != k) steal_is(q, i);
            check_empty(q);
            subq_free(q);
        }
}

/* One task stays at the front, while others are pushed and taken back behind it. */
FJ_TEST(submissions_taken_back_leave_their_room, 10)
{
    fji_submission_queue *q = subq_new(4, 16);

    CHECK(push(q, 0));
    for (int i = 0; i < 1000; i++) {
        for (int k = 1; k <= 3; k++) CHECK(push(q, k));
        for (int k = 1; k <= 3; k++) CHECK(take_back(q, i % 2 == 0 ? k : 4 - k));
        CHECK_EQ(fji_submission_queue_count(q), 1);
    }
    steal_is(q, 0);
    check_empty(q);
    subq_free(q);
}

FJ_TEST(submission_that_was_stolen_is_not_taken_back, 10)
{
    fji_submission_queue *q = subq_new(4, 64);

    for (int i = 0; i < 3; i++) CHECK(push(q, i));
    steal_is(q, 0);
    CHECK(!take_back(q, 0));
    CHECK(!take_back(q, 9));
    CHECK(take_back(q, 1));
    steal_is(q, 2);
    check_empty(q);
    subq_free(q);
}

FJ_TEST(submission_queue_forgets_everything_on_reset, 10)
{
    fji_submission_queue *q = subq_new(4, 64);

    for (int i = 0; i < 9; i++) CHECK(push(q, i));
    steal_is(q, 0);
    CHECK(take_back(q, 4));
    fji_lock_take(&q->lock);
    fji_submission_queue_reset(q);
    CHECK_EQ(q->lock.word, 0);
    check_empty(q);
    for (int i = 0; i < 9; i++) CHECK(push(q, i));
    for (int i = 0; i < 9; i++) steal_is(q, i);
    check_empty(q);
    subq_free(q);
}

/* Does the CAS of a thief that has read `b` earlier. Returns whether it succeeds. */
static bool late_take(fji_submission_queue *q, uint64_t b)
{
    uint64_t next = fji_base_make(fji_base_epoch(b), fji_base_index(b) + 1, FJI_BASE_OPEN);
    return fji_cas_acq_rel_64(&q->base, &b, next);
}

FJ_TEST(late_thief_of_submissions_fails_after_a_slot_was_used_again, 10)
{
    fji_submission_queue *q = subq_new(2, 2);

    CHECK(push(q, 0));
    uint64_t b = q->base;
    CHECK(take_back(q, 0));
    CHECK(!late_take(q, b));
    CHECK(push(q, 0));
    CHECK(!late_take(q, b));
    b = q->base;
    steal_is(q, 0);
    for (int lap = 0; lap < 9; lap++) {
        CHECK(push(q, lap % 2));
        CHECK(!late_take(q, b));
        steal_is(q, lap % 2);
    }
    check_empty(q);
    subq_free(q);
}

/* ---- Compared with a list -------------------------------------------------------------------- */

FJ_TEST(random_submissions_agree_with_a_list, 60)
{
    static const uint32_t limits[] = {2, 8, 64, 4096};
    uint64_t random = fjt_seed();
    int list[MANY], n;
    bool used[MANY];

    for (int k = 0; k < 4; k++) {
        fji_submission_queue *q = subq_new(2, limits[k]);
        memset(used, 0, sizeof used);
        n = 0;
        for (long step = 0; step < fjt_rounds(100000); step++) {
            int r = (int)(fjt_random(&random) % 8);
            int i = (int)(fjt_random(&random) % MANY);
            if (r < 4 && !used[i]) {
                if (push(q, i)) {
                    used[list[n++] = i] = true;
                } else {
                    CHECK_EQ(q->capacity, limits[k]);
                }
            } else if (r == 4 && n > 0) {
                i = i % n;
                CHECK(take_back(q, list[i]));
                used[list[i]] = false;
                memmove(&list[i], &list[i + 1], (size_t)(--n - i) * sizeof list[0]);
            } else if (r > 4 && n > 0) {
                steal_is(q, list[0]);
                used[list[0]] = false;
                memmove(&list[0], &list[1], (size_t)--n * sizeof list[0]);
            }
            CHECK_EQ(fji_submission_queue_count(q), n);
        }
        while (n > 0) CHECK(take_back(q, list[--n]));
        check_empty(q);
        subq_free(q);
    }
}

/* ---- With threads --------------------------------------------------------------------------- */

#define PUSHERS 3
#define THIEVES 2

/* A thread of the test. A pusher pushes the same ten tasks again and again; a task may be pushed
 * again when its state is 0. */
struct member {
    fji_submission_queue *q;
    pthread_t thread;
    uint64_t pushed, got, random;
    int first; /* a pusher's own tasks are first to first + 9 */
    bool takes_back;
};

static uint32_t stop;

static uint64_t take(fj_task *t)
{
    uint64_t value = t->location;

    /* No other thread has taken it: its state changes from 1 to 0 exactly once. */
    CHECK_EQ(fji_swap_acq_rel(&t->state, 0u), 1);
    return value;
}

static bool push_once(struct member *me, fj_task *t)
{
    if (fji_load_acquire(&t->state) != 0) return false;
    t->location = (uint32_t)(fjt_random(&me->random) % 1000);
    fji_store_release(&t->state, 1u);
    fji_taken it = {.item = (uintptr_t)t};
    uint32_t number = 0;
    fji_lock_take(&me->q->lock);
    uint32_t value = t->location;
    bool ok = append(me->q, &it, &number);
    fji_store_relaxed(&t->number, number);
    fji_lock_drop(&me->q->lock);
    if (!ok) fji_store_release(&t->state, 0u);
    if (ok) me->pushed += value;
    return ok;
}

static void take_back_once(struct member *me, fj_task *t)
{
    fji_lock_take(&me->q->lock);
    bool ours = fji_submission_queue_remove(me->q, (uintptr_t)t, fji_load_relaxed(&t->number));
    fji_lock_drop(&me->q->lock);
    if (ours) me->got += take(t);
}

static void *pusher_main(void *arg)
{
    struct member *me = arg;

    for (long left = fjt_rounds(200000); left > 0;) {
        uint64_t r = fjt_random(&me->random);
        if (push_once(me, &tasks[me->first + (int)(r % 10)]))
            left--;
        else
            fji_plat_yield();
        if (me->takes_back && r / 16 % 2 == 0)
            take_back_once(me, &tasks[me->first + (int)(r / 32 % 10)]);
    }
    return NULL;
}

static void *thief_main(void *arg)
{
    struct member *me = arg;
    fji_taken taken;

    for (;;) {
        uint32_t over = fji_load_acquire(&stop);
        fji_steal_result got = fji_submission_queue_steal(me->q, &taken);
        if (got == FJI_STEAL_SUCCESS) me->got += take((fj_task *)taken.item);
        if (got != FJI_STEAL_SUCCESS && over != 0 && !fji_submission_queue_maybe(me->q))
            return NULL;
        if (got == FJI_STEAL_EMPTY) fji_plat_yield();
    }
}

static void crowd(uint32_t first, uint32_t limit, bool takes_back)
{
    static struct member members[PUSHERS + THIEVES];
    fji_submission_queue *q = subq_new(first, limit);
    uint64_t pushed = 0, got = 0;

    fji_store_release(&stop, 0u);
    for (int i = 0; i < PUSHERS + THIEVES; i++) {
        struct member *m = &members[i];
        *m = (struct member){.q = q, .random = fjt_seed() + (uint64_t)i};
        m->first = i * 10;
        m->takes_back = takes_back;
        void *(*fn)(void *) = i < PUSHERS ? pusher_main : thief_main;
        CHECK_EQ(pthread_create(&m->thread, NULL, fn, m), 0);
    }
    for (int i = 0; i < PUSHERS; i++) pthread_join(members[i].thread, NULL);
    fji_store_release(&stop, 1u);
    for (int i = PUSHERS; i < PUSHERS + THIEVES; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < PUSHERS + THIEVES; i++) {
        pushed += members[i].pushed;
        got += members[i].got;
    }
    CHECK(pushed == got);
    check_empty(q);
    for (int i = 0; i < MANY; i++) CHECK_EQ(tasks[i].state, 0);
    subq_free(q);
}

FJ_TEST(every_submission_of_many_pushers_is_taken_once, 60)
{
    crowd(2, 4096, false);
}

FJ_TEST(every_submission_is_taken_once_in_a_full_queue, 60)
{
    crowd(2, 8, false);
}

FJ_TEST(every_submission_is_taken_once_or_taken_back, 60)
{
    crowd(2, 4096, true);
    crowd(2, 4, true);
}

/* One task at a time. When it is taken back it is both the newest and the oldest one. */
FJ_TEST(only_submission_is_taken_once_or_taken_back, 60)
{
    fji_submission_queue *q = subq_new(2, 2);
    struct member thief = {.q = q}, me = {.q = q, .random = fjt_seed()};

    fji_store_release(&stop, 0u);
    CHECK_EQ(pthread_create(&thief.thread, NULL, thief_main, &thief), 0);
    for (long left = fjt_rounds(500000); left > 0;) {
        left -= push_once(&me, &tasks[0]);
        for (uint64_t i = fjt_random(&me.random) % 128; i > 0; i--) fji_pause();
        take_back_once(&me, &tasks[0]);
    }
    fji_store_release(&stop, 1u);
    pthread_join(thief.thread, NULL);
    CHECK(me.pushed == me.got + thief.got);
    check_empty(q);
    subq_free(q);
}

/* Takes back the older of two tasks, not the newest, while the thief is about to steal it. */
FJ_TEST(older_of_two_submissions_is_taken_once_or_taken_back, 60)
{
    fji_submission_queue *q = subq_new(4, 1u << 20);
    struct member thief = {.q = q}, me = {.q = q, .random = fjt_seed()};

    fji_store_release(&stop, 0u);
    CHECK_EQ(pthread_create(&thief.thread, NULL, thief_main, &thief), 0);
    for (long left = fjt_rounds(500000); left > 0; left--) {
        for (int i = 0; i < 2; i++) CHECK(push_once(&me, &tasks[i]));
        for (uint64_t i = fjt_random(&me.random) % 32; i > 0; i--) fji_pause();
        take_back_once(&me, &tasks[0]);
        take_back_once(&me, &tasks[1]);
        for (int i = 0; i < 2; i++)
            while (fji_load_acquire(&tasks[i].state) != 0) fji_plat_yield();
    }
    fji_store_release(&stop, 1u);
    pthread_join(thief.thread, NULL);
    CHECK(me.pushed == me.got + thief.got);
    check_empty(q);
    subq_free(q);
}

/* ---- Batches with threads ------------------------------------------------------------------- */

static uint32_t action_runs[1000];

static void *batch_main(void *arg)
{
    struct member *me = arg;
    fji_taken taken[FJI_SUBMISSIONS_BATCH];

    for (;;) {
        uint32_t over = fji_load_acquire(&stop), n = 0;
        fji_steal_result got = fji_submission_queue_steal_some(me->q, taken, &n);
        if (got != FJI_STEAL_SUCCESS) {
            if (over != 0 && !fji_submission_queue_maybe(me->q)) return NULL;
            if (got == FJI_STEAL_EMPTY) fji_plat_yield();
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            fji_add_relaxed(&action_runs[taken[i].arg], 1u);
            me->got++;
        }
    }
}

/* A small array, so that it is compacted while thieves read ahead. */
FJ_TEST(every_action_is_taken_once_in_batches, 60)
{
    static struct member members[3];
    fji_submission_queue *q = subq_new(4, 32);
    long rounds = fjt_rounds(1000000);
    uint64_t got = 0;

    for (int i = 0; i < 3; i++) {
        members[i].q = q;
        CHECK_EQ(pthread_create(&members[i].thread, NULL, batch_main, &members[i]), 0);
    }
    for (long i = 0; i < rounds; i++)
        while (!push_action(q, i % 1000)) fji_plat_yield();
    fji_store_release(&stop, 1u);
    for (int i = 0; i < 3; i++) {
        pthread_join(members[i].thread, NULL);
        got += members[i].got;
    }
    CHECK_EQ(got, rounds);
    for (long i = 0; i < 1000; i++) CHECK_EQ(action_runs[i], rounds / 1000 + (i < rounds % 1000));
    check_empty(q);
    subq_free(q);
}
