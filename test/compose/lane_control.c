/* SPDX-License-Identifier: MIT */
/*
 * lane_control.c - lanes: pause, cancel, close, priorities, the end of the pool, random programs
 */
#include <sys/wait.h>
#include <unistd.h>

#include "lane.h"

#define SECOND ((int64_t)1000000000)

/* ---- Pause, cancel, close ---------------------------------------------------------------------- */

FJ_TEST(a_paused_lane_begins_nothing_and_pauses_are_counted, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 0, FJ_LANE_WAITS);
    atomic_int n = 0;

    CHECK_EQ(fj_lane_resume(l), FJ_EINVAL);
    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    CHECK_EQ(fj_lane_pause(l), FJ_OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    CHECK_EQ(fj_lane_drain(l, 1000000), FJ_ETIMEDOUT);
    CHECK_EQ(atomic_load(&n), 0);
    CHECK_EQ(fj_lane_pending(l), 5);
    CHECK_EQ(fj_lane_resume(l), FJ_OK);
    CHECK_EQ(fj_lane_drain(l, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&n), 5);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    fjt_destroy(pool);
}

/* A lane that notes what it cancels. */
struct notes {
    atomic_int cancelled;
};

static void on_cancel(fj_lane *l, fj_action_fn *action, void *action_arg, void *arg)
{
    struct notes *n = arg;

    CHECK(l != NULL && action == count && action_arg != NULL);
    atomic_fetch_add(&n->cancelled, 1);
}

static fj_lane *lane_noting(fj_pool *pool, uint32_t width, struct notes *n)
{
    fj_lane_options o = {.pool = pool, .width = width, .on_cancel = on_cancel, .arg = n};
    fj_lane *l;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
    return l;
}

static int nothing(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

FJ_TEST(cancel_ends_what_waits_and_leaves_what_runs, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct notes notes = {0};
    fj_lane *l = lane_noting(pool, 1, &notes);
    struct gate g = {0};
    atomic_int n = 0;
    fj_future f;

    CHECK_EQ(fj_lane_execute(l, gate_wait, &g), FJ_OK);
    gate_await(&g, 1);
    fj_future_init(&f, nothing);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_submit(l, &f), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_cancel(l), 3);
    CHECK_EQ(fj_future_error(&f), FJ_ECANCELED); /* although the first action still runs */
    fj_future_fini(&f);
    CHECK_EQ(atomic_load(&notes.cancelled), 2);
    CHECK_EQ(fj_lane_cancel(l), 0);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK); /* the lane is still open */
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(atomic_load(&n), 1);
    fjt_destroy(pool);
}

FJ_TEST(destroy_runs_what_waits_but_cancels_it_in_a_paused_lane, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct notes notes = {0};
    atomic_int n = 0;

    for (int paused = 0; paused < 2; paused++) {
        fj_lane *l = lane_noting(pool, 1, &notes);
        if (paused) CHECK_EQ(fj_lane_pause(l), FJ_OK);
        for (int i = 0; i < 50; i++) CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        CHECK_EQ(atomic_load(&n), 50);
        CHECK_EQ(atomic_load(&notes.cancelled), paused ? 50 : 0);
    }
    fjt_destroy(pool);
}

FJ_TEST(misuse_of_a_lane_is_refused, 10)
{
    fj_lane_options o = {.priority = (enum fj_priority)1};
    fj_lane *l = NULL;

    CHECK_EQ(fj_lane_create(&l, &o), FJ_EINVAL);
    o = (fj_lane_options){.full = (enum fj_lane_full)FJ_PRIORITY_HIGH};
    CHECK_EQ(fj_lane_create(&l, &o), FJ_EINVAL);
    o = (fj_lane_options){.reserved = {0, 0, 0, 1}};
    CHECK_EQ(fj_lane_create(&l, &o), FJ_EINVAL);
    CHECK_EQ(fj_lane_create(NULL, NULL), FJ_EINVAL);
    CHECK(l == NULL);
    CHECK_EQ(fj_lane_destroy(NULL), FJ_OK);
    CHECK_EQ(fj_lane_create(&l, NULL), FJ_OK); /* in the common pool */
    CHECK_EQ(fj_lane_execute(l, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_lane_close(l), FJ_OK);
    CHECK_EQ(fj_lane_close(l), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &o), FJ_EREJECTED);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
}

