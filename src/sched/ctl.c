/* SPDX-License-Identifier: MIT */
/*
 * ctl.c - changes of the control word that are repeated until their CAS succeeds; see ctl.h
 */
#include "sched/pool.h"

void fji_ctl_backoff(fj_pool *p, uint64_t *c, uint32_t *failures)
{
    fji_worker *w = fji_worker_self();
    uint32_t most = 4u << (++*failures < 10 ? *failures : 10);

    if (*failures == 1 || !fji_pool_is_large(p) || w == NULL) return;
    for (uint32_t n = fji_worker_random(w) % most; n > 0; n--) fji_pause();
    /* [ctl.idle] acquire <- the last fji_ctl_cas(): next_idle and park of the idle workers. */
    *c = fji_pool_ctl(p);
}

void fji_ctl_add(fj_pool *p, int active, int total)
{
    uint64_t c = fji_pool_ctl(p);
    uint32_t failures = 0;

    while (!fji_ctl_cas(p, &c, fji_ctl_add_total(fji_ctl_add_active(c, active), total)))
        fji_ctl_backoff(p, &c, &failures);
}
