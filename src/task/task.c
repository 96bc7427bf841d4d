/* SPDX-License-Identifier: MIT */
/*
 * task.c - the transitions of the state word of a task; see task.h
 */
#include "task/task.h"

#include "plat/plat.h"

fj_cell fji_cell_under_typed[2] = {{.item = FJI_END, .kind = FJI_CELL_UNDER_TYPED},
                                   {.item = FJI_END}};
fj_cell fji_cell_ran[2] = {{.item = FJI_END, .kind = FJI_CELL_RAN}, {.item = FJI_END}};

void fji_task_claim(uint32_t *state, uint32_t *child_base, uint32_t worker, uint32_t position)
{
    fji_store_relaxed(child_base, position); /* relaxed: published by the release below */
    /* [join.thief] release -> acquire in help_thief() and await_done(): a thread that reads the
     * index of this worker sees child_base. */
    fji_or_release(state, worker + 1);
}

void fji_cell_complete(fj_cell *c)
{
    /* [task.done] release -> acquire in await_done(): the result of the task. After this the joiner
     * may free the task, but not the cell, which belongs to the pool.
     * [queue.link] acq_rel -> acquire in links_hold(): DONE. A waiting thread that helps
     * (sched/help.c) and sees a task that this thief pushes later also sees DONE, and does not take
     * that task. */
    uint32_t old = fji_or_acq_rel(&c->state, FJI_DONE);
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(&c->state);
}

void fji_task_complete(fj_task *t, int code)
{
    uint32_t *word = &t->state;

    t->code = code;
    /* [task.done] release -> acquire in await_done(): the result and the code of t. */
    uint32_t old = fji_or_acq_rel(word, FJI_DONE); /* LAST TOUCH of *t: its joiner may free it. */
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(word);
}

void fji_task_mark_unqueued(fj_task *t, fj_cell *submitted_cell)
{
    t->code = FJ_OK;
    /* relaxed: the release store of `cell` below publishes location */
    fji_store_relaxed(&t->location, FJI_LOCATION_NONE | fji_location_stamp());
    /* [timer.made] release -> acquire in fji_timers_withdraw(): if t is a timer or has a limit, a
     * thread that reads this `cell` sees the record of the timers of the pool. */
    fji_store_release(&t->cell, submitted_cell);
}

bool fji_structs_ok(const void *first, size_t n, size_t stride, size_t least)
{
    size_t bytes;

    if (first == NULL || stride < least || stride % _Alignof(void *) != 0) return false;
    if (__builtin_mul_overflow(n, stride, &bytes)) return false;
    return bytes <= PTRDIFF_MAX && bytes <= UINTPTR_MAX - (uintptr_t)first;
}
