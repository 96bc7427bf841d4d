/* SPDX-License-Identifier: MIT */
/*
 * scope.c - the search for the worker that runs the body with a given token
 *
 * A worker that waits for a future takes tasks from the worker that fji_scope_runner() names, at the
 * position that it returns or above. So a position that is too low makes the waiter run a task that
 * has nothing to do with the future.
 */
#include "sched/scope.h"

#include <fjtest.h>

#include "plat/plat.h"

struct probe {
    fj_task task;
    fj_token token;
    bool found;
    uint32_t from, boundary;
};

static int nothing(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

/* Asks, while a task is queued below, for the worker that runs with the token. */
static void probe_ask(struct probe *a, fji_worker *w)
{
    a->boundary = fji_worker_position(w);
    a->found = fji_scope_runner(w->pool, NULL, &a->token, &a->from) == w;
}

static int probe_stolen(fj_task *t)
{
    struct probe *a = (struct probe *)t;
    fji_worker *w = fji_worker_self();
    fj_task below;

    fj_task_init(&below, nothing);
    fj_fork(&below);
    fji_scope_saved saved = fji_scope_enter_stolen(w, &a->token);
    probe_ask(a, w);
    fji_scope_leave(w, saved);
    return fj_join(&below);
}

/* The scope of a stolen task begins at the boundary, not one cell below it. */
FJ_TEST(scope_of_a_stolen_task_begins_at_the_boundary, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    struct probe a = {.found = false};

    fj_token_init(&a.token, NULL);
    fj_task_init(&a.task, probe_stolen);
    CHECK_EQ(fj_invoke(p, &a.task), FJ_OK);
    CHECK(a.found);
    CHECK_EQ(a.boundary, 1);
    CHECK_EQ(a.from, a.boundary);
    fjt_destroy(p);
}

/* The first scope of a worker needs an address range. */
static int probe_without_memory(fj_task *t)
{
    struct probe *a = (struct probe *)t;
    fji_worker *w = fji_worker_self();

    fji_fault_set(FJI_FAULT_RESERVE, 1, 1);
    fji_scope_saved saved = fji_scope_enter(w, &a->token);
    fji_fault_set(FJI_FAULT_RESERVE, 0, 0);
    CHECK(fji_scope_token(w) == &a->token);
    CHECK(fji_scope_runs(w, &a->token));
    probe_ask(a, w);
    fji_scope_leave(w, saved);
    CHECK(fji_scope_token(w) != &a->token);
    return FJ_OK;
}

/* A scope for which there was no memory has no position, so no waiter helps there. */
FJ_TEST(scope_without_memory_is_not_found_by_others, 10)
{
    fj_pool *p = fjt_pool(1, 0);
    struct probe a = {.found = true};

    if (!FJI_FAULTS) fjt_skip("built without faults");
    fj_token_init(&a.token, NULL);
    fj_task_init(&a.task, probe_without_memory);
    CHECK_EQ(fj_invoke(p, &a.task), FJ_OK);
    CHECK(!a.found);
    fjt_destroy(p);
}
