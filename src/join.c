/* SPDX-License-Identifier: MIT */
/*
 * join.c - fork and join off the fast path, and waiting for a task that somebody else runs
 *
 * The word of a task (a cell's `state`, or a submitted task's own)
 *
 *     0 -> thief's number -> DONE, and WAITING in between by whoever sleeps on it
 *
 *   thief   child_base = where its own tasks for this one begin (relaxed), then or in its number
 *           (release); result; or in DONE (release): that is its LAST TOUCH, and only if
 *           the old value had WAITING does it wake, by address.
 *   joiner  DONE (acquire): finished. Else helps, spins, then ors in WAITING, looks again,
 *           and sleeps while the word is what it saw.
 *
 * Helping is restricted to what the joined task waits for: tasks that its thief pushed at
 * `child_base` or above, while the task is not done, are its descendants. If the thief has none
 * and itself waits for a stolen task, that one's thief is looked at in the same way.
 * A worker whose stack is half used does not help.
 *
 * Edges         from                          to                       carries
 *   task.done   release or, fji_task_complete()  acquire load, join_await()  result, code
 *   join.thief  release or, fji_worker_claim()    acquire load, join_await()  child_base
 *   join.chain  release store, join_await()    acquire load, help_thief() the joined cell
 *
 * Model: test/model/taskword.pml.
 */
#include "pool.h"

#include <string.h>

#define JOIN_HOPS 4

/* ---- Completion ---------------------------------------------------------------------------------- */

void fji_cell_complete(fj_cell *c)
{
    /* [task.done] release -> acquire in join_await(): the result. The cell is the pool's, so
     * it may be looked at afterwards; what it belongs to may not.
     * [queue.link] a helper that sees it takes nothing more of this thief. */
    uint32_t old = fji_or_acq_rel(&c->state, FJI_DONE);
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(&c->state);
}

void fji_task_complete(fj_task *t, int code)
{
    uint32_t *word = &t->state;

    t->code = code;
    /* [task.done] release -> acquire in join_await(): result and code. */
    uint32_t old = fji_or_acq_rel(word, FJI_DONE); /* LAST TOUCH of *t: its joiner may free it. */
    if ((old & FJI_WAITING) != 0) fji_plat_wake_all(word);
}

/* ---- Waiting ------------------------------------------------------------------------------------- */

static bool help_has_stack(const fji_worker *w)
{
    return (uintptr_t)__builtin_frame_address(0) > w->stack_half;
}

/* Who runs the task with the word s, as just read, and from which position on the tasks of that run
 * are in its queue. The token is that of a future: its body may have been begun by a join or an
 * invoke, which leave no number in its word. */
static fji_worker *help_find_runner(fji_worker *w, uint32_t s, const uint32_t *child_base,
                                    const fj_token *token, uint32_t *from)
{
    uint32_t thief = s & FJI_THIEF_MASK;

    if (thief == 0) return token != NULL ? fji_scope_runner(w->pool, w, token, from) : NULL;
    *from = fji_load_relaxed(child_base); /* relaxed: [join.thief] with s */
    fji_worker *v = fji_pool_worker(w->pool, thief - 1);
    return v != w ? v : NULL;
}

/* Takes one of the thief of the task waited for. s: its word as just read, not done. RETRY: there may
 * be one. */
