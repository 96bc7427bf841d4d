/* SPDX-License-Identifier: MIT */
/*
 * worker.c - what a worker does from its start to its end, and guests
 *
 *     start -> [scan -> run -> drain own queue]* -> idle -> ... -> exit
 *
 * A record is taken under the pool's lock (alive: NO -> WORKER or GUEST) and given back
 * under it. Its counts in the control word are reserved by whoever starts the worker,
 * before; the worker itself gives them back at its exit, or the creator if no thread came.
 *
 * A guest is an outside thread that works for one call: it has a record and a queue like a
 * worker, so that its forks cost the same and can be stolen, but no place in the counts,
 * and it never idles.
 *
 * Edges            from                        to                      carries
 *   pool.record    release store, worker_new_record()  acquire, fji_pool_worker()  the record
 *   task.done      release in fji_task_complete()  acquire in join_await()  result and code
 */
#include <stdio.h>

#include "pool.h"

fj_cell fji_cell_under_typed[2] = {{.item = FJI_END, .kind = FJI_CELL_UNDER_TYPED},
                                   {.item = FJI_END}};
fj_cell fji_cell_ran[2] = {{.item = FJI_END, .kind = FJI_CELL_RAN}, {.item = FJI_END}};

/* Everything leads to the slow paths: no room above, no floor to take from. */
static fj_cell worker_no_cells[3] = {{.item = FJI_END}, {.item = FJI_END}, {.item = FJI_END}};
static const int64_t worker_no_ctl = 0;
static const int64_t worker_always_ctl = -1; /* without a heavy fence every push looks itself */
fj_worker fji_outsider = {&worker_no_cells[1], UINTPTR_MAX, &worker_no_ctl, NULL, 0, 0};

__thread fj_worker *fji_self = &fji_outsider;

/* ---- Small things ------------------------------------------------------------------------------- */

uint32_t fji_worker_random(fji_worker *w)
{
    uint32_t x = w->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return w->random = x;
}

static bool worker_in_typed(const fji_worker *w)
{
    return w->q.fast.top < w->q.cells;
}

void fji_worker_unpark(fji_worker *w)
{
    /* [idle.park] acq_rel -> acquire in idle_sleep(): what the waker did before. */
    if (fji_swap_acq_rel(&w->park, FJI_PARK_ACTIVE) == FJI_PARK_PARKED) fji_plat_wake_one(&w->park);
}

/* ---- Running a task that was taken ---------------------------------------------------------------- */

static void worker_run_action(fji_worker *w, const fji_taken *taken)
{
    int code = ((fj_action_fn *)taken->fn)((void *)taken->arg);
    const fj_pool_options *o = &w->pool->options;

    if (code != FJ_OK && o->on_error != NULL) o->on_error(w->pool, code, o->arg);
}

void fji_worker_claim(fji_worker *w, uint32_t *state, uint32_t *child_base)
{
    /* relaxed: published by the release below. */
    fji_store_relaxed(child_base, fji_queue_position(&w->q, fji_worker_boundary(w)));
    /* [join.thief] release -> acquire in join_await(): child_base. */
    fji_or_release(state, w->index + 1);
}

static void worker_run_detached(fji_worker *w, fj_task *t)
{
    fji_worker_claim(w, &t->state, &t->child_base);
    uint32_t generation = fji_fork_generation;
    int code = fji_run_body(w, t, t->child_base);
    if (generation == fji_fork_generation) fji_task_complete(t, code); /* else: see child.c */
}

static void worker_run(fji_worker *w, const fji_taken *taken)
{
    uintptr_t item = taken->item;

    if (item == FJI_ACTION) {
        worker_run_action(w, taken);
    } else if ((item & FJI_TAG_FUTURE) != 0) {
        fj_task *t = (fj_task *)(item & ~FJI_TAG_MASK);
        (void)t->fn(t); /* claims and completes itself */
    } else if (taken->cell == NULL || (item & FJI_TAG_DETACHED) != 0) {
        worker_run_detached(w, (fj_task *)(item & ~FJI_TAG_MASK));
    } else if ((item & FJI_TAG_TYPED) != 0) {
        const fj_type *type = (const fj_type *)(item - FJI_TAG_TYPED);
        fji_worker_claim(w, &taken->cell->state, &taken->cell->child_base);
        type->run(&w->q.fast, taken->cell->args);
        fji_cell_complete(taken->cell);
    } else {
        fj_task *t = (fj_task *)item;
        uint32_t generation = fji_fork_generation;
        fji_worker_claim(w, &taken->cell->state, &taken->cell->child_base);
        int code = fji_run_body(w, t, taken->cell->child_base);
        if (generation != fji_fork_generation) return; /* see child.c */
        t->code = code;
        fji_cell_complete(taken->cell);
    }
}

