/* SPDX-License-Identifier: MIT */
/*
 * futures.c - a future has one outcome, and the library does not use a future after it is released
 *
 * Several threads may end a future at the same time: one cancels it, one completes it, and the
 * worker returns from its body. Meanwhile waiters leave because of a timeout or because they are
 * interrupted. The last waiter may free the memory of the future.
 *
 * "TRAPS n" refers to row n of docs/traps.md. The comment above a test describes the bug that the
 * test finds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <forkjoin/block.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "regression.h"

#define MS ((int64_t)1000000)
#define LONG_NS (600 * 1000 * MS)

/* ---- A future that the test controls ------------------------------------------------------- */

struct job {
    fj_future f;
    atomic_int begun, may_end, ended;
    int code;
    long payload; /* not atomic: only the order of the outcome makes it safe to read */
};

static int job_run(fj_task *t)
{
    struct job *j = (struct job *)t;

    atomic_store(&j->begun, 1);
    UNTIL(atomic_load(&j->may_end));
    j->f.result = j;
    j->payload = 1234;
    atomic_store(&j->ended, 1);
    return j->code;
}

static void job_init(struct job *j, int may_end, int code)
{
    memset(j, 0, sizeof *j);
    fj_future_init(&j->f, job_run);
    atomic_store(&j->may_end, may_end);
    j->code = code;
}

/* A thread that cancels or completes *f once per round, at about the time at which the test thread
 * acts. */
struct racer {
    pthread_barrier_t line;
    long rounds;
    fj_future *f;
    uint64_t seed;
    int answer;
};

static void *cancel_each_round(void *arg)
{
    struct racer *r = arg;

    for (long i = r->rounds; i > 0; i--) {
        pthread_barrier_wait(&r->line);
        regression_spin_ns(regression_below(&r->seed, 20000));
        r->answer = fj_future_cancel(r->f, 1);
        pthread_barrier_wait(&r->line);
    }
    return NULL;
}

/* ---- One outcome ----------------------------------------------------------------------------- */

/* TRAPS 39: a cancel checks that the future is not done, and then sets its bits although the future
 * was completed in between. */
FJ_TEST(outcome_once_seen_never_changes, 60)
{
    fj_pool *p = fjt_pool(1, 0);
    struct racer r = {.rounds = fjt_rounds(6000), .seed = fjt_seed()};
    struct job j;

    pthread_barrier_init(&r.line, NULL, 2);
    pthread_t t = regression_thread(cancel_each_round, &r);
    for (long i = r.rounds; i > 0; i--) {
        job_init(&j, 1, i % 2 ? FJ_OK : 7);
        r.f = &j.f;
        pthread_barrier_wait(&r.line);
        CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
        UNTIL(fj_future_is_done(&j.f));
        enum fj_future_state first = fj_future_state(&j.f);
        int code = fj_future_error(&j.f);
        pthread_barrier_wait(&r.line);
        fj_future_fini(&j.f);
        CHECK_EQ(fj_future_state(&j.f), first);
        CHECK_EQ(fj_future_error(&j.f), code);
        CHECK_EQ(fj_future_join(&j.f), code);
        CHECK_EQ(r.answer, first == FJ_FUTURE_CANCELLED);
        CHECK_EQ(code, r.answer ? FJ_ECANCELED : j.code);
    }
    pthread_join(t, NULL);
    fjt_destroy(p);
}

/* ---- Waiters that leave ------------------------------------------------------------------------ */

struct crowd {
    fj_future *f;
    fj_pool *pool;
    int64_t limit;
    int want;
    atomic_int *back;
};

static void *crowd_outside(void *arg)
{
    struct crowd *c = arg;

    CHECK_EQ(fj_future_get(c->f, c->limit, NULL), c->want);
    atomic_fetch_add(c->back, 1);
    return NULL;
}

static int crowd_inside(void *arg)
{
    (void)crowd_outside(arg);
    return FJ_OK;
}

/* TRAPS 40: a waiter that times out cannot remove itself from the middle of the list of waiters,
 * and spins. */
FJ_TEST(waiters_leave_from_the_middle_and_the_rest_sleep, 60)
{
    enum { EACH = 5 };
    fj_pool *p = fjt_pool(EACH, 0);
    fj_future f;
    atomic_int late = 0, done = 0;
    struct crowd gives_up = {&f, p, 20 * MS, FJ_ETIMEDOUT, &late};
    struct crowd stays = {&f, p, LONG_NS, FJ_OK, &done};
    pthread_t t[2 * EACH];

    fj_future_init(&f, NULL);
    for (int i = 0; i < 2 * EACH; i++) {
        struct crowd *c = i % 2 ? &gives_up : &stays;
        CHECK_EQ(fj_execute(p, crowd_inside, c), FJ_OK);
        t[i] = regression_thread(crowd_outside, c);
    }
    UNTIL(atomic_load(&late) == 2 * EACH);
    CHECK_EQ(atomic_load(&done), 0);
    fjt_sleep_us(20000);
    int64_t cpu = fjt_cpu();
    fjt_sleep_us(400000);
    cpu = fjt_cpu() - cpu;
    if (!fjt_sanitized() && cpu > 100 * MS)
        fjt_fail(__FILE__, __LINE__, "%lld us of CPU in 400 ms", (long long)cpu / 1000);
    CHECK_EQ(fj_future_complete(&f, NULL), 1);
    UNTIL(atomic_load(&done) == 2 * EACH);
    for (int i = 0; i < 2 * EACH; i++) pthread_join(t[i], NULL);
    fjt_destroy(p);
}

