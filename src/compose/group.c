/* SPDX-License-Identifier: MIT */
/*
 * group.c - any number of children, which one wait ends
 *
 * The problem: children are added by many threads, by running children too, and the group has to
 * end exactly when the last child has finished and no thread may add another one.
 *
 * Units
 *   `count` has the bit OPEN while the group is open, and the number of its units. A hold, a queued
 *   child and a running child have one unit each. The group has ended when the count is 0. A thread
 *   adds by taking a unit for the new child. It may not take a unit if the count is 0
 *   (group_take_unit()). The thread that lowers the count to 0 ends the group: it completes the
 *   root, which wakes the waiters.
 *
 *     open --(wait, fini: OPEN is cleared)--> closed --(last unit dropped)--> ended
 *     ended --(fj_group_reset())--> open
 *
 * Frames
 *   An atomic operation on the count for each child, by all workers, would be slow. So a worker
 *   that runs a child has a frame on its stack, with the units that the worker has. It has at least
 *   one, that of the running child. A child that adds another one passes on a unit of the frame. If
 *   only one is left, it first takes UNITS more from the count. When a body has returned, its unit
 *   stays in the frame. The worker then takes another child from its own queue, or steals one, and
 *   gets the unit of that child. Before the worker leaves the frame, it gives all units back in one
 *   operation.
 *
 *     queued child --(a worker takes it)--> frame --(frame ends)--> count
 *     queued child <--(a child adds one)--- frame <--(units used up)-- count
 *
 *   A worker leaves a frame after TURNS children, so that its pool can give it other work, or when
 *   it finds no child of this group.
 *
 * Memory for children
 *   A child of fj_group_call() is in a cell: a cache line, so that the workers that run two
 *   children do not write the same line. Free cells are in the frame of a worker, in `own`, which
 *   only the thread that has initialised the group uses, or in the list `cells`, which the lock
 *   protects. A cell becomes free before its body begins, so that a child added by the body uses
 *   the cell again while it is in the cache. A frame takes several cells at once from the list and
 *   gives all of them back at its end. If the list is empty, cells are cut from the member `first` of
 *   the group, then from blocks, which are allocated when they are needed. fj_group_fini() frees the
 *   blocks.
 *
 * Members of a root (completer.h) run the children. So a waiter runs only children of the group,
 * and the pool discards children that are queued when it stops.
 *
 * Who touches what
 *   A thread that has a unit may use the group. A thread that gives back its last unit does not use
 *   the group afterwards, except the one that ends it: the group stays valid until the root is
 *   done. fj_group_fini() frees the group when the root is done and no other wait is left. In a
 *   child process made by fork(), a group of the parent process never gets its units back; a wait
 *   cancels the root, which is orphaned.
 *
 * Edges           from                           to                             carries
 *   group.count   acq_rel, group_drop_units()    acq_rel, group_drop_units(),   what children did
 *                                                  group_close()
 *   group.waits   acq_rel add, in                acquire, fj_group_fini(),      the end of a wait
 *                   fj_group_wait_for()            fj_group_reset()
 */
#include <forkjoin/group.h>

#include "plat/atomic.h"
#include "plat/memory.h"
#include "plat/plat.h"
#include "plat/wait.h"

#define UNITS 16u        /* units that a frame takes at once */
#define TURNS 8u         /* children that a worker runs in one frame */
#define FRAME_CELLS 8u   /* cells that a frame takes at once */
#define OWN_CELLS 32u    /* cells that the thread of fj_group_init() takes at once */
#define BLOCK_CELLS 32u  /* cells of the first block */
#define BLOCK_MAX 16384u /* cells of the largest block */
#define OPEN 0x80000000u /* the bit of an open group in `count`; the other bits are the units */
#define UNITS_MAX 0x3fffffffu

/* A child of fj_group_call(). In a free cell, `next` is the next free cell. In the first cell of a
 * block, which holds no child, `next` is the block before and task.location the number of cells. */
typedef struct fji_group_cell {
    fj_task task;
    fj_group *group;
    fj_group_fn *fn;
    void *arg;
    struct fji_group_cell *next;
} cell;

_Static_assert(sizeof(cell) == FJI_LINE, "a cell is a cache line");
_Static_assert(sizeof(fji_lock) == sizeof((fj_group *)NULL)->lock, "the lock of a group");

/* What a worker has while it runs children of a group. */
typedef struct frame {
    fj_group *group;
    struct frame *outer; /* the frame below it on the stack of the thread */
    uint32_t units;
    uint32_t generation; /* that of the group, fji_generation() */
    cell *first, *last;  /* free cells; `last` is valid if `first` is not NULL */
} frame;