/* With the token that its forker had, or none if nobody forked it. */
void fji_worker_run(fji_worker *w, const fji_taken *taken)
{
    if (taken->token == fji_scope_token(w) || (taken->item & FJI_TAG_FUTURE) != 0) {
        worker_run(w, taken);
        return;
    }
    fji_scope_saved saved = fji_scope_enter_stolen(w, taken->token);
    worker_run(w, taken);
    fji_scope_leave(w, saved);
}

void fji_taken_cancel(const fji_taken *taken)
{
    uintptr_t item = taken->item;
    fj_task *detached = (fj_task *)(item & ~FJI_TAG_MASK);

    if (item == FJI_ACTION) return;
    if ((item & FJI_TAG_FUTURE) != 0) {
        fji_or_relaxed(&detached->state, FJI_DISCARDED); /* relaxed: for this thread alone */
        (void)detached->fn(detached);
    } else if (taken->cell == NULL || (item & FJI_TAG_DETACHED) != 0) {
        fji_task_complete(detached, FJ_ECANCELED);
    } else if ((item & FJI_TAG_TYPED) != 0) {
        /* A typed task has no code to say so: whoever takes it runs it. */
        ((const fj_type *)(item - FJI_TAG_TYPED))->run(fji_self, taken->cell->args);
        fji_cell_complete(taken->cell);
    } else {
        ((fj_task *)item)->code = FJ_ECANCELED;
        fji_cell_complete(taken->cell);
    }
}

/* ---- The own queue -------------------------------------------------------------------------------- */

int64_t fji_worker_push(fji_worker *w, uintptr_t item, fj_action_fn *fn, void *arg, bool wake)
{
    fji_queue *q = &w->q;
    bool typed = worker_in_typed(w);
    fj_cell *p = fji_queue_room(q, typed ? q->typed_hint : q->fast.top);

    if (p == NULL) return -1;
    if (item == FJI_ACTION || (item & FJI_TAG_FUTURE) != 0) fji_cell_put_action(p, fn, arg);
    int64_t position = fji_queue_position(q, p);
    if ((item & FJI_TAG_DETACHED) != 0 && item != FJI_ACTION)
        /* relaxed: published below; others only compare it. */
        fji_store_relaxed(&((fj_task *)(item & ~FJI_TAG_MASK))->location,
                          FJI_LOCATION_LOCAL | fji_location_stamp() | (uint32_t)position);
    if (typed)
        q->typed_hint = p + 1;
    else
        q->fast.top = p + 1;
    /* [queue.publish] release -> acquire load in steal: the task. */
    fji_store_release(&p->item, item);
    /* [idle.dekker] as in fj_fork(). */
    FJI_LIGHT_FENCE();
    if (wake)
        fji_wake_slow(&q->fast);
    else
        fji_pool_note_lazy(w->pool);
    return position;
}

/*
 * After fji_pop() of the topmost cell c, which held `what` that nobody joins through it, has met
 * a thief. True: it is ours; either way the cell is free.
 */
bool fji_worker_finish_pop(fji_worker *w, fj_cell *c, uintptr_t item)
{
    fj_cell *b = c + 1;
    bool ours = fji_queue_take(&w->q, c, item, true, &b);

    if (!ours) b = fji_queue_give_back(&w->q, c);
    w->q.fast.top = fji_queue_reclaim(&w->q, b, w->q.cells);
    return ours;
}

/* A stolen task that nobody joins: frees its cell once the thief no longer needs it. */
static bool worker_drop_stolen(fji_worker *w, fj_cell *c, uintptr_t item)
{
    if ((item & FJI_TAG_DETACHED) == 0) {
        /* [task.done] acquire <- release in fji_cell_complete(): the thief is through. */
        if ((fji_load_acquire(&c->state) & FJI_DONE) == 0) return false;
        fji_store_relaxed(&c->state, 0u); /* relaxed: nobody else uses the cell now */
    }
    w->q.fast.top = fji_queue_reclaim(&w->q, fji_queue_give_back(&w->q, c), w->q.cells);
    return true;
}