static void *wait_and_count(void *arg)
{
    struct crowd *c = arg;

    CHECK_EQ(fj_future_wait_quietly(c->f, LONG_NS), FJ_OK);
    atomic_int *back = c->back;
    if (atomic_fetch_sub(back, 1) == 1) free(c->f); /* the last waiter */
    return NULL;
}

/* TRAPS 45: the completing thread reads the list node of a waiter that has already returned. */
FJ_TEST(hundred_waiters_take_the_future_with_them, 60)
{
    enum { N = 100 };

    for (long round = fjt_rounds(12); round > 0; round--) {
        atomic_int back = N;
        struct crowd c = {.f = malloc(sizeof(fj_future)), .back = &back};
        pthread_t t[N];
        fj_future_init(c.f, NULL);
        for (int i = 0; i < N; i++) t[i] = regression_thread(wait_and_count, &c);
        if (round % 2) fjt_sleep_us(2000);
        CHECK_EQ(fj_future_complete(c.f, NULL), 1);
        for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
    }
}

/* ---- Interrupts --------------------------------------------------------------------------------- */

struct torn {
    atomic_int waits, told, code, still;
    fj_future *awaited;
};

/* Waits for a future. Even if the wait succeeds, the request to cancel must still be visible
 * afterwards. */
static int torn_run(void *arg)
{
    struct torn *t = arg;

    atomic_store(&t->waits, 1);
    atomic_store(&t->code, fj_future_get(t->awaited, FJ_FOREVER, NULL));
    UNTIL(atomic_load(&t->told));
    fj_future never;
    fj_future_init(&never, NULL);
    bool sees = fj_is_cancelled() && fj_future_get(&never, FJ_FOREVER, NULL) == FJ_ECANCELED &&
                fj_sleep_ns(LONG_NS) == FJ_ECANCELED;
    atomic_store(&t->still, sees ? 1 : -1);
    return FJ_OK;
}

static void *complete_each_round(void *arg)
{
    struct racer *r = arg;

    for (long i = r->rounds; i > 0; i--) {
        pthread_barrier_wait(&r->line);
        regression_spin_ns(regression_below(&r->seed, 3000));
        CHECK_EQ(fj_future_complete(r->f, NULL), 1);
        pthread_barrier_wait(&r->line);
    }
    return NULL;
}

/* TRAPS 41: the wait clears the interrupt and then returns the result. */
FJ_TEST(interrupt_is_still_seen_after_a_wait_that_went_well, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    struct racer r = {.rounds = fjt_rounds(3000), .seed = fjt_seed()};
    uint64_t seed = fjt_seed() + 1;
    long well = 0;

    pthread_barrier_init(&r.line, NULL, 2);
    pthread_t t = regression_thread(complete_each_round, &r);
    for (long i = r.rounds; i > 0; i--) {
        fj_future awaited, *f;
        struct torn torn = {.awaited = &awaited};
        fj_future_init(&awaited, NULL);
        r.f = &awaited;
        CHECK_EQ(fj_submit_action(p, torn_run, &torn, NULL, &f), FJ_OK);
        UNTIL(atomic_load(&torn.waits));
        /* The waiter may or may not be asleep by now. */
        regression_spin_ns(regression_below(&seed, 60000));
        pthread_barrier_wait(&r.line);
        regression_spin_ns(regression_below(&seed, 3000));
        CHECK_EQ(fj_future_cancel(f, 1), 1);
        atomic_store(&torn.told, 1);
        UNTIL(atomic_load(&torn.still));
        pthread_barrier_wait(&r.line);
        CHECK_EQ(atomic_load(&torn.still), 1);
        int code = atomic_load(&torn.code);
        CHECK(code == FJ_OK || code == FJ_ECANCELED);
        well += code == FJ_OK;
        fj_future_unref(f);
    }
    pthread_join(t, NULL);
    printf("# %ld of %ld waits succeeded\n", well, r.rounds);
    fjt_destroy(p);
}

static _Thread_local volatile sig_atomic_t in_bystander;
static volatile sig_atomic_t hit;

static void on_signal(int sig)
{
    (void)sig;
    if (in_bystander) hit = 1;
}

static int bystander(void *arg)
{
    (void)arg;
    in_bystander = 1;
    bool cancelled = fj_is_cancelled();
    int slept = fj_sleep_ns(1000);
    regression_spin_ns(2000);
    in_bystander = 0;
    return cancelled || slept != FJ_OK ? 1 : FJ_OK;
}

static fj_pool *pool_with_signal(int n)
{
    struct sigaction sa = {.sa_handler = on_signal};
    fj_pool_options o = {0};

    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    o.parallelism = n;
    o.interrupt_signal = SIGUSR1;
    return fjt_pool_with(&o);
}

static int brief(void *arg)
{
    regression_spin_ns((int64_t)(intptr_t)arg);
    return FJ_OK;
}