/* The topmost frame of the calling thread. */
static __thread frame *group_here;

/* The number of the calling thread, or 0 if the thread has never opened a group. */
static __thread uint64_t group_thread;

/* Returns the frame of the calling thread if it runs a child of g, and no child of another group
 * above that; otherwise NULL. */
static frame *group_frame(const fj_group *g)
{
    frame *f = group_here;

    return f != NULL && f->group == g ? f : NULL;
}

/* ---- Units ----------------------------------------------------------------------------------- */

/* Takes a unit from a frame. Returns as group_take_unit(). */
static int frame_take_unit(frame *f)
{
    if (f->units == 1) {
        /* relaxed: the frame has a unit, so the count is not 0. The units publish nothing before
         * they are dropped. */
        if ((fji_add_relaxed(&f->group->count, UNITS) & ~OPEN) > UNITS_MAX) {
            (void)fji_add_relaxed(&f->group->count, -UNITS); /* relaxed: as above */
            return FJ_ENOMEM;
        }
        f->units += UNITS;
    }
    f->units--;
    return FJ_OK;
}

/* Takes a unit of g for a new child or a hold. Returns FJ_OK; FJ_EREJECTED if g has ended; FJ_ENOMEM
 * if g has too many units. */
static int group_take_unit(fj_group *g)
{
    frame *f = group_frame(g);

    if (f != NULL) return frame_take_unit(f);
    /* relaxed: the count decides only whether g has ended, and an added child is published by its
     * queue. */
    uint32_t n = fji_load_relaxed(&g->count);
    do {
        if (n == 0) return FJ_EREJECTED;
        if ((n & ~OPEN) > UNITS_MAX) return FJ_ENOMEM;
    } while (!fji_cas_relaxed(&g->count, &n, n + 1)); /* relaxed: as above */
    return FJ_OK;
}

/* Gives n units of g back. If no unit is left, and g is closed, ends g. LAST TOUCH of *g by this thread,
 * unless it has more units or waits for g. */
static void group_drop_units(fj_group *g, uint32_t n)
{
    /* [group.count] acq_rel <-> acq_rel here and in group_close(), in the thread that lowers the
     * count to 0: what the children of this thread did. */
    if (fji_add_acq_rel(&g->count, -n) == n) fj_completer_try_complete(&g->root);
}