/* ---- The end of the pool ----------------------------------------------------------------------- */

FJ_TEST(a_pool_that_is_shut_down_runs_what_its_lanes_hold, 20)
{
    for (uint32_t width = 0; width < 3; width++) {
        fj_pool *pool = fjt_pool(2, 0);
        fj_lane *l = lane_with(pool, width, 0, FJ_LANE_WAITS);
        atomic_int n = 0;
        for (int i = 0; i < 500; i++) CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
        CHECK_EQ(fj_lane_execute(l, count, &n), FJ_EREJECTED);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(atomic_load(&n), 500);
        if (width == 1) CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        fjt_destroy(pool);
        if (width != 1) CHECK_EQ(fj_lane_destroy(l), FJ_OK); /* after the end of the pool */
    }
}

FJ_TEST(a_pool_that_is_stopped_cancels_what_its_lanes_hold, 20)
{
    static const enum fj_priority priorities[] = {FJ_PRIORITY_NORMAL, FJ_PRIORITY_HIGH,
                                                  FJ_PRIORITY_BACKGROUND};

    for (int i = 0; i < 6; i++) {
        fj_pool *pool = fjt_pool(1, 0);
        fj_lane *busy = lane_with(pool, 1, 0, FJ_LANE_WAITS), *l;
        struct gate g = {0};
        struct notes notes = {0};
        fj_lane_options o = {.pool = pool, .width = 1, .priority = priorities[i / 2]};
        fj_future f;
        atomic_int n = 0;
        o.on_cancel = on_cancel;
        o.arg = &notes;
        CHECK_EQ(fj_lane_create(&l, &o), FJ_OK);
        fj_lane *served = i % 2 == 0 ? busy : l;
        CHECK_EQ(fj_lane_execute(busy, gate_wait, &g), FJ_OK);
        gate_await(&g, 1);
        fj_future_init(&f, nothing);
        CHECK_EQ(fj_lane_submit(served, &f), FJ_OK);
        CHECK_EQ(fj_lane_pause(l), FJ_OK); /* no replacement of the sleeping worker runs it */
        CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        CHECK_EQ(fj_pool_shutdown_now(pool), FJ_OK);
        CHECK_EQ(fj_lane_execute(l, count, &n), FJ_EREJECTED);
        atomic_store(&g.open, 1);
        CHECK_EQ(fj_lane_resume(l), FJ_OK);
        (void)fj_future_wait_quietly(&f, FJ_FOREVER);
        if (served == busy) CHECK_EQ(fj_future_error(&f), FJ_ECANCELED);
        fj_future_fini(&f);
        CHECK_EQ(fj_pool_await_termination(pool, FJ_FOREVER), FJ_OK);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
        CHECK_EQ(fj_lane_destroy(busy), FJ_OK);
        CHECK_EQ(atomic_load(&n), 0);
        CHECK_EQ(atomic_load(&notes.cancelled), 1);
        fjt_destroy(pool);
    }
}

FJ_TEST(a_common_pool_without_workers_runs_lanes_in_the_caller, 20)
{
    fj_lane *l;
    atomic_int n = 0;

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "0", 1), 0);
    for (uint32_t width = 0; width < 3; width++) {
        l = lane_with(NULL, width, 0, FJ_LANE_WAITS);
        atomic_store(&n, 0);
        CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        CHECK_EQ(atomic_load(&n), 1);
        CHECK_EQ(fj_lane_pause(l), FJ_OK);
        for (int i = 0; i < 5000; i++) CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
        CHECK_EQ(fj_lane_resume(l), FJ_OK);
        CHECK_EQ(atomic_load(&n), 5001);
        CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    }
    CHECK_EQ(fj_common_parallelism(), 0);
}

static int fork_in_action(void *arg)
{
    pid_t child = fork();
    int status;

    if (child == 0) return FJ_OK; /* the child process leaves the lane alone and ends in main() */
    CHECK(child > 0);
    (void)arg;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return FJ_OK;
}

static int fork_and_exit(void *arg)
{
    pid_t self = getpid();
    int code = fork_in_action(arg);

    if (getpid() != self) _exit(0);
    return code;
}