/* TRAPS 42: when the signal is sent, the thread already runs another task. */
FJ_TEST(signal_for_one_task_never_reaches_the_next, 60)
{
    fj_pool *p = pool_with_signal(1);
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(8000); i > 0; i--) {
        fj_future *a, *b;
        intptr_t ns = regression_below(&seed, 15000);
        CHECK_EQ(fj_submit_action(p, brief, (void *)ns, NULL, &a), FJ_OK);
        CHECK_EQ(fj_submit_action(p, bystander, NULL, NULL, &b), FJ_OK);
        regression_spin_ns(regression_below(&seed, 25000));
        (void)fj_future_cancel(a, 1);
        CHECK_EQ(fj_future_join(b), FJ_OK);
        CHECK_EQ(hit, 0);
        fj_future_unref(a);
        fj_future_unref(b);
    }
    fjt_destroy(p);
}

static int left_open(fj_task *t)
{
    (void)t;
    return FJ_PENDING;
}

static int bystander_until(void *arg)
{
    atomic_int *step = arg;

    in_bystander = 1;
    atomic_store(step, 1);
    UNTIL(atomic_load(step) == 2);
    in_bystander = 0;
    return FJ_OK;
}

/* TRAPS 42: a future whose body has returned FJ_PENDING still refers to the thread that ran it. */
FJ_TEST(cancel_of_a_future_left_open_reaches_nobody, 30)
{
    fj_pool *p = pool_with_signal(1);
    fj_future open, *b;
    atomic_int step = 0;

    fj_future_init(&open, left_open);
    CHECK_EQ(fj_future_submit(p, &open), FJ_OK);
    fj_future_fini(&open); /* waits until its body has ended */
    CHECK_EQ(fj_submit_action(p, bystander_until, &step, NULL, &b), FJ_OK);
    UNTIL(atomic_load(&step) == 1);
    CHECK_EQ(fj_future_cancel(&open, 1), 1);
    fjt_sleep_us(1000);
    atomic_store(&step, 2);
    CHECK_EQ(fj_future_join(b), FJ_OK);
    CHECK_EQ(hit, 0);
    fj_future_unref(b);
    fjt_destroy(p);
}

/* TRAPS 42, 44: the same after the pool of that thread was destroyed. AddressSanitizer reports
 * it. */
FJ_TEST(future_left_open_is_cancelled_after_its_pool_is_gone, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future open;

    fj_future_init(&open, left_open);
    CHECK_EQ(fj_future_submit(p, &open), FJ_OK);
    fj_future_fini(&open);
    fjt_destroy(p);
    CHECK_EQ(fj_future_cancel(&open, 1), 1);
    CHECK_EQ(fj_future_join(&open), FJ_ECANCELED);
}

/* TRAPS 44: a call that reads the outcome follows a pointer to the pool that ran the future.
 * AddressSanitizer reports it. */
FJ_TEST(outcome_is_told_when_the_pool_is_gone, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;
    fj_future *made, *list[2];
    size_t which = 9;

    job_init(&j, 1, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    CHECK_EQ(fj_submit_action(p, regression_count, &j.begun, NULL, &made), FJ_OK);
    fjt_destroy(p);
    list[0] = &j.f;
    list[1] = made;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_future_join(list[i]), FJ_OK);
        CHECK_EQ(fj_future_get(list[i], 0, NULL), FJ_OK);
        CHECK_EQ(fj_future_cancel(list[i], 1), 0);
    }
    CHECK_EQ(fj_future_wait_all(list, 2, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_future_wait_any(list, 2, FJ_FOREVER, &which), FJ_OK);
    fj_future_fini(&j.f);
    fj_future_unref(made);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_OK);
}

/* ---- What the calls return ---------------------------------------------------------------------- */

static int call_code(void *arg, void **result)
{
    *result = arg;
    return (int)(intptr_t)arg;
}

static void check_told(fj_future *f, int code)
{
    void *result = &result;
    bool cancelled = code == FJ_ECANCELED;

    CHECK_EQ(fj_future_join(f), code);
    CHECK_EQ(fj_future_get(f, FJ_FOREVER, &result), code);
    CHECK_EQ(fj_future_get(f, 0, &result), code);
    CHECK_EQ(fj_future_get(f, MS, &result), code);
    CHECK_EQ(fj_future_result(f, &result), code);
    CHECK(result == &result);
    CHECK_EQ(fj_future_error(f), code);
    CHECK_EQ(fj_future_wait(f, 0), FJ_OK);
    CHECK_EQ(fj_future_wait_quietly(f, 0), FJ_OK);
    CHECK_EQ(fj_future_is_cancelled(f), cancelled);
    CHECK_EQ(fj_future_state(f), cancelled ? FJ_FUTURE_CANCELLED : FJ_FUTURE_FAILED);
}

