/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/inline.h - exposed layouts and the fast paths of fork and join
 *
 * Included by <forkjoin.h>; nothing here is API. What stands here is what has to
 * be inlined for a fork and a join to cost a few plain instructions: on the
 * machines measured the price of a task is the number of its stores, so every
 * store below is counted. The protocol is told and argued in src/queue.h.
 *
 * A worker's queue is a stack of cells in one run of addresses that never
 * moves. A cell's `what` says by itself whether the cell is free, so that a
 * fork is one store and a join is one store; no top index is shared.
 */
#ifndef FORKJOIN_INLINE_H
#define FORKJOIN_INLINE_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

/* Values of fj_cell.what below any pointer. */
#define FJI_FREE ((uintptr_t)0)     /* no task; every cell above is free too */
#define FJI_TOMB ((uintptr_t)8)     /* its task was joined before younger ones */
#define FJI_END ((uintptr_t)16)     /* sentinel: end of the array, or below its start */
#define FJI_SPECIAL ((uintptr_t)31) /* what <= this is no task */

/* Tags in the low bits of a `what` that is a pointer. */
#define FJI_TAG_TYPED ((uintptr_t)1)    /* points to an fj_type; arguments are in the cell */
#define FJI_TAG_DETACHED ((uintptr_t)2) /* nobody joins through the cell: leave it alone */
#define FJI_TAG_SELF ((uintptr_t)4)     /* completes itself: a future or a completer */
#define FJI_TAG_MASK ((uintptr_t)7)

/*
 * One place in a worker's queue: a cache line. The owner alone writes `what`;
 * thieves read it and take by moving the queue's base. Whoever has stolen the
 * task reports in `state`; the owner resets it to 0 before the cell is free.
 */
struct fj_cell {
    uintptr_t what;
    uint32_t state; /* FJI_DONE, FJI_WAITING, index of the thief + 1 */
    uint32_t mark;  /* where the thief's own tasks for this one begin */
    unsigned char args[48];
};

FJI_STATIC_ASSERT(sizeof(struct fj_cell) == 64, "a cell is a cache line");

/* What is common to all calls of one typed task: how a thief runs it. */
struct fj_type {
    void (*run)(fj_worker *w, void *args);
    const char *name;
};

/*
 * The owner's cache line. `floor` is also written by thieves, rarely: it is the
 * lowest cell the owner may take without asking, or UINTPTR_MAX.
 */
struct fj_worker {
    fj_cell *top;       /* first free cell, as the plain tier knows it */
    uintptr_t floor;    /* see src/queue.h */
    const int64_t *ctl; /* the pool's control word: negative = wake somebody */
    fj_cell *away;      /* what `cell` of a task says that completes itself: which pool */
    uint32_t home;      /* and its `home`, less the number of the cell in memory */
    uint32_t spare;
};

/* What the plain tier knew of the queue when typed code took over. */
typedef struct fji_typed_saved {
    fj_cell *top;
    fj_cell *low;
    uint32_t count;
} fji_typed_saved;

/* This thread's worker; a stand-in that leads to the slow paths on all others. */
FJI_TLS fj_worker *fji_self;

/* Reads it. Where it can be said, so that the compiler does not keep its address in a saved
 * register over calls: that costs a store for each frame, the load costs next to nothing. */
FJI_INLINE fj_worker *fji_self_now(void)
{
    fj_worker *w;
    FJI_READ_TLS(w, fji_self);
    return w;
}

FJI_EXTERN_C_BEGIN

/* The ways off the fast paths. Internal: call the functions of <forkjoin.h>. */
FJ_API FJI_COLD void fji_fork_slow(fj_task *t, fj_cell *before);
FJ_API FJI_COLD void fji_fork_checked(fj_task *t);
FJ_API FJI_COLD int fji_join_slow(fj_task *t, int popped);
FJ_API FJI_COLD int fji_unfork_slow(fj_task *t, int popped);
FJ_API FJI_COLD void fji_signal_slow(fj_worker *w);
FJ_API FJI_COLD fj_cell *fji_typed_room(fj_worker *w, fj_cell *p);
FJ_API FJI_COLD fj_cell *fji_typed_spill(fj_worker *w);
FJ_API FJI_COLD fj_cell *fji_typed_join(fj_worker *w, fj_cell *c, uintptr_t what, int popped);
FJ_API FJI_COLD void fji_typed_release(fj_worker *w, fj_cell *c);
FJ_API fj_cell *fji_typed_enter(fj_worker *w, fji_typed_saved *saved);
FJ_API void fji_typed_leave(fj_worker *w, const fji_typed_saved *saved);

