/* SPDX-License-Identifier: MIT */
/*
 * for.c - loops over ranges, tiles and arrays, and calls of several functions
 *
 * Each public function of this file runs the loop of split.h with a step function that calls the
 * caller's body or, for fj_invoke_functions(), the caller's functions.
 */
#include "split.h"

/* ---- One dimension --------------------------------------------------------------------------- */

struct range_loop {
    fj_for_fn *body;
    void *arg;
};

static int range_step(void *context, size_t lo, size_t hi, void *acc)
{
    const struct range_loop *l = context;

    (void)acc;
    return l->body(lo, hi, l->arg);
}

/* Runs the loop of split.h with `step` over begin <= i < end, without accumulators. Returns
 * FJ_EINVAL if the options are invalid, otherwise what fji_split_run() returns. */
static int loop_run(fji_step *step, void *context, size_t begin, size_t end,
                    const fj_algo_options *how)
{
    fji_split s; /* has no initializer, because zeroing it would take time in a short loop */
    int err = fji_job_init(&s.job, how, end - begin);

    s.step = step;
    s.context = context;
    s.combine = NULL;
    return err != FJ_OK ? err : fji_split_run(&s, how, begin, end, NULL);
}

int fj_for(size_t begin, size_t end, fj_for_fn *body, void *arg, const fj_algo_options *how)
{
    struct range_loop l = {body, arg};

    if (body == NULL || begin > end) return FJ_EINVAL;
    return loop_run(range_step, &l, begin, end, how);
}

/* ---- Two dimensions -------------------------------------------------------------------------- */

enum {
    SIDE_MAX = 64,   /* without a grain, a tile has at most this many rows and columns, unless the
                      * number of tiles would then overflow a size_t */
    TILES_MAX = 1024 /* without a grain, the side of the tiles is doubled while there are more
                      * tiles than this, but only up to SIDE_MAX */
};

struct tile_loop {
    fj_for_2d_fn *body;
    void *arg;
    size_t rows, columns;
    size_t side;         /* rows, and columns, of a tile; fewer at the right and lower edges */
    size_t tiles_across; /* tiles in one row of tiles */
    fji_job *job;
    fj_progress *progress; /* tile_run() adds elements to it; the loop would add tiles. NULL: no
                            * progress is reported */
};

static int tile_run(const struct tile_loop *l, size_t tile)
{
    size_t r = tile / l->tiles_across * l->side, c = tile % l->tiles_across * l->side;
    size_t r1 = l->rows - r < l->side ? l->rows : r + l->side;
    size_t c1 = l->columns - c < l->side ? l->columns : c + l->side;
    int code = l->body(r, r1, c, c1, l->arg);

    if (code == FJ_OK && l->progress != NULL) fj_progress_add(l->progress, (r1 - r) * (c1 - c));
    return code;
}

static int tile_step(void *context, size_t lo, size_t hi, void *acc)
{
    const struct tile_loop *l = context;
    int code = tile_run(l, lo);

    (void)acc;
    for (size_t i = lo + 1; i < hi && code == FJ_OK && fji_job_should_continue(l->job); i++)
        code = tile_run(l, i);
    return code;
}

/* Returns the side of the tiles, in elements: `grain` or, if that is 0, the smallest power of two
 * that gives at most TILES_MAX tiles, but at most SIDE_MAX. In both cases the side is doubled until
 * the number of tiles fits into a size_t. */
static size_t tile_side(size_t rows, size_t columns, size_t grain)
{
    size_t side = grain != 0 ? grain : 1, tiles;
    size_t limit = grain != 0 ? SIZE_MAX : TILES_MAX;

    while (__builtin_mul_overflow(fji_div_up(rows, side), fji_div_up(columns, side), &tiles) ||
           (tiles > limit && side < SIDE_MAX))
        side *= 2;
    return side;
}

int fj_for_2d(size_t rows, size_t columns, fj_for_2d_fn *body, void *arg,
              const fj_algo_options *how)
{
    struct tile_loop l = {.body = body, .arg = arg, .rows = rows, .columns = columns};
    fji_split s = {.step = tile_step, .context = &l};

    if (body == NULL) return FJ_EINVAL;
    int err = fji_job_init(&s.job, how, rows * columns);
    if (err != FJ_OK || rows == 0 || columns == 0) return err;
    l.side = tile_side(rows, columns, s.job.grain);
    l.tiles_across = fji_div_up(columns, l.side);
    l.progress = s.job.progress;
    l.job = &s.job;
    s.job.progress = NULL;
    /* The grain that the options set is the side of a tile. The loop chooses by timing how many
     * tiles are a chunk. */
    s.job.grain = 0;
    s.job.min_grain = 1;
    s.job.max_grain = SIZE_MAX;
    return fji_split_run(&s, how, 0, fji_div_up(rows, l.side) * l.tiles_across, NULL);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

struct array_loop {
    fj_transform_fn *body;
    void *arg;
    const unsigned char *in;
    unsigned char *out;
    size_t in_size, out_size;
};

static int array_step(void *context, size_t lo, size_t hi, void *acc)
{
    const struct array_loop *l = context;

    (void)acc;
    return l->body(l->in + lo * l->in_size, l->out + lo * l->out_size, hi - lo, l->arg);
}

int fj_transform(const void *in, size_t in_size, void *out, size_t out_size, size_t n,
                 fj_transform_fn *body, void *arg, const fj_algo_options *how)
{
    struct array_loop l = {body, arg, in, out, in_size, out_size};

    if (body == NULL || in_size == 0 || out_size == 0) return FJ_EINVAL;
    if (!fji_array_ok(in, n, in_size) || !fji_array_ok(out, n, out_size)) return FJ_EINVAL;
    return loop_run(array_step, &l, 0, n, how);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int functions_step(void *context, size_t lo, size_t hi, void *acc)
{
    const fj_function *f = context;
    int code = FJ_OK;

    (void)acc;
    for (size_t i = lo; i < hi && code == FJ_OK; i++) code = f[i].fn(f[i].arg);
    return code;
}

int fj_invoke_functions(const fj_function *functions, size_t n, const fj_algo_options *how)
{
    fj_algo_options each = how != NULL ? *how : (fj_algo_options){.grain = 0};

    if (!fji_array_ok(functions, n, sizeof *functions)) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (functions[i].fn == NULL) return FJ_EINVAL;
    each.grain = 1; /* each function is a chunk, because it is expected to be worth a task */
    return loop_run(functions_step, (void *)(uintptr_t)functions, 0, n, &each);
}
