/* SPDX-License-Identifier: MIT */
/*
 * for.c - loops over ranges, tiles and arrays, and calls of several functions
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

/* Runs step from begin to end without accumulators. */
static int loop_run(fji_step *step, void *context, size_t begin, size_t end,
                    const fj_algo_options *how)
{
    fji_split s; /* set one by one: an initialiser would fill all of it, for a short loop */
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

enum { SIDE_MAX = 64, TILES_MIN = 1024 };

struct tile_loop {
    fj_for_2d_fn *body;
    void *arg;
    size_t rows, columns;
    size_t side;
    size_t tiles_across; /* tiles in a row of them */
    fji_job *job;
    fj_progress *progress; /* counts elements, not tiles */
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

static size_t div_up(size_t n, size_t side)
{
    return n / side + (n % side != 0);
}

/* So large that there are many tiles, and never more than can be counted. */
static size_t tile_side(size_t rows, size_t columns, size_t side_wanted)
{
    size_t side = side_wanted != 0 ? side_wanted : 1, tiles;
    size_t limit = side_wanted != 0 ? SIZE_MAX : TILES_MIN;

    while (__builtin_mul_overflow(div_up(rows, side), div_up(columns, side), &tiles) ||
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
    l.tiles_across = div_up(columns, l.side);
    l.progress = s.job.progress;
    l.job = &s.job;
    s.job.progress = NULL;
    s.job.grain = 0; /* how many tiles at a time is found as for any loop */
    s.job.min_grain = 1;
    s.job.max_grain = SIZE_MAX;
    return fji_split_run(&s, how, 0, div_up(rows, l.side) * l.tiles_across, NULL);
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
    if (n != 0 && (in == NULL || out == NULL)) return FJ_EINVAL;
    if (!fji_fits(n, in_size) || !fji_fits(n, out_size)) return FJ_EINVAL;
    return loop_run(array_step, &l, 0, n, how);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int functions_step(void *context, size_t lo, size_t hi, void *acc)
{
    const fj_function *steps = context;
    int code = FJ_OK;

    (void)acc;
    for (size_t i = lo; i < hi && code == FJ_OK; i++) code = steps[i].fn(steps[i].arg);
    return code;
}

int fj_invoke_functions(const fj_function *steps, size_t n, const fj_algo_options *how)
{
    fj_algo_options each = how != NULL ? *how : (fj_algo_options){.grain = 0};

    if ((steps == NULL && n != 0) || !fji_fits(n, sizeof *steps)) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (steps[i].fn == NULL) return FJ_EINVAL;
    each.grain = 1; /* who gives them has thought about it: each is worth a task */
    return loop_run(functions_step, (void *)(uintptr_t)steps, 0, n, &each);
}