/*
 * The youngest of the own tasks (FIFO: the oldest), for a worker with no frame of a task on
 * its stack: nobody will join what it finds.
 */
bool fji_worker_take_local(fji_worker *w, fji_taken *taken)
{
    fji_queue *q = &w->q;

    if (w->pool->fifo) {
        fji_steal_result got;
        while ((got = fji_queue_steal(q, taken)) == FJI_STEAL_RETRY) fji_pause();
        if (got == FJI_STEAL_EMPTY && !worker_in_typed(w))
            q->fast.top = fji_queue_rewind(q, q->fast.top);
        return got == FJI_STEAL_SUCCESS;
    }
    while (q->fast.top > q->cells) {
        fj_cell *c = q->fast.top - 1;
        const uintptr_t *at = (const uintptr_t *)(void *)c->args;
        *taken = (fji_taken){.item = c->item, .fn = at[0], .arg = at[1]};
        if (taken->item <= FJI_SPECIAL) return false;
        if ((taken->item & FJI_TAG_DETACHED) != 0) {
            int got = fji_pop(&q->fast, c);
            if (got > 0) q->fast.top = q->tombstones == 0 ? c : fji_queue_reclaim(q, c, q->cells);
            if (got > 0 || (got < 0 && fji_worker_finish_pop(w, c, taken->item))) return true;
            if (got < 0) continue;
        }
        fj_cell *top = q->fast.top;
        if (fji_queue_take(q, c, taken->item, false, &top)) {
            q->fast.top = fji_queue_reclaim(q, top, q->cells);
            return true;
        }
        if (!worker_drop_stolen(w, c, taken->item)) return false;
    }
    return false;
}

/* Runs a task of the own queue that was forked and is now run by nobody's join. */
static void worker_run_local(fji_worker *w, const fji_taken *taken)
{
    fj_task *self = (fj_task *)(taken->item & ~FJI_TAG_MASK);

    if ((taken->item & FJI_TAG_FUTURE) != 0) {
        (void)self->fn(self);
        return;
    }
    if (taken->item == FJI_ACTION || (taken->item & FJI_TAG_DETACHED) != 0 || taken->cell != NULL)
        fji_worker_run(w, taken);
    else
        (void)((fj_task *)taken->item)->fn((fj_task *)taken->item);
}

/* ---- Searching ------------------------------------------------------------------------------------ */

/*
 * Takes from submission queue s. If it gets several ACTIONs, all but the first go into the
 * own queue, where others can steal them; the oldest is then on top.
 */
static fji_steal_result worker_take_submission(fji_worker *w, fji_submission_queue *s,
                                               fji_taken *taken)
{
    fji_taken some[FJI_SUBMISSIONS_BATCH];
    uint32_t n = 1;
    /* One at a time if the thread is to be cleaned after each, or if their order matters. */
    bool one = w->pool->options.on_reset != NULL || w->pool->fifo;
    fji_steal_result got = one ? fji_submission_queue_steal(s, some)
                               : fji_submission_queue_steal_some(s, some, &n);

    if (got != FJI_STEAL_SUCCESS) return got;
    *taken = some[0];
    for (uint32_t i = n; i-- > 1;) {
        bool last = i == 1;
        fj_action_fn *fn = (fj_action_fn *)some[i].fn;
        if (fji_worker_push(w, FJI_ACTION, fn, (void *)some[i].arg, last) >= 0) continue;
        fji_search_succeeded(w, true);
        worker_run_action(w, &some[i]); /* no room: out of order, but run */
    }
    fji_count(&w->steals, n - 1);
    return got;
}

