/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/inline.h - exposed layouts and the fast paths of fork and join
 *
 * Included by <forkjoin.h>. Nothing in this file is API. The file contains what the compiler has to
 * inline so that a fork and a join cost only a few plain instructions. The cost of a task is mainly
 * the number of its stores, so the fast paths avoid every store that they can. src/queue/queue.h
 * describes the protocol and argues why it is correct.
 *
 * The queue of a worker is a stack of cells at addresses that never change. The word `item` of a
 * cell alone says whether the cell is free. Therefore the owner and the thieves share no top index:
 * a fork publishes its task by one store, and a join takes the task back by one store.
 */
#ifndef FORKJOIN_INLINE_H
#define FORKJOIN_INLINE_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

/* Values of fj_cell.item that are smaller than any pointer. */
#define FJI_FREE ((uintptr_t)0)      /* the cell has no task, and neither has any cell above */
#define FJI_TOMBSTONE ((uintptr_t)8) /* its task was joined while younger tasks were queued */
#define FJI_END ((uintptr_t)16)      /* a sentinel before the first cell or after the last one */
#define FJI_SPECIAL ((uintptr_t)31)  /* an item of at most this value is not a task */

/* Tags in the low bits of an `item` that is a pointer or an action. */
#define FJI_TAG_TYPED ((uintptr_t)1)    /* points to an fj_type; the arguments are in the cell */
#define FJI_TAG_DETACHED ((uintptr_t)2) /* no thread joins the task through the cell */
#define FJI_TAG_FUTURE ((uintptr_t)4)   /* with DETACHED: a future, completer or timer */
#define FJI_TAG_MASK ((uintptr_t)7)

/*
 * One cell of a worker's queue, as large as a cache line. Only the owner writes `item`. Thieves
 * read `item` and take the task by advancing the base of the queue. The thief of a task that is
 * joined through its cell reports in `state` that it runs the task, and later that the task is
 * done. The owner resets `state` to 0 before it frees the cell. The `state` of a detached task is
 * in its fj_task.
 */
struct fj_cell {
    uintptr_t item; /* a special value above, an action, or a tagged pointer to a task */
    uint32_t state; /* FJI_DONE, FJI_WAITING, and the worker index of the thief plus 1 */
    union {
        uint32_t child_base; /* position in the thief's queue at which the forks of the stolen task
                              * begin */
        uint32_t kind;       /* of a sentinel that `fj_task.cell` points to: FJI_CELL_... */
    };
    unsigned char args[48]; /* of a typed task: arguments and result; of an action: function and
                             * argument; of a completer: its root */
};

FJI_STATIC_ASSERT(sizeof(struct fj_cell) == 64, "a cell is a cache line");

/* What all calls of one typed task have in common. A thief calls `run` with its own fji_self and
 * the member `args` of the cell. `run` calls the body with these arguments and stores the result
 * beside them. */
struct fj_type {
    void (*run)(fj_worker *w, void *args);
    const char *name; /* the NAME of the task in FJ_TASK */
};

/*
 * The cache line that the owner of a queue uses for every fork and join. `floor` is the address of
 * the lowest cell that the owner may take on the fast path, or UINTPTR_MAX if it may take none.
 * Thieves also write `floor`, but rarely.
 */
struct fj_worker {
    fj_cell *top;       /* the first free cell; while typed code runs, a sentinel with the item
                         * FJI_END */
    uintptr_t floor;    /* see src/queue/queue.h */
    const int64_t *ctl; /* the pool's control word; in a pool without the heavy fence, a constant
                         * that is negative. After a fork the owner calls fji_wake_slow() if it is
                         * negative */
    fj_cell *submitted_cell; /* the value of fj_task.cell in every submitted task and queued future
                              * of the pool */
    uint32_t location_base;  /* the location of a future in cell c is location_base + address of c /
                              * 64 */
    uint32_t index;          /* the index of the worker in its pool; 0 in a thread outside a pool */
};

