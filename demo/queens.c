/* SPDX-License-Identifier: MIT */
/*
 * queens.c - the number of solutions of the queens problem
 *
 * Each placement of a queen in the first four rows is a task. The cost of a subtree is not known in
 * advance. Below the first four rows each task searches serially. A position consists of three
 * sets of columns, stored as bits.
 */
#include <stdio.h>

#include "demo.h"

enum { ROWS_OF_TASKS = 4, MOST = 20 };

static struct {
    int n;
    uint64_t known, serial, parallel;
} queens;

/* Returns the number of solutions below a position. `cols`, `fall` and `rise` are the columns of
 * the next row that are attacked along columns, falling diagonals and rising diagonals. */
static uint64_t search(uint32_t cols, uint32_t fall, uint32_t rise, uint32_t all)
{
    uint64_t found = 0;

    if (cols == all) return 1;
    for (uint32_t open = all & ~(cols | fall | rise); open != 0; open &= open - 1) {
        uint32_t bit = open & -open;
        found += search(cols | bit, (fall | bit) << 1, (rise | bit) >> 1, all);
    }
    return found;
}

FJ_TASK(uint64_t, place, uint32_t, cols, uint32_t, fall, uint32_t, rise, uint32_t, all, int, row)
{
    place_task kid[MOST];
    uint64_t found = 0;
    int kids = 0;

    if (row == ROWS_OF_TASKS) {
        found = search(cols, fall, rise, all);
        demo_step(1);
        return found;
    }
    for (uint32_t open = all & ~(cols | fall | rise); open != 0; open &= open - 1) {
        uint32_t bit = open & -open;
        place_fork(FJ, &kid[kids++], cols | bit, (fall | bit) << 1, (rise | bit) >> 1, all,
                   row + 1);
    }
    while (kids > 0) found += place_join(FJ, &kid[--kids]);
    return found;
}

/* Searches the same tree without tasks, and reports the same steps. */
static uint64_t place_serial(uint32_t cols, uint32_t fall, uint32_t rise, uint32_t all, int row)
{
    uint64_t found = 0;

    if (row == ROWS_OF_TASKS) {
        found = search(cols, fall, rise, all);
        demo_step(1);
        return found;
    }
    for (uint32_t open = all & ~(cols | fall | rise); open != 0; open &= open - 1) {
        uint32_t bit = open & -open;
        found += place_serial(cols | bit, (fall | bit) << 1, (rise | bit) >> 1, all, row + 1);
    }
    return found;
}

/* Returns the number of steps of a run: the placements of queens in the first four rows. */
static uint64_t count_steps(uint32_t cols, uint32_t fall, uint32_t rise, uint32_t all, int row)
{
    uint64_t steps = 0;

    if (row == ROWS_OF_TASKS) return 1;
    for (uint32_t open = all & ~(cols | fall | rise); open != 0; open &= open - 1) {
        uint32_t bit = open & -open;
        steps += count_steps(cols | bit, (fall | bit) << 1, (rise | bit) >> 1, all, row + 1);
    }
    return steps;
}

static uint32_t all_columns(void)
{
    return (UINT32_C(1) << queens.n) - 1;
}

static uint64_t prepare(const demo_options *o, char *what, size_t cap)
{
    queens.n = o->quick ? 14 : 15;
    queens.known = o->quick ? 365596 : 2279184;
    queens.serial = queens.parallel = 0;
    snprintf(what, cap, "%d x %d", queens.n, queens.n);
    return count_steps(0, 0, 0, all_columns(), 0);
}

static void run_serial(void)
{
    queens.serial = place_serial(0, 0, 0, all_columns(), 0);
}

static int run_parallel(void)
{
    return place_invoke(NULL, &queens.parallel, 0, 0, 0, all_columns(), 0);
}

static bool finish(const demo_options *o, char *note, size_t cap)
{
    (void)o, (void)note, (void)cap;
    return queens.serial == queens.known && queens.parallel == queens.known;
}

const demo demo_queens = {"n-queens", prepare, run_serial, run_parallel, finish};
