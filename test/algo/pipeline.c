/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - pipelines: each stage sees each item once, and in order if it is an ordered stage
 *
 * A pipeline never has more items in flight than its limit.
 */
#include <forkjoin/block.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "algo/scratch.h"
#include "places.h"

/* ---- A pipeline that checks itself ---------------------------------------------------------- */

enum { STAGES_MOST = 6 };

enum fate { UNDER_WAY, LEFT, EATEN, DROPPED };

/* What a stage does with an item. EAT: sets it to NULL, so that it goes no further. */
enum deed { PASS, EAT, FAIL_KEEPING, FAIL_EATING, CANCEL };

struct world;

struct thing {
    struct world *world;
    size_t id;
    size_t number;     /* position in the order of the first stage, unless that is parallel */
    atomic_int stage;  /* the stage that must see it next */
    atomic_int fate;   /* how it ended, an `enum fate` */
    atomic_int shared; /* stages that use it now: 0 or 1 */
};

struct step {
    struct world *world;
    size_t index;
    atomic_int inside;
    size_t seen;     /* items seen, if the stage is not parallel */
    size_t *numbers; /* their ids, in the order in which it saw them */
};

struct world {
    size_t stages, things, tokens;
    int kind[STAGES_MOST];
    struct step step[STAGES_MOST];
    struct thing *thing;
    atomic_size_t made;
    size_t numbered;
    atomic_long alive;
    atomic_int ends; /* calls of the first stage that returned no item */

    /* Stage `where` does `deed` with the thing whose id is `who`. */
    size_t where, who;
    enum deed deed;
    unsigned eats; /* each stage but the first eats about one of this many things; 0: none */
    fj_token token;
    atomic_bool cancelled;
    atomic_long late; /* calls that began after the cancel */
    uint64_t noise;   /* seed of the delays in the stages; 0: no delays */
};

