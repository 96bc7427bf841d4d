/* SPDX-License-Identifier: MIT */
/*
 * record.c - the records of the workers of a pool
 *
 * A thread that becomes a worker or a guest takes a record under the pool's lock: `alive` changes
 * from NO to WORKER or GUEST. The thread gives the record back by changing `alive` to NO: a worker
 * does this under the lock, a guest without the lock. Records are created on demand and freed only
 * with the pool. So a thief may read a record that no thread uses; the queue of that record is
 * empty.
 *
 * Edges          from                                to                           carries
 *   pool.record  release stores, record_new()        acquire, fji_pool_worker(),  the record
 *                                                      fji_pool_nworkers()
 *   pool.alive   release store, fji_record_take()    acquire, quiesce_worker()    park, rescanning
 *   pool.alive   release store,                      acquire, fji_record_take(),  what the last
 *                  fji_record_give_back()              quiesce_worker()             user wrote
 */

#include "sched/record.h"

#include "sched/overflow.h"
#include "sched/own_queue.h"
#include "sched/scope.h"

/* The control word that a fork reads in a pool without the heavy fence. It is negative, so every
 * fork calls fji_wake_slow(), which executes a full fence. */
static const int64_t record_always_ctl = -1;

/* Called with the lock of p: creates the next record. Returns NULL if there is no memory, or if p
 * already has FJ_MAX_WORKERS records. */
static fji_worker *record_new(fj_pool *p)
{
    uint32_t i = p->workers;

    if (i >= FJ_MAX_WORKERS) return NULL;
    fji_worker **chunk = p->chunk[i / FJI_CHUNK];
    if (chunk == NULL) {
        chunk = fji_memory_alloc(p->memory, FJI_MEMORY_WORKERS, FJI_CHUNK * sizeof *chunk);
        if (chunk == NULL) return NULL;
        /* [pool.record] release -> acquire in fji_pool_worker(): the zeroed array. */
        fji_store_release(&p->chunk[i / FJI_CHUNK], chunk);
    }
    fji_worker *w = fji_memory_alloc(p->memory, FJI_MEMORY_WORKERS, sizeof *w);
    if (w == NULL) return NULL;
    if (!fji_queue_init(&w->q, FJI_QUEUE_FIRST, FJI_QUEUE_RESERVED, p->asymmetric && !p->fifo)) {
        fji_memory_free(p->memory, FJI_MEMORY_WORKERS, w, sizeof *w);
        return NULL;
    }
    w->q.fast.ctl = p->asymmetric ? (const int64_t *)&p->ctl : &record_always_ctl;
    w->q.fast.submitted_cell = p->submitted_cell;
    w->q.fast.index = i;
    w->pool = p;
    w->index = i;
    w->scope = w->scope_base = &w->scope_none[0];
    w->scope_none[1].from = FJI_SCOPE_NO_MEMORY;
    fji_worker_set_location(w);
    w->call = FJI_CALL_GONE;
    w->forks_since_spawn_try = FJI_START_32;
    w->steals = w->parks = FJI_START_64;
    /* [pool.record] release -> acquire in fji_pool_worker(): the initialised record. */
    fji_store_release(&chunk[i % FJI_CHUNK], w);
    /* [pool.record] release -> acquire in fji_pool_nworkers(): the records 0 to i. */
    fji_store_release(&p->workers, i + 1);
    return w;
}

bool fji_record_reserve(fj_pool *p)
{
    return record_new(p) != NULL;
}

fji_worker *fji_record_take(fj_pool *p, uint32_t as)
{
    fji_worker *w = NULL;

    for (uint32_t i = 0; i < p->workers && w == NULL; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        /* [pool.alive] acquire <- release in fji_record_give_back(): everything that the thread
         * which used the record before wrote to it. */
        if (fji_load_acquire(&v->alive) != FJI_ALIVE_NO) continue;
        /* relaxed: the lock orders it. A guest that was called while it left has given the record
         * back, and still has to take itself off the broadcast (guest.c). */
        if (fji_load_relaxed(&v->call) <= FJI_CALL_GONE) w = v;
    }
    if (w == NULL) w = record_new(p);
    if (w == NULL) return NULL;
    w->random = (w->index + 1) * 0x9e3779b9u + (uint32_t)p->started;
    if (w->random == 0) w->random = 1;
    fji_scope_reset(w);
    /* relaxed: a helping thread may read an old value. Before it takes a task, it reads the state
     * words of its chain of joins again (help.c). */
    fji_store_relaxed(&w->joining, (fj_cell *)NULL);
    fji_store_relaxed(&w->blocked, FJI_BLOCKED_NO); /* relaxed: for dumps, selfcheck.c, atfork.c */
    fji_store_relaxed(&w->park, FJI_PARK_ACTIVE);   /* relaxed: the store to alive publishes it */
    fji_store_relaxed(&w->rescanning, 0u);          /* relaxed: the store to alive publishes it */
    fji_store_relaxed(&w->call, FJI_CALL_NONE);     /* relaxed: the lock of the pool orders it */
    w->tenure++;
    w->searching = w->rescan_owed = false;
    w->stack_half = UINTPTR_MAX;
    w->awaiting_first_task = as == FJI_ALIVE_WORKER;
    /* [pool.alive] release -> acquire in quiesce_worker(): park and rescanning, as set above. */
    fji_store_release(&w->alive, as);
    return w;
}

void fji_record_give_back(fji_worker *w)
{
    /* [pool.alive] release -> acquire in fji_record_take() and quiesce_worker(): everything that
     * the calling thread wrote to the record and its queue. */
    fji_store_release(&w->alive, FJI_ALIVE_NO);
}

void fji_records_free(fj_pool *p)
{
    for (uint32_t i = 0; i < p->workers; i++) {
        fji_worker *w = fji_pool_worker(p, i);
        if (w == NULL) continue;
        fji_queue_fini(&w->q);
        fji_scope_fini(w);
        fji_overflow_free(p, w->overflow_cells);
        fji_memory_free(p->memory, FJI_MEMORY_WORKERS, w, sizeof *w);
    }
    for (uint32_t i = 0; i < FJI_CHUNKS && p->chunk[i] != NULL; i++) {
        fji_memory_free(p->memory, FJI_MEMORY_WORKERS, p->chunk[i],
                        FJI_CHUNK * sizeof *p->chunk[i]);
        p->chunk[i] = NULL;
    }
    p->workers = 0;
}