FJI_EXTERN_C_END

/* No cell: a join before the first fork is seen. A fork that follows at once makes this store, and
 * the look at it, go away. */
FJI_INLINE void fj_task_init(fj_task *t, fj_task_fn *fn)
{
    if (FJ_CHECKED && t == 0) return;
    t->fn = fn;
    t->cell = 0;
}

FJI_INLINE void fj_fork(fj_task *t)
{
    if (FJ_CHECKED) {
        fji_fork_checked(t);
        return;
    }
    fj_worker *w = fji_self_now();
    fj_cell *p = w->top, *before = t->cell;

    t->cell = p;
    /* A task whose cell is below the boundary may be forked already: the slow path finds out. */
    if (FJI_UNLIKELY(p->what != FJI_FREE || (before != 0 && before < p))) {
        fji_fork_slow(FJI_ADDRESS_AGAIN(t), before);
        return;
    }
    w->top = p + 1;
    /* [queue.publish] release -> acquire load of `what` in fji_queue_steal(): the
     * thief sees all that the forker wrote into the task. */
    __atomic_store_n(&p->what, (uintptr_t)t, __ATOMIC_RELEASE);
    /* [idle.dekker] `what` above, ctl below; partner: the heavy fence in
     * fji_idle_wait(). Either we see that worker idle or its rescan sees `what`. */
    FJI_LIGHT_FENCE();
    /* relaxed: the fence orders it, and a stale value is what the partner excludes. */
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(w->ctl))) fji_signal_slow(w);
}

/*
 * Sets the topmost cell c free. Returns 1 if it is ours, -1 if a thief may have it: the slow path
 * then has to find out.
 */
FJI_INLINE int fji_pop_topmost(fj_worker *w, fj_cell *c)
{
    /* relaxed: a thief that misses it is shut out by the fences below. */
    __atomic_store_n(&c->what, FJI_FREE, __ATOMIC_RELAXED);
    /* [queue.take] `what` above, floor below; partner: the heavy fence in
     * queue_open(). Either we see floor == MAX or the thief sees the cell free. */
    FJI_LIGHT_FENCE();
    /* relaxed: the fence orders it. */
    if (FJI_UNLIKELY(FJI_RELAXED_ABOVE(&w->floor, (uintptr_t)c))) return -1;
    return 1;
}

/* The same for a task of the plain tier, which knows the boundary. 0: c is not the topmost, or no
 * cell of this worker at all, and nothing was done. */
FJI_INLINE int fji_pop_plain(fj_worker *w, fj_cell *c)
{
    if (FJI_UNLIKELY((uintptr_t)c + sizeof *c != (uintptr_t)w->top)) return 0;
    return fji_pop_topmost(w, c);
}

/*
 * Takes cell c back if it is the topmost and no thief is about. Returns 1 if it
 * is ours, 0 if nothing was done, -1 if c was already set free: the slow path
 * then has to find out who owns the task.
 */
FJI_INLINE int fji_pop(fj_worker *w, fj_cell *c)
{
    if (FJI_UNLIKELY(c[1].what != FJI_FREE)) return 0;
    return fji_pop_topmost(w, c);
}

FJI_INLINE int fj_unfork(fj_task *t)
{
    if (FJ_CHECKED) return fji_unfork_slow(t, 0);
    fj_worker *w = fji_self_now();
    fj_cell *c = t->cell;
    int got = fji_pop_plain(w, c);

    if (FJI_LIKELY(got > 0)) {
        w->top = c;
        return 1;
    }
    return fji_unfork_slow(FJI_ADDRESS_AGAIN(t), got < 0);
}

FJI_INLINE int fj_join_stolen(fj_task *t)
{
    return fji_join_slow(FJI_ADDRESS_AGAIN(t), 0);
}

FJI_INLINE int fj_join(fj_task *t)
{
    if (FJ_CHECKED) return fji_join_slow(t, 0);
    fj_worker *w = fji_self_now();
    fj_cell *c = t->cell;
    int got = fji_pop_plain(w, c);

    if (FJI_LIKELY(got > 0)) {
        w->top = c;
        return t->fn(t);
    }
    return fji_join_slow(FJI_ADDRESS_AGAIN(t), got < 0);
}

#endif /* FORKJOIN_INLINE_H */
