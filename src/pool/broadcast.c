/* SPDX-License-Identifier: MIT */
/*
 * broadcast.c - runs a function once on every worker of a pool (forkjoin/every.h)
 *
 * sched/safepoint.c has the protocol.
 */

#include "pool/common_pool.h"
#include "sched/safepoint.h"

int fj_broadcast(fj_pool *pool, fj_action_fn *fn, void *arg)
{
    fji_request r = {.fn = fn, .arg = arg};

    if (fn == NULL) return FJ_EINVAL;
    r.pool = fji_pool_or_common(pool);
    if (r.pool == NULL) return FJ_ENOMEM;
    int err = fji_safepoint_broadcast(&r);
    return err != FJ_OK ? err : r.code;
}
