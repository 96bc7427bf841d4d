/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - posting into an inbox, running its callbacks, waking the loop
 *
 * inbox_ends.c tests misuse, the end of an inbox, fork() and futures.
 */
#include <errno.h>
#include <forkjoin/inbox.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "fjtest.h"
#include "plat/config.h"
#include "plat/plat.h"

#if defined(__linux__)
#include <sys/epoll.h>
#include <unistd.h>
#endif

static fj_inbox *inbox_new(const fj_inbox_options *o)
{
    fj_inbox *inbox = NULL;

    CHECK_EQ(fj_inbox_create(o, &inbox), FJ_OK);
    CHECK(inbox != NULL);
    return inbox;
}

/* Whether the descriptor of the inbox is readable within the time; -1: no limit. */
static bool readable(const fj_inbox *inbox, int ms)
{
    struct pollfd p = {.fd = fj_inbox_fd(inbox), .events = POLLIN};
    int n = poll(&p, 1, ms);

    CHECK(n >= 0 || errno == EINTR);
    return n == 1;
}

static void *number(int n)
{
    return (void *)(intptr_t)n;
}

/* ---- One thread ------------------------------------------------------------------------------ */

static int order[64], ran;

static void note(void *arg)
{
    order[ran++] = (int)(intptr_t)arg;
}