static fji_steal_result help_thief(fji_worker *w, const uint32_t *state, uint32_t s,
                                   const uint32_t *child_base, const fj_token *token)
{
    fji_link links[JOIN_HOPS];
    fji_taken taken;

    if (!help_has_stack(w)) return FJI_STEAL_EMPTY;
    for (int n = 0; n < JOIN_HOPS; n++, token = NULL) {
        uint32_t from;
        if ((s & FJI_DONE) != 0) return FJI_STEAL_EMPTY;
        fji_worker *v = help_find_runner(w, s, child_base, token, &from);
        if (v == NULL) return FJI_STEAL_EMPTY;
        links[n] = (fji_link){state, s};
        fji_steal_result got = fji_queue_steal_for(&v->q, from, links, n + 1, 0, &taken);
        if (got == FJI_STEAL_SUCCESS) {
            taken.token = fji_scope_of_stolen(v, &taken);
            fji_count(&w->steals, 1);
            fji_worker_run(w, &taken);
            return got;
        }
        if (got == FJI_STEAL_RETRY) return got;
        /* [join.chain] acquire <- release in join_await(): the cell v waits for. Cells are
         * never freed before the pool, and the links are checked again before a take. */
        fj_cell *c = fji_load_acquire(&v->joining);
        if (c == NULL || fji_queue_position(&v->q, c) < from) return FJI_STEAL_EMPTY;
        state = &c->state;
        child_base = &c->child_base;
        /* [join.thief] acquire <- release in fji_worker_claim(): child_base. */
        s = fji_load_acquire(state);
    }
    return FJI_STEAL_EMPTY;
}

/* Whether a task of the own queue may be run by a waiting worker: one of this root, or without
 * a root anything but an action, which nobody waits for. */
static bool help_may(const fji_taken *taken, uintptr_t root)
{
    if (taken->item <= FJI_SPECIAL || (taken->item & FJI_TAG_DETACHED) == 0) return false;
    if (root == 0) return taken->item != FJI_ACTION;
    return (taken->item & FJI_TAG_FUTURE) != 0 && taken->fn == root;
}

/* From the own queue, at `low` or above, the youngest first: takes and runs a task. */
static bool help_local(fji_worker *w, fj_cell *low, uintptr_t root)
{
    fji_queue *q = &w->q;
    bool typed = q->fast.top < q->cells;
    fj_cell *b = fji_worker_boundary(w), *c = b;
    /* relaxed: only a bound; the take finds out. */
    fj_cell *base = q->cells + fji_base_index(fji_load_relaxed(&q->base));
    fji_taken taken = {0};

    if (low < base) low = base;
    do {
        if (c-- <= low) return false;
        taken.item = c->item;
        taken.fn = *(uintptr_t *)(void *)c->args;
    } while (!help_may(&taken, root));
    bool ours = fji_queue_take(q, c, taken.item, false, &b);
    if (!ours) b = fji_queue_give_back(q, c); /* its thief does not use the cell */
    if (typed)
        q->typed_hint = b;
    else
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
    if (ours) fji_worker_run(w, &taken);
    return ours;
}

fji_steal_result fji_help_root(fji_worker *w, uintptr_t root)
{
    fj_pool *p = w->pool;
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers), all = n + p->nsubmissions;
    uint32_t at = fji_worker_random(w) % all;
    fji_steal_result best = FJI_STEAL_EMPTY;
    fji_taken taken;

    if (!help_has_stack(w)) return FJI_STEAL_EMPTY;
    if (help_local(w, w->q.cells, root)) return FJI_STEAL_SUCCESS;
    for (uint32_t i = 0; i < all; i++, at = at + 1 == all ? 0 : at + 1) {
        fji_steal_result got = FJI_STEAL_EMPTY;
        if (at < n) {
            fji_worker *v = fji_pool_worker(p, at);
            if (v != NULL && v != w) got = fji_queue_steal_for(&v->q, 0, NULL, 0, root, &taken);
        } else {
            /* [pool.record] acquire <- release in submit_queue(). */
            fji_submission_queue *s = fji_load_acquire(&p->submissions[at - n]);
            if (s != NULL) got = fji_submission_queue_steal_root(s, root, &taken);
        }
        if (got == FJI_STEAL_RETRY) best = got;
        if (got != FJI_STEAL_SUCCESS) continue;
        fji_count(&w->steals, 1);
        fji_worker_run(w, &taken);
        return got;
    }
    return best;
}