/* One round over all queues from a random start. RETRY: something may be there. */
fji_steal_result fji_worker_scan(fji_worker *w, fji_taken *taken)
{
    fj_pool *p = w->pool;
    /* [pool.record] acquire <- release in worker_new_record(). */
    uint32_t n = fji_load_acquire(&p->workers);
    uint32_t all = n + p->nsubmissions;
    uint32_t at = fji_worker_random(w) % all;
    fji_steal_result best = FJI_STEAL_EMPTY;

    for (uint32_t i = 0; i < all; i++, at = at + 1 == all ? 0 : at + 1) {
        fji_steal_result got = FJI_STEAL_EMPTY;
        bool more = false;
        if (at < n) {
            fji_worker *v = fji_pool_worker(p, at);
            if (v == NULL || v == w) continue;
            got = fji_queue_steal(&v->q, taken);
            if (got == FJI_STEAL_SUCCESS) {
                more = fji_queue_maybe(&v->q);
                taken->token = fji_scope_of_stolen(v, taken);
            }
        } else {
            /* [pool.record] acquire <- release in submit_queue(). */
            fji_submission_queue *s = fji_load_acquire(&p->submissions[at - n]);
            if (s == NULL) continue;
            got = worker_take_submission(w, s, taken);
            if (got == FJI_STEAL_SUCCESS) more = fji_submission_queue_maybe(s);
        }
        if (got == FJI_STEAL_SUCCESS) {
            fji_count(&w->steals, 1);
            fji_search_succeeded(w, more);
            return got;
        }
        if (got == FJI_STEAL_RETRY) best = got;
    }
    return best;
}

/* Only the submission queues, so that a worker with endless tasks of its own sees them. */
static bool worker_poll_submission(fji_worker *w, fji_taken *taken)
{
    fj_pool *p = w->pool;

    for (uint32_t i = 0, at = fji_worker_random(w); i < p->nsubmissions; i++, at++) {
        /* [pool.record] acquire <- release in submit_queue(). */
        fji_submission_queue *s = fji_load_acquire(&p->submissions[at & (p->nsubmissions - 1)]);
        if (s != NULL && fji_submission_queue_steal(s, taken) == FJI_STEAL_SUCCESS) {
            fji_count(&w->steals, 1);
            return true;
        }
    }
    return false;
}

static bool worker_is_surplus(const fj_pool *p)
{
    /* relaxed: a worker too many may find out later. */
    return fji_ctl_deficit(fji_load_relaxed(&p->ctl)) > 0;
}

/* A run from outside is over. */
static void worker_reset(fji_worker *w)
{
    fji_scope_reset(w);
    const fj_pool_options *o = &w->pool->options;

    if (o->on_reset != NULL) o->on_reset(w->pool, (int)w->index, o->arg);
}

/*
 * The topmost of the own queue, if it completes itself, and nothing is in the way: the short
 * way of fji_worker_take_local(). NULL: that finds out.
 */
static fj_task *worker_take_future(fji_worker *w)
{
    fji_queue *q = &w->q;
    fj_cell *c = q->fast.top - 1; /* or the END */
    uintptr_t item = c->item;

    if ((item & FJI_TAG_MASK) != (FJI_TAG_DETACHED | FJI_TAG_FUTURE)) return NULL;
    if (w->pool->fifo || q->tombstones != 0) return NULL;
    int got = fji_pop(&q->fast, c);
    if (got > 0) q->fast.top = c;
    bool ours = got > 0 || (got < 0 && fji_worker_finish_pop(w, c, item));
    return ours ? (fj_task *)(item & ~FJI_TAG_MASK) : NULL;
}

/*
 * As fji_completer_run(), for a worker with no task on its stack: the scope stays, since the next
 * task is mostly of the same root. Whatever else it runs begins with fji_scope_reset(). False:
 * nothing was done.
 */
static inline bool worker_run_completer(fji_worker *w, fj_task *t)
{
    fj_completer *c = (fj_completer *)t;
    uint32_t generation = fji_fork_generation;

    /* [task.done] acquire <- acq_rel of whoever has decided. */
    if (c->parent == NULL || fji_load_acquire(&t->state) != 0) return false;
    const fj_token *token = &c->root->future.token;
    if (FJI_UNLIKELY(fji_scope_token(w) != token)) fji_scope_replace(w, token);
    int code = c->future.fn(t); /* LAST TOUCH of *c unless it failed. */
    if (FJI_UNLIKELY(code != FJ_OK) && generation == fji_fork_generation)
        fj_completer_fail(c, code);
    return true;
}

static inline void worker_run_future(fji_worker *w, fj_task *t)
{
    if (t->fn == fji_completer_run && worker_run_completer(w, t)) return;
    fji_scope_reset(w);
    (void)t->fn(t);
}