FJ_TEST(callbacks_run_in_the_order_of_their_posts, 10)
{
    fj_inbox *inbox = inbox_new(NULL);

    for (int i = 0; i < 10; i++) CHECK_EQ(fj_inbox_post(inbox, note, number(i)), FJ_OK);
    CHECK_EQ(ran, 0);
    CHECK_EQ(fj_inbox_run(inbox, 0), 10);
    for (int i = 0; i < 10; i++) CHECK_EQ(order[i], i);
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(run_runs_at_most_what_it_was_told, 10)
{
    fj_inbox *inbox = inbox_new(NULL);

    for (int i = 0; i < 10; i++) CHECK_EQ(fj_inbox_post(inbox, note, number(i)), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 3), 3);
    CHECK(readable(inbox, 0));
    CHECK_EQ(fj_inbox_post(inbox, note, number(10)), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 7), 7);
    CHECK(readable(inbox, 0));
    CHECK_EQ(fj_inbox_run(inbox, 7), 1);
    CHECK(!readable(inbox, 0));
    for (int i = 0; i <= 10; i++) CHECK_EQ(order[i], i);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(descriptor_is_readable_only_while_callbacks_wait, 10)
{
    fj_inbox *inbox = inbox_new(NULL);

    CHECK(fj_inbox_fd(inbox) >= 0);
    for (int round = 0; round < 5; round++) {
        CHECK(!readable(inbox, 0));
        for (int i = 0; i < round; i++) CHECK_EQ(fj_inbox_post(inbox, note, NULL), FJ_OK);
        CHECK_EQ(readable(inbox, 0), round > 0);
        CHECK_EQ(readable(inbox, 0), round > 0); /* poll() does not consume it */
        CHECK_EQ(fj_inbox_run(inbox, 0), round);
    }
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

struct again {
    fj_inbox *inbox;
    fj_inbox_item item;
    int runs;
};

static void post_again(void *arg)
{
    struct again *a = arg;

    a->runs++;
    CHECK_EQ(fj_inbox_post(a->inbox, post_again, a), FJ_OK);
}

static void post_item_again(void *arg)
{
    struct again *a = arg;

    a->runs++;
    CHECK_EQ(fj_inbox_post_item(a->inbox, &a->item), FJ_OK);
}

FJ_TEST(callback_that_posts_itself_runs_once_in_each_call, 10)
{
    struct again a = {.inbox = inbox_new(NULL)};

    fj_inbox_item_init(&a.item, post_item_again, &a);
    CHECK_EQ(fj_inbox_post(a.inbox, post_again, &a), FJ_OK);
    CHECK_EQ(fj_inbox_post_item(a.inbox, &a.item), FJ_OK);
    for (int i = 1; i <= 100; i++) {
        CHECK_EQ(fj_inbox_run(a.inbox, i % 2 == 0 ? 0 : 5), 2);
        CHECK_EQ(a.runs, 2 * i);
        CHECK(readable(a.inbox, 0));
    }
    CHECK_EQ(fj_inbox_destroy(a.inbox), FJ_OK);
}

/* The callback of the first item runs the inbox, as a nested loop does. */
static void runs_the_rest(void *arg)
{
    order[ran++] = 100;
    CHECK_EQ(fj_inbox_run(arg, 2), 2);
    CHECK_EQ(fj_inbox_post(arg, note, number(4)), FJ_OK);
    CHECK_EQ(fj_inbox_run(arg, 0), 3);
    CHECK(!readable(arg, 0));
    CHECK_EQ(fj_inbox_post(arg, note, number(5)), FJ_OK);
    CHECK(readable(arg, 0));
}

FJ_TEST(callback_may_run_the_callbacks_behind_it, 10)
{
    fj_inbox *inbox = inbox_new(NULL);

    CHECK_EQ(fj_inbox_post(inbox, runs_the_rest, inbox), FJ_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(fj_inbox_post(inbox, note, number(i)), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK(readable(inbox, 0));
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK_EQ(ran, 7);
    for (int i = 0; i < 6; i++) CHECK_EQ(order[i + 1], i);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(callback_may_free_its_item, 10)
{
    fj_inbox *inbox = inbox_new(NULL);

    for (int i = 0; i < 10; i++) {
        fj_inbox_item *item = malloc(sizeof *item);
        fj_inbox_item_init(item, free, item);
        CHECK_EQ(fj_inbox_post_item(inbox, item), FJ_OK);
    }
    CHECK_EQ(fj_inbox_run(inbox, 0), 10);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- Wake-ups -------------------------------------------------------------------------------- */

static void count(void *arg)
{
    ++*(int *)arg;
}

FJ_TEST(one_wake_up_serves_many_callbacks, 10)
{
    int wakes = 0, calls = 0;
    fj_inbox_options o = {.notify = count, .notify_arg = &wakes};
    fj_inbox *inbox = inbox_new(&o);

    for (int round = 1; round <= 10; round++) {
        for (int i = 0; i < 1000; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
        CHECK_EQ(wakes, round);
        CHECK_EQ(fj_inbox_run(inbox, 0), 1000);
        CHECK_EQ(calls, 1000 * round);
    }
    CHECK_EQ(fj_inbox_run(inbox, 0), 0);
    CHECK_EQ(wakes, 10);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(notifier_is_called_again_if_callbacks_are_left, 10)
{
    int wakes = 0, calls = 0;
    fj_inbox_options o = {.notify = count, .notify_arg = &wakes};
    fj_inbox *inbox = inbox_new(&o);

    for (int i = 0; i < 10; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    CHECK_EQ(wakes, 1);
    CHECK_EQ(fj_inbox_run(inbox, 4), 4);
    CHECK_EQ(wakes, 2);
    CHECK_EQ(fj_inbox_run(inbox, 4), 4);
    CHECK_EQ(wakes, 3);
    CHECK_EQ(fj_inbox_run(inbox, 4), 2);
    CHECK_EQ(wakes, 3);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

#if defined(__linux__)
FJ_TEST(loop_with_edges_runs_until_nothing_is_left, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN | EPOLLET};

    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fj_inbox_fd(inbox), &e), 0);
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < 10; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
        CHECK_EQ(epoll_wait(epoll, &e, 1, -1), 1);
        while (fj_inbox_run(inbox, 3) > 0) {}
        CHECK_EQ(calls, 10 * round);
        CHECK_EQ(epoll_wait(epoll, &e, 1, 0), 0);
    }
    close(epoll);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}
#endif

FJ_TEST(posts_allocate_nothing_once_there_are_enough_cells, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;
    long before = 0;

    if (!FJI_FAULTS) fjt_skip("built without faults");
    for (int round = 0; round < 100; round++) {
        if (round == 1) before = fji_fault_calls(FJI_FAULT_ALLOC);
        for (int i = 0; i < 1000; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
        CHECK_EQ(fj_inbox_run(inbox, 0), 1000);
    }
    CHECK_EQ(fji_fault_calls(FJI_FAULT_ALLOC), before);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

FJ_TEST(posts_and_runs_leave_errno_alone, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;

    errno = 77;
    CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    CHECK_EQ(fj_inbox_run(inbox, 0), 1);
    CHECK_EQ(fj_inbox_run(inbox, 0), 0); /* there is nothing to clear, so the read fails */
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    CHECK_EQ(errno, 77);
}

/* ---- Several threads ------------------------------------------------------------------------- */

#define SENDERS 4

struct sender {
    fj_inbox *inbox;
    pthread_t thread, loop;
    long messages, next; /* how many it sends; the number of the next one that has to arrive */
    bool items;
};

struct message {
    fj_inbox_item item;
    struct sender *from;
    long number;
};

static long left; /* messages that have not arrived */

static void receive(void *arg)
{
    struct message *m = arg;

    CHECK(pthread_equal(pthread_self(), m->from->loop));
    CHECK_EQ(m->number, m->from->next);
    m->from->next++;
    left--;
    free(m);
}

static void *send_all(void *arg)
{
    struct sender *s = arg;

    for (long i = 0; i < s->messages; i++) {
        struct message *m = malloc(sizeof *m);
        m->from = s;
        m->number = i;
        fj_inbox_item_init(&m->item, receive, m);
        CHECK_EQ(s->items ? fj_inbox_post_item(s->inbox, &m->item)
                          : fj_inbox_post(s->inbox, receive, m),
                 FJ_OK);
    }
    return NULL;
}

/* SENDERS threads send `messages` each. turn(inbox, arg) is one turn of the loop. */
static void exchange(fj_inbox *inbox, long messages, void (*turn)(fj_inbox *, void *), void *arg)
{
    struct sender s[SENDERS];

    left = SENDERS * messages;
    for (int i = 0; i < SENDERS; i++) {
        s[i] = (struct sender){
            .inbox = inbox, .loop = pthread_self(), .messages = messages, .items = i % 2 != 0};
        CHECK_EQ(pthread_create(&s[i].thread, NULL, send_all, &s[i]), 0);
    }
    while (left > 0) turn(inbox, arg);
    for (int i = 0; i < SENDERS; i++) pthread_join(s[i].thread, NULL);
    for (int i = 0; i < SENDERS; i++) CHECK_EQ(s[i].next, messages);
}

static void turn_poll(fj_inbox *inbox, void *arg)
{
    if (readable(inbox, -1)) CHECK(fj_inbox_run(inbox, *(int *)arg) >= 0);
}

FJ_TEST(million_callbacks_of_several_threads_arrive_in_order, 60)
{
    static int limits[] = {0, 1, 100};

    for (int i = 0; i < 3; i++) {
        fj_inbox *inbox = inbox_new(NULL);
        exchange(inbox, fjt_rounds(i == 0 ? 250000 : 40000), turn_poll, &limits[i]);
        CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
    }
}

/* How a loop with a notifier sleeps. */
struct nap {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool woken;
};

static void nap_wake(void *arg)
{
    struct nap *n = arg;

    pthread_mutex_lock(&n->mutex);
    n->woken = true;
    pthread_cond_signal(&n->cond);
    pthread_mutex_unlock(&n->mutex);
}

static void turn_nap(fj_inbox *inbox, void *arg)
{
    struct nap *n = arg;

    pthread_mutex_lock(&n->mutex);
    while (!n->woken) pthread_cond_wait(&n->cond, &n->mutex);
    n->woken = false;
    pthread_mutex_unlock(&n->mutex);
    CHECK(fj_inbox_run(inbox, 10) >= 0);
}

FJ_TEST(loop_with_a_notifier_gets_every_callback, 60)
{
    static struct nap nap = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    fj_inbox_options o = {.notify = nap_wake, .notify_arg = &nap};
    fj_inbox *inbox = inbox_new(&o);

    exchange(inbox, fjt_rounds(20000), turn_nap, &nap);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

static void *runs_some(void *arg)
{
    CHECK_EQ(fj_inbox_run(arg, 5), 5);
    return NULL;
}

FJ_TEST(loop_may_move_to_another_thread, 10)
{
    fj_inbox *inbox = inbox_new(NULL);
    int calls = 0;
    pthread_t t;

    for (int i = 0; i < 20; i++) CHECK_EQ(fj_inbox_post(inbox, count, &calls), FJ_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&t, NULL, runs_some, inbox), 0);
        pthread_join(t, NULL);
        CHECK_EQ(fj_inbox_run(inbox, 5), 5);
    }
    CHECK_EQ(calls, 20);
    CHECK_EQ(fj_inbox_destroy(inbox), FJ_OK);
}

/* ---- Random programs against an oracle ------------------------------------------------------- */

/* The oracle: callbacks arrive in the order of their numbers. A callback sometimes makes a random
 * step itself. */
struct oracle {
    fj_inbox *inbox;
    uint64_t random;
    long posted, arrived;
    int depth;
    bool closed;
};

struct oracle_item {
    fj_inbox_item item;
    struct oracle *o;
    long number;
};

static void oracle_step(struct oracle *o);

static void oracle_arrives(void *arg)
{
    struct oracle_item *i = arg;
    struct oracle *o = i->o;

    CHECK_EQ(i->number, o->arrived);
    o->arrived++;
    free(i);
    if (o->depth < 4 && fjt_random(&o->random) % 4 == 0) oracle_step(o);
}

static void oracle_drops(const fj_inbox_dropped *d, void *arg)
{
    struct oracle *o = arg;

    CHECK(d->fn == oracle_arrives && d->done == NULL && d->future == NULL);
    CHECK_EQ(((struct oracle_item *)d->arg)->number, o->arrived);
    o->arrived++;
    free(d->arg);
}

static void oracle_post(struct oracle *o)
{
    struct oracle_item *i = malloc(sizeof *i);

    i->o = o;
    i->number = o->posted;
    fj_inbox_item_init(&i->item, oracle_arrives, i);
    int err = fjt_random(&o->random) % 2 == 0 ? fj_inbox_post_item(o->inbox, &i->item)
                                              : fj_inbox_post(o->inbox, oracle_arrives, i);
    CHECK_EQ(err, o->closed ? FJ_EREJECTED : FJ_OK);
    if (err == FJ_OK)
        o->posted++;
    else
        free(i);
}

static void oracle_run(struct oracle *o)
{
    int max = (int)(fjt_random(&o->random) % 4);
    long there = o->posted - o->arrived, before = o->arrived;

    o->depth++;
    int n = fj_inbox_run(o->inbox, max);
    o->depth--;
    CHECK(n >= 0 && n <= there && n <= o->arrived - before);
    if (max > 0) CHECK(n <= max);
    if (o->arrived - before == n && !o->closed) /* no inner call has run some of them */
        CHECK_EQ(n, max == 0 || max > there ? there : max);
    CHECK(o->posted == o->arrived || readable(o->inbox, 0));
}

static void oracle_step(struct oracle *o)
{
    uint64_t what = fjt_random(&o->random) % 1000;

    if (what < 550)
        oracle_post(o);
    else if (what < 998)
        oracle_run(o);
    else {
        o->closed = true;
        CHECK_EQ(fj_inbox_close(o->inbox), FJ_OK);
        CHECK_EQ(o->posted, o->arrived);
    }
}

FJ_TEST(random_programs_agree_with_a_queue, 60)
{
    uint64_t random = fjt_seed();

    for (long round = fjt_rounds(200); round > 0; round--) {
        struct oracle o = {.random = fjt_random(&random)};
        fj_inbox_options options = {.drop = oracle_drops, .drop_arg = &o};
        o.inbox = inbox_new(&options);
        for (int i = 0; i < 400; i++) oracle_step(&o);
        CHECK_EQ(fj_inbox_destroy(o.inbox), FJ_OK);
        CHECK_EQ(o.posted, o.arrived);
    }
}
