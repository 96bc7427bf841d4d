/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/for_each.h - a loop over a work list that grows while it is processed
 *
 *     static int visit(void *item, fj_feeder *feeder, void *arg)
 *     {
 *         const struct graph *g = arg;
 *         uint32_t node = *(uint32_t *)item;
 *         for (uint32_t i = g->first[node]; i < g->first[node + 1]; i++) {
 *             bool is_new = !atomic_exchange(&g->seen[g->edge[i]], true);
 *             int err = is_new ? fj_for_each_add(feeder, &g->edge[i]) : FJ_OK;
 *             if (err != FJ_OK) return err;
 *         }
 *         return FJ_OK;
 *     }
 *
 *     uint32_t start = 0;
 *     int err = fj_for_each(&start, 1, sizeof start, visit, &g, NULL);
 *
 * The list begins with an array. The body is called once for each item, and may add more items. The
 * call returns when the list is empty. An item is a value of a fixed size, which the list copies.
 *
 * The list is stored in chunks of several items, each with one task. So a small item costs a few
 * nanoseconds. A worker first processes the items that its own bodies have added, the newest chunk
 * first. It queues a part of its items as soon as its queue has no task for other workers.
 *
 * The rules for all functions of forkjoin/algo.h hold here too, above all those about errors,
 * cancelling and results.
 */
#ifndef FORKJOIN_FOR_EACH_H
#define FORKJOIN_FOR_EACH_H

#include <forkjoin/algo.h>

FJI_EXTERN_C_BEGIN

/* Passed to a body, so that it can add items. Opaque. */
typedef struct fj_feeder fj_feeder;

/*
 * The body of fj_for_each(). `item` points to the item: into the caller's array, or to a copy in
 * the list. The body may change the item. The pointer is valid until the body returns. A body
 * returns 0, or another code, which ends the call.
 */
typedef int fj_each_fn(void *item, fj_feeder *feeder, void *arg);

/*
 * Calls body(item, feeder, arg) once for each of the n items of `size` bytes in the array `items`,
 * and for each item that a body adds.
 *
 * Bodies run in no particular order, and at the same time. `items` must be aligned for its type. A
 * copy of an item is aligned to 16 bytes if `size` is a multiple of 16, and otherwise to the
 * largest power of two that divides `size`.
 *
 *   grain    how->grain is the number of items of a chunk. With grain 0 a chunk has at most 1 KiB
 *            or 64 items, but at least one, and a worker also divides a chunk. min_grain and
 *            max_grain have no effect.
 *   memory   chunks for the items that wait. The call uses them again and frees them at its end.
 *   returns  the common codes of forkjoin/algo.h. FJ_EINVAL also if `size` is above 2^30, or if
 *            `grain` items are larger than 2^30 bytes.
 */
FJ_API int fj_for_each(void *items, size_t n, size_t size, fj_each_fn *body, void *arg,
                       const fj_algo_options *how);

/*
 * Adds a copy of `item` to the list.
 *
 * Another worker can take the item when its chunk is full, or at once if the queue of the calling
 * worker has no other task. With how->grain only a full chunk can be taken.
 *
 *   from     the thread that runs the body which got `feeder`, before the body returns.
 *   order    what the caller did before the call happens before the body of the item.
 *   returns  FJ_OK. FJ_EINVAL if an argument is NULL. FJ_ENOMEM if there is no memory; the item was
 *            not added.
 */
FJ_API FJ_NODISCARD int fj_for_each_add(fj_feeder *feeder, const void *item);

FJI_EXTERN_C_END

#endif /* FORKJOIN_FOR_EACH_H */
