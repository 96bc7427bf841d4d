/* SPDX-License-Identifier: MIT */
/*
 * memory.c - scenarios of memory that outlives its pool, and of hooks for memory
 */
#include <pthread.h>

#include "plat/atomic.h"
#include "plat/memory.h"
#include "scenario.h"

static atomic_int blocks; /* of the hooks */

static void *hook_allocate(size_t bytes, size_t align, void *arg)
{
    (void)arg;
    atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void hook_release(void *p, size_t bytes, void *arg)
{
    (void)bytes, (void)arg;
    atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
    free(p);
}

static fj_pool *hooked_pool(void)
{
    fj_pool_options o;

    memset(&o, 0, sizeof o);
    o.parallelism = 1;
    o.spin_ns = -1;
    o.allocate = hook_allocate;
    o.release = hook_release;
    atomic_store(&blocks, 0);
    return fjt_pool_with(&o);
}

static int call_fn(void *arg, void **result)
{
    *result = arg;
    return FJ_OK;
}

static void *drops(void *future)
{
    fj_future_unref(future);
    return NULL;
}

/* A thread drops the last reference to a future while another thread ends the pool. The later one of
 * the two frees the record that counts the memory. */
FJ_TEST(last_future_and_the_end_of_its_pool_free_the_memory_record_once, 10)
{
    fj_pool *pool = hooked_pool();
    fj_future *f[2];
    pthread_t t[2];

    for (int i = 0; i < 2; i++) CHECK_EQ(fj_submit_call(pool, call_fn, NULL, &f[i]), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(fj_future_get(f[i], FJ_FOREVER, NULL), FJ_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&t[i], NULL, drops, f[i]), 0);
    fjt_destroy(pool);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&blocks), 0);
}

/* The same with the functions of memory.h alone. */
static void *frees(void *block)
{
    fji_block_free(block);
    return NULL;
}

FJ_TEST(last_block_and_the_end_of_the_memory_free_its_record_once, 10)
{
    fji_allocator a = {hook_allocate, hook_release, NULL};
    pthread_t t[2];

    atomic_store(&blocks, 0);
    fji_memory *m = fji_memory_make(&a);
    for (int i = 0; i < 2; i++) {
        void *b = fji_block_alloc(m, FJI_MEMORY_FUTURES, 100);
        CHECK_EQ(pthread_create(&t[i], NULL, frees, b), 0);
    }
    fji_memory_end(m);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&blocks), 0);
}