/* A random number that depends only on a and b, so that it is the same in every run. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t state = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu;
    return fjt_random(&state);
}

static void waste(const struct world *w, size_t id, size_t stage)
{
    if (w->noise == 0) return;
    uint64_t r = mix(w->noise, id * STAGES_MOST + stage);
    if (r % 16 == 0)
        for (volatile uint64_t i = r >> 32 & 0xfff; i > 0;) i = i - 1;
    if (r % 64 == 1) fjt_sleep_us(1);
}

static enum deed deed_of(const struct world *w, const struct thing *t, size_t stage)
{
    if (w->deed != PASS && stage == w->where && t->id == w->who) return w->deed;
    if (stage != 0 && w->eats != 0 && mix(w->eats, t->id * STAGES_MOST + stage) % w->eats == 0)
        return EAT;
    return PASS;
}

static void thing_ends(struct thing *t, enum fate fate)
{
    int fresh = UNDER_WAY;

    CHECK(atomic_compare_exchange_strong(&t->fate, &fresh, (int)fate));
    atomic_fetch_sub(&t->world->alive, 1);
}

static struct thing *thing_make(struct world *w)
{
    size_t id = atomic_fetch_add(&w->made, 1);

    if (id >= w->things) {
        atomic_fetch_sub(&w->made, 1);
        atomic_fetch_add(&w->ends, 1);
        return NULL;
    }
    struct thing *t = &w->thing[id];
    t->world = w;
    t->id = id;
    CHECK(atomic_fetch_add(&w->alive, 1) < (long)w->tokens);
    return t;
}

static void step_record(struct step *s, const struct thing *t)
{
    struct world *w = s->world;

    if (w->kind[s->index] == FJ_STAGE_PARALLEL) return;
    if (s->index == 0) w->thing[t->id].number = w->numbered++;
    s->numbers[s->seen++] = t->id;
}

static int step_do(struct step *s, struct thing *t, void **item)
{
    struct world *w = s->world;
    bool last = s->index + 1 == w->stages;

    CHECK_EQ(atomic_fetch_add(&t->shared, 1), 0);
    CHECK_EQ(atomic_load(&t->fate), UNDER_WAY);
    CHECK_EQ(atomic_fetch_add(&t->stage, 1), (int)s->index);
    step_record(s, t);
    waste(w, t->id, s->index);
    enum deed deed = deed_of(w, t, s->index);
    bool eats = deed == EAT || deed == FAIL_EATING;
    CHECK_EQ(atomic_fetch_sub(&t->shared, 1), 1);
    if (eats || (last && deed == PASS) || (last && deed == CANCEL))
        thing_ends(t, eats ? EATEN : LEFT);
    *item = eats ? NULL : (void *)t;
    if (deed == CANCEL) {
        fj_token_cancel(&w->token);
        atomic_store(&w->cancelled, true);
    }
    return deed == FAIL_KEEPING || deed == FAIL_EATING ? 77 : FJ_OK;
}

static int step_run(void **item, void *arg)
{
    struct step *s = arg;
    struct world *w = s->world;
    int code = FJ_OK;

    if (atomic_load(&w->cancelled)) atomic_fetch_add(&w->late, 1);
    int others = atomic_fetch_add(&s->inside, 1);
    CHECK(w->kind[s->index] == FJ_STAGE_PARALLEL || others == 0);
    CHECK((*item == NULL) == (s->index == 0));
    struct thing *t = s->index == 0 ? thing_make(w) : *item;
    if (t != NULL) code = step_do(s, t, item);
    atomic_fetch_sub(&s->inside, 1);
    return code;
}

static void thing_drop(void *item)
{
    thing_ends(item, DROPPED);
}

static void world_make(struct world *w)
{
    w->thing = calloc(w->things + 1, sizeof *w->thing);
    CHECK(w->thing != NULL);
    for (size_t i = 0; i < w->stages; i++) {
        w->step[i] = (struct step){.world = w, .index = i};
        w->step[i].numbers = calloc(w->things + 1, sizeof(size_t));
        CHECK(w->step[i].numbers != NULL);
    }
    fj_token_init(&w->token, NULL);
    atomic_store(&w->made, 0);
    atomic_store(&w->alive, 0);
    atomic_store(&w->ends, 0);
    atomic_store(&w->cancelled, false);
    atomic_store(&w->late, 0);
    w->numbered = 0;
}

static void world_free(struct world *w)
{
    for (size_t i = 0; i < w->stages; i++) free(w->step[i].numbers);
    free(w->thing);
}

static int world_run(struct world *w, fj_pool *pool, fj_progress *progress)
{
    fj_stage stages[STAGES_MOST];
    fj_algo_options how = {.pool = pool, .token = &w->token, .progress = progress};

    for (size_t i = 0; i < w->stages; i++)
        stages[i] = (fj_stage){step_run, &w->step[i], w->kind[i]};
    return fj_pipeline(stages, w->stages, w->tokens, thing_drop, &how);
}

/* Checks that each ordered stage saw the things in the order in which the first stage made them. If
 * the first stage is parallel, all ordered stages must have seen them in the same order. */
static void world_check_order(struct world *w)
{
    size_t *rank = calloc(w->things + 1, sizeof *rank);
    bool known = w->kind[0] != FJ_STAGE_PARALLEL;

    CHECK(rank != NULL);
    for (size_t i = 0; i < w->things; i++) rank[i] = known ? w->thing[i].number : 0;
    for (size_t s = 1; s < w->stages; s++) {
        const struct step *p = &w->step[s];
        if (w->kind[s] != FJ_STAGE_ORDERED) continue;
        if (!known) /* the first ordered stage defines the order for the later ones */
            for (size_t k = 0; k < p->seen; k++) rank[p->numbers[k]] = k;
        known = true;
        for (size_t k = 1; k < p->seen; k++) CHECK(rank[p->numbers[k - 1]] < rank[p->numbers[k]]);
    }
    free(rank);
}

static size_t world_count(const struct world *w, enum fate fate)
{
    size_t n = 0;
    for (size_t i = 0; i < w->things; i++) n += atomic_load(&w->thing[i].fate) == (int)fate;
    return n;
}

/* Checks what must hold, whatever the code is. */
static void world_check(struct world *w, int code)
{
    size_t made = atomic_load(&w->made);

    if (made > w->things) made = w->things;
    CHECK_EQ(atomic_load(&w->alive), 0);
    CHECK_EQ(world_count(w, UNDER_WAY), w->things - made);
    world_check_order(w);
    if (code != FJ_OK) return;
    CHECK_EQ(made, w->things);
    CHECK_EQ(world_count(w, DROPPED), 0);
    CHECK(atomic_load(&w->ends) >= 1);
    CHECK(w->kind[0] == FJ_STAGE_PARALLEL || atomic_load(&w->ends) == 1);
    for (size_t i = 0; i < w->things; i++)
        if (atomic_load(&w->thing[i].fate) == LEFT)
            CHECK_EQ(atomic_load(&w->thing[i].stage), (int)w->stages);
}