FJ_TEST(an_action_may_call_fork, 20)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_lane *l = lane_with(pool, 1, 0, FJ_LANE_WAITS);
    atomic_int n = 0;

    CHECK_EQ(fj_lane_execute(l, fork_and_exit, NULL), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(atomic_load(&n), 1);
    fjt_destroy(pool);
}

/* ---- Priorities -------------------------------------------------------------------------------- */

static char order[64];
static atomic_int order_n;

static int note(void *arg)
{
    order[atomic_fetch_add(&order_n, 1)] = *(const char *)arg;
    return FJ_OK;
}

/* Keeps the only worker busy, without a sleep for which the pool would replace it. */
static int hold_worker(void *arg)
{
    struct gate *g = arg;

    atomic_fetch_add(&g->arrived, 1);
    while (!atomic_load(&g->open)) sched_yield();
    return FJ_OK;
}

FJ_TEST(one_worker_takes_lanes_by_their_priority, 20)
{
    fj_pool *pool = fjt_pool(1, FJ_POOL_FIFO);
    fj_lane *high = lane_at(pool, 1, FJ_PRIORITY_HIGH), *wide = lane_at(pool, 3, FJ_PRIORITY_HIGH),
            *normal = lane_at(pool, 1, FJ_PRIORITY_NORMAL),
            *back = lane_at(pool, 2, FJ_PRIORITY_BACKGROUND);
    struct gate g = {0};

    CHECK_EQ(fj_execute(pool, hold_worker, &g), FJ_OK);
    gate_await(&g, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(fj_lane_execute(back, note, "b"), FJ_OK);
        CHECK_EQ(fj_execute(pool, note, "n"), FJ_OK);
        CHECK_EQ(fj_lane_execute(normal, note, "n"), FJ_OK);
        CHECK_EQ(fj_lane_execute(high, note, "h"), FJ_OK);
        CHECK_EQ(fj_lane_execute(wide, note, "h"), FJ_OK);
    }
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(back), FJ_OK);
    CHECK_EQ(fj_lane_destroy(normal), FJ_OK);
    CHECK_EQ(fj_lane_destroy(high), FJ_OK);
    CHECK_EQ(fj_lane_destroy(wide), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(strcmp(order, "hhhhhhnnnnnnbbb"), 0);
}

/* A lane that runs its own batch ends the turn when an action of high priority arrives. */
static fj_lane *arriving;

static int let_arrive(void *arg)
{
    if (arg != NULL) CHECK_EQ(fj_lane_execute(arriving, note, "h"), FJ_OK);
    return note("n");
}

FJ_TEST(a_high_action_begins_before_the_next_action_of_another_lane, 20)
{
    static int yes;
    fj_pool *pool = fjt_pool(1, 0);
    fj_lane *normal = lane_at(pool, 1, FJ_PRIORITY_NORMAL);

    arriving = lane_at(pool, 1, FJ_PRIORITY_HIGH);
    CHECK_EQ(fj_lane_pause(normal), FJ_OK);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(fj_lane_execute(normal, let_arrive, i == 2 ? &yes : NULL), FJ_OK);
    CHECK_EQ(fj_lane_resume(normal), FJ_OK);
    CHECK_EQ(fj_lane_destroy(normal), FJ_OK);
    CHECK_EQ(fj_lane_destroy(arriving), FJ_OK);
    fjt_destroy(pool);
    CHECK_EQ(strcmp(order, "nnnhnnn"), 0);
}

struct flood {
    fj_pool *pool;
    fj_lane *lane; /* NULL: plain submissions */
    atomic_int stop, n;
};

static int flood_again(void *arg)
{
    struct flood *f = arg;

    atomic_fetch_add(&f->n, 1);
    if (atomic_load(&f->stop)) return FJ_OK;
    if (f->lane != NULL) {
        CHECK_EQ(fj_lane_execute(f->lane, flood_again, f), FJ_OK);
    } else {
        CHECK_EQ(fj_execute(f->pool, flood_again, f), FJ_OK);
    }
    return FJ_OK;
}