/* The own queue, until it is empty. */
static void worker_drain_queue(fji_worker *w, fji_taken *taken)
{
    uint32_t turns = 0;

    while (!fji_pool_stopping(w->pool)) {
        if (++turns % FJI_SUBMISSION_INTERVAL == 0) {
            if (worker_is_surplus(w->pool)) return; /* others take what is left */
            if (worker_poll_submission(w, taken)) {
                worker_reset(w);
                fji_worker_run(w, taken);
                worker_reset(w);
                continue;
            }
        }
        fj_task *t = worker_take_future(w);
        if (t != NULL) {
            worker_run_future(w, t);
            continue;
        }
        if (!fji_worker_take_local(w, taken)) return;
        fji_scope_reset(w);
        worker_run_local(w, taken);
    }
}

static void worker_drain(fji_worker *w, fji_taken *taken)
{
    worker_drain_queue(w, taken);
    fji_scope_reset(w);
}

/* Whether this worker may search on a while instead of going idle; *until is 0 at first. */
static bool worker_may_spin(fji_worker *w, int64_t *until)
{
    if (*until != 0) return fji_plat_now() < *until;
    if (w->pool->spin_ns <= 0 || !fji_search_begin(w)) return false;
    *until = fji_plat_now() + w->pool->spin_ns;
    return true;
}

/* Returns when the worker is to end: stopped, or kept idle too long (false: it is no longer
 * counted as active). */
static bool worker_loop(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;
    int64_t until = 0;
    uint32_t turns = 0;

    while (!fji_pool_stopping(p)) {
        /* Whoever searches looks now and then: the line of the control word is wanted by all. */
        bool surplus = (until == 0 || turns % 16 == 0) && worker_is_surplus(p);
        fji_steal_result got = FJI_STEAL_EMPTY;
        if (!surplus) {
            /* Left from before it was sent to sleep, mostly nothing. */
            if (w->q.fast.top > w->q.cells) fji_search_succeeded(w, false);
            worker_drain(w, &taken);
            got = fji_worker_scan(w, &taken);
        }
        if (got == FJI_STEAL_SUCCESS) {
            until = 0;
            fji_worker_run(w, &taken);
            worker_drain(w, &taken);
            worker_reset(w);
            continue;
        }
        if (got == FJI_STEAL_RETRY || (!surplus && worker_may_spin(w, &until))) {
            for (int i = 0; i < 8; i++) fji_pause();
            if (++turns % 64 == 0) fji_plat_yield(); /* whoever is in the way may need the core */
            continue;
        }
        until = 0;
        if (!surplus) fji_queue_shrink(&w->q);
        fji_submissions_shrink(p);
        if (!fji_idle_wait(w)) return false;
    }
    fji_search_end(w);
    return true;
}

/* ---- Records --------------------------------------------------------------------------------------- */

static fji_worker *worker_new_record(fj_pool *p)
{
    uint32_t i = p->workers;

    if (i >= FJ_MAX_WORKERS) return NULL;
    fji_worker **chunk = p->chunk[i / FJI_CHUNK];
    if (chunk == NULL) {
        chunk = fji_plat_alloc(FJI_CHUNK * sizeof *chunk);
        if (chunk == NULL) return NULL;
        /* [pool.record] release -> acquire in fji_pool_worker(). */
        fji_store_release(&p->chunk[i / FJI_CHUNK], chunk);
    }
    fji_worker *w = fji_plat_alloc(sizeof *w);
    if (w == NULL) return NULL;
    if (!fji_queue_init(&w->q, FJI_QUEUE_FIRST, FJI_QUEUE_RESERVED, p->asymmetric && !p->fifo)) {
        fji_plat_free(w);
        return NULL;
    }
    w->q.fast.ctl = p->asymmetric ? (const int64_t *)&p->ctl : &worker_always_ctl;
    w->q.fast.submitted_cell = p->submitted_cell;
    w->pool = p;
    w->index = i;
    w->scope = w->scope_base = &w->scope_none[0];
    w->scope_none[1].from = UINTPTR_MAX - 1; /* above every cell, and even */
    fji_worker_set_location(w);
    w->forks_since_spawn_try = FJI_START_32;
    w->steals = w->parks = FJI_START_64;
    /* [pool.record] release -> acquire in fji_pool_worker(): the record. */
    fji_store_release(&chunk[i % FJI_CHUNK], w);
    /* [pool.record] release -> acquire in fji_worker_scan(). */
    fji_store_release(&p->workers, i + 1);
    return w;
}

