/* SPDX-License-Identifier: MIT */
/*
 * plain.c - the slow paths of fork, join and unfork of plain tasks
 *
 * forkjoin/inline.h has the fast paths. They lead here if
 *
 *   - the calling thread works for no pool: a fork submits the task to the common pool;
 *   - typed code runs, which keeps the boundary of the queue in a register (see below);
 *   - the queue has no space: the fork submits the task, or runs it if that is impossible too;
 *   - the task is not the topmost one, a thief may have it, or it was submitted;
 *   - the program uses a task wrongly, for example joins it twice.
 *
 * A fork cannot fail. `cell` of a task says what its fork has done: the address of its cell in the
 * forker's queue, or one of the sentinels in task/task.h.
 *
 * Plain tasks under typed code. A plain task that is forked while typed code runs is pushed at the
 * boundary, which fji_worker_boundary() finds from typed_hint. Typed code expects the cells below
 * typed_low, where these plain tasks begin, to stay as they are. So a join reclaims only tombstones
 * at typed_low or above.
 *
 * Edges            from                             to                              carries
 *   queue.publish  release store, fji_fork_slow()   acquire, fji_queue_steal_for()  the task
 *   idle.dekker    light fence, fji_fork_slow()     heavy fence, idle_lead()        cell, ctl
 *   task.done      acq_rel or, fji_cell_complete()  acquire load, fji_await_cell()  result and code
 */

#include "pool/submit.h"
#include "sched/await.h"
#include "sched/own_queue.h"
#include "sched/pool.h"
#include "sched/run.h"

/* Ends a join: reclaims tombstones and stores the boundary, which is b after the join. */
static void join_finish(fji_worker *w, fj_cell *b)
{
    fji_queue *q = &w->q;

    if (!fji_queue_in_typed(&w->q)) {
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
        return;
    }
    q->typed_count--;
    q->typed_hint = fji_queue_reclaim(q, b, q->typed_low);
}

/* Logs a misuse. Returns FJ_EINVAL. w: the calling worker, or NULL. */
static int join_misuse(const fji_worker *w, const char *text)
{
    if (w != NULL) fji_pool_log(w->pool, FJ_LOG_ERROR, text);
    return FJ_EINVAL;
}

/* Returns whether t is forked already and not joined. before: `cell` of t before this fork. w: the
 * calling worker, or NULL. */
static bool fork_is_repeated(const fji_worker *w, const fj_task *t, const fj_cell *before)
{
    if (before == NULL) return false;
    if (fji_submit_is_pending(t, before)) return true;
    if (w == NULL) return false;
    const fji_queue *q = &w->q;
    if (before == fji_cell_under_typed) before = q->cells + t->location;
    return before >= q->cells && before < q->cells + q->capacity && before->item == (uintptr_t)t;
}

/* Returns the topmost cell at position `from` or above whose task is joined through the cell, or
 * NULL. */
static fj_cell *unjoined_find(fji_worker *w, uint32_t from)
{
    for (fj_cell *c = fji_worker_boundary(w); c-- > w->q.cells + from;)
        if (c->item > FJI_SPECIAL && !fji_item_is_detached(c->item)) return c;
    return NULL;
}

/*
 * fji_worker.check_body: removes the tasks that a body has forked and not joined. Called after the
 * body has returned; its tasks are at position `from` or above. Their memory may be freed already,
 * for example with the frame of the body. So a task that no thief has is removed without being run;
 * for a stolen task this function waits.
 */
static void unjoined_remove(fji_worker *w, uint32_t from)
{
    fj_cell *c;

    while ((c = unjoined_find(w, from)) != NULL) {
        fj_cell *b = fji_worker_boundary(w);
        (void)join_misuse(w, "a body returned without joining a task that it had forked");
        if (!fji_queue_take(&w->q, c, c->item, false, &b)) {
            (void)fji_await_cell(w, c);
            b = fji_queue_give_back(&w->q, c);
        }
        w->q.fast.top = fji_queue_reclaim(&w->q, b, w->q.cells);
    }
}

/* fj_fork() in code that is compiled with FJ_CHECKED. */
void fji_fork_checked(fj_task *t)
{
    fji_worker *w = fji_worker_self();

    if (t == NULL || t->fn == NULL) {
        (void)join_misuse(w, "fork of NULL, or of a task without a body");
        return;
    }
    if (w != NULL) w->check_body = unjoined_remove;
    fji_fork_slow(t, t->cell);
}