/* What is waited for: a stolen cell of the waiter's own queue, or a task that was submitted. */
struct await {
    uint32_t *state;
    const uint32_t *child_base;
    fj_cell *cell; /* or NULL, and */
    const fj_task
        *task; /* for fji_task_is_orphaned(): while it waits, the waiter runs tasks, which may
                          * fork() the process. A cell is told by child.c. */
    const fji_wait *how;
};

static bool await_is_orphaned(const struct await *a)
{
    /* relaxed: NULL, or put into a queue by now. */
    return a->task != NULL && fji_load_relaxed(&a->task->cell) != NULL &&
           fji_task_is_orphaned(a->task);
}

/* FJ_OK: wait on. */
static int await_gives_up(const fji_worker *w, const fji_wait *how)
{
    if (how->interruptible && w != NULL && fji_interrupted(w)) return FJ_ECANCELED;
    if (how->deadline != FJ_FOREVER && fji_plat_now() >= how->deadline) return FJ_ETIMEDOUT;
    return FJ_OK;
}

/* When to look again whether `from` (or NULL), another pool, has lost its threads, or whether the
 * pool of w can have a thread that was refused. */
static int64_t await_look(fji_worker *w, const fji_wait *how, const fj_pool *from, int64_t *pause)
{
    int64_t look = from != NULL ? fji_plat_now() + FJI_THREADLESS_POLL_NS : FJ_FOREVER;
    int64_t retry = w != NULL ? fji_compensate_retry(w, pause) : FJ_FOREVER;

    if (retry < look) look = retry;
    return look < how->deadline ? look : how->deadline;
}

/* Sleeps on the word itself. */
static int await_sleep(fji_worker *w, const struct await *a, fj_pool *from)
{
    int err = FJ_OK;
    int64_t pause = 0;
    /* [task.done] acquire <- release in fji_task_complete(): it may be done by now. */
    uint32_t s = fji_or_acq_rel(a->state, FJI_WAITING) | FJI_WAITING;

    while ((s & a->how->done) == 0 && err == FJ_OK) {
        if (from != NULL) fji_run_threadless(from, fji_wait_may_run(a->how));
        if (await_is_orphaned(a)) break;
        fji_plat_wait(a->state, s, await_look(w, a->how, from, &pause));
        /* [task.done] acquire <- release in fji_task_complete(): result and code. */
        s = fji_load_acquire(a->state);
        err = await_gives_up(w, a->how);
    }
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

/* Sleeps in the lot of a future, so that it can be interrupted. */
static int await_interruptible(fji_worker *w, const struct await *a, fj_pool *from)
{
    uint32_t *bucket = fji_wait_bucket(a->task);
    int64_t pause = 0;
    int err = FJ_OK;
    uint32_t s;

    fji_interruptible_begin(w, bucket);
    /* [task.done] acq_rel: it is done by now, or whoever decides sees the bit. */
    (void)fji_or_acq_rel(a->state, FJI_OBSERVED);
    for (;;) {
        /* [cancel.bucket] acquire <- acq_rel in fji_wait_bucket_notify(): what has changed is seen below. */
        uint32_t seen = fji_load_acquire(bucket);
        /* [task.done] acquire <- acq_rel in fji_future_finish(), fji_future_resolve(). */
        s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        if ((err = await_gives_up(w, a->how)) != FJ_OK) break;
        if (from != NULL) fji_run_threadless(from, fji_wait_may_run(a->how));
        fji_plat_wait(bucket, seen, await_look(w, a->how, from, &pause));
    }
    fji_interruptible_end(w);
    return (s & a->how->done) != 0 ? FJ_OK : err;
}

static int await_asleep(fji_worker *w, const struct await *a, fj_pool *from)
{
    if (w == NULL) return await_sleep(w, a, from);
    int token = fji_compensate_begin(w);
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_QUIET);
    int err = a->how->interruptible ? await_interruptible(w, a, from) : await_sleep(w, a, from);
    if (a->how->guest) fji_quiesce_turn(w, FJI_PARK_ACTIVE);
    fji_compensate_end(w, token);
    return err;
}

