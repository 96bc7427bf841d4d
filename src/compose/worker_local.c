/* SPDX-License-Identifier: MIT */
/*
 * worker_local.c - a value for each worker of a pool (forkjoin/worker_local.h)
 *
 * The table has an entry for each worker index. The entries are in arrays of 2, 4, 8, ... entries.
 * The first array is in the fj_local. Any thread that needs an entry of another array allocates the
 * array and installs it by a CAS; if two threads do this, the loser frees its array. An array stays
 * until fj_local_fini(), so a reader needs no lock.
 *
 * An entry belongs to its index. At any time at most one thread has the index, and the pool orders
 * what one thread with the index did before what the next one does (record.c). So only one thread at
 * a time writes an entry:
 *
 *   value  making
 *   NULL   NULL    no value
 *   NULL   memory  `make` runs. Only this thread, in a task below `make`, can ask for the value now;
 *                  it gets NULL.
 *   value  NULL    the value exists. It stays until fj_local_fini().
 *
 * `state` has the bit OPEN from fj_local_init() to fj_local_fini(), and counts the calls that make a
 * value or visit the values. fj_local_fini() changes `state` from OPEN with the count 0 to 0, and
 * refuses if the count is not 0. The fast path of fj_local_get() does not count; no worker may be in
 * it during fj_local_fini().
 *
 * Edges          from                          to                         carries
 *   local.array  acq_rel CAS, local_array()    acquire, fj_local_get(),   the zeroed array
 *                                                local_array(),
 *                                                fj_local_each()
 *   local.value  release store, local_make()   acquire, fj_local_each()   what `make` wrote
 *   local.end    acq_rel add, local_leave()    acq_rel CAS,               the entries
 *                                                fj_local_fini()
 */

#include <forkjoin/worker_local.h>
#include <string.h>

#include "plat/atomic.h"
#include "plat/memory.h"

#define LOCAL_OPEN 0x80000000u /* of `state`; the other bits are the count */

FJI_STATIC_ASSERT(FJI_LOCAL_FIRST *((1u << FJI_LOCAL_ARRAYS) - 1) >= FJ_MAX_WORKERS,
                  "the arrays have an entry for every index");

typedef struct fji_local_slot slot;

/* ---- Calls under way ------------------------------------------------------------------------ */

/* Counts the calling thread in `state`. Returns false if l has ended. */
static bool local_enter(fj_local *l)
{
    uint32_t s = fji_load_relaxed(&l->state); /* relaxed: the CAS checks the value */

    while ((s & LOCAL_OPEN) != 0)
        /* [local.end] acq_rel -> the CAS in fj_local_fini(): the count; nothing else is carried. */
        if (fji_cas_acq_rel_32(&l->state, &s, s + 1)) return true;
    return false;
}

static void local_leave(fj_local *l)
{
    /* [local.end] acq_rel -> acq_rel CAS in fj_local_fini(): the entries and arrays that the calling
     * thread has written. */
    (void)fji_add_acq_rel(&l->state, (uint32_t)-1);
}

/* ---- The table ------------------------------------------------------------------------------ */

static uint32_t array_entries(uint32_t k)
{
    return FJI_LOCAL_FIRST << k;
}

/* Returns array number k. If it does not exist yet, makes it. Returns NULL if there is no memory. */
static slot *local_array(fj_local *l, uint32_t k)
{
    /* [local.array] acquire <- acq_rel below: the zeroed entries. */
    slot *a = fji_load_acquire(&l->array[k]);

    if (a != NULL) return a;
    slot *mine = fji_pool_block(l->options.pool, FJI_MEMORY_OTHER, array_entries(k) * sizeof *mine);
    if (mine == NULL) return NULL;
    /* [local.array] acq_rel -> acquire in fj_local_get() and above: the zeroed entries. If the CAS
     * fails, the acquire makes those of the installed array visible. */
    if (fji_cas_acq_rel_pointer(&l->array[k], &a, mine)) return mine;
    fji_block_free(mine);
    return a;
}

