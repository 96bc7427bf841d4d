/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the lock of plat.h, for every platform layer; it waits by fji_plat_wait()
 *
 * Edges         from                       to                          carries
 *   lock.hold   release in fji_lock_drop() acquire in fji_lock_try()   the holder's changes
 */
#include "atomic.h"
#include "plat.h"

bool fji_lock_try(fji_lock *l)
{
    uint32_t free_word = 0;
    /* [lock.hold] acquire <- release in fji_lock_drop(): what the last holder of the lock wrote. */
    return fji_cas_acq_rel_32(&l->word, &free_word, 1);
}

void fji_lock_take(fji_lock *l)
{
    for (int i = 0; i < 100; i++) {
        if (fji_lock_try(l)) return;
        fji_pause();
    }
    fji_add_relaxed(&l->waiters, 1); /* relaxed: a late increment costs a waiter at most 1 ms */
    while (!fji_lock_try(l)) fji_plat_wait(&l->word, 1, fji_plat_now() + 1000000);
    /* relaxed: if fji_lock_drop() sees this late, it only makes a wake call that wakes no thread */
    fji_add_relaxed(&l->waiters, (uint32_t)-1);
}

void fji_lock_drop(fji_lock *l)
{
    /* relaxed: a thread that begins to wait after this load is not woken, but waits at most 1 ms */
    uint32_t waiters = fji_load_relaxed(&l->waiters);

    /* [lock.hold] release -> acquire in fji_lock_try(): what this holder of the lock wrote.
     * LAST TOUCH of *l: the next holder may free it. */
    fji_store_release(&l->word, 0u);
    if (waiters != 0) fji_plat_wake_one(&l->word);
}

void fji_lock_reset(fji_lock *l)
{
    l->word = 0;
    l->waiters = 0;
}