/*
 * Runs one task that belongs to the one waited for. What it has left in the own queue comes first,
 * at `from` or above: others may not reach it, under what lies below, while this worker sleeps.
 */
static fji_steal_result help_once(fji_worker *w, const struct await *a, uint32_t s, fj_cell *from)
{
    if (help_has_stack(w) && help_local(w, from, 0)) return FJI_STEAL_SUCCESS;
    if (a->how->root != NULL) return fji_help_root(w, (uintptr_t)a->how->root);
    return help_thief(w, a->state, s, a->child_base, a->how->token);
}

/* A moment between two looks: gives way now and then, somebody else may need the core. */
static bool await_spin(int64_t *until, unsigned *turn)
{
    if (*until == 0) *until = fji_plat_now() + FJI_JOIN_SPIN_NS;
    for (int i = 0; i < 16; i++) fji_pause();
    if (++*turn % 16 == 0) fji_plat_yield();
    return fji_plat_now() < *until;
}

static int join_await(fji_worker *w, fj_pool *pool, const struct await *a)
{
    bool helps = w != NULL && w->pool == pool && fji_wait_may_run(a->how);
    bool counted = w != NULL && w->pool == pool && w->alive == FJI_ALIVE_WORKER;
    fj_cell *outer = NULL, *from = helps ? fji_worker_boundary(w) : NULL;
    int64_t until = 0;
    unsigned turn = 0;
    int err = FJ_OK;

    if (w != NULL) {
        outer = w->joining;
        /* [join.chain] release -> acquire in help_thief(). */
        fji_store_release(&w->joining, a->cell);
    }
    for (;;) {
        /* [task.done] [join.thief] acquire: result and code, or child_base. */
        uint32_t s = fji_load_acquire(a->state);
        if ((s & a->how->done) != 0 || await_is_orphaned(a)) break;
        fji_steal_result got = helps ? help_once(w, a, s, from) : FJI_STEAL_EMPTY;
        if (got == FJI_STEAL_SUCCESS) {
            until = 0;
            continue;
        }
        if ((err = await_gives_up(w, a->how)) != FJ_OK) break;
        /* A queue in which a task may be is looked at again before the worker sleeps. */
        if (await_spin(&until, &turn) || got == FJI_STEAL_RETRY) continue;
        /* A guest is no thread that the pool could count on, so it looks too. */
        err = await_asleep(w, a, counted ? NULL : pool);
        break;
    }
    /* [join.chain] release -> acquire in help_thief(). */
    if (w != NULL) fji_store_release(&w->joining, outer);
    return err;
}

int fji_await_task(fji_worker *w, fj_pool *pool, fj_task *t, const fji_wait *how)
{
    return join_await(w, pool, &(struct await){&t->state, &t->child_base, NULL, t, how});
}

/*
 * Waits for the stolen task of cell c, then makes the cell fit for use again. False: its
 * thief got lost in a fork() of the process.
 */
static bool join_await_cell(fji_worker *w, fj_cell *c)
{
    (void)join_await(w, w->pool,
                     &(struct await){&c->state, &c->child_base, c, NULL, &FJI_WAIT_DONE});
    bool lost = (c->state & FJI_ORPHANED) != 0;
    fji_store_relaxed(&c->state, 0u); /* relaxed: the thief is through, nobody else looks */
    return !lost;
}

/* ---- Fork and join of the plain tier ---------------------------------------------------------------- */

static bool join_in_typed(const fji_worker *w)
{
    return w->q.fast.top < w->q.cells;
}

/*
 * After a join of the plain tier: b is the boundary. Under typed code only what lies above
 * the first of the plain tasks is garbage: typed code counts on the places below.
 */