/* The state of the plain tier, saved while typed code runs (src/tier/typed.c). */
typedef struct fji_typed_saved {
    fj_cell *top;   /* fj_worker.top */
    fj_cell *low;   /* typed_low of the queue: the lowest cell of the plain tasks forked under typed
                     * code; outside a pool, the list of free overflow cells */
    uint32_t count; /* typed_count of the queue; outside a pool not used */
} fji_typed_saved;

/* What fji_typed_link() stores in a link and fji_typed_unlink() returns. */
typedef struct fji_typed_linked {
    fj_cell *position; /* of the typed code before the spawn */
    fj_cell *cell;     /* the cell or overflow cell of the spawned call */
} fji_typed_linked;

/* The worker of the calling thread. In a thread outside a pool fji_self points to a dummy worker,
 * with which every fast path continues in its slow path. */
FJI_TLS fj_worker *fji_self;

/* Returns fji_self. On x86-64, FJI_READ_TLS prevents the compiler from keeping the address of
 * fji_self in a callee-saved register, because such a register costs a store in each frame, while
 * loading the address again is cheap. */
FJI_INLINE fj_worker *fji_self_now(void)
{
    fj_worker *w;
    FJI_READ_TLS(w, fji_self);
    return w;
}

FJI_EXTERN_C_BEGIN

/* The slow paths. They are private: call the functions of <forkjoin.h>. */
FJ_API FJI_COLD void fji_fork_slow(fj_task *t, fj_cell *before);
FJ_API FJI_COLD void fji_fork_checked(fj_task *t);
FJ_API FJI_COLD int fji_join_slow(fj_task *t, int popped);
FJ_API FJI_COLD int fji_unfork_slow(fj_task *t, int popped);
FJ_API FJI_COLD void fji_wake_slow(fj_worker *w);
FJ_API FJI_COLD fj_cell *fji_typed_room(fj_worker *w, fj_cell *p);
FJ_API FJI_COLD fj_cell *fji_typed_overflow(fj_worker *w);
FJ_API FJI_COLD fj_cell *fji_typed_join(fj_worker *w, fj_cell *c, uintptr_t item, int popped);
FJ_API FJI_COLD void fji_typed_release(fj_worker *w, fj_cell *c);
FJ_API FJI_COLD int fji_typed_unfork(fj_worker *w, fj_cell *c, uintptr_t item, int popped);
FJ_API FJI_COLD int fji_typed_state(fj_worker *w, const fj_cell *c);
FJ_API FJI_COLD fj_cell *fji_typed_link(fj_worker *w, fj_cell *position, fj_cell *c);
FJ_API FJI_COLD fji_typed_linked fji_typed_unlink(fj_worker *w, fj_cell *c);
FJ_API fj_cell *fji_typed_enter(fj_worker *w, fji_typed_saved *saved);
FJ_API void fji_typed_leave(fj_worker *w, const fji_typed_saved *saved);

/* Allocates a block of src/plat/memory.h from the memory of `pool`, or of the common pool if `pool` is
 * NULL; if there is no common pool, or if it is just ending, from the system. The algorithms and the
 * modules above them call it. */
FJ_API void *fji_pool_block(fj_pool *pool, int kind, size_t bytes);

FJI_EXTERN_C_END

/* `cell` becomes 0 so that a join before the first fork is detected. If fj_fork() follows
 * immediately, the compiler removes the store of 0 and the test of `cell` in fj_fork(). */
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
    /* If the cell at `top` is not free, the fast path cannot fork. A task whose `cell` is below
     * `top` may already be forked. The slow path finds out whether it is. */
    if (FJI_UNLIKELY(p->item != FJI_FREE || (before != 0 && before < p))) {
        fji_fork_slow(FJI_ADDRESS_AGAIN(t), before);
        return;
    }
    w->top = p + 1;
    /* [queue.publish] release -> acquire load of `item` in fji_queue_steal_for(): the thief sees
     * everything that the forking worker wrote into the task. */
    __atomic_store_n(&p->item, (uintptr_t)t, __ATOMIC_RELEASE);
    /* [idle.dekker] `item` above, ctl below; partner: the heavy fence in idle_lead(). Either this
     * worker sees in ctl that another worker is idle, or the rescan of that worker sees `item`. In
     * a pool without the heavy fence *ctl is always negative, and fji_wake_slow() executes a full
     * fence and reads the control word. */
    FJI_LIGHT_FENCE();
    /* relaxed: the light fence orders the load of ctl after the store of `item`, and the partner
     * fence excludes a stale value. */
    if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(w->ctl))) fji_wake_slow(w);
}