/* TRAPS 43: a caller cannot distinguish a cancelled future from a failed one. */
FJ_TEST(cancelled_is_told_from_failed_by_every_call, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job busy, j[2];
    fj_future *f[2];

    for (int n = 0; n < 3; n++) { /* the future is queued, is running, or was never submitted */
        job_init(&busy, 0, FJ_OK);
        if (n == 0) CHECK_EQ(fj_future_submit(p, &busy.f), FJ_OK);
        for (int i = 0; i < 2; i++) {
            job_init(&j[i], 0, FJ_OK);
            if (n < 2) CHECK_EQ(fj_future_submit(p, &j[i].f), FJ_OK);
            if (n == 1) UNTIL(atomic_load(&j[i].begun));
            if (i == 0) CHECK_EQ(fj_future_cancel(&j[i].f, 0), 1);
            if (i == 1) CHECK_EQ(fj_future_fail(&j[i].f, 5), 1);
            check_told(&j[i].f, i == 0 ? FJ_ECANCELED : 5);
            atomic_store(&j[i].may_end, 1);
        }
        atomic_store(&busy.may_end, 1);
        fj_future_fini(&busy.f);
        for (int i = 0; i < 2; i++) fj_future_fini(&j[i].f);
    }
    CHECK_EQ(fj_submit_call(p, call_code, (void *)5, &f[0]), FJ_OK);
    check_told(f[0], 5);
    fj_future_unref(f[0]);
    CHECK_EQ(fj_future_new_call(call_code, (void *)5, 0, &f[1]), FJ_OK);
    CHECK_EQ(fj_future_cancel(f[1], 1), 1);
    check_told(f[1], FJ_ECANCELED);
    fj_future_unref(f[1]);
    fjt_destroy(p);
}

/* ---- Memory after the end ------------------------------------------------------------------------- */

#define GRAVES 64
#define POISON 0xa5

static void grave_check(const fj_future *f)
{
    for (size_t i = 0; i < sizeof *f; i++) CHECK_EQ(((const unsigned char *)f)[i], POISON);
}

static fj_future *_Atomic offered;

static void *complete_what_comes(void *arg)
{
    uint64_t seed = fjt_seed();

    (void)arg;
    for (;;) {
        fj_future *f;
        UNTIL((f = atomic_exchange(&offered, NULL)) != NULL);
        if (f == (fj_future *)&offered) return NULL;
        switch (regression_below(&seed, 3)) {
            case 0: CHECK_EQ(fj_future_complete(f, NULL), 1); break;
            case 1: CHECK_EQ(fj_future_fail(f, 3), 1); break;
            default: CHECK_EQ(fj_future_cancel(f, 1), 1);
        }
    }
}

/* TRAPS 44: the completing thread reads the future after it has set "done". The test overwrites the
 * future as soon as its wait returns, and the pattern must stay. */
FJ_TEST(future_is_not_touched_after_its_waiter_is_back, 60)
{
    static fj_future grave[GRAVES];
    pthread_t t = regression_thread(complete_what_comes, NULL);
    long rounds = fjt_rounds(50000);

    for (long i = 0; i < rounds; i++) {
        fj_future *f = &grave[i % GRAVES];
        if (i >= GRAVES) grave_check(f);
        fj_future_init(f, NULL);
        atomic_store(&offered, f);
        if (i % 3 == 0) UNTIL(fj_future_is_done(f));
        (void)fj_future_join(f);
        memset(f, POISON, sizeof *f);
    }
    atomic_store(&offered, (fj_future *)&offered);
    pthread_join(t, NULL);
    for (int i = 0; i < GRAVES && i < rounds; i++) grave_check(&grave[i]);
}

static int at_once(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* Each call uses the same stack frame as the call before it. */
__attribute__((noinline)) static void in_a_frame(fj_pool *p, bool cancel)
{
    fj_future f;

    fj_future_init(&f, at_once);
    CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
    if (cancel) (void)fj_future_cancel(&f, 1);
    (void)fj_future_join(&f);
    fj_future_fini(&f);
    memset((void *)&f, POISON, sizeof f);
    __asm__ volatile("" ::"r"(&f) : "memory");
}

/* TRAPS 44: the same for a future on the stack, which a worker runs and which is released. */
FJ_TEST(future_of_a_worker_is_not_touched_after_its_release, 60)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(20000); i > 0; i--) in_a_frame(p, i % 3 == 0);
    fjt_destroy(p);
}

static atomic_int root_released, root_touched;

static void *release_root(void *c)
{
    fj_future_fini(&((fj_completer *)c)->future);
    atomic_store(&root_released, 1);
    return NULL;
}

static int root_failed(fj_completer *c, int code, fj_completer *caller)
{
    (void)c;
    (void)code;
    (void)caller;
    /* Long enough for a release that returns too early. */
    for (int i = 0; i < 1000 && !atomic_load(&root_released); i++) fjt_sleep_us(100);
    if (atomic_load(&root_released)) atomic_store(&root_touched, 1);
    return 1;
}

/* TRAPS 44: a root is cancelled while it is queued and is then released. The pool that discards it
 * must not use it after that. */
FJ_TEST(cancelled_root_is_not_touched_after_its_release, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job busy;
    fj_completer c;

    job_init(&busy, 0, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &busy.f), FJ_OK);
    UNTIL(atomic_load(&busy.begun));
    fj_completer_init(&c, NULL, 0, at_once, NULL, root_failed);
    CHECK_EQ(fj_completer_submit(p, &c), FJ_OK);
    CHECK_EQ(fj_future_cancel(&c.future, 0), 1);
    pthread_t t = regression_thread(release_root, &c);
    CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&root_touched), 0);
    atomic_store(&busy.may_end, 1);
    fj_future_fini(&busy.f);
    fjt_destroy(p);
}