static const int all_kinds[3] = {FJ_STAGE_PARALLEL, FJ_STAGE_SERIAL, FJ_STAGE_ORDERED};

static struct world world_random(uint64_t *r, size_t things)
{
    struct world w = {.stages = 1 + fjt_random(r) % STAGES_MOST,
                      .things = fjt_random(r) % (things + 1),
                      .tokens = 1 + fjt_random(r) % 16,
                      .noise = fjt_random(r) | 1};

    for (size_t i = 0; i < w.stages; i++) w.kind[i] = all_kinds[fjt_random(r) % 3];
    return w;
}

/* ---- Without errors ------------------------------------------------------------------------- */

static void random_pipelines(fj_pool *pool, void *arg)
{
    uint64_t r = fjt_seed();
    unsigned eats = *(unsigned *)arg;

    for (long round = fjt_rounds(60); round > 0; round--) {
        struct world w = world_random(&r, 150);
        fj_progress progress;
        fj_progress_init(&progress, 0);
        w.eats = eats;
        world_make(&w);
        int code = world_run(&w, pool, &progress);
        CHECK_EQ(code, FJ_OK);
        world_check(&w, code);
        CHECK_EQ(world_count(&w, LEFT) + world_count(&w, EATEN), w.things);
        CHECK_EQ(fj_progress_done(&progress), w.things);
        CHECK_EQ(fj_progress_total(&progress), 0);
        world_free(&w);
    }
}

FJ_TEST(every_item_sees_every_stage_once, 20)
{
    unsigned none = 0;
    place_workers(random_pipelines, &none);
}

FJ_TEST(items_that_go_no_further_hold_nobody_up, 20)
{
    for (unsigned eats = 1; eats < 5; eats += 1 + eats / 2) place_workers(random_pipelines, &eats);
}

FJ_TEST(pipelines_run_from_everywhere, 20)
{
    unsigned eats = 7;
    place_everywhere(random_pipelines, &eats);
}

/* Every pipeline of up to three stages, with 1 to 5 items in flight and 0 to 7 items in total. */
static void small_pipelines(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t code = 0; code < 3 + 9 + 27; code++)
        for (size_t tokens = 1; tokens <= 5; tokens++)
            for (size_t things = 0; things < 8; things++) {
                struct world w = {.stages = code < 3    ? 1
                                            : code < 12 ? 2
                                                        : 3,
                                  .things = things,
                                  .tokens = tokens};
                size_t k = code < 3 ? code : code < 12 ? code - 3 : code - 12;
                for (size_t i = 0; i < w.stages; i++, k /= 3) w.kind[i] = all_kinds[k % 3];
                world_make(&w);
                CHECK_EQ(world_run(&w, pool, NULL), FJ_OK);
                world_check(&w, FJ_OK);
                world_free(&w);
            }
}

FJ_TEST(small_pipelines_of_all_kinds, 20)
{
    for (int n = 1; n <= 3; n++) {
        fj_pool *pool = fjt_pool(n, 0);
        small_pipelines(pool, NULL);
        fjt_destroy(pool);
    }
}

/* ---- Errors and cancels --------------------------------------------------------------------- */

static void one_exception(fj_pool *pool, const struct world *plan, size_t where, size_t who,
                          enum deed deed)
{
    struct world w = *plan;

    w.where = where;
    w.who = who;
    w.deed = deed;
    world_make(&w);
    int code = world_run(&w, pool, NULL);
    world_check(&w, code);
    int fate = atomic_load(&w.thing[who].fate);
    if (deed == CANCEL)
        CHECK(code == FJ_ECANCELED || (code == FJ_OK && world_count(&w, DROPPED) == 0));
    else
        CHECK_EQ(code, 77);
    if (deed == FAIL_KEEPING) CHECK_EQ(fate, DROPPED);
    if (deed == FAIL_EATING) CHECK_EQ(fate, EATEN);
    if (fj_pool_parallelism(pool) == 1) CHECK_EQ(atomic_load(&w.late), 0);
    world_free(&w);
}

