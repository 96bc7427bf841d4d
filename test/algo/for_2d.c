/* SPDX-License-Identifier: MIT */
/*
 * for_2d.c - loops over tiles: every cell once, in tiles of the requested side
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"

struct grid {
    size_t rows, columns, side; /* of a tile; 0: any side up to 64 */
    atomic_uchar *times;
    size_t fail_row, fail_column; /* the cell that fails; SIZE_MAX: none */
    int code;
};

static int see_tile(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    struct grid *g = arg;
    size_t most = g->side != 0 ? g->side : 64;

    CHECK(r0 < r1 && r1 <= g->rows && c0 < c1 && c1 <= g->columns);
    CHECK(r1 - r0 <= most && c1 - c0 <= most);
    if (g->side != 0) {
        CHECK(r0 % g->side == 0 && c0 % g->side == 0);
        CHECK(r1 - r0 == g->side || r1 == g->rows);
        CHECK(c1 - c0 == g->side || c1 == g->columns);
    }
    for (size_t r = r0; r < r1; r++)
        for (size_t c = c0; c < c1; c++)
            atomic_fetch_add_explicit(&g->times[r * g->columns + c], 1, memory_order_relaxed);
    bool here = r0 <= g->fail_row && g->fail_row < r1 && c0 <= g->fail_column &&
                g->fail_column < c1;
    return here ? g->code : FJ_OK;
}

static struct grid grid_of(size_t rows, size_t columns, size_t side)
{
    struct grid g = {rows, columns, side, calloc(rows * columns + 1, 1), SIZE_MAX, SIZE_MAX, 0};

    CHECK(g.times != NULL);
    return g;
}

static void check_times(const struct grid *g, bool all)
{
    for (size_t i = 0; i < g->rows * g->columns; i++) {
        int times = atomic_load_explicit(&g->times[i], memory_order_relaxed);
        CHECK(times <= 1);
        if (all) CHECK_EQ(times, 1);
    }
}

static void cover(fj_pool *pool, size_t rows, size_t columns, size_t side)
{
    struct grid g = grid_of(rows, columns, side);
    fj_progress p;

    fj_progress_init(&p, 0);
    fj_algo_options how = {.pool = pool, .grain = side, .progress = &p};
    CHECK_EQ(fj_for_2d(rows, columns, see_tile, &g, &how), FJ_OK);
    check_times(&g, true);
    CHECK_EQ(fj_progress_total(&p), rows * columns);
    CHECK_EQ(fj_progress_done(&p), rows * columns);
    free(g.times);
}

static void small_grids(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t rows = 0; rows <= 13; rows++)
        for (size_t columns = 0; columns <= 13; columns++)
            for (size_t side = 0; side <= 14; side += side < 4 ? 1 : 5)
                cover(pool, rows, columns, side);
}

FJ_TEST(small_grids_of_every_shape, 30)
{
    place_workers(small_grids, NULL);
}

static void odd_grids(fj_pool *pool, void *arg)
{
    static const size_t shape[][2] = {{1, 1000}, {1000, 1},  {1, 100000}, {100000, 1},
                                      {65, 63},  {64, 64},   {127, 1},    {3, 4099},
                                      {1021, 7}, {333, 511}, {1024, 32},  {33, 1025}};
    static const size_t side[] = {0, 1, 5, 64, 1000, SIZE_MAX / 2, SIZE_MAX};

    (void)arg;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (size_t k = 0; k < sizeof side / sizeof side[0]; k++)
            if (side[k] != 1 || shape[i][0] * shape[i][1] < 5000)
                cover(pool, shape[i][0], shape[i][1], side[k]);
}

FJ_TEST(odd_grids_from_everywhere, 60)
{
    place_everywhere(odd_grids, NULL);
}

static void grids_at_random(fj_pool *pool, void *arg)
{
    uint64_t random = fjt_seed();

    (void)arg;
    for (long i = fjt_rounds(30); i-- > 0;) {
        size_t rows = 1 + fjt_random(&random) % 300, columns = 1 + fjt_random(&random) % 300;
        cover(pool, rows, columns, i % 2 == 0 ? 0 : 1 + fjt_random(&random) % 80);
    }
}