/*
 * Stores FREE into the topmost cell c. Returns 1 if the calling worker has taken the task. Returns
 * -1 if a thief may have taken the task; the slow path then finds out which of the two has it. In a
 * pool without the heavy fence, and in a FIFO pool, `floor` is always UINTPTR_MAX, so the result is
 * always -1.
 */
FJI_INLINE int fji_pop_topmost(fj_worker *w, fj_cell *c)
{
    /* relaxed: the fence pair below excludes a thief that misses this store and still
     * takes the task. */
    __atomic_store_n(&c->item, FJI_FREE, __ATOMIC_RELAXED);
    /* [queue.take] `item` above, floor below; partner: the heavy fence in queue_open(). Either the
     * owner sees floor == MAX and leaves the fast path, or the thief sees that the cell is free and
     * takes nothing. */
    FJI_LIGHT_FENCE();
    /* relaxed: the light fence orders the load of floor after the store of `item`. */
    if (FJI_UNLIKELY(FJI_RELAXED_ABOVE(&w->floor, (uintptr_t)c))) return -1;
    return 1;
}

/* Frees cell c of a plain task, if c is the topmost cell: the cell directly below `top`. Returns as
 * fji_pop_topmost(), or 0, without any change, if c is not the topmost cell of this worker, and
 * always under typed code, when `top` is a sentinel. */
FJI_INLINE int fji_pop_plain(fj_worker *w, fj_cell *c)
{
    if (FJI_UNLIKELY((uintptr_t)c + sizeof *c != (uintptr_t)w->top)) return 0;
    return fji_pop_topmost(w, c);
}

/*
 * Frees cell c of the calling worker, which holds a typed or a detached task, if c is the topmost
 * cell: the cell above c is free. Returns as fji_pop_topmost(), or 0, without any change, if c is
 * not the topmost cell.
 */
FJI_INLINE int fji_pop(fj_worker *w, fj_cell *c)
{
    if (FJI_UNLIKELY(c[1].item != FJI_FREE)) return 0;
    return fji_pop_topmost(w, c);
}

/* Takes t back if it is the task in the topmost cell of the calling worker. Returns as
 * fji_pop_plain(). */
FJI_INLINE int fji_take_topmost(fj_task *t)
{
    fj_worker *w = fji_self_now();
    fj_cell *c = t->cell;
    int got = fji_pop_plain(w, c);

    if (FJI_LIKELY(got > 0)) w->top = c;
    return got;
}

FJI_INLINE int fj_unfork(fj_task *t)
{
    if (FJ_CHECKED) return fji_unfork_slow(t, 0);
    int got = fji_take_topmost(t);

    if (FJI_LIKELY(got > 0)) return 1;
    return fji_unfork_slow(FJI_ADDRESS_AGAIN(t), got < 0);
}

FJI_INLINE int fj_join_stolen(fj_task *t)
{
    return fji_join_slow(FJI_ADDRESS_AGAIN(t), 0);
}

FJI_INLINE int fj_join(fj_task *t)
{
    if (FJ_CHECKED) return fji_join_slow(t, 0);
    int got = fji_take_topmost(t);

    if (FJI_LIKELY(got > 0)) return t->fn(t);
    return fji_join_slow(FJI_ADDRESS_AGAIN(t), got < 0);
}

FJI_INLINE int fj_join_as(fj_task *t, fj_task_fn *fn)
{
    if (FJ_CHECKED) return fji_join_slow(t, 0);
    int got = fji_take_topmost(t);

    if (FJI_LIKELY(got > 0)) return fn(t);
    return fji_join_slow(FJI_ADDRESS_AGAIN(t), got < 0);
}

#endif /* FORKJOIN_INLINE_H */
