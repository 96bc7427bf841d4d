/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/worker_local.h - a value for each worker of a pool
 *
 * An fj_local gives every worker of a pool a value of its own: a buffer, a counter, a random number
 * generator. A worker makes its value when it first asks for it, and finds it again in a few
 * nanoseconds. After the work, one thread visits all values, and fj_local_fini() drops each of them:
 *
 *     static int count(size_t begin, size_t end, void *arg)
 *     {
 *         struct job *j = arg;
 *         struct histogram *h = fj_local_get(&j->local); // the value of this worker
 *         if (h == NULL) return FJ_ENOMEM;
 *         for (size_t i = begin; i < end; i++) h->bin[j->pixel[i]]++;
 *         return FJ_OK;
 *     }
 *
 *     static int add(void *value, void *into); // adds one histogram to another
 *
 *     fj_local_options o = {.bytes = sizeof(struct histogram)};
 *     err = fj_local_init(&j.local, &o);
 *     if (err == FJ_OK) err = fj_for(0, n, count, &j, NULL);
 *     if (err == FJ_OK) err = fj_local_each(&j.local, add, &sum);
 *     fj_local_fini(&j.local);
 *
 * A value belongs to an index, the number that fj_current_worker() returns, and not to a thread. When
 * a worker ends, its index and its value stay, and the next worker or helping caller with this index
 * uses the value. So a pool whose threads come and go makes no more values than it had workers and
 * helping callers at the same time. Only one thread has an index at a time, and what it did to the
 * value happens before the next thread with this index uses the value.
 *
 * Nested tasks. While a body waits, in a join for example, its worker may run other tasks. Such a
 * task gets the same value. A body that has half changed its value, or keeps data in it, must not
 * fork, join or wait before it is finished with the value. If it has to, it takes the data out of the
 * value first: the value holds a list of buffers, the body removes one, and puts it back at its end.
 * docs/cookbook.md has an example.
 *
 * Cost. fj_local_get() reads a thread-local variable, two words of the fj_local, and the entry of the
 * index. It takes no lock. The table of the values grows while other workers read it. Each value has
 * cache lines of its own, so that workers do not slow each other down.
 */
#ifndef FORKJOIN_WORKER_LOCAL_H
#define FORKJOIN_WORKER_LOCAL_H

#include <forkjoin.h>

FJI_EXTERN_C_BEGIN

/* The options of an fj_local. 0 means the default, except for `bytes`. */
typedef struct fj_local_options {
    /* The pool whose workers get values. NULL: the common pool. */
    fj_pool *pool;
    /* The size of a value, at least 1. A value begins at a multiple of 128 bytes. */
    size_t bytes;
    /* Called by a worker when it first asks for its value. `value` points to `bytes` bytes that are 0.
     * If `make` returns a code other than 0, the worker gets no value, `drop` is not called for it,
     * and its next fj_local_get() calls `make` again. If `make` is NULL, a value begins with zeros.
     * `make` may wait for tasks; a task that asks for the same value meanwhile gets NULL. */
    int (*make)(void *value, void *arg);
    /* Called by fj_local_fini() for each value, before its memory is freed. NULL: nothing is called. */
    void (*drop)(void *value, void *arg);
    /* The last argument of `make` and `drop`. */
    void *arg;
    /* Must be 0. */
    uint64_t reserved[3];
} fj_local_options;

/* Private: the entry of one index. */
struct fji_local_slot {
    void *value;  /* the value, or NULL */
    void *making; /* memory of the value while `make` runs, otherwise NULL */
};

/* Private: the first array of entries, for the indices 0 and 1, is in the fj_local. Each further array
 * is twice as large as the one before, so that 15 arrays have an entry for every index. */
#define FJI_LOCAL_FIRST 2u
#define FJI_LOCAL_ARRAYS 15

/* A value for each worker of a pool. The members are private. An fj_local must not move between
 * fj_local_init() and fj_local_fini(). An fj_local of zeros is one that has ended. */