/* ---- Order ------------------------------------------------------------------------------------ */

struct seer {
    struct job *_Atomic job;
    atomic_long seen;
};

static void *see(void *arg)
{
    struct seer *s = arg;

    for (;;) {
        struct job *j;
        UNTIL((j = atomic_load_explicit(&s->job, memory_order_acquire)) != NULL);
        if (j == (struct job *)s) return NULL;
        void *result = NULL;
        UNTIL(fj_future_is_done(&j->f));
        CHECK_EQ(fj_future_result(&j->f, &result), FJ_OK);
        CHECK(result == j);
        CHECK_EQ(j->payload, 1234);
        atomic_store_explicit(&s->job, NULL, memory_order_relaxed);
        atomic_fetch_add(&s->seen, 1);
    }
}

static void *complete_with_payload(void *arg)
{
    struct job *j = arg;

    j->payload = 1234;
    (void)fj_future_complete(&j->f, j);
    return NULL;
}

/* TRAPS 46: "done" becomes visible before the result. Only the future orders the payload, so
 * ThreadSanitizer reports a missing order. The test also checks the values. */
FJ_TEST(outcome_is_there_for_whoever_sees_done, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    struct seer s = {.seen = 0};
    struct job j;
    pthread_t t = regression_thread(see, &s);
    long rounds = fjt_rounds(20000);

    for (long i = 0; i < rounds; i++) {
        job_init(&j, 1, FJ_OK);
        bool by_hand = i % 8 == 0;
        atomic_store(&s.job, &j); /* the other thread polls a future that is not queued yet */
        if (by_hand) {
            (void)complete_with_payload(&j);
        } else {
            CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
            fj_future_fini(&j.f);
        }
        UNTIL(atomic_load(&s.seen) == i + 1);
    }
    atomic_store(&s.job, (struct job *)&s);
    pthread_join(t, NULL);
    fjt_destroy(p);
}

/* ---- Tags, and futures that are reset ------------------------------------------------------------ */

struct tagger {
    fj_future *f;
    long n;
};

static void *tag_on(void *arg)
{
    struct tagger *t = arg;

    for (long i = t->n; i > 0;) {
        int16_t now = fj_future_tag(t->f);
        i -= fj_future_cas_tag(t->f, now, (int16_t)(now + 1));
    }
    return NULL;
}

/* TRAPS 47: completion stores the whole word, so that a tag set at that moment is lost; or setting
 * a tag loses the outcome. */
FJ_TEST(tags_and_outcomes_do_not_disturb_each_other, 60)
{
    enum { EACH = 300 };
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(300); i > 0; i--) {
        struct job j;
        struct tagger tagger = {&j.f, EACH};
        job_init(&j, 1, FJ_OK);
        pthread_t a = regression_thread(tag_on, &tagger), b = regression_thread(tag_on, &tagger);
        CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
        bool cancelled = i % 2 && fj_future_cancel(&j.f, 1);
        CHECK_EQ(fj_future_join(&j.f), cancelled ? FJ_ECANCELED : FJ_OK);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        CHECK_EQ(fj_future_tag(&j.f), 2 * EACH);
        fj_future_fini(&j.f);
        CHECK_EQ(fj_future_is_cancelled(&j.f), cancelled);
    }
    fjt_destroy(p);
}

/* TRAPS 48: a future is reset while a thread still waits for it or runs it. */
FJ_TEST(future_that_is_still_in_use_cannot_be_made_new, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    struct job j;
    fj_future open;

    job_init(&j, 0, FJ_OK);
    CHECK_EQ(fj_future_submit(p, &j.f), FJ_OK);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_EBUSY);
    UNTIL(atomic_load(&j.begun));
    CHECK_EQ(fj_future_reinit(&j.f), FJ_EBUSY);
    CHECK_EQ(fj_future_cancel(&j.f, 0), 1);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_EBUSY); /* its body is still running */
    atomic_store(&j.may_end, 1);
    fj_future_fini(&j.f);
    CHECK_EQ(fj_future_reinit(&j.f), FJ_OK);

    fj_future_init(&open, left_open);
    CHECK_EQ(fj_future_submit(p, &open), FJ_OK);
    fj_future_fini(&open);
    CHECK_EQ(fj_future_reinit(&open), FJ_EBUSY);
    CHECK_EQ(fj_future_complete(&open, NULL), 1);
    CHECK_EQ(fj_future_reinit(&open), FJ_OK);
    fjt_destroy(p);
}

struct again {
    fj_future f;
    pthread_barrier_t line;
    long rounds;
};

static void *wait_again(void *arg)
{
    struct again *a = arg;

    for (long i = a->rounds; i > 0; i--) {
        pthread_barrier_wait(&a->line);
        CHECK_EQ(fj_future_wait(&a->f, LONG_NS), FJ_OK);
        pthread_barrier_wait(&a->line);
    }
    return NULL;
}

