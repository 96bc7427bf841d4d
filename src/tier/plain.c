/* SPDX-License-Identifier: MIT */
/*
 * plain.c - the slow paths of fork, join and unfork of plain tasks
 *
 * forkjoin/inline.h has the fast paths. They lead here if
 *
 *   - the calling thread works for no pool: a fork submits the task to the common pool, or runs it
 *     if it cannot be submitted;
 *   - the caller runs under typed code, which keeps the boundary of the queue in a register;
 *   - the queue has no space: the fork submits the task to the worker's pool, or runs it if it
 *     cannot be submitted;
 *   - the task to join is not the topmost task, a thief may have it, or its fork has submitted or
 *     run it;
 *   - the program uses a task wrongly, for example joins it twice.
 *
 * A fork cannot fail. The member `cell` of a task says what its fork has done: it is the address of
 * the cell in the forker's queue, or one of the sentinels in task/task.h.
 *
 * Plain tasks under typed code. Typed code is the body of a typed task, and what it calls. A plain
 * task that is forked under typed code is pushed at the boundary, which is searched from typed_hint
 * on, a member of the worker's queue. The member typed_low is the cell at which the plain tasks
 * forked under the typed code begin. The typed code expects the cells below typed_low to stay as
 * they are. So a join of a plain task under typed code reclaims only tombstones at typed_low or
 * above.
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

/* Ends a join or an unfork, for a task that is no longer in w's queue. b is the boundary after the
 * cell of the task was freed or has become a tombstone. Reclaims the tombstones directly below b,
 * under typed code only those at typed_low or above. This may lower the boundary. Stores the
 * resulting boundary in fast.top, under typed code in typed_hint. */
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

/* Sends the message `text` about a wrong use of the library to the log callback of w's pool, unless
 * w is NULL. Returns FJ_EINVAL. w: the calling worker or guest, or NULL if the calling thread works
 * for no pool. */
static int join_misuse(const fji_worker *w, const char *text)
{
    if (w != NULL) fji_pool_log(w->pool, FJ_LOG_ERROR, text);
    return FJ_EINVAL;
}

/* Returns true if t is forked already and not joined, as far as the caller can find out: t is in
 * w's own queue or was stolen from it, or t was submitted to the pool of w (to the common pool if w
 * is NULL) and is not done. Otherwise returns false; a fork by another worker is not detected.
 * before: the member `cell` of t before this fork. w: the calling worker or guest, or NULL if the
 * calling thread works for no pool. */
static bool fork_is_repeated(const fji_worker *w, const fj_task *t, const fj_cell *before)
{
    if (before == NULL) return false;
    if (fji_submit_is_pending(t, before)) return true;
    if (w == NULL) return false;
    const fji_queue *q = &w->q;
    if (before == fji_cell_under_typed) before = q->cells + t->location;
    return before >= q->cells && before < q->cells + q->capacity && before->item == (uintptr_t)t;
}

/* Returns the topmost cell of w's queue at position `from` or above that holds a task which is
 * joined through its cell, or NULL if there is none. */
static fj_cell *unjoined_find(fji_worker *w, uint32_t from)
{
    for (fj_cell *c = fji_worker_boundary(w); c-- > w->q.cells + from;)
        if (c->item > FJI_SPECIAL && !fji_item_is_detached(c->item)) return c;
    return NULL;
}

/*
 * fji_worker.check_body: logs and removes the tasks that a body has forked and not joined. Called
 * by w after the body has returned; these tasks are at position `from` of w's queue or above. Their
 * memory may be freed already, for example if it was in the frame of the body. So a task that no
 * thief has taken is removed without being run. If a thief has taken the task, this function waits
 * until the thief is done.
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

/* fj_fork() in code that is compiled with FJ_CHECKED. If t is NULL or has no body, logs that and
 * does nothing. Otherwise forks t, and sets check_body of the worker, so that from now on the tasks
 * are found that a body forks and does not join. */
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

/* Queues t in p, the free cell at the boundary of w's queue, and wakes a worker if the wake-up bit
 * is set. */
static void fork_into(fji_worker *w, fj_task *t, fj_cell *p)
{
    bool typed = fji_queue_in_typed(&w->q);

    t->cell = typed ? fji_cell_under_typed : p;
    t->location = fji_queue_position(&w->q, p);
    if (typed && w->q.typed_count++ == 0) w->q.typed_low = p;
    fji_worker_publish(w, p, (uintptr_t)t);
    fji_wake_slow(&w->q.fast);
}

/* The slow path of fj_fork(). Queues t in the queue of the calling worker or guest. If that has no
 * space, submits t to the pool of the worker. If the calling thread works for no pool, submits t to
 * the common pool. If t cannot be submitted, runs t at once. If t is forked already, logs that and
 * does nothing else. before: the member `cell` of t before this fork; the fast path has overwritten
 * it. */
void fji_fork_slow(fj_task *t, fj_cell *before)
{
    fji_worker *w = fji_worker_self();

    if (fork_is_repeated(w, t, before)) {
        t->cell = before; /* the earlier fork of t remains valid */
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

/* Returns the cell of t in w's queue, or NULL if w's queue does not hold t. popped: the fast path
 * has already set the cell FREE, so this function cannot check that the cell holds t. */
static fj_cell *join_cell_of(fji_worker *w, const fj_task *t, bool popped)
{
    fj_cell *c = t->cell;

    if (c == fji_cell_under_typed) c = w->q.cells + t->location;
    if (c < w->q.cells || c >= w->q.cells + w->q.capacity) return NULL;
    if (!popped && c->item != (uintptr_t)t) return NULL;
    return c;
}

/* Takes t back from w's queue. popped: see fji_join_slow(). Returns 1 if w has taken t, 0 if a
 * thief has it, and FJ_EINVAL, after a message to the log, if w's queue does not hold t. Unless it
 * returns FJ_EINVAL, sets *cell to the cell of t. */
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

/* The slow path of fj_join(). popped: 1 if the fast path has already set the cell of t FREE and
 * then found that a thief may have taken t; 0 if it has changed nothing. Runs t if no other thread
 * has taken it, otherwise waits until t is done. Returns the code of t. Returns FJ_EINVAL if t is
 * NULL or not forked, or if another thread has forked it into its own queue. Returns FJ_ECANCELED
 * if t is orphaned: this is the child process after a fork(), in which no thread runs t. */
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

/* The slow path of fj_unfork(). popped: see fji_join_slow(). Returns 1 if the calling thread has
 * taken t back: t does not run and is not joined. Returns 0 if another thread has taken t, if t was
 * run at its fork, if t is NULL or not forked, or if t is in the queue of another worker. */
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
            t->cell = NULL; /* t is not forked any more, as after fj_task_init() */
            return 1;
        }
    }
    if (w == NULL) return 0;
    return join_take(w, t, popped != 0, &c) > 0;
}