bool fji_worker_reserve(fj_pool *p)
{
    return worker_new_record(p) != NULL;
}

/* With the lock: a record that no thread has. */
static fji_worker *worker_take_record(fj_pool *p, uint32_t as)
{
    fji_worker *w = NULL;

    for (uint32_t i = 0; i < p->workers && w == NULL; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        /* [pool.alive] acquire <- release by its last user: what that has left. */
        if (fji_load_acquire(&v->alive) == FJI_ALIVE_NO) w = v;
    }
    if (w == NULL) w = worker_new_record(p);
    if (w == NULL) return NULL;
    w->random = (w->index + 1) * 0x9e3779b9u + (uint32_t)p->started;
    if (w->random == 0) w->random = 1;
    fji_scope_reset(w);
    fji_store_relaxed(&w->joining, (fj_cell *)NULL); /* relaxed: helpers check what they read */
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO);  /* relaxed: for monitoring */
    fji_store_relaxed(&w->park, FJI_PARK_ACTIVE);    /* relaxed: published by alive */
    fji_store_relaxed(&w->rescanning, 0u);           /* relaxed: published by alive */
    w->searching = w->rescan_owed = false;
    w->awaiting_first_task = as == FJI_ALIVE_WORKER;
    /* [pool.alive] release -> acquire in fji_pool_quiescent(): park. */
    fji_store_release(&w->alive, as);
    return w;
}

static void worker_set_stack(fji_worker *w)
{
    size_t bytes;

    w->stack_low = 0;
    w->stack_half = 0;
    if (fji_plat_stack(&w->stack_low, &bytes)) w->stack_half = w->stack_low + bytes / 2;
}

/* ---- Start and end ---------------------------------------------------------------------------------- */

/* The thread leaves: the record is free again, and the thread before it is joined. */
static void worker_exit(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_thread before;

    fji_lock_take(&p->lock);
    bool join = fji_pool_last_thread(p, &before);
    fji_store_relaxed(&w->signalable, 0u); /* relaxed: the lock */
    /* [pool.alive] release -> acquire in fji_pool_quiescent(). */
    fji_store_release(&w->alive, FJI_ALIVE_NO);
    fji_lock_drop(&p->lock);
    if (join) fji_plat_thread_join(before);
}

/* Gives back active (0 or 1) and one total, and ends the pool if that was the last. */
static void worker_give_back_counts(fj_pool *p, int active)
{
    /* [ctl.idle] acquire/acq_rel: as every change of ctl. */
    uint64_t c = fji_load_acquire(&p->ctl);
    while (!fji_ctl_cas(p, &c, fji_ctl_add_total(fji_ctl_add_active(c, -active), -1))) {}
    fji_pool_maybe_terminate(p);
}

/* What a stopped worker still has is cancelled. */
static void worker_cancel_rest(fji_worker *w)
{
    fji_taken taken;

    while (fji_worker_take_local(w, &taken)) {
        if ((taken.item & FJI_TAG_DETACHED) != 0) fji_taken_cancel(&taken); /* an ACTION too */
    }
}

static void worker_main(void *arg)
{
    fji_worker *w = arg;
    fj_pool *p = w->pool;
    const fj_pool_options *o = &p->options;
    bool active = true;

    fji_self = &w->q.fast;
    w->thread = fji_plat_thread_self();
    if (p->cpus != NULL) fji_plat_thread_bind(p->cpus, o->cpus_bytes);
    if (o->interrupt_signal != 0) {
        fji_plat_thread_allow(o->interrupt_signal);
        /* [pool.thread] release -> acquire in fji_pool_interrupt(): the handle. */
        fji_store_release(&w->signalable, 1u);
    }
    worker_set_stack(w);
    int err = o->on_start != NULL ? o->on_start(p, (int)w->index, o->arg) : FJ_OK;
    if (err != FJ_OK) {
        fji_pool_start_failed(p);
        if (o->on_error != NULL) o->on_error(p, err, o->arg);
    } else {
        fji_store_relaxed(&p->failed_starts, 0u); /* relaxed: a hint for idle_may_spawn() */
        active = worker_loop(w);
        if (fji_pool_stopping(p)) worker_cancel_rest(w);
    }
    if (o->on_stop != NULL) o->on_stop(p, (int)w->index, o->arg);
    fji_self = &fji_outsider;
    worker_exit(w);
    worker_give_back_counts(p, active ? 1 : 0);
    /* Whoever has not come to its first task leaves that to another, as one that was idle does. */
    if ((active && err == FJ_OK) || fji_pool_stopping(p)) return;
    /* [idle.dekker] ctl above, the queues below; partner: the light fence in fj_fork(). */
    fji_pool_barrier(p);
    if (fji_pool_has_work(p)) fji_wake_one(p);
}

