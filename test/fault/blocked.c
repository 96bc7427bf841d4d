/* SPDX-License-Identifier: MIT */
/*
 * blocked.c - if a blocked worker cannot be replaced, the pool tries again to start a thread
 *
 * Each program needs a second thread, because its only worker waits for a task that is queued. The
 * start of that thread is refused at first, by the system, by `allow_thread` or by `create_thread`,
 * and granted later. The program has to end, whether or not the pool is called again.
 */
#include "programs.h"

#include "gate.h"

static struct gate gate;
static int way;

static int opens(fj_task *t)
{
    (void)t;
    gate_open(&gate, 1);
    return 2;
}

static int waits_for_its_child(fj_task *t)
{
    fj_task child;

    (void)t;
    fj_task_init(&child, opens);
    fj_fork(&child);
    gate_waits[way](&gate);
    return fj_join(&child);
}

static int nothing(void *arg)
{
    (void)arg;
    return FJ_OK;
}

static void wait_once(const fj_pool_options *o, bool later)
{
    fj_pool *p = fjt_pool_with(o), *elsewhere = fjt_pool(1, 0);
    fj_task t;

    gate_close(&gate, true, elsewhere);
    fj_task_init(&t, waits_for_its_child);
    CHECK_EQ(fj_submit(p, &t), FJ_OK);
    if (later) {
        fjt_sleep_us(3000);
        CHECK_EQ(fj_execute(p, nothing, NULL), FJ_OK);
    }
    CHECK_EQ(fj_join(&t), 2);
    fjt_destroy(p);
    fjt_destroy(elsewhere);
    gate_end(&gate);
}

/* ---- The system refuses --------------------------------------------------------------------- */

FJ_TEST(refused_replacement_is_asked_for_again, 240)
{
    fj_pool_options o = {0};

    need_faults();
    o.parallelism = 1;
    for (way = 0; way < GATE_WAITS; way++)
        for (long n = 1; n <= 4; n++)
            for (long count = 1; count <= 5; count += 4) {
                set_fault(FJI_FAULT_THREAD, n, count);
                wait_once(&o, (n + count) % 2 == 0);
                calm();
            }
}

/* ---- The options refuse --------------------------------------------------------------------- */

static atomic_int asked;
static int refuse_from, refuse_until;

static int allow_thread(fj_pool *p, void *arg)
{
    int n = atomic_fetch_add(&asked, 1) + 1;

    (void)p, (void)arg;
    return n < refuse_from || n >= refuse_until;
}

static int create(fj_pool *p, void *(*entry)(void *), void *entry_arg, void *arg)
{
    pthread_t t;

    if (!allow_thread(p, arg)) return 1;
    return pthread_create(&t, NULL, entry, entry_arg);
}

FJ_TEST(replacement_refused_by_the_options_is_asked_for_again, 240)
{
    for (way = 0; way < GATE_WAITS; way++)
        for (int by = 0; by < 4; by++) {
            fj_pool_options o = {0};

            o.parallelism = 1;
            o.max_threads = 20;
            if (by % 2 == 0)
                o.allow_thread = allow_thread;
            else
                o.create_thread = create;
            atomic_store(&asked, 0);
            refuse_from = 2;
            refuse_until = by < 2 ? 3 : 6;
            wait_once(&o, false);
        }
}

/* ---- Every second start is refused, at random ----------------------------------------------- */

struct chain {
    fj_task task;
    int depth;
};

static atomic_ulong dice;

static int by_chance(fj_pool *p, void *arg)
{
    uint64_t x = atomic_fetch_add(&dice, 1) * 0x9e3779b97f4a7c15u;

    (void)p, (void)arg;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u >> 63 == 0;
}

static int posts(fj_task *t)
{
    (void)fj_future_complete((fj_future *)(void *)((struct chain *)t + 1), NULL);
    return FJ_OK;
}

/* Forks a child that completes a future, and waits for the future. */
static int chain_run(fj_task *t)
{
    const struct chain *c = (struct chain *)t;
    struct {
        struct chain chain;
        fj_future future;
    } opener;
    struct chain next = {.depth = c->depth - 1};

    fj_future_init(&opener.future, NULL);
    fj_task_init(&opener.chain.task, posts);
    fj_task_init(&next.task, chain_run);
    if (c->depth > 0) fj_fork(&next.task);
    fj_fork(&opener.chain.task);
    CHECK_EQ(fj_future_join(&opener.future), FJ_OK);
    CHECK_EQ(fj_join(&opener.chain.task), FJ_OK);
    return c->depth > 0 ? fj_join(&next.task) : FJ_OK;
}

FJ_TEST(pool_never_gets_stuck_when_every_second_start_is_refused, 240)
{
    fj_pool_options o = {0};

    o.parallelism = 4;
    o.max_threads = 20;
    o.keep_alive_ns = 1; /* the minimum, so that threads exit and others are started */
    o.allow_thread = by_chance;
    atomic_store(&dice, fjt_seed());
    fj_pool *p = fjt_pool_with(&o);
    for (long i = 0; i < fjt_rounds(300); i++) {
        struct chain c[6];
        for (int k = 0; k < 6; k++) {
            c[k].depth = k % 3;
            fj_task_init(&c[k].task, chain_run);
            CHECK_EQ(fj_submit(p, &c[k].task), FJ_OK);
        }
        for (int k = 0; k < 6; k++) CHECK_EQ(fj_join(&c[k].task), FJ_OK);
        if (i % 50 == 49) fjt_sleep_us(60000);
    }
    fjt_destroy(p);
}