/* The slow path of fj_fork(). before: `cell` of t before this fork; the fast path has overwritten
 * it. */
/* Queues t in p, a free cell at the boundary of w's queue. */
static void fork_into(fji_worker *w, fj_task *t, fj_cell *p)
{
    bool typed = fji_queue_in_typed(&w->q);

    t->cell = typed ? fji_cell_under_typed : p;
    t->location = fji_queue_position(&w->q, p);
    if (typed && w->q.typed_count++ == 0) w->q.typed_low = p;
    fji_worker_publish(w, p, (uintptr_t)t);
    fji_wake_slow(&w->q.fast);
}

void fji_fork_slow(fj_task *t, fj_cell *before)
{
    fji_worker *w = fji_worker_self();

    if (fork_is_repeated(w, t, before)) {
        t->cell = before; /* the first fork remains valid */
        (void)join_misuse(w, "fork of a task that is forked already");
        return;
    }
    fj_cell *p = w != NULL ? fji_worker_find_space(w) : NULL;
    if (p != NULL) {
        fork_into(w, t, p);
    } else if (w != NULL ? !fji_submit_fork(w, t) : fj_submit(NULL, t) != FJ_OK) {
        t->code = t->fn(t); /* a fork cannot fail, so the task is run at once */
        t->cell = fji_cell_ran;
    }
}

/* Returns the cell of t in w's queue, or NULL if t is not there. popped: the fast path has already
 * set the cell FREE, so it cannot be checked. */
static fj_cell *join_cell_of(fji_worker *w, const fj_task *t, bool popped)
{
    fj_cell *c = t->cell;

    if (c == fji_cell_under_typed) c = w->q.cells + t->location;
    if (c < w->q.cells || c >= w->q.cells + w->q.capacity) return NULL;
    if (!popped && c->item != (uintptr_t)t) return NULL;
    return c;
}

/* Takes t back from w's queue. Returns 1 if w has taken it, 0 if a thief has it, and FJ_EINVAL if w
 * has not forked it. Unless it returns FJ_EINVAL, sets *cell to the cell of t. */
static int join_take(fji_worker *w, fj_task *t, bool popped, fj_cell **cell)
{
    fj_cell *c = join_cell_of(w, t, popped);
    fj_cell *boundary = fji_worker_boundary(w);

    if (c == NULL) return join_misuse(w, "join of a task that this worker has not forked");
    *cell = c;
    if (!fji_queue_take(&w->q, c, (uintptr_t)t, popped, &boundary)) return 0;
    join_finish(w, boundary);
    return 1;
}

/* The slow path of fj_join(). popped: the fast path has set the cell of t FREE, but a thief may
 * have taken the task before. Returns the code of t; FJ_EINVAL if t cannot be joined here;
 * FJ_ECANCELED if this is the child process after a fork(), in which the thief does not exist. */
int fji_join_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return join_misuse(w, "join of a task that is not forked");
    if (!popped && c->item == FJI_END) {
        if (c->kind == FJI_CELL_RAN) return t->code;
        if (c->kind == FJI_CELL_SUBMITTED) {
            fj_pool *p = fji_cell_pool(c);
            return fji_submit_join(p, t, p->caller_helps);
        }
    }
    if (w == NULL) return FJ_EINVAL;
    int got = join_take(w, t, popped != 0, &c);
    if (got < 0) return got;
    if (got > 0) return fji_run_body(w, t);
    int code = fji_await_cell(w, c) ? t->code : FJ_ECANCELED;
    join_finish(w, fji_queue_give_back(&w->q, c));
    return code;
}

/* The slow path of fj_unfork(). popped: as in fji_join_slow(). Returns 1 if t was taken back, else
 * 0. */
int fji_unfork_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return 0;
    if (!popped && c->item == FJI_END) {
        if (c->kind != FJI_CELL_SUBMITTED) {
            if (c->kind == FJI_CELL_RAN || w == NULL) return 0;
        } else {
            if (!fji_submit_take_back(fji_cell_pool(c), t, 0)) return 0;
            t->cell = NULL; /* as after fj_task_init() */
            return 1;
        }
    }
    if (w == NULL) return 0;
    return join_take(w, t, popped != 0, &c) > 0;
}
