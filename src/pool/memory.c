/* SPDX-License-Identifier: MIT */
/*
 * memory.c - which pool pays for a block, and fj_pool_memory()
 *
 * The records of workers and of queues belong to the pool that uses them. A future that the library
 * allocates belongs to the pool it is submitted to. The scratch memory of an algorithm belongs to the
 * pool of its options, or else to the pool of the calling thread. Blocks for no pool belong to the
 * common pool, or to no pool if there is none.
 *
 * An outside thread may allocate a block from the common pool while another thread ends that pool. The
 * memory record of a common pool without functions of the program is static, so the thread may always
 * use it. Otherwise the thread needs a hold (sched/hold.h).
 */

#include <string.h>

#include "plat/memory.h"
#include "pool/common_pool.h"
#include "pool/create.h"
#include "sched/hold.h"

void *fji_pool_block(fj_pool *pool, int memory_kind, size_t bytes)
{
    enum fji_memory_kind kind = (enum fji_memory_kind)memory_kind;
    fj_pool *p = pool != NULL ? pool : fji_common_if_made();

    if (p == NULL) return fji_block_alloc(NULL, kind, bytes);
    /* relaxed: the static record is always there; otherwise p is a pool that does not end during this
     * call, or the hold below orders the record. */
    fji_memory *m = fji_load_relaxed(&p->memory);
    if (!p->is_common || m == &fji_memory_common) return fji_block_alloc(m, kind, bytes);
    if (!fji_pool_hold(p)) return fji_block_alloc(NULL, kind, bytes);
    void *block = fji_block_alloc(fji_load_relaxed(&p->memory), kind,
                                  bytes); /* relaxed: as above */
    fji_pool_drop_hold(p);
    return block;
}

/* Called within a hold: sets the members of *out, which is 0, for the memory of p. */
static void memory_read(const fj_pool *p, fj_memory *out)
{
    const fji_memory *m = fji_load_relaxed(&p->memory); /* relaxed: the hold orders the record */
    uint64_t used[FJI_MEMORY_KINDS];
    uint32_t n = fji_pool_nworkers(p);

    for (int i = 0; i < FJI_MEMORY_KINDS; i++) {
        used[i] = fji_memory_used(m, (enum fji_memory_kind)i);
        if (i != FJI_MEMORY_SCOPES) out->allocated += used[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        const fji_worker *w = fji_pool_worker(p, i);
        if (w != NULL) out->cells += fji_queue_bytes(&w->q);
    }
    for (uint32_t i = 0; i < p->nsubmissions; i++) {
        const fji_submission_queue *q = fji_pool_submissions(p, i);
        if (q != NULL) out->submissions += fji_submission_queue_bytes(q);
    }
    out->total = out->allocated + out->cells + out->submissions + used[FJI_MEMORY_SCOPES];
    out->submissions += used[FJI_MEMORY_SUBMISSIONS];
    out->workers = used[FJI_MEMORY_WORKERS] + used[FJI_MEMORY_SCOPES];
    out->timers = used[FJI_MEMORY_TIMERS];
    out->futures = used[FJI_MEMORY_FUTURES];
    out->scratch = used[FJI_MEMORY_SCRATCH];
    out->other = used[FJI_MEMORY_POOL] + used[FJI_MEMORY_OTHER];
}

int fj_pool_memory(const fj_pool *pool, fj_memory *out)
{
    if (out == NULL) return FJ_EINVAL;
    const fj_pool *p = pool != NULL ? pool : fj_common_pool();
    if (p == NULL) return FJ_ENOMEM;
    memset(out, 0, sizeof *out);
    if (!fji_pool_hold(p)) return FJ_OK;
    memory_read(p, out);
    fji_pool_drop_hold(p);
    return FJ_OK;
}
