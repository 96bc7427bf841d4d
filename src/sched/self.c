/* SPDX-License-Identifier: MIT */
/*
 * self.c - the worker of the calling thread, and what a thread has that works for no pool
 *
 * fji_self of a thread outside all pools points to fji_outsider. Its top cell is an END and its floor
 * is MAX, so every fast path of such a thread continues in its slow path.
 */
#include "sched/pool.h"

static fj_cell self_no_cells[3] = {{.item = FJI_END}, {.item = FJI_END}, {.item = FJI_END}};
static const int64_t self_no_ctl = 0;

fj_worker fji_outsider = {&self_no_cells[1], UINTPTR_MAX, &self_no_ctl, NULL, 0, 0};

__thread fj_worker *fji_self = &fji_outsider;
