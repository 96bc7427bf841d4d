/* SPDX-License-Identifier: MIT */
/*
 * load.c - the pools, and the choice of a load: what outside threads do with pools
 */
#include "load.h"

struct soak_world soak_world;

/* ---- Pools ---------------------------------------------------------------------------------- */

static fj_pool *pool_make(int workers, unsigned flags, int64_t keep_alive_ns, const char *name)
{
    fj_pool_options o = {0};
    fj_pool *p = NULL;

    o.parallelism = workers;
    o.flags = flags;
    o.keep_alive_ns = keep_alive_ns;
    o.name = name;
    SOAK_CHECK(fj_pool_create(&p, &o) == FJ_OK);
    soak_watch(p);
    return p;
}

static fj_pool *pool_make_limited(void)
{
    fj_pool_options o = {0};
    fj_pool *p = NULL;

    o.parallelism = 1;
    o.max_threads = 3;
    o.keep_alive_ns = 20 * MS;
    o.spin_ns = -1;
    o.name = "limited";
    SOAK_CHECK(fj_pool_create(&p, &o) == FJ_OK);
    soak_watch(p);
    return p;
}

void soak_world_make(int workers)
{
    fj_pool_options common = {0};
    struct soak_world *w = &soak_world;

    common.keep_alive_ns = 20 * MS;
    SOAK_CHECK(fj_common_configure(&common) == FJ_OK);
    w->workers = workers;
    w->pool[0] = pool_make(workers, 0, FJ_FOREVER, "steady");
    w->pool[1] = pool_make(workers, 0, 20 * MS, "short");
    w->pool[2] = pool_make(2, FJ_POOL_FIFO, 20 * MS, "fifo");
    w->pool[3] = pool_make(workers, FJ_POOL_SYMMETRIC | FJ_POOL_CALLER_HELPS, 20 * MS, "helped");
    w->pool[POOL_LIMITED] = pool_make_limited();
    w->pool[POOL_COMMON] = fj_common_pool();
    SOAK_CHECK(w->pool[POOL_COMMON] != NULL);
    soak_watch(w->pool[POOL_COMMON]);
}

void soak_world_end(void)
{
    for (int i = 0; i < SOAK_POOLS; i++) {
        if (i != POOL_COMMON) SOAK_CHECK(fj_pool_destroy(soak_world.pool[i]) == FJ_OK);
        soak_unwatch(soak_world.pool[i]);
    }
}

void soak_world_reset(void)
{
    (void)fj_pool_set_parallelism(soak_world.pool[1], soak_world.workers);
}

/* ---- Temporary pools, and sizes ------------------------------------------------------------- */

static void load_nothing(fj_pool *p)
{
    (void)p;
}

static void load_short_life(fj_pool *unused)
{
    static const unsigned flags[] = {0, FJ_POOL_FIFO, FJ_POOL_CALLER_HELPS, FJ_POOL_SYMMETRIC};
    fj_pool *p = pool_make(1 + (int)soak_below(4), flags[soak_below(4)], 20 * MS, "brief");

    (void)unused;
    static void (*const some[])(fj_pool *) = {
        load_quiesce, load_tree, load_timers, load_actions, load_blocking, load_nothing, load_stop};
    some[soak_below(sizeof some / sizeof some[0])](p);
    if (soak_below(3) == 0) SOAK_CHECK(fj_pool_shutdown(p) == FJ_OK);
    soak_unwatch(p); /* the dump does not read it while it is destroyed */
    SOAK_CHECK(fj_pool_destroy(p) == FJ_OK);
}

static void load_resize(fj_pool *unused)
{
    (void)unused;
    int n = 1 + (int)soak_below(2 * (uint32_t)soak_world.workers);
    SOAK_CHECK(fj_pool_set_parallelism(soak_world.pool[1], n) > 0);
    load_tree(soak_world.pool[1]);
}

/* ---- One load ------------------------------------------------------------------------------- */

static const struct load {
    const char *name;
    void (*run)(fj_pool *p);
    unsigned weight;
    bool waits_inside; /* its tasks wait for each other */
} loads[] = {
    {"tree", load_tree, 4, false},
    {"typed", load_typed, 4, false},
    {"token", load_token, 1, false},
    {"actions", load_actions, 4, false},
    {"futures", load_futures, 3, false},
    {"cancel", load_cancel, 3, false},
    {"any", load_any, 2, false},
    {"calls", load_calls, 2, false},
    {"completers", load_completers, 3, false},
    {"reduce", load_reduce, 1, false},
    {"blocking", load_blocking, 2, false},
    {"timers", load_timers, 2, false},
    {"limits", load_limits, 1, false},
    {"nested", load_nested, 2, true},
    {"short_life", load_short_life, 2, false},
    {"resize", load_resize, 1, false},
};

#define LOADS (sizeof loads / sizeof loads[0])

void soak_load(void)
{
    unsigned all = 0, at;
    const struct load *l = loads;

    for (size_t i = 0; i < LOADS; i++) all += loads[i].weight;
    for (at = soak_below(all); at >= l->weight; l++) at -= l->weight;
    uint32_t pools = l->waits_inside ? POOL_LIMITED : SOAK_POOLS;
    l->run(soak_world.pool[soak_below(pools)]);
}