/* The options' own way to start a thread, as the platform layer asks for it. */
static int worker_create(void *(*entry)(void *), void *arg, void *worker)
{
    const fji_worker *w = worker;
    const fj_pool_options *o = &w->pool->options;

    return o->create_thread(w->pool, entry, arg, o->arg);
}

static bool worker_thread(fji_worker *w, const char *name)
{
    const fj_pool_options *o = &w->pool->options;
    fji_creator how = {o->stack_bytes, o->create_thread != NULL ? worker_create : NULL, w};

    return fji_plat_thread_start(worker_main, w, &how, name);
}

/*
 * Starts a worker for which `total` is already counted. False: no thread came, and the
 * caller gives back what it has counted.
 */
bool fji_worker_start(fj_pool *p)
{
    const fj_pool_options *o = &p->options;
    char name[32];

    if (o->allow_thread != NULL && !o->allow_thread(p, o->arg)) return false;
    fji_lock_take(&p->lock);
    fji_worker *w = fji_pool_stopping(p) ? NULL : worker_take_record(p, FJI_ALIVE_WORKER);
    if (w != NULL) fji_count(&p->started, 1);
    fji_lock_drop(&p->lock);
    if (w == NULL) return false;
    (void)snprintf(name, sizeof name, "%s-%u", p->name, w->index);
    if (worker_thread(w, name)) return true;
    fji_lock_take(&p->lock);
    fji_count(&p->started, (uint64_t)-1);
    /* [pool.alive] release -> acquire in fji_pool_quiescent(). */
    fji_store_release(&w->alive, FJI_ALIVE_NO);
    fji_lock_drop(&p->lock);
    return false;
}

/* ---- Guests ------------------------------------------------------------------------------------------ */

fji_worker *fji_guest_enter(fj_pool *p, bool although_shut_down)
{
    fji_worker *w = NULL;

    fji_lock_take(&p->lock);
    /* relaxed: the lock orders it against the end of the pool. */
    bool over = (fji_load_relaxed(&p->run) &
                 (although_shut_down ? FJI_RUN_STOP : FJI_RUN_SHUTDOWN)) != 0;
    if (!over) {
        w = worker_take_record(p, FJI_ALIVE_GUEST);
        if (w != NULL) fji_count(&p->guests, 1); /* under the lock; read by fj_pool_dump() */
        /* [pool.activity] acq_rel <-> acquire in fji_pool_quiescent(): a guest came. */
        fji_add_acq_rel(&p->activity_epoch, 1);
    }
    fji_lock_drop(&p->lock);
    /* Work for the common pool is work for the next one. */
    if (over && !although_shut_down && fji_common_again(p) == FJ_OK)
        return fji_guest_enter(p, false);
    if (w == NULL) return NULL;
    w->outer = fji_self;
    fji_self = &w->q.fast;
    worker_set_stack(w);
    return w;
}

void fji_guest_leave(fji_worker *w)
{
    fj_pool *p = w->pool;
    fji_taken taken;

    while (fji_worker_take_local(w, &taken)) worker_run_local(w, &taken);
    fji_queue_shrink(&w->q);
    fji_self = w->outer;
    /* [pool.alive] release -> acquire in fji_pool_quiescent(). */
    fji_store_release(&w->alive, FJI_ALIVE_NO);
    /* [pool.activity] acq_rel <-> acquire in fji_pool_quiescent(): a guest left. */
    fji_add_acq_rel(&p->activity_epoch, 1);
    /* Until the guest is uncounted the pool does not end, so it may still be touched. */
    fji_pool_maybe_terminate(p);
    fji_lock_take(&p->lock);
    fji_count(&p->guests, (uint32_t)-1); /* under the lock */
    fji_pool_end_if_over(p);
    fji_lock_drop(&p->lock); /* LAST TOUCH of *p: whoever destroys it takes the lock first. */
}
