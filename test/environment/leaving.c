/* SPDX-License-Identifier: MIT */
/*
 * leaving.c - threads that are cancelled, tasks that jump, a library that is unloaded
 *
 * A body must not be left by longjmp() or pthread_exit(), but it may jump inside itself. Workers
 * cannot be cancelled. An outside thread can be cancelled, but not inside a wait of the library.
 */
#include "environment.h"

#include <dlfcn.h>
#include <setjmp.h>

/* ---- Jumps inside a body -------------------------------------------------------------------- */

struct jumper {
    fj_task task;
    int depth;
    jmp_buf back;
};

static void jump_from_below(struct jumper *j, int depth)
{
    struct fib f = {.n = 8};

    fj_task_init(&f.task, fib_run);
    fj_fork(&f.task);
    CHECK_EQ(fj_join(&f.task), FJ_OK); /* every fork below is joined before the jump */
    if (depth == 0) longjmp(j->back, 7);
    if (depth > 0) jump_from_below(j, depth - 1);
}

static int jumper_run(fj_task *t)
{
    struct jumper *j = (struct jumper *)t;
    volatile int left = 10;
    struct fib over = {.n = 10};

    fj_task_init(&over.task, fib_run);
    fj_fork(&over.task); /* stays forked during all jumps */
    int from = setjmp(j->back);
    if (from == 0 || --left > 0) jump_from_below(j, j->depth);
    CHECK_EQ(from, 7);
    CHECK_EQ(fj_join(&over.task), FJ_OK);
    CHECK_EQ(over.result, 55);
    return 7;
}

FJ_TEST(body_may_jump_about_inside_itself, 30)
{
    fj_pool *p = fjt_pool(2, 0);

    for (long i = fjt_rounds(100); i > 0; i--) {
        struct jumper j = {.depth = (int)(i % 9)};
        fj_task_init(&j.task, jumper_run);
        CHECK_EQ(fj_invoke(p, &j.task), 7);
    }
    regression_rest(p);
    fjt_destroy(p);
}

/* ---- Cancellation --------------------------------------------------------------------------- */

static int be_cancelled(void *counter)
{
    pthread_cancel(pthread_self());
    pthread_testcancel();
    fjt_sleep_us(10); /* this is a cancellation point too */
    return regression_count(counter);
}

FJ_TEST(workers_cannot_be_cancelled, 30)
{
    fj_pool *p = fjt_pool(2, 0);
    atomic_int ran = 0;

    for (int i = 0; i < 50; i++) CHECK_EQ(fj_execute(p, be_cancelled, &ran), FJ_OK);
    UNTIL(atomic_load(&ran) == 50);
    use_pool(p);
    fjt_destroy(p);
}

static void need_unwinding(void)
{
    if (FJI_ASAN) fjt_skip("AddressSanitizer reports a cancelled thread as an overflow");
}

struct cancelled {
    fj_pool *pool;
    atomic_int waits, open, *returned;
};

static int until_open(fj_task *t)
{
    struct cancelled *c = *(struct cancelled **)(void *)(t + 1);

    atomic_store(&c->waits, 1);
    UNTIL(atomic_load(&c->open));
    return 5;
}

/* The wait returns only when it is complete. The thread is cancelled after that. */
static void *waits_and_ends(void *arg)
{
    struct cancelled *c = arg;
    struct {
        fj_task task;
        struct cancelled *c;
    } t = {.c = c};

    fj_task_init(&t.task, until_open);
    CHECK_EQ(fj_submit(c->pool, &t.task), FJ_OK);
    CHECK_EQ(fj_join(&t.task), 5);
    atomic_fetch_add(c->returned, 1);
    pthread_testcancel();
    return NULL;
}