static void exceptions_everywhere(fj_pool *pool, void *arg)
{
    uint64_t r = fjt_seed();

    (void)arg;
    for (long round = fjt_rounds(8); round > 0; round--) {
        struct world w = world_random(&r, 0);
        w.things = 20;
        w.noise = round % 2 == 0 ? w.noise : 0;
        for (size_t where = 0; where < w.stages; where++)
            for (size_t who = 0; who < w.things; who += 1 + fjt_random(&r) % 3)
                for (int deed = FAIL_KEEPING; deed <= CANCEL; deed++)
                    if (where != 0 || deed != FAIL_EATING)
                        one_exception(pool, &w, where, who, (enum deed)deed);
    }
}

FJ_TEST(after_an_error_every_item_is_dropped_once, 30)
{
    place_workers(exceptions_everywhere, NULL);
}

FJ_TEST(first_stage_may_fail_without_an_item, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    for (int i = 0; i < 3; i++) {
        int kind = all_kinds[i];
        struct world w = {.stages = 2, .things = 10, .tokens = 3, .kind = {kind, kind}};
        one_exception(pool, &w, 0, 4, FAIL_EATING);
    }
    fjt_destroy(pool);
}

FJ_TEST(cancelled_before_it_begins_no_stage_is_called, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct world w = {.stages = 3, .things = 5, .tokens = 2};

    world_make(&w);
    fj_token_cancel(&w.token);
    CHECK_EQ(world_run(&w, pool, NULL), FJ_ECANCELED);
    CHECK_EQ(atomic_load(&w.made), 0);
    world_free(&w);
    fjt_destroy(pool);
}

static int count_items(void **item, void *arg)
{
    atomic_long *n = arg;
    if (atomic_fetch_add(n, 1) < 100) *item = n;
    return FJ_OK;
}

static int fail_with_13(void **item, void *arg)
{
    (void)item;
    (void)arg;
    return 13;
}

FJ_TEST(errors_without_drop_are_errors_all_the_same, 10)
{
    atomic_long n = 0;
    fj_stage stages[] = {{count_items, &n, FJ_STAGE_SERIAL}, {fail_with_13, NULL, 0}};

    CHECK_EQ(fj_pipeline(stages, 2, 4, NULL, NULL), 13);
}

/* ---- Invalid arguments, lack of memory ------------------------------------------------------ */

static int never_called(void **item, void *arg)
{
    (void)item;
    (void)arg;
    fjt_fail(__FILE__, __LINE__, "a stage was called");
}