static void join_over(fji_worker *w, fj_cell *b)
{
    fji_queue *q = &w->q;

    if (!join_in_typed(w)) {
        q->fast.top = fji_queue_reclaim(q, b, q->cells);
        return;
    }
    q->typed_count--;
    q->typed_hint = fji_queue_reclaim(q, b, q->typed_low);
}

static int join_misuse(const fji_worker *w, const char *text)
{
    if (w != NULL) fji_pool_log(w->pool, FJ_LOG_ERROR, text);
    return FJ_EINVAL;
}

/* Whether t is forked by w and not joined. before: its cell. */
static bool fork_is_second(const fji_worker *w, const fj_task *t, const fj_cell *before)
{
    const fji_queue *q = &w->q;

    if (before == NULL) return false;
    if (before ==
        w->pool->submitted_cell) /* relaxed: its own word; if it is not done it was not joined */
        return (fji_load_relaxed(&t->state) & FJI_DONE) == 0;
    if (before == fji_cell_under_typed) before = q->cells + t->location;
    return before >= q->cells && before < q->cells + q->capacity && before->item == (uintptr_t)t;
}

/* The same for a thread outside, whose forks are submissions to the common pool. */
static bool fork_is_second_outside(const fj_task *t, const fj_cell *before)
{
    const fj_pool *common = before != NULL ? fji_common_if_made() : NULL;

    if (common == NULL || before != common->submitted_cell) return false;
    /* relaxed: if it is not done it was not joined */
    return (fji_load_relaxed(&t->state) & FJI_DONE) == 0;
}

void fji_fork_checked(fj_task *t)
{
    fji_worker *w = fji_worker_self();

    if (t == NULL || t->fn == NULL) {
        (void)join_misuse(w, "fork of NULL, or of a task without a body");
        return;
    }
    if (w != NULL) w->checks = true;
    fji_fork_slow(t, t->cell);
}

void fji_fork_slow(fj_task *t, fj_cell *before)
{
    fji_worker *w = fji_worker_self();

    if (w != NULL ? fork_is_second(w, t, before) : fork_is_second_outside(t, before)) {
        t->cell = before; /* the first fork counts */
        (void)join_misuse(w, "fork of a task that is forked already");
        return;
    }
    if (w == NULL) {
        if (fj_submit(NULL, t) == FJ_OK) return;
        t->code = t->fn(t);
        t->cell = fji_cell_ran;
        return;
    }
    bool typed = join_in_typed(w);
    fj_cell *p = fji_queue_room(&w->q, typed ? w->q.typed_hint : w->q.fast.top);
    if (p == NULL && fji_submit_fork(w, t)) return;
    if (p == NULL) {
        t->code = t->fn(t);
        t->cell = fji_cell_ran;
        return;
    }
    t->cell = typed ? fji_cell_under_typed : p;
    t->location = fji_queue_position(&w->q, p);
    if (typed) {
        if (w->q.typed_count++ == 0) w->q.typed_low = p;
        w->q.typed_hint = p + 1;
    } else {
        w->q.fast.top = p + 1;
    }
    /* [queue.publish] release -> acquire load in steal: the task. */
    fji_store_release(&p->item, (uintptr_t)t);
    /* [idle.dekker] as in fj_fork(). */
    FJI_LIGHT_FENCE();
    fji_wake_slow(&w->q.fast);
}

/* The cell of a task forked by w, NULL if it is not in w's queue. */
static fj_cell *join_cell_of(fji_worker *w, const fj_task *t, bool popped)
{
    fj_cell *c = t->cell;

    if (c == fji_cell_under_typed) c = w->q.cells + t->location;
    if (c < w->q.cells || c >= w->q.cells + w->q.capacity) return NULL;
    if (!popped && c->item != (uintptr_t)t) return NULL;
    return c;
}