/* The flood never ends before the action of a lower priority has run. */
static void check_moves(enum fj_priority of_flood, enum fj_priority low, bool lanes)
{
    fj_pool *pool = fjt_pool(1, 0);
    struct flood f = {.pool = pool};
    fj_lane *l = lane_at(pool, 1, low);
    atomic_int n = 0;

    if (lanes) f.lane = lane_at(pool, 0, of_flood);
    for (int i = 0; i < 3; i++) CHECK_EQ(flood_again(&f), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, count, &n), FJ_OK);
    until(&n);
    atomic_store(&f.stop, 1);
    if (lanes) CHECK_EQ(fj_lane_drain(f.lane, FJ_FOREVER), FJ_OK);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK_EQ(fj_lane_destroy(f.lane), FJ_OK);
    fjt_destroy(pool);
}

FJ_TEST(lower_priorities_move_while_higher_ones_keep_coming, 30)
{
    check_moves(FJ_PRIORITY_HIGH, FJ_PRIORITY_BACKGROUND, true);
    check_moves(FJ_PRIORITY_HIGH, FJ_PRIORITY_NORMAL, true);
    check_moves(FJ_PRIORITY_NORMAL, FJ_PRIORITY_BACKGROUND, true);
    check_moves(FJ_PRIORITY_NORMAL, FJ_PRIORITY_BACKGROUND, false);
}

static atomic_int plain_done, plain_seen;

static int plain_count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&plain_done, 1);
    return FJ_OK;
}

static int plain_look(void *arg)
{
    (void)arg;
    atomic_store(&plain_seen, atomic_load(&plain_done) + 1);
    return FJ_OK;
}

FJ_TEST(a_high_action_overtakes_many_plain_submissions, 30)
{
    fj_pool *pool = fjt_pool(1, 0);
    fj_lane *l = lane_at(pool, 1, FJ_PRIORITY_HIGH);
    struct gate g = {0};

    CHECK_EQ(fj_execute(pool, hold_worker, &g), FJ_OK);
    gate_await(&g, 1);
    for (int i = 0; i < 20000; i++) CHECK_EQ(fj_execute(pool, plain_count, NULL), FJ_OK);
    CHECK_EQ(fj_lane_execute(l, plain_look, NULL), FJ_OK);
    atomic_store(&g.open, 1);
    CHECK_EQ(fj_lane_destroy(l), FJ_OK);
    CHECK(atomic_load(&plain_seen) <= 16);
    fjt_destroy(pool);
}

/* ---- Random programs --------------------------------------------------------------------------- */

enum { LANES = 4, WRITERS = 3 };

/* The oracle of a lane: every action that the lane has accepted runs once or is cancelled once, never
 * more than `width` run at once, and those of one writer begin in order if the width is 1. */
struct track {
    fj_lane *lane;
    uint32_t width;
    size_t capacity;
    atomic_long accepted, ran, cancelled;
    atomic_int running;
    long next[WRITERS]; /* width 1: the least number that may begin; not atomic */
};

struct piece {
    struct track *track;
    int writer;
    long number;
    unsigned how;
};

static int piece_run(void *arg)
{
    struct piece *p = arg;
    struct track *t = p->track;

    CHECK(atomic_fetch_add(&t->running, 1) < (int)t->width);
    if (t->width == 1) {
        CHECK(p->number >= t->next[p->writer]);
        t->next[p->writer] = p->number + 1;
    }
    if (p->how % 16 == 0) (void)fj_sleep_ns(1000);
    if (p->how % 16 == 1) fjt_spin_us(2);
    atomic_fetch_sub(&t->running, 1);
    atomic_fetch_add(&t->ran, 1);
    free(p);
    return FJ_OK;
}

static int piece_call(void *arg, void **result)
{
    *result = NULL;
    return piece_run(arg);
}

static void piece_cancelled(fj_lane *l, fj_action_fn *action, void *action_arg, void *arg)
{
    struct track *t = arg;

    CHECK(l == t->lane && action == piece_run);
    atomic_fetch_add(&t->cancelled, 1);
    free(action_arg);
}

struct writer {
    struct track *tracks;
    int number;
    uint64_t seed;
    long rounds;
};