FJ_TEST(misuse_is_found_before_anything_is_run, 10)
{
    fj_stage good[] = {{never_called, NULL, FJ_STAGE_SERIAL}, {never_called, NULL, 0}};
    fj_stage kinds[] = {{never_called, NULL, FJ_STAGE_SERIAL}, {never_called, NULL, 3}};
    fj_stage below[] = {{never_called, NULL, -1}};
    fj_stage none[] = {{never_called, NULL, 0}, {NULL, NULL, 0}};
    fj_algo_options how = {.reserved = {0, 1}};

    CHECK_EQ(fj_pipeline(NULL, 1, 1, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(good, 0, 1, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(good, 2, 0, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(kinds, 2, 1, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(below, 1, 1, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(none, 2, 1, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_pipeline(good, 2, 1, NULL, &how), FJ_EINVAL);
    for (int shift = 0; shift < 5; shift++)
        CHECK_EQ(fj_pipeline(good, 2, SIZE_MAX >> shift, NULL, NULL), FJ_ENOMEM);
}

FJ_TEST(without_memory_nothing_is_begun, 10)
{
    fj_stage stages[] = {{never_called, NULL, FJ_STAGE_SERIAL},
                         {never_called, NULL, FJ_STAGE_ORDERED}};

    if (!FJI_FAULTS) fjt_skip("built without faults");
    fji_algo_fail_after(0);
    int code = fj_pipeline(stages, 2, 4, NULL, NULL);
    fji_algo_fail_after(-1);
    CHECK_EQ(code, FJ_ENOMEM);
}

FJ_TEST(one_allocation_is_all, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    struct world w = {
        .stages = 4,
        .things = 500,
        .tokens = 7,
        .kind = {FJ_STAGE_ORDERED, FJ_STAGE_PARALLEL, FJ_STAGE_SERIAL, FJ_STAGE_ORDERED},
        .noise = 3};

    world_make(&w);
    fji_algo_fail_after(1);
    CHECK_EQ(world_run(&w, pool, NULL), FJ_OK);
    fji_algo_fail_after(-1);
    world_check(&w, FJ_OK);
    world_free(&w);
    fjt_destroy(pool);
}

FJ_TEST(pool_that_is_shut_down_rejects, 10)
{
    fj_pool *pool = fjt_pool(2, 0);
    fj_stage stages[] = {{never_called, NULL, FJ_STAGE_SERIAL}};

    CHECK_EQ(fj_pool_shutdown(pool), FJ_OK);
    CHECK_EQ(fj_pipeline(stages, 1, 4, NULL, &(fj_algo_options){.pool = pool}), FJ_EREJECTED);
    fjt_destroy(pool);
}

FJ_TEST(many_tokens_for_few_items, 10)
{
    struct world w = {.stages = 3,
                      .things = 50,
                      .tokens = 100000,
                      .kind = {FJ_STAGE_PARALLEL, FJ_STAGE_ORDERED, FJ_STAGE_SERIAL}};

    world_make(&w);
    CHECK_EQ(world_run(&w, NULL, NULL), FJ_OK);
    world_check(&w, FJ_OK);
    world_free(&w);
}

/* ---- At the same time ----------------------------------------------------------------------- */

struct meeting {
    atomic_int in;
    int wanted;
};

/* Returns after `wanted` calls have arrived, so that many calls must run at the same time. */
static int meet(void **item, void *arg)
{
    struct meeting *m = arg;

    (void)item;
    atomic_fetch_add(&m->in, 1);
    while (atomic_load(&m->in) < m->wanted) fjt_sleep_us(10);
    return FJ_OK;
}

FJ_TEST(parallel_stage_has_as_many_items_as_there_are_workers, 20)
{
    for (int workers = 2; workers <= 16; workers *= 2)
        for (int i = 0; i < 3; i++) {
            fj_pool *pool = fjt_pool(workers, 0);
            struct meeting m = {.wanted = workers};
            atomic_long n = 100 - workers;
            fj_stage stages[] = {{count_items, &n, all_kinds[i]}, {meet, &m, FJ_STAGE_PARALLEL}};
            CHECK_EQ(fj_pipeline(stages, 2, 16, NULL, &(fj_algo_options){.pool = pool}), FJ_OK);
            CHECK_EQ(atomic_load(&m.in), workers);
            fjt_destroy(pool);
        }
}

static int sleep_a_little(void **item, void *arg)
{
    (void)item;
    (void)arg;
    return fj_sleep_ns(200 * 1000);
}

FJ_TEST(stages_may_block, 20)
{
    for (int workers = 1; workers <= 4; workers *= 2) {
        fj_pool *pool = fjt_pool(workers, 0);
        atomic_long n = 0;
        fj_stage stages[] = {{count_items, &n, FJ_STAGE_ORDERED},
                             {sleep_a_little, NULL, FJ_STAGE_PARALLEL},
                             {sleep_a_little, NULL, FJ_STAGE_ORDERED},
                             {sleep_a_little, NULL, FJ_STAGE_SERIAL}};
        CHECK_EQ(fj_pipeline(stages, 4, 8, NULL, &(fj_algo_options){.pool = pool}), FJ_OK);
        fjt_destroy(pool);
    }
}

/* ---- Stages that are parallel themselves ---------------------------------------------------- */

static int add_part(size_t begin, size_t end, void *arg)
{
    atomic_fetch_add((atomic_long *)arg, (long)(end - begin));
    return FJ_OK;
}

static int loop_stage(void **item, void *arg)
{
    (void)item;
    return fj_for(0, 1000, add_part, arg, &(fj_algo_options){.grain = 50});
}

static int pipe_stage(void **item, void *arg)
{
    atomic_long n = 80;
    fj_stage stages[] = {{count_items, &n, FJ_STAGE_ORDERED},
                         {loop_stage, arg, FJ_STAGE_PARALLEL},
                         {loop_stage, arg, FJ_STAGE_ORDERED}};
    (void)item;
    return fj_pipeline(stages, 3, 4, NULL, NULL);
}

static void nested_stages(fj_pool *pool, void *arg)
{
    atomic_long n = 70, sum = 0;
    fj_stage stages[] = {{count_items, &n, FJ_STAGE_SERIAL},
                         {pipe_stage, &sum, FJ_STAGE_PARALLEL},
                         {loop_stage, &sum, FJ_STAGE_ORDERED},
                         {pipe_stage, &sum, FJ_STAGE_SERIAL}};
    (void)arg;
    CHECK_EQ(fj_pipeline(stages, 4, 5, NULL, &(fj_algo_options){.pool = pool}), FJ_OK);
    CHECK_EQ(atomic_load(&sum), 30 * (20 * 2 + 1 + 20 * 2) * 1000);
}

FJ_TEST(stages_may_be_parallel_themselves, 20)
{
    place_workers(nested_stages, NULL);
}

/* ---- Many ----------------------------------------------------------------------------------- */

struct flood {
    uint64_t next, last, seen;
};

static int flood_make(void **item, void *arg)
{
    struct flood *f = arg;
    if (f->next < f->last) *item = (void *)(uintptr_t)++f->next;
    return FJ_OK;
}

static int flood_double(void **item, void *arg)
{
    (void)arg;
    *item = (void *)((uintptr_t)*item * 2);
    return FJ_OK;
}

static int flood_check(void **item, void *arg)
{
    struct flood *f = arg;
    CHECK_EQ((uintptr_t)*item, 2 * ++f->seen);
    return FJ_OK;
}

FJ_TEST(million_tiny_items, 30)
{
    for (int workers = 1; workers <= 8; workers *= 8) {
        fj_pool *pool = fjt_pool(workers, 0);
        struct flood f = {.last = (uint64_t)fjt_rounds(1000000)};
        fj_stage stages[] = {{flood_make, &f, FJ_STAGE_ORDERED},
                             {flood_double, &f, FJ_STAGE_PARALLEL},
                             {flood_check, &f, FJ_STAGE_ORDERED}};
        CHECK_EQ(fj_pipeline(stages, 3, 16, NULL, &(fj_algo_options){.pool = pool}), FJ_OK);
        CHECK_EQ(f.seen, f.last);
        fjt_destroy(pool);
    }
}

/* The free stack of this worker at its first stage, and the most stack that any worker used below
 * that. */
static _Thread_local size_t stack_first;
static atomic_size_t stack_deepest;

static int nap_and_note_stack(void **item, void *arg)
{
    size_t left = fj_stack_left(), deepest = atomic_load(&stack_deepest);

    if (stack_first == 0) stack_first = left;
    size_t used = stack_first > left ? stack_first - left : 0;
    while (used > deepest && !atomic_compare_exchange_weak(&stack_deepest, &deepest, used))
        continue;
    (void)item;
    (void)arg;
    return fj_sleep_ns(10 * 1000);
}

/* A runner waits for other runners, which wait for others. Each must return before the pool runs
 * out of threads or stack. */
FJ_TEST(long_pipeline_needs_no_more_threads_than_a_short_one, 30)
{
    for (int workers = 1; workers <= 4; workers *= 2) {
        fj_pool *pool = fjt_pool(workers, 0);
        fj_stats stats;
        struct flood f = {.last = (uint64_t)fjt_rounds(1500)};
        fj_stage stages[] = {{flood_make, &f, FJ_STAGE_ORDERED},
                             {nap_and_note_stack, NULL, FJ_STAGE_PARALLEL},
                             {nap_and_note_stack, NULL, FJ_STAGE_ORDERED},
                             {nap_and_note_stack, NULL, FJ_STAGE_SERIAL}};
        CHECK_EQ(fj_pipeline(stages, 4, 8, NULL, &(fj_algo_options){.pool = pool}), FJ_OK);
        CHECK_EQ(fj_pool_stats(pool, &stats), FJ_OK);
        CHECK(stats.started <= 64);
        fjt_destroy(pool);
    }
    CHECK(fjt_sanitized() || atomic_load(&stack_deepest) < 64 * 1024);
}