/* TRAPS 48: bits of the previous use keep the next waiters from sleeping or from being woken. */
FJ_TEST(future_made_new_wakes_its_waiters_each_time, 60)
{
    static struct again a;
    pthread_t t[3];

    a.rounds = fjt_rounds(3000);
    pthread_barrier_init(&a.line, NULL, 4);
    fj_future_init(&a.f, NULL);
    for (int i = 0; i < 3; i++) t[i] = regression_thread(wait_again, &a);
    for (long i = a.rounds; i > 0; i--) {
        pthread_barrier_wait(&a.line);
        regression_spin_ns(i % 8 * 10000);
        CHECK_EQ(i % 2 ? fj_future_complete(&a.f, &a) : fj_future_cancel(&a.f, 1), 1);
        pthread_barrier_wait(&a.line);
        CHECK_EQ(fj_future_reinit(&a.f), FJ_OK);
        CHECK_EQ(fj_future_state(&a.f), FJ_FUTURE_RUNNING);
    }
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

/* ---- Errors ------------------------------------------------------------------------------------- */

static int failing(void *arg, void **result)
{
    int depth = (int)(intptr_t)arg, code = 0;
    fj_future *f[2];

    *result = NULL;
    if (depth == 0) return 99;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fj_future_new_call(failing, (void *)(intptr_t)(depth - 1), 0, &f[i]), FJ_OK);
        CHECK_EQ(fj_future_fork(f[i]), FJ_OK);
    }
    for (int i = 2; i-- > 0;) {
        code = fj_future_join(f[i]);
        CHECK_EQ(code, 99);
        fj_future_unref(f[i]);
    }
    return code;
}

/* TRAPS 49: each failure leaks an object; or several futures share an object that one of them
 * frees. */
FJ_TEST(failing_trees_leave_nothing_behind, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    size_t before = 0;
    long rounds = fjt_rounds(300), warm = rounds / 3;

    for (long i = 0; i < rounds; i++) {
        fj_future *f;
        if (i == warm) before = mallinfo2().uordblks;
        CHECK_EQ(fj_submit_call(p, failing, (void *)6, &f), FJ_OK);
        CHECK_EQ(fj_future_join(f), 99);
        fj_future_unref(f);
    }
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    /* Each of these rounds creates 127 futures of at least 200 bytes. */
    if (!fjt_sanitized()) CHECK(mallinfo2().uordblks <= before + 100000);
    fjt_destroy(p);
}

/* ---- The thread that runs a body --------------------------------------------------------------- */

static int cancels_its_thread(fj_task *t)
{
    struct timespec ms = {.tv_nsec = 1000000};

    (void)t;
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    pthread_testcancel();
    nanosleep(&ms, NULL);
    return 8;
}

/* TRAPS 50: thread cancellation ends a body, and the worker with it. */
FJ_TEST(cancelling_the_thread_of_a_body_ends_nothing, 30)
{
    fj_pool *p = fjt_pool(1, 0);
    fj_future f;

    fj_future_init(&f, cancels_its_thread);
    CHECK_EQ(fj_future_submit(p, &f), FJ_OK);
    CHECK_EQ(fj_future_join(&f), 8);
    fj_future_fini(&f);
    regression_all_at_once(p, 1);
    regression_rest(p);
    CHECK_EQ(regression_started(p), 1);
    fjt_destroy(p);
}

/* ---- A pool that stops --------------------------------------------------------------------------- */

#define PLACES 24

struct places {
    fj_pool *pool;
    struct job forked[PLACES], submitted[PLACES], outer[PLACES];
    atomic_int ready, may_end;
};

/* Fills its own queue and the submission queues, and waits for none of the futures. */
static int places_run(void *arg)
{
    struct places *s = arg;

    for (int i = 0; i < PLACES; i++) {
        job_init(&s->forked[i], 1, FJ_OK);
        job_init(&s->submitted[i], 1, FJ_OK);
        CHECK_EQ(fj_future_fork(&s->forked[i].f), FJ_OK);
        fj_pool *p = fj_current_pool();
        CHECK_EQ(i % 2 ? fj_future_submit_external(p, &s->submitted[i].f)
                       : fj_future_submit_lazy(p, &s->submitted[i].f),
                 FJ_OK);
    }
    atomic_store(&s->ready, 1);
    UNTIL(atomic_load(&s->may_end));
    return FJ_OK;
}

static void check_ended(struct job *j)
{
    int code = fj_future_join(&j->f);

    CHECK_EQ(code, atomic_load(&j->ended) ? FJ_OK : FJ_ECANCELED);
    fj_future_fini(&j->f);
}

static void *wait_for_places(void *arg)
{
    struct places *s = arg;
    fj_future *f[PLACES];
    size_t which;

    for (int i = 0; i < PLACES; i++) f[i] = &s->outer[i].f;
    CHECK_EQ(fj_future_wait_any(f, PLACES, FJ_FOREVER, &which), FJ_OK);
    CHECK_EQ(fj_future_wait_all(f, PLACES, FJ_FOREVER), FJ_OK);
    return NULL;
}

/* TRAPS 15: a future stays queued where no worker runs or cancels it, and its waiters sleep
 * forever. */
