/* SPDX-License-Identifier: MIT */
/*
 * self.c - fji_self, the worker of the calling thread
 *
 * fji_self of a thread that works for no pool points to fji_outsider. `top` of fji_outsider points
 * to a cell with the item END, into which no task may be pushed. The cell below has the item END
 * too, and `floor` is MAX. So every fast path that such a thread begins continues in the slow path.
 */
#include "sched/pool.h"

static fj_cell self_no_cells[3] = {{.item = FJI_END}, {.item = FJI_END}, {.item = FJI_END}};
static const int64_t self_no_ctl = 0;

fj_worker fji_outsider = {&self_no_cells[1], UINTPTR_MAX, &self_no_ctl, NULL, 0, 0};

__thread fj_worker *fji_self = &fji_outsider;
