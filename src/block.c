/* SPDX-License-Identifier: MIT */
/*
 * block.c - a worker that has to wait: somebody stands in for it
 *
 * Before it sleeps, one CAS on the control word does one of these, the first that fits:
 *
 *     too many active       lend: active-1
 *     somebody is idle      replace: pop it; the blocker's active becomes its
 *     enough are runnable   lend: active-1
 *     threads are allowed   spare: total+1; the blocker's active becomes the new one's
 *     otherwise             nothing: it blocks without a replacement
 *
 * The token says whether its active was given away; then, and only then, the end takes one
 * back. A spare that cannot be started gives back the total that was reserved for it, and
 * the blocker keeps its active: what is given back is what was taken, on every path.
 */
#include "pool.h"

static int block_spare(fj_pool *p)
{
    if (fji_worker_start(p)) return FJI_BLOCKED_GAVE;
    /* [ctl.idle] acquire/acq_rel: gives back the total reserved by the caller. */
    uint64_t c = fji_load_acquire(&p->ctl);
    while (!fji_pool_move(p, &c, fji_ctl_add_total(c, -1))) {}
    if (fji_pool_stopping(p)) fji_pool_try_terminate(p, false);
    return FJI_BLOCKED_KEPT;
}

static int block_compensate(fj_pool *p)
{
    /* [ctl.idle] acquire <- the CAS in idle_push(). */
    uint64_t c = fji_load_acquire(&p->ctl);

    for (uint32_t lost = 0;; fji_pool_lost(p, &c, &lost)) {
        int target = fji_load_relaxed(&p->parallelism); /* relaxed: a limit, not a count */
        int deficit = fji_ctl_deficit(c), total = fji_ctl_total(c);
        fji_worker *idle = NULL;
        uint64_t n;

        if (deficit <= 0 && fji_ctl_top(c) != 0) {
            idle = fji_pool_worker(p, fji_ctl_top(c) - 1);
            /* relaxed: fixed while it is on the stack; if it is not, the CAS fails. */
            n = fji_ctl_with_top(c, fji_load_relaxed(&idle->next_idle));
        } else if (deficit > 0 || (deficit + target > p->min_runnable && total >= target)) {
            n = fji_ctl_add_active(c, -1);
            /* relaxed: a limit, not a count. */
        } else if (total < fji_load_relaxed(&p->max_threads)) {
            n = fji_ctl_add_total(c, 1);
        } else {
            bool blocks = p->options.saturate == NULL || p->options.saturate(p, p->options.arg);
            return blocks ? FJI_BLOCKED_KEPT : FJI_BLOCKED_REFUSED;
        }
        /* [ctl.idle] acq_rel: as every change of ctl. */
        if (!fji_pool_move(p, &c, n)) continue;
        if (idle != NULL) fji_worker_unpark(idle);
        if (fji_ctl_total(n) > total) return block_spare(p);
        return FJI_BLOCKED_GAVE;
    }
}

int fji_block_ask(fji_worker *w)
{
    if (w->alive != FJI_ALIVE_WORKER) return FJI_BLOCKED_NO; /* a guest is in no count */
    int token = block_compensate(w->pool);
    if (token == FJI_BLOCKED_REFUSED) return token;
    fji_store_relaxed(&w->blocked, (uint32_t)token); /* relaxed: for monitoring and child.c */
    return token;
}

/* For waits that cannot fail: they block whatever the answer is. */
int fji_block_begin(fji_worker *w)
{
    int token = fji_block_ask(w);

    if (token != FJI_BLOCKED_REFUSED) return token;
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_KEPT); /* relaxed: as above */
    return FJI_BLOCKED_KEPT;
}

void fji_block_end(fji_worker *w, int token)
{
    if (token == FJI_BLOCKED_GAVE) {
        /* [ctl.idle] acquire/acq_rel: as every change of ctl. */
        uint64_t c = fji_load_acquire(&w->pool->ctl);
        uint32_t lost = 0;
        while (!fji_pool_move(w->pool, &c, fji_ctl_add_active(c, 1)))
            fji_pool_lost(w->pool, &c, &lost);
    }
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO); /* relaxed: as above */
}