FJ_TEST(stop_ends_every_future_wherever_it_is, 60)
{
    static struct places s;

    for (long round = fjt_rounds(150); round > 0; round--) {
        fj_pool *p = fjt_pool(1 + (int)(round % 3), round % 2 ? FJ_POOL_FIFO : 0);
        memset(&s, 0, sizeof s);
        CHECK_EQ(fj_execute(p, places_run, &s), FJ_OK);
        UNTIL(atomic_load(&s.ready));
        for (int i = 0; i < PLACES; i++) {
            job_init(&s.outer[i], 1, FJ_OK);
            CHECK_EQ(fj_future_submit(p, &s.outer[i].f), FJ_OK);
        }
        pthread_t t = regression_thread(wait_for_places, &s);
        if (round % 4 == 0) atomic_store(&s.may_end, 1);
        CHECK_EQ(fj_pool_shutdown_now(p), FJ_OK);
        for (int i = 0; i < PLACES; i++) check_ended(&s.outer[i]);
        atomic_store(&s.may_end, 1);
        for (int i = 0; i < PLACES; i++) {
            check_ended(&s.forked[i]);
            check_ended(&s.submitted[i]);
        }
        pthread_join(t, NULL);
        fjt_destroy(p);
    }
}

static void *stop_soon(void *arg)
{
    uint64_t seed = fjt_seed();

    regression_spin_ns(regression_below(&seed, 100000));
    CHECK_EQ(fj_pool_shutdown_now(arg), FJ_OK);
    return NULL;
}

/* TRAPS 15, 52: the pool ends, and a thread that waits for any of several futures is not woken. */
FJ_TEST(any_of_ends_when_its_pool_stops, 60)
{
    enum { N = 5 };
    uint64_t seed = fjt_seed();

    for (long round = fjt_rounds(800); round > 0; round--) {
        fj_pool *p = fjt_pool(1 + (int)(round % 2), 0);
        struct job j[N];
        fj_future *f[N];
        size_t which = N;
        for (int i = 0; i < N; i++) {
            job_init(&j[i], 1, regression_below(&seed, 2) ? FJ_OK : 4);
            f[i] = &j[i].f;
        }
        pthread_t t = regression_thread(stop_soon, p);
        int err = fj_future_invoke_any(p, f, N, FJ_FOREVER, &which);
        CHECK(err == FJ_OK || err == 4 || err == FJ_ECANCELED || err == FJ_EREJECTED);
        CHECK_EQ(which < N, err == FJ_OK);
        if (err == FJ_OK) CHECK(fj_future_succeeded(f[which]));
        for (int i = 0; i < N; i++) {
            CHECK(fj_future_is_done(f[i]));
            fj_future_fini(f[i]);
        }
        pthread_join(t, NULL);
        fjt_destroy(p);
    }
}

/* ---- Several futures -------------------------------------------------------------------------- */

static int takes_a_while(fj_task *t)
{
    (void)t;
    return fj_sleep_ns(10 * MS);
}

/* TRAPS 51: the timeout applies to each future in turn, so that the whole call takes longer than
 * its timeout. */
FJ_TEST(limit_of_all_of_is_one_for_all, 30)
{
    enum { N = 40 };
    fj_pool_options o = {0};
    fj_future f[N], *list[N];
    int cancelled = 0;

    /* The futures run one after the other, each within the timeout. */
    o.parallelism = o.max_threads = 1;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < N; i++) {
        fj_future_init(&f[i], takes_a_while);
        list[i] = &f[i];
    }
    CHECK_EQ(fj_future_invoke_all(p, list, N, 50 * MS), FJ_ETIMEDOUT);
    for (int i = 0; i < N; i++) {
        CHECK(fj_future_is_done(&f[i]));
        cancelled += fj_future_is_cancelled(&f[i]);
        fj_future_fini(&f[i]);
    }
    CHECK(cancelled > 0);
    fjt_destroy(p);
}

enum how { FAILS, CANCELLED_QUEUED, CANCELLED_RUNNING, STOPPED, HOWS };

struct any_case {
    struct job j[5];
    fj_future *f[5];
    int n;
    enum how how;
    fj_pool *pool;
};

/* Cancels each future once its body has begun, in the order in which the bodies begin. */
static void any_cancel_running(struct any_case *c)
{
    for (int left = c->n; left > 0; sched_yield())
        for (int i = 0; i < c->n; i++) {
            if (!atomic_load(&c->j[i].begun) || fj_future_is_done(c->f[i])) continue;
            CHECK_EQ(fj_future_cancel(c->f[i], i % 2), 1);
            atomic_store(&c->j[i].may_end, 1);
            left--;
        }
}

/* Does what the case requires to the futures of an any-of call, while the test waits for them. */
static void *any_disturb(void *arg)
{
    struct any_case *c = arg;

    if (c->how == CANCELLED_RUNNING) any_cancel_running(c);
    for (int i = 0; i < c->n; i++)
        if (c->how == CANCELLED_QUEUED) (void)fj_future_cancel(c->f[i], i % 2);
    if (c->how == STOPPED) {
        UNTIL(atomic_load(&c->j[0].begun) || atomic_load(&c->j[c->n - 1].begun));
        CHECK_EQ(fj_pool_shutdown_now(c->pool), FJ_OK);
    }
    for (int i = 0; i < c->n; i++) atomic_store(&c->j[i].may_end, 1);
    return NULL;
}