FJ_TEST(random_grids_of_random_tiles, 30)
{
    place_workers(grids_at_random, NULL);
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void fail_in_any_cell(fj_pool *pool, void *arg)
{
    (void)arg;
    for (size_t side = 0; side <= 4; side++)
        for (size_t cell = 0; cell < 9 * 11; cell++) {
            struct grid g = grid_of(9, 11, side);
            g.fail_row = cell / 11;
            g.fail_column = cell % 11;
            g.code = cell % 2 == 0 ? (int)cell + 1 : -(int)cell;
            CHECK_EQ(
                fj_for_2d(9, 11, see_tile, &g, &(fj_algo_options){.pool = pool, .grain = side}),
                g.code);
            check_times(&g, false);
            CHECK_EQ(atomic_load(&g.times[cell]), 1);
            free(g.times);
        }
}

FJ_TEST(a_failure_in_any_cell_is_returned, 20)
{
    place_workers(fail_in_any_cell, NULL);
}

FJ_TEST(with_one_worker_no_tile_follows_one_that_failed, 20)
{
    fj_pool *p = fjt_pool(1, 0);

    for (size_t row = 0; row < 8; row++) {
        struct grid g = grid_of(8, 8, 1);
        g.fail_row = row;
        g.fail_column = 3;
        g.code = 5;
        CHECK_EQ(fj_for_2d(8, 8, see_tile, &g, &(fj_algo_options){.pool = p, .grain = 1}), 5);
        for (size_t i = 0; i < 64; i++)
            CHECK_EQ(atomic_load(&g.times[i]), i <= row * 8 + 3 ? 1 : 0);
        free(g.times);
    }
    fjt_destroy(p);
}

struct endless {
    size_t rows, columns;
    atomic_int tiles;
    int stop_at, code;
    fj_token *token;
};

static int endless_tile(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    struct endless *e = arg;

    CHECK(r0 < r1 && r1 <= e->rows && c0 < c1 && c1 <= e->columns);
    if (atomic_fetch_add(&e->tiles, 1) != e->stop_at) return FJ_OK;
    if (e->token != NULL) fj_token_cancel(e->token);
    return e->code;
}

static void endless_grids(fj_pool *pool, void *arg)
{
    static const size_t shape[][2] = {{SIZE_MAX, SIZE_MAX}, {SIZE_MAX, 1},    {1, SIZE_MAX},
                                      {SIZE_MAX, 3},        {2, SIZE_MAX},    {SIZE_MAX / 2, 5},
                                      {7, SIZE_MAX / 3},    {SIZE_MAX - 1, 2}};
    static const size_t side[] = {0, 1, 3, 64, SIZE_MAX / 2};

    (void)arg;
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (size_t k = 0; k < sizeof side / sizeof side[0]; k++) {
            struct endless e = {.rows = shape[i][0], .columns = shape[i][1], .code = 44};
            /* If tiles are large, there are too few of them to stop at the 20th. */
            e.stop_at = side[k] > 64 ? 0 : 20;
            fj_algo_options how = {.pool = pool, .grain = side[k]};
            CHECK_EQ(fj_for_2d(e.rows, e.columns, endless_tile, &e, &how), 44);

            fj_token token;
            fj_token_init(&token, NULL);
            struct endless c = {.rows = shape[i][0], .columns = shape[i][1], .token = &token};
            if (side[k] > 64) continue;
            how.token = &token;
            CHECK_EQ(fj_for_2d(c.rows, c.columns, endless_tile, &c, &how), FJ_ECANCELED);
        }
}

FJ_TEST(more_cells_than_can_be_counted_end_with_the_first_error, 20)
{
    place_workers(endless_grids, NULL);
}

/* Few tiles, although the number of rows or columns is as large as size_t allows. */
struct giant {
    size_t rows, columns;
    atomic_size_t tall, wide, tiles;
};

static int giant_tile(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    struct giant *g = arg;

    CHECK(r0 < r1 && r1 <= g->rows && c0 < c1 && c1 <= g->columns);
    if (c0 == 0) atomic_fetch_add(&g->tall, r1 - r0);
    if (r0 == 0) atomic_fetch_add(&g->wide, c1 - c0);
    atomic_fetch_add(&g->tiles, 1);
    return FJ_OK;
}

static void giants(fj_pool *pool, void *arg)
{
    static const size_t side[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 3 + 1};
    static const size_t across[] = {1, 2, 3, 3};

    (void)arg;
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            struct giant g = {.rows = k == 0 ? 5 : SIZE_MAX, .columns = k == 1 ? 5 : SIZE_MAX};
            fj_algo_options how = {.pool = pool, .grain = side[i]};
            CHECK_EQ(fj_for_2d(g.rows, g.columns, giant_tile, &g, &how), FJ_OK);
            CHECK_EQ(atomic_load(&g.tall), g.rows);
            CHECK_EQ(atomic_load(&g.wide), g.columns);
            CHECK_EQ(atomic_load(&g.tiles), k == 2 ? across[i] * across[i] : across[i]);
        }
}

FJ_TEST(tiles_as_large_as_numbers_go, 20)
{
    place_workers(giants, NULL);
}

/* ---- Invalid arguments ---------------------------------------------------------------------- */

static int never(size_t r0, size_t r1, size_t c0, size_t c1, void *arg)
{
    (void)r0, (void)r1, (void)c0, (void)c1, (void)arg;
    fjt_fail(__FILE__, __LINE__, "the body was called");
}

FJ_TEST(grids_without_cells_or_bodies, 10)
{
    CHECK_EQ(fj_for_2d(3, 3, NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for_2d(0, 0, NULL, NULL, NULL), FJ_EINVAL);
    CHECK_EQ(fj_for_2d(0, 0, never, NULL, NULL), FJ_OK);
    CHECK_EQ(fj_for_2d(0, SIZE_MAX, never, NULL, NULL), FJ_OK);
    CHECK_EQ(fj_for_2d(SIZE_MAX, 0, never, NULL, NULL), FJ_OK);
}