static void write_piece(struct track *t, int writer, long number, uint64_t r)
{
    struct piece *p = malloc(sizeof *p);

    *p = (struct piece){.track = t, .writer = writer, .number = number, .how = (unsigned)(r >> 20)};
    if (r % 8 != 0) {
        int err = fj_lane_execute(t->lane, piece_run, p);
        CHECK(err == FJ_OK || err == FJ_EBUSY);
        if (err == FJ_OK)
            atomic_fetch_add(&t->accepted, 1);
        else
            free(p);
        return;
    }
    fj_future *f;
    int err = fj_lane_call(t->lane, piece_call, p, &f);
    CHECK(err == FJ_OK || err == FJ_EBUSY);
    if (err != FJ_OK) {
        free(p);
        return;
    }
    atomic_fetch_add(&t->accepted, 1);
    if (r % 64 == 0) { /* waits for it: it runs or is cancelled */
        int code = fj_future_join(f);
        CHECK(code == FJ_OK || code == FJ_ECANCELED);
    }
    if (fj_future_wait(f, 0) != FJ_OK) (void)fj_future_wait(f, FJ_FOREVER);
    if (fj_future_is_cancelled(f)) {
        atomic_fetch_add(&t->cancelled, 1);
        free(p);
    }
    fj_future_unref(f);
}

static void *write_some(void *arg)
{
    struct writer *w = arg;

    for (long i = 0; i < w->rounds; i++) {
        uint64_t r = fjt_random(&w->seed);
        struct track *t = &w->tracks[r / 1024 % LANES];
        switch (r % 37) {
            case 0:
                CHECK_EQ(fj_lane_pause(t->lane), FJ_OK);
                if (r % 2 == 0) fjt_spin_us(5);
                CHECK_EQ(fj_lane_resume(t->lane), FJ_OK);
                break;
            case 1: (void)fj_lane_cancel(t->lane); break;
            case 2: {
                int err = fj_lane_drain(t->lane, (int64_t)(r % 3) * 20000);
                CHECK(err == FJ_OK || err == FJ_ETIMEDOUT);
                break;
            }
            case 3:
                CHECK(t->capacity == 0 || fj_lane_pending(t->lane) <= t->capacity);
                CHECK(fj_lane_running(t->lane) <= t->width);
                break;
            default: write_piece(t, w->number, i, r);
        }
    }
    return NULL;
}

static void random_track(fj_pool *pool, struct track *t, uint64_t *seed)
{
    static const enum fj_priority priorities[] = {FJ_PRIORITY_NORMAL, FJ_PRIORITY_HIGH,
                                                  FJ_PRIORITY_BACKGROUND};
    static const enum fj_lane_full fulls[] = {FJ_LANE_WAITS, FJ_LANE_REFUSES, FJ_LANE_CALLER_RUNS};
    uint64_t r = fjt_random(seed);
    fj_lane_options o = {.pool = pool, .on_cancel = piece_cancelled, .arg = t};

    *t = (struct track){.width = 1};
    o.width = (uint32_t)(r % 4);
    t->width = o.width != 0 ? o.width : 1000000;
    o.priority = priorities[r / 4 % 3];
    o.full = fulls[r / 12 % 3];
    o.capacity = t->capacity = r / 36 % 2 == 0 ? 0 : 1 + r / 72 % 9;
    CHECK_EQ(fj_lane_create(&t->lane, &o), FJ_OK);
}

static void random_program(fj_pool *pool, uint64_t *seed)
{
    static struct track tracks[LANES];
    struct writer w[WRITERS];
    pthread_t threads[WRITERS];

    for (int i = 0; i < LANES; i++) random_track(pool, &tracks[i], seed);
    for (int i = 0; i < WRITERS; i++) {
        w[i] = (struct writer){tracks, i, fjt_random(seed), 200};
        CHECK_EQ(pthread_create(&threads[i], NULL, write_some, &w[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < LANES; i++) {
        CHECK_EQ(fj_lane_destroy(tracks[i].lane), FJ_OK);
        CHECK_EQ(tracks[i].ran + tracks[i].cancelled, tracks[i].accepted);
    }
}

FJ_TEST(random_programs_run_or_cancel_every_action_once, 60)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_CALLER_HELPS};
    uint64_t seed = fjt_seed();

    for (long i = fjt_rounds(12); i > 0; i--) {
        fj_pool *pool = fjt_pool(1 + (int)(fjt_random(&seed) % 3), flags[i % 3]);
        for (int k = 0; k < 3; k++) random_program(pool, &seed);
        fjt_destroy(pool);
    }
}