static void any_round(int n, int workers, enum how how)
{
    struct any_case c = {.n = n, .how = how, .pool = fjt_pool(workers, 0)};
    size_t which = 77;

    for (int i = 0; i < n; i++) {
        job_init(&c.j[i], how == FAILS, 6);
        c.f[i] = &c.j[i].f;
    }
    pthread_t t = regression_thread(any_disturb, &c);
    int err = fj_future_invoke_any(c.pool, c.f, (size_t)n, FJ_FOREVER, &which);
    pthread_join(t, NULL);
    CHECK_EQ(which, 77);
    if (how == FAILS) CHECK_EQ(err, 6);
    if (how == CANCELLED_RUNNING) CHECK_EQ(err, FJ_ECANCELED);
    CHECK(err == 6 || err == FJ_ECANCELED || err == FJ_EREJECTED);
    for (int i = 0; i < n; i++) {
        CHECK(fj_future_is_done(c.f[i]));
        fj_future_fini(c.f[i]);
    }
    fjt_destroy(c.pool);
}

/* TRAPS 52: a future ends in a way that is not counted, so that the call waits for a success that
 * cannot come. */
FJ_TEST(any_of_ends_however_its_futures_end, 60)
{
    static const int sizes[] = {1, 2, 5};

    for (long round = fjt_rounds(20); round > 0; round--)
        for (int how = 0; how < HOWS; how++)
            for (int i = 0; i < 3; i++)
                for (int workers = 1; workers <= 2; workers++)
                    any_round(sizes[i], workers, (enum how)how);
}

/* TRAPS 52: one future cannot be submitted, and those before it stay queued or keep running. */
FJ_TEST(any_of_with_a_hole_or_a_used_future_starts_nothing, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    struct job j[3];
    fj_future *f[3] = {&j[0].f, NULL, &j[2].f};
    size_t which = 9;

    for (int i = 0; i < 3; i++) job_init(&j[i], 1, FJ_OK);
    CHECK_EQ(fj_future_invoke_any(p, f, 3, FJ_FOREVER, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all(p, f, 3, FJ_FOREVER), FJ_EINVAL);
    f[1] = &j[1].f;
    CHECK_EQ(fj_future_submit(p, f[1]), FJ_OK);
    CHECK_EQ(fj_future_invoke_any(p, f, 3, FJ_FOREVER, &which), FJ_EINVAL);
    CHECK_EQ(fj_future_join(f[1]), FJ_OK);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(which, 9);
    for (int i = 0; i < 3; i++) CHECK_EQ(atomic_load(&j[i].begun), i == 1);
    CHECK(!fj_future_is_done(f[0]) && !fj_future_is_done(f[2]));
    fj_future_fini(f[1]);
    CHECK_EQ(fj_pool_shutdown(p), FJ_OK);
    f[1] = f[2];
    CHECK_EQ(fj_future_invoke_any(p, f, 2, FJ_FOREVER, &which), FJ_EREJECTED);
    CHECK(fj_future_is_cancelled(f[0]) && fj_future_is_cancelled(f[1]));
    fjt_destroy(p);
}

struct sibling {
    fj_future f;
    bool slow, by_hand;
    volatile long mine[8];
};

static int sibling_run(fj_task *t)
{
    struct sibling *s = (struct sibling *)t;

    if (!s->slow) return 3;
    if (s->by_hand) CHECK_EQ(fj_future_complete(&s->f, NULL), 1);
    regression_spin_ns(300000);
    for (int i = 0; i < 8; i++) s->mine[i] = i;
    return FJ_OK;
}

__attribute__((noinline)) static void siblings_in_a_frame(fj_pool *p, bool by_hand)
{
    struct sibling s[3] = {{.slow = false}, {.slow = true}, {.slow = true}};
    fj_future *f[3];

    for (int i = 0; i < 3; i++) {
        s[i].by_hand = by_hand && i == 1;
        fj_future_init(&s[i].f, sibling_run);
        f[i] = &s[i].f;
    }
    CHECK_EQ(fj_future_invoke_all(p, f, 3, FJ_FOREVER), 3);
    CHECK_EQ(fj_future_error(f[0]), 3);
    for (int i = 1; i < 3; i++) CHECK_EQ(s[i].mine[7], 7); /* its body has ended */
    memset((void *)s, POISON, sizeof s);
    __asm__ volatile("" ::"r"(s) : "memory");
}

/* TRAPS 53: the call returns the error while other futures in the caller's stack frame still
 * run. */
FJ_TEST(all_of_waits_for_the_siblings_of_one_that_failed, 60)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long i = fjt_rounds(1000); i > 0; i--) siblings_in_a_frame(p, false);
    fjt_destroy(p);
}

/* TRAPS 53: the same for a future that its own body completes before it returns. */
FJ_TEST(all_of_waits_for_bodies_of_futures_completed_by_hand, 60)
{
    fj_pool *p = fjt_pool(3, 0);

    for (long i = fjt_rounds(100); i > 0; i--) siblings_in_a_frame(p, true);
    fjt_destroy(p);
}