/* Takes t back from the own queue. 1: ours; 0: a thief has it; an error if it is not
 * there at all. */
static int join_take(fji_worker *w, fj_task *t, bool popped, fj_cell **cell)
{
    fj_cell *c = join_cell_of(w, t, popped);
    fj_cell *boundary = fji_worker_boundary(w);

    if (c == NULL) return join_misuse(w, "join of a task that this worker has not forked");
    *cell = c;
    if (!fji_queue_take(&w->q, c, (uintptr_t)t, popped, &boundary)) return 0;
    join_over(w, boundary);
    return 1;
}

/* The topmost task at `from` or above that was forked to be joined through its cell; or NULL. */
static fj_cell *left_find(fji_worker *w, uint32_t from)
{
    for (fj_cell *c = fji_worker_boundary(w); c-- > w->q.cells + from;)
        if (c->item > FJI_SPECIAL && (c->item & FJI_TAG_DETACHED) == 0) return c;
    return NULL;
}

/* A body has returned without joining what it had forked, whose memory may be gone. What no thief
 * has is taken out and not run; for what one has, this waits. */
static void left_remove(fji_worker *w, uint32_t from)
{
    fj_cell *c;

    while ((c = left_find(w, from)) != NULL) {
        fj_cell *b = fji_worker_boundary(w);
        (void)join_misuse(w, "a body returned without joining a task that it had forked");
        if (!fji_queue_take(&w->q, c, c->item, false, &b)) {
            (void)join_await_cell(w, c);
            b = fji_queue_give_back(&w->q, c);
        }
        w->q.fast.top = fji_queue_reclaim(&w->q, b, w->q.cells);
    }
}

int fji_run_body(fji_worker *w, fj_task *t, uint32_t from)
{
    int code = t->fn(t);

    if (FJI_UNLIKELY(w->checks) && !join_in_typed(w)) left_remove(w, from);
    return code;
}

int fji_join_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return join_misuse(w, "join of a task that is not forked");
    if (!popped && c->item == FJI_END) {
        if (c->kind == FJI_CELL_RAN) return t->code;
        if (c->kind == FJI_CELL_SUBMITTED) return fji_join_submitted(t);
    }
    if (w == NULL) return FJ_EINVAL;
    int got = join_take(w, t, popped != 0, &c);
    if (got < 0) return got;
    if (got > 0) return fji_run_body(w, t, fji_queue_position(&w->q, fji_worker_boundary(w)));
    int code = join_await_cell(w, c) ? t->code : FJ_ECANCELED;
    join_over(w, fji_queue_give_back(&w->q, c));
    return code;
}

int fji_unfork_slow(fj_task *t, int popped)
{
    fji_worker *w = fji_worker_self();
    fj_cell *c = t != NULL ? t->cell : NULL;

    if (c == NULL) return 0;
    if (!popped && c->item == FJI_END) {
        if (c->kind != FJI_CELL_SUBMITTED) {
            if (c->kind == FJI_CELL_RAN || w == NULL) return 0;
        } else {
            fj_pool *p = *(fj_pool **)(void *)c->args;
            if (!fji_submit_take_back(p, t, 0)) return 0;
            t->cell = NULL; /* as new */
            return 1;
        }
    }
    if (w == NULL) return 0;
    return join_take(w, t, popped != 0, &c) > 0;
}

/*
 * Spilled cells of a thread without a worker that are not in use: those of the innermost typed
 * task that it runs. Empty while it runs none, so that the end of a thread leaves nothing.
 */
static __thread fj_cell *overflow_without_worker;

/* For all threads, when there is no memory: untouched until then, so it costs none. */
static fji_lock overflow_reserve_lock;
static fj_cell overflow_reserve[FJI_OVERFLOW_RESERVE][2];
static unsigned overflow_reserve_used;     /* the first so many were handed out once */
static fj_cell *overflow_reserve_returned; /* and these are back */