/* Closes g, unless it is closed. If it has no units, ends g. */
static void group_close(fj_group *g)
{
    /* [group.count] acq_rel <-> acq_rel in group_drop_units(): what the children did. */
    if (fji_and_acq_rel(&g->count, ~OPEN) == OPEN) fj_completer_try_complete(&g->root);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static fji_lock *group_lock(fj_group *g)
{
    return (fji_lock *)(void *)g->lock;
}

/* Allocates a block, twice as large as the one before. Returns false if there is no memory. The
 * caller has the lock. */
static bool group_add_block(fj_group *g)
{
    uint32_t n = g->block == NULL ? BLOCK_CELLS : g->block->task.location;

    if (g->block != NULL && n < BLOCK_MAX) n *= 2;
    cell *block = fji_pool_block(fji_root_pool(&g->root), FJI_MEMORY_OTHER, n * sizeof *block);
    if (block == NULL) return false;
    block->task.location = n;
    block->next = g->block;
    g->block = block;
    g->next = block + 1;
    g->end = block + n;
    return true;
}

/* Takes a cell from the list `cells` or from a block. Returns NULL if there is no memory. The caller
 * has the lock. */
static cell *group_cut_cell(fj_group *g)
{
    cell *c = g->cells;

    if (c != NULL) {
        g->cells = c->next;
        return c;
    }
    if (g->next == g->end && !group_add_block(g)) return NULL;
    return g->next++;
}

/* Takes at most n cells, n > 0, from the list and the blocks of g. Returns the first one of a list
 * of free cells, and stores the last one in *last; returns NULL if there is no memory. */
static cell *group_take_cells(fj_group *g, uint32_t n, cell **last)
{
    fji_lock_take(group_lock(g));
    cell *first = group_cut_cell(g), *c = first;
    for (uint32_t i = 1; i < n && c != NULL && (g->cells != NULL || g->next != g->end); i++) {
        c->next = group_cut_cell(g);
        c = c->next;
    }
    fji_lock_drop(group_lock(g));
    if (c != NULL) c->next = NULL;
    *last = c;
    return first;
}

static void group_give_cells(fj_group *g, cell *first, cell *last)
{
    fji_lock_take(group_lock(g));
    last->next = g->cells;
    g->cells = first;
    fji_lock_drop(group_lock(g));
}

/* Returns a free cell, or NULL if there is no memory. The caller has a unit of g. */
static cell *group_new_cell(fj_group *g)
{
    frame *f = group_frame(g);
    cell *last, *c;

    if (f == NULL && g->owner != group_thread) return group_take_cells(g, 1, &last);
    cell **list = f != NULL ? &f->first : &g->own;
    if (*list == NULL) {
        *list = group_take_cells(g, f != NULL ? FRAME_CELLS : OWN_CELLS, &last);
        if (f != NULL) f->last = last;
    }
    c = *list;
    if (c != NULL) *list = c->next;
    return c;
}

static void frame_free_cell(frame *f, cell *c)
{
    if (f->first == NULL) f->last = c;
    c->next = f->first;
    f->first = c;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Keeps `code` as the error of g, if it is the first one. */
static void group_fail(fj_group *g, int code)
{
    int32_t none = FJ_OK;

    /* relaxed: the code publishes nothing. A waiter reads it after the end of g. */
    if (fji_cas_relaxed(&g->code, &none, code) && g->cancel_on_error)
        fj_token_cancel(&g->root.future.token);
}

static FJI_COLD void group_skip(fj_group *g, void *child)
{
    if (g->on_skip != NULL) g->on_skip(child, g->arg);
    group_fail(g, FJ_ECANCELED);
}

static int group_run_call(fj_task *t);

/* Runs the child t, or skips it. t may be freed or queued again when its body has begun. Returns false
 * if this is a child process that the body has made by fork(): the group must not be used there,
 * because its memory and its lock may belong to threads that do not exist (pool/atfork.c). */
static bool frame_run(frame *f, fj_task *t, bool skip)
{
    fj_group *g = f->group;
    int code = FJ_OK;

    if (t->fn == group_run_call) {
        cell *c = (cell *)t;
        fj_group_fn *fn = c->fn;
        void *arg = c->arg;
        frame_free_cell(f, c);
        if (FJI_LIKELY(!skip))
            code = fn(g, arg);
        else
            group_skip(g, arg);
    } else {
        fj_group_task *own = (fj_group_task *)t;
        t->cell = NULL; /* the body may add t again */
        if (FJI_LIKELY(!skip))
            code = own->fn(own);
        else
            group_skip(g, own);
    }
    if (FJI_UNLIKELY(f->generation != fji_generation())) return false;
    if (FJI_UNLIKELY(code != FJ_OK)) group_fail(g, code);
    return true;
}

/* Takes a child of the group from the calling worker's own queue, or steals one. Returns NULL if
 * there is none. */
static fj_task *frame_take(const frame *f)
{
    const fj_group *g = f->group;
    /* relaxed: a hint. If no other thread has units, there is nothing to steal. */
    bool steals = (fji_load_relaxed(&g->count) & ~OPEN) > f->units;

    return fji_member_take(&g->root, steals);
}

/* Returns whether this is a child process made by fork(), and g was opened in the parent process. The
 * lock of g may be held, and threads that do not exist may have units or wait for g. */
static bool group_is_foreign(const fj_group *g)
{
    return FJI_UNLIKELY(g->generation != fji_generation());
}

/* Runs the child t, and then at most `more` children that the calling worker takes or steals. */
static void group_run_children(fj_task *t, bool discarded, uint32_t more)
{
    fj_group *g = ((cell *)t)->group;
    frame f = {.group = g, .outer = group_here, .units = 1, .generation = g->generation};

    if (group_is_foreign(g)) return;
    group_here = &f;
    bool same = frame_run(&f, t, discarded || fj_is_cancelled());
    while (same && !discarded && more-- != 0 && (t = frame_take(&f)) != NULL) {
        f.units++;
        same = frame_run(&f, t, fj_is_cancelled());
    }
    group_here = f.outer;
    if (FJI_UNLIKELY(!same)) return;
    if (f.first != NULL) group_give_cells(g, f.first, f.last);
    group_drop_units(g, f.units);
}

static void group_run_some(fj_task *t, int discarded)
{
    group_run_children(t, discarded != 0, TURNS - 1);
}

static void group_run_all(fj_task *t, int discarded)
{
    group_run_children(t, discarded != 0, UINT32_MAX);
}

int fji_group_run_task(fj_task *t)
{
    return fji_member_run(t, &((fj_group_task *)t)->group->root, group_run_some);
}

/* fj_task.fn of a cell. */
static int group_run_call(fj_task *t)
{
    return fji_member_run(t, &((cell *)t)->group->root, group_run_some);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Returns whether the calling thread works for the pool of g. */
static bool group_is_worker(const fj_group *g)
{
    return fj_current_pool() == fji_root_pool(&g->root);
}

/* Queues the child t, for which the caller has taken a unit. If no queue has space, a worker runs t
 * now. Returns FJ_OK or the code of fji_member_queue(). */
static int group_queue(fj_group *g, fj_task *t)
{
    int err = fji_member_queue(&g->root, t);

    if (FJI_LIKELY(err == FJ_OK)) return FJ_OK;
    if (!group_is_worker(g)) return err;
    (void)t->fn(t);
    return FJ_OK;
}

int fj_group_run(fj_group *g, fj_group_task *t)
{
    if (g == NULL || t == NULL || t->fn == NULL || t->task.cell != NULL) return FJ_EINVAL;
    int err = group_take_unit(g);
    if (FJI_UNLIKELY(err != FJ_OK)) return err;
    t->group = g;
    err = group_queue(g, &t->task);
    if (FJI_UNLIKELY(err != FJ_OK)) group_drop_units(g, 1);
    return err;
}

/* A child of fj_group_call() for which there is no cell. */
struct spilled {
    fj_group_task task;
    fj_group_fn *fn;
    void *arg;
};

static int spilled_run(fj_group_task *t)
{
    struct spilled *s = (struct spilled *)t;

    return s->fn(t->group, s->arg);
}

/* Called if there is no cell for the child fn(g, arg). The caller has a unit for the child. A worker
 * runs the child now. Returns FJ_OK, or FJ_ENOMEM if the calling thread is not a worker. */
static FJI_COLD int group_call_now(fj_group *g, fj_group_fn *fn, void *arg)
{
    struct spilled s = {.fn = fn, .arg = arg};

    if (!group_is_worker(g)) return FJ_ENOMEM;
    fj_group_task_init(&s.task, spilled_run);
    s.task.group = g;
    s.task.task.state = 0;
    return fji_group_run_task(&s.task.task);
}

int fj_group_call(fj_group *g, fj_group_fn *fn, void *arg)
{
    if (g == NULL || fn == NULL) return FJ_EINVAL;
    int err = group_take_unit(g);
    if (FJI_UNLIKELY(err != FJ_OK)) return err;
    cell *c = group_new_cell(g);
    if (FJI_LIKELY(c != NULL)) {
        c->task.fn = group_run_call;
        c->group = g;
        c->fn = fn;
        c->arg = arg;
        err = group_queue(g, &c->task);
        if (FJI_UNLIKELY(err != FJ_OK)) group_give_cells(g, c, c);
    } else {
        err = group_call_now(g, fn, arg);
    }
    if (FJI_UNLIKELY(err != FJ_OK)) group_drop_units(g, 1);
    return err;
}

int fj_group_hold(fj_group *g)
{
    if (g == NULL) return FJ_EINVAL;
    int err = group_take_unit(g);
    /* relaxed: the number of holds only detects misuse. */
    if (err == FJ_OK) (void)fji_add_relaxed(&g->holds, 1);
    return err;
}

int fj_group_release(fj_group *g)
{
    if (g == NULL) return FJ_EINVAL;
    uint32_t n = fji_load_relaxed(&g->holds); /* relaxed: the number of holds only detects misuse */
    do {
        if (n == 0) return FJ_EINVAL;
    } while (!fji_cas_relaxed(&g->holds, &n, n - 1)); /* relaxed: as above */
    group_drop_units(g, 1);
    return FJ_OK;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Returns whether the calling thread runs a child of g, or a task below one. */
static bool group_is_inside(const fj_group *g)
{
    const fj_token *token = fj_current_token();
    const frame *f = group_here;

    while (f != NULL && f->group != g) f = f->outer;
    while (token != NULL && token != &g->root.future.token) token = token->parent;
    return f != NULL || token != NULL;
}

/* Runs children that are on top of the calling worker's own queue, before fj_completer_join() looks
 * for children in all queues. */
static void group_run_own(fj_group *g)
{
    fj_task *t;

    while ((t = fji_member_take(&g->root, 0)) != NULL)
        (void)fji_member_run(t, &g->root, group_run_all);
}

/* Closes g and waits until it has ended, at most timeout_ns. Returns as fj_group_wait_for(). */
static int group_await(fj_group *g, int64_t timeout_ns)
{
    int err = FJ_OK;

    group_close(g);
    if (timeout_ns == FJ_FOREVER) {
        group_run_own(g);
        if (!fj_group_has_ended(g)) (void)fj_completer_join(&g->root);
    } else {
        err = fj_future_wait_quietly(&g->root.future, timeout_ns);
    }
    if (err != FJ_OK) return err;
    /* The root fails only in the child of a fork(), in which no thread runs the children. */
    int code = fj_group_error(g);
    return code != FJ_OK ? code : fj_future_error(&g->root.future);
}

int fj_group_wait_for(fj_group *g, int64_t timeout_ns)
{
    if (g == NULL) return FJ_EINVAL;
    if (group_is_inside(g)) return FJ_EDEADLK;
    (void)fji_add_relaxed(&g->waits, 1); /* relaxed: the caller may use g, so g is not freed yet */
    int err = group_await(g, timeout_ns);
    /* [group.waits] release -> acquire in fj_group_fini(): that this thread does not use g any
     * more. LAST TOUCH of *g. */
    (void)fji_add_acq_rel(&g->waits, (uint32_t)-1);
    return err;
}

int fj_group_wait(fj_group *g)
{
    return fj_group_wait_for(g, FJ_FOREVER);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

/* Returns the number of the calling thread. No other thread of the process ever has this number. */
static uint64_t group_own_number(void)
{
    static uint64_t threads;

    /* relaxed: the counter publishes nothing. */
    if (group_thread == 0) group_thread = fji_add_relaxed(&threads, (uint64_t)1) + 1;
    return group_thread;
}

/* Makes g an open group without error. Returns FJ_OK, or FJ_ENOMEM if there is no memory for the
 * common pool. */
static int group_open(fj_group *g, fj_pool *pool, const fj_token *token)
{
    int err = fji_root_init(&g->root, pool, token);

    if (err != FJ_OK) return err;
    g->owner = group_own_number();
    g->generation = fji_generation();
    g->code = FJ_OK;
    g->holds = 0;
    g->count = OPEN;
    return FJ_OK;
}

int fj_group_init(fj_group *g, const fj_group_options *options)
{
    static const fj_group_options defaults;
    const fj_group_options *o = options != NULL ? options : &defaults;

    if (g == NULL || o->reserved_int != 0) return FJ_EINVAL;
    if (o->reserved[0] != 0 || o->reserved[1] != 0) return FJ_EINVAL;
    int err = group_open(g, o->pool, o->token);
    if (err != FJ_OK) return err;
    g->on_skip = o->on_skip;
    g->arg = o->arg;
    g->cancel_on_error = o->cancel_on_error != 0;
    g->waits = 0;
    g->lock[0] = g->lock[1] = 0;
    g->cells = g->block = g->own = NULL;
    /* The whole lines of `first`: seven cells, or eight. */
    g->next = (cell *)(((uintptr_t)g->first + FJI_LINE - 1) & ~(uintptr_t)(FJI_LINE - 1));
    g->end = (cell *)((uintptr_t)(g->first + sizeof g->first / 8) & ~(uintptr_t)(FJI_LINE - 1));
    return FJ_OK;
}

int fj_group_reset(fj_group *g)
{
    if (g == NULL) return FJ_EINVAL;
    /* [group.waits] acquire <- acq_rel in fj_group_wait_for(): that no thread waits for g any more. */
    if (!fj_group_has_ended(g) || fji_load_acquire(&g->waits) != 0) return FJ_EBUSY;
    return group_open(g, fji_root_pool(&g->root), g->root.future.token.parent);
}

int fj_group_fini(fj_group *g)
{
    uint32_t turn = 0;

    if (g == NULL) return FJ_EINVAL;
    if (group_is_inside(g)) return FJ_EDEADLK;
    int err = group_await(g, FJ_FOREVER);
    /* [group.waits] acquire <- acq_rel in fj_group_wait_for(): that the other waits do not use g
     * any more. Their threads have been woken, so the spin is short. */
    while (!group_is_foreign(g) && fji_load_acquire(&g->waits) != 0) fji_spin(&turn, 8, 2);
    for (cell *block = g->block, *before; block != NULL; block = before) {
        before = block->next;
        fji_block_free(block);
    }
    g->cells = g->block = g->next = g->end = g->own = NULL;
    return err;
}

/* ---- Reading and cancelling ------------------------------------------------------------------ */

void fj_group_cancel(fj_group *g)
{
    if (g != NULL) fj_token_cancel(&g->root.future.token);
}

fj_token *fj_group_token(fj_group *g)
{
    return g != NULL ? &g->root.future.token : NULL;
}

int fj_group_error(const fj_group *g)
{
    if (g == NULL) return FJ_EINVAL;
    return fji_load_relaxed(&g->code); /* relaxed: the code publishes nothing */
}

int fj_group_has_ended(const fj_group *g)
{
    return g != NULL && fj_future_is_done(&g->root.future);
}