FJ_TEST(thread_cancelled_in_a_wait_comes_back_from_it_first, 60)
{
    need_unwinding();
    fj_pool *p = fjt_pool(2, 0);
    atomic_int returned = 0;
    int rounds = (int)fjt_rounds(100);

    for (int i = 0; i < rounds; i++) {
        struct cancelled c = {.pool = p, .returned = &returned};
        void *result = NULL;
        pthread_t t = regression_thread(waits_and_ends, &c);
        UNTIL(atomic_load(&c.waits));
        if (i % 2 == 0) fjt_sleep_us(200); /* the thread is asleep by then */
        CHECK_EQ(pthread_cancel(t), 0);
        atomic_store(&c.open, 1);
        CHECK_EQ(pthread_join(t, &result), 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK_EQ(atomic_load(&returned), i + 1);
        use_fib(p, FJ_CALLER_BLOCKS);
    }
    fjt_destroy(p);
}

/* Creates pools, which reads files, and destroys them, while a cancellation is pending. */
static void *makes_and_ends(void *arg)
{
    fj_pool *p = NULL;

    (void)arg;
    pthread_cancel(pthread_self());
    CHECK(fj_common_pool() != NULL);
    CHECK_EQ(fj_pool_create(&p, NULL), FJ_OK);
    use_fib(p, FJ_CALLER_BLOCKS);
    use_fib(NULL, FJ_CALLER_BLOCKS);
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
    pthread_testcancel();
    return NULL;
}

FJ_TEST(thread_about_to_be_cancelled_makes_pools_and_takes_them_down, 30)
{
    void *result = NULL;

    need_unwinding();
    for (int i = 0; i < 20; i++) {
        pthread_t t = regression_thread(makes_and_ends, NULL);
        CHECK_EQ(pthread_join(t, &result), 0);
        CHECK(result == PTHREAD_CANCELED);
        use_fib(NULL, FJ_CALLER_HELPS);
    }
}

/* ---- The shared library --------------------------------------------------------------------- */

static struct {
    int (*create)(fj_pool **, const fj_pool_options *);
    int (*destroy)(fj_pool *);
    int (*execute)(fj_pool *, fj_action_fn *, void *);
    int (*quiesce)(fj_pool *, int64_t);
} so;

static void *load_library(void)
{
    const char *path = getenv("FJT_SHARED_LIBRARY");

    if (path == NULL) fjt_skip("FJT_SHARED_LIBRARY does not name the shared library");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fjt_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
    *(void **)&so.create = dlsym(library, "fj_pool_create");
    *(void **)&so.destroy = dlsym(library, "fj_pool_destroy");
    *(void **)&so.execute = dlsym(library, "fj_execute");
    *(void **)&so.quiesce = dlsym(library, "fj_pool_await_quiescence");
    CHECK(so.create != NULL && so.destroy != NULL && so.execute != NULL && so.quiesce != NULL);
    return library;
}

FJ_TEST(library_is_loaded_and_unloaded_again_and_again, 30)
{
    for (long i = fjt_rounds(100); i > 0; i--) {
        void *library = load_library();
        fj_pool *p = NULL;
        atomic_int ran = 0;
        CHECK_EQ(so.create(&p, NULL), FJ_OK);
        for (int k = 0; k < 10; k++) CHECK_EQ(so.execute(p, regression_count, &ran), FJ_OK);
        CHECK_EQ(so.destroy(p), FJ_OK);
        CHECK_EQ(atomic_load(&ran), 10);
        CHECK_EQ(dlclose(library), 0);
    }
}

/* A program that unloads the library and loads it again finds the same library and the same
 * pool. */
FJ_TEST(pool_outlives_the_unloading_of_its_library, 30)
{
    void *library = load_library();
    fj_pool *p = NULL;
    atomic_int ran = 0;
    int sent = 0;

    CHECK_EQ(so.create(&p, NULL), FJ_OK);
    for (long i = fjt_rounds(50); i > 0; i--) {
        for (int k = 0; k < 10; k++, sent++) CHECK_EQ(so.execute(p, regression_count, &ran), FJ_OK);
        CHECK_EQ(dlclose(library), 0);
        UNTIL(atomic_load(&ran) == sent);
        library = load_library();
        CHECK_EQ(so.quiesce(p, FJ_FOREVER), FJ_OK);
    }
    CHECK_EQ(so.destroy(p), FJ_OK);
    CHECK_EQ(dlclose(library), 0);
}