static fj_cell *overflow_take_reserve(void)
{
    fji_lock_take(&overflow_reserve_lock);
    fj_cell *c = overflow_reserve_returned;
    if (c != NULL)
        memcpy(&overflow_reserve_returned, c[1].args, sizeof overflow_reserve_returned);
    else if (overflow_reserve_used < FJI_OVERFLOW_RESERVE)
        c = overflow_reserve[overflow_reserve_used++];
    fji_lock_drop(&overflow_reserve_lock);
    return c;
}

/* The lock may have been held by a thread that is no more; each of its steps leaves the lists
 * whole. */
void fji_overflow_in_child(void)
{
    fji_lock_reset(&overflow_reserve_lock);
}

static bool overflow_is_reserve(const fj_cell *c)
{
    return c >= overflow_reserve[0] && c < &overflow_reserve[FJI_OVERFLOW_RESERVE - 1][2];
}

void fji_overflow_free(fj_cell *list)
{
    while (list != NULL) {
        fj_cell *c = list;
        memcpy(&list, c[1].args, sizeof list);
        fji_plat_free(c);
    }
}

/* ---- The typed tier ----------------------------------------------------------------------------------- */

fj_cell *fji_typed_enter(fj_worker *fast, fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    saved->top = fast->top;
    if (w == NULL) {
        saved->low = overflow_without_worker;
        overflow_without_worker = NULL;
        return fast->top;
    }
    fj_cell *p = fji_worker_boundary(w);
    saved->low = w->q.typed_low;
    saved->count = w->q.typed_count;
    w->q.typed_hint = p;
    w->q.typed_low = p;
    w->q.typed_count = 0;
    fast->top = w->q.cells - 1; /* END: the plain tier asks from now on */
    return p;
}

void fji_typed_leave(fj_worker *fast, const fji_typed_saved *saved)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) {
        /* Every fork of this task is joined: its cells are in the list, and the positions that
         * point to them are gone with its frames. Those of the frames below are in saved->low. */
        fji_overflow_free(overflow_without_worker);
        overflow_without_worker = saved->low;
        return;
    }
    /* What was left behind lies above: TOMBs, which are garbage now, and tasks that nobody
     * joins, which raise the boundary. */
    fast->top = saved->top;
    w->q.typed_low = saved->low;
    w->q.typed_count = saved->count;
    if (saved->top >= w->q.cells)
        fast->top = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, saved->top), saved->top);
}

/* p is where typed code would fork next: TOMBs from there up are garbage. */
fj_cell *fji_typed_room(fj_worker *fast, fj_cell *p)
{
    fji_worker *w = fji_worker_of(fast);

    if (w == NULL) return NULL;
    if (p >= w->q.cells && p < w->q.cells + w->q.capacity)
        p = fji_queue_reclaim(&w->q, fji_queue_boundary(&w->q, p), p);
    return fji_queue_room(&w->q, p);
}

/*
 * A pair of cells outside the queue, the second an END, for the result of a task that was
 * run at its fork. A position may point to one after its join, so a worker keeps its cells until
 * the pool is freed, and a thread without a worker keeps them until the typed task that it runs
 * has returned. There must be one: one that is kept first, then memory, then the reserve; without
 * any this waits for some, as a fork cannot fail.
 */
fj_cell *fji_typed_overflow(fj_worker *fast)
{
    fji_worker *w = fji_worker_of(fast);
    fj_cell **list = w != NULL ? &w->overflow_cells : &overflow_without_worker;
    fj_cell *c = *list;

    if (c != NULL) {
        memcpy(list, c[1].args, sizeof *list);
        return c;
    }
    while ((c = fji_plat_alloc(2 * sizeof *c)) == NULL && (c = overflow_take_reserve()) == NULL)
        fji_plat_yield();
    c[0].item = FJI_END;
    c[1].item = FJI_END;
    return c;
}