/* Returns the entry of the index, or NULL if there is no memory for its array. */
static slot *local_slot(fj_local *l, uint32_t index)
{
    uint32_t k = 0, n = index;

    for (; n >= array_entries(k); k++) n -= array_entries(k);
    slot *a = local_array(l, k);
    return a != NULL ? &a[n] : NULL;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Called by the thread whose index has the entry s: makes its value. Returns NULL if there is no
 * memory or `make` fails. */
static void *local_make(fj_local *l, slot *s)
{
    const fj_local_options *o = &l->options;
    void *v = fji_pool_block(o->pool, FJI_MEMORY_OTHER, o->bytes);

    if (v == NULL) return NULL;
    s->making = v;
    int code = o->make != NULL ? o->make(v, o->arg) : FJ_OK;
    s->making = NULL;
    if (code != FJ_OK) {
        fji_block_free(v);
        return NULL;
    }
    /* [local.value] release -> acquire in fj_local_each(): what `make` wrote. */
    fji_store_release(&s->value, v);
    /* relaxed: all workers of the pool store the same address; a worker that does not see it takes
     * the slow path. */
    fji_store_relaxed(&l->cell, (const void *)fji_self->submitted_cell);
    return v;
}

void *fji_local_get_slow(fj_local *l)
{
    if (l == NULL || !local_enter(l)) return NULL;
    fj_pool *here = fj_current_pool();
    slot *s = NULL;
    void *v = NULL;

    if (here != NULL && here == l->options.pool) s = local_slot(l, (uint32_t)fj_current_worker());
    if (s != NULL && s->making == NULL) v = s->value != NULL ? s->value : local_make(l, s);
    local_leave(l);
    return v;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static bool options_valid(const fj_local_options *o)
{
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return false;
    return o->bytes != 0 && o->bytes <= PTRDIFF_MAX / 2;
}

int fj_local_init(fj_local *l, const fj_local_options *o)
{
    if (l == NULL || o == NULL || !options_valid(o)) return FJ_EINVAL;
    fj_pool *pool = o->pool != NULL ? o->pool : fj_common_pool();
    if (pool == NULL) return FJ_ENOMEM;
    fj_local_options copy = *o;

    memset(l, 0, sizeof *l);
    l->options = copy;
    l->options.pool = pool;
    l->cell = l; /* no worker has this address in submitted_cell */
    l->array[0] = l->first;
    /* relaxed: the program orders fj_local_init() before every use of l. */
    fji_store_relaxed(&l->state, LOCAL_OPEN);
    return FJ_OK;
}

int fj_local_each(fj_local *l, int (*fn)(void *value, void *arg), void *arg)
{
    int code = FJ_OK;

    if (l == NULL || fn == NULL || !local_enter(l)) return FJ_EINVAL;
    for (uint32_t k = 0; k < FJI_LOCAL_ARRAYS && code == FJ_OK; k++) {
        /* [local.array] acquire <- acq_rel in local_array(): the zeroed entries. */
        slot *a = fji_load_acquire(&l->array[k]);
        for (uint32_t i = 0; a != NULL && i < array_entries(k) && code == FJ_OK; i++) {
            /* [local.value] acquire <- release in local_make(): what `make` wrote. */
            void *v = fji_load_acquire(&a[i].value);
            if (v != NULL) code = fn(v, arg);
        }
    }
    local_leave(l);
    return code;
}

/* Drops the values of array number k, and frees it. */
static void local_drop_array(fj_local *l, uint32_t k)
{
    const fj_local_options *o = &l->options;
    slot *a = l->array[k];

    for (uint32_t i = 0; a != NULL && i < array_entries(k); i++) {
        void *v = a[i].value;
        if (v == NULL) continue;
        a[i].value = NULL;
        if (o->drop != NULL) o->drop(v, o->arg);
        fji_block_free(v);
    }
    if (a != l->first) fji_block_free(a);
    l->array[k] = NULL;
}

int fj_local_fini(fj_local *l)
{
    uint32_t s = LOCAL_OPEN;

    if (l == NULL) return FJ_EINVAL;
    /* [local.end] acq_rel <- acq_rel in local_leave(): the entries and arrays. */
    if (!fji_cas_acq_rel_32(&l->state, &s, 0)) return (s & LOCAL_OPEN) != 0 ? FJ_EBUSY : FJ_OK;
    l->cell = l;
    for (uint32_t k = 0; k < FJI_LOCAL_ARRAYS; k++) local_drop_array(l, k);
    return FJ_OK;
}