typedef struct fj_local {
    /* fj_worker.submitted_cell of the workers of the pool, once one of them has a value. Before that
     * an address that no worker has there. */
    const void *cell;
    struct fji_local_slot *array[FJI_LOCAL_ARRAYS];
    uint32_t state; /* src/compose/worker_local.c */
    uint32_t spare;
    fj_local_options options;
    struct fji_local_slot first[FJI_LOCAL_FIRST];
} fj_local;

/*
 * Initialises `l`. The call makes no value.
 *
 *   owns     the caller owns *l and ends it by fj_local_fini(). The library copies *o.
 *   returns  FJ_OK; FJ_EINVAL if an argument is NULL, if `bytes` is 0 or above PTRDIFF_MAX / 2, or if
 *            a reserved member is not 0; FJ_ENOMEM if `pool` is NULL and there is no memory for the
 *            common pool. On an error *l is unchanged.
 *   Java     ThreadLocal.withInitial(); rayon and oneTBB: ThreadLocal, enumerable_thread_specific.
 */
FJ_API FJ_NODISCARD int fj_local_init(fj_local *l, const fj_local_options *o);

/* Private: the slow path of fj_local_get(). */
FJ_API FJI_COLD void *fji_local_get_slow(fj_local *l);

/*
 * Returns the value of the calling worker. If the worker has none, the call makes it.
 *
 *   from     a worker or a helping caller of the pool. The value is the caller's until its task ends
 *            or waits: see "Nested tasks" above.
 *   order    what the call of `make` for this value did, and what earlier users of the value did,
 *            happens before the return.
 *   returns  the value. NULL in a thread that works for no pool, or for another pool than that of the
 *            fj_local; NULL if there is no memory, or if `make` failed or is just running for this
 *            value; NULL if `l` is NULL or has ended.
 *   misuse   If fj_local_fini() runs at the same time, the behaviour is undefined.
 */
FJI_INLINE void *fj_local_get(fj_local *l)
{
    const fj_worker *w = fji_self_now();

    /* relaxed: `cell` changes once, to the address that all workers of the pool have in common. A
     * worker that reads the old address takes the slow path. */
    if (l != 0 && __atomic_load_n(&l->cell, __ATOMIC_RELAXED) == w->submitted_cell) {
        uint32_t n = w->index + FJI_LOCAL_FIRST, size = 31 - (uint32_t)__builtin_clz(n);
        /* [local.array] acquire <- acq_rel in local_array(): the entries, which begin as zeros. */
        struct fji_local_slot *a = __atomic_load_n(&l->array[size - 1], __ATOMIC_ACQUIRE);
        /* relaxed: only threads with this index write the entry, one after the other. */
        void *v = a != 0 ? __atomic_load_n(&a[n - (1u << size)].value, __ATOMIC_RELAXED) : 0;
        if (FJI_LIKELY(v != 0)) return v;
    }
    return fji_local_get_slow(l);
}

/*
 * Calls fn(value, arg) for each value, in the order of the indices, until a call returns a code other
 * than 0. To fold the values, let `arg` be the accumulator.
 *
 *   from     any thread. Workers may make values during the call; the call may miss such a value.
 *            Workers may also use their values during the call, if `fn` and the workers agree on how
 *            they share a value. `fn` may call fj_local_get().
 *   order    the call of `make` for a value happens before `fn` gets the value. What workers did to it
 *            later happens before only if the program orders it, as a join of the tasks does.
 *   returns  FJ_OK; the code of `fn` that ended the loop; FJ_EINVAL if `l` or `fn` is NULL or `l` has
 *            ended.
 *   Java     none; oneTBB: combine_each().
 */
FJ_API int fj_local_each(fj_local *l, int (*fn)(void *value, void *arg), void *arg);

/*
 * Drops every value exactly once, frees the memory, and ends `l`. Nothing happens if `l` has ended or
 * consists of zeros, so an error path may call the function too.
 *
 *   from     any thread, when no worker uses a value any more. The pool may have ended.
 *   returns  FJ_OK; FJ_EINVAL if `l` is NULL; FJ_EBUSY, without a change, during fj_local_each() or
 *            while a `make` runs, also if these themselves make the call.
 */
FJ_API int fj_local_fini(fj_local *l);

FJI_EXTERN_C_END

#endif /* FORKJOIN_WORKER_LOCAL_H */