static void overflow_return(fji_worker *w, fj_cell *c)
{
    fj_cell **list = w != NULL ? &w->overflow_cells : &overflow_without_worker;
    bool reserve = overflow_is_reserve(c);

    if (reserve) {
        fji_lock_take(&overflow_reserve_lock);
        list = &overflow_reserve_returned;
    }
    memcpy(c[1].args, list, sizeof *list);
    *list = c;
    if (reserve) fji_lock_drop(&overflow_reserve_lock);
}

/* Where the task's body is to be run, NULL: it is done, by a thief or at its fork. */
fj_cell *fji_typed_join(fj_worker *fast, fj_cell *c, uintptr_t item, int popped)
{
    fji_worker *w = fji_worker_of(fast);

    if (!popped && c->item == FJI_END) return NULL;
    fj_cell *p = popped ? c + 1 : fji_queue_boundary(&w->q, c + 1);
    if (fji_queue_take(&w->q, c, item, popped != 0, &p)) return p;
    w->q.typed_hint = p;
    if (join_await_cell(w, c)) return NULL;
    return fji_queue_give_back(&w->q, c);
}

void fji_typed_release(fj_worker *fast, fj_cell *c)
{
    fji_worker *w = fji_worker_of(fast);

    if (c->item == FJI_END)
        overflow_return(w, c);
    else
        (void)fji_queue_give_back(&w->q, c);
}

/* ---- All of ------------------------------------------------------------------------------------------- */

static int first_error(int a, int b)
{
    return a != FJ_OK ? a : b;
}

/*
 * A list of tasks as a task: so that a caller from outside runs the whole of it as a
 * worker of the common pool.
 */
struct join_list {
    fj_task task;
    fj_task *const *pointers; /* or NULL, and */
    char *first;
    size_t n, stride;
    bool ran;
};

static fj_task *list_get(const struct join_list *l, size_t i)
{
    return l->pointers != NULL ? l->pointers[i] : (fj_task *)(void *)(l->first + i * l->stride);
}

/* Forks all but the first, runs that one here, joins the rest youngest first. */
static int list_run(fj_task *t)
{
    struct join_list *l = (struct join_list *)t;

    l->ran = true;
    for (size_t i = l->n; i-- > 1;) fj_fork(list_get(l, i));
    fj_task *a = list_get(l, 0);
    int code = a->fn(a);
    for (size_t i = 1; i < l->n; i++) code = first_error(code, fj_join(list_get(l, i)));
    return code;
}

static int list_invoke(struct join_list *l)
{
    if (l->n == 0) return FJ_OK;
    if (fji_worker_self() != NULL) return list_run(&l->task);
    fj_task_init(&l->task, list_run);
    int err = fj_invoke_mode(NULL, &l->task, FJ_CALLER_HELPS);
    /* As a fork, it cannot fail: where there is no memory for the common pool they run here. */
    return err == FJ_ENOMEM && !l->ran ? list_run(&l->task) : err;
}

int fj_invoke_all(fj_task *const *tasks, size_t n)
{
    struct join_list l = {.pointers = tasks, .n = n};

    if (n != 0 && !fji_array_ok(tasks, n, sizeof *tasks, sizeof *tasks)) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (tasks[i] == NULL || tasks[i]->fn == NULL) return FJ_EINVAL;
    return list_invoke(&l);
}

int fj_invoke_both(fj_task *a, fj_task *b)
{
    fj_task *const both[2] = {a, b};

    if (a == b) return FJ_EINVAL;
    return fj_invoke_all(both, 2);
}

int fj_invoke_array(void *first, size_t n, size_t stride)
{
    struct join_list l = {.first = first, .n = n, .stride = stride};

    if (n == 0) return FJ_OK;
    if (!fji_array_ok(first, n, stride, sizeof(fj_task))) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (list_get(&l, i)->fn == NULL) return FJ_EINVAL;
    return list_invoke(&l);
}
