/* SPDX-License-Identifier: MIT */
/*
 * invoke.c - invoking one task or several, and waiting for them
 *
 * If the calling thread is a worker or guest of the pool, it runs the task at once on its own
 * stack. Any other thread becomes a guest of the pool and runs the task as a guest, if
 * fji_submit_caller_works() returns true. If that returns false, or if the pool refuses the guest
 * or there is no memory for it, the thread submits the task and waits for it. If the common pool
 * is shut down, the thread waits for its end and uses the next common pool.
 */

#include "pool/common_pool.h"
#include "pool/submit.h"
#include "sched/guest.h"
#include "sched/run.h"
#include "sched/scope.h"

/* ---- One task -------------------------------------------------------------------------------- */

int fj_invoke_mode(fj_pool *pool, fj_task *t, enum fj_caller caller)
{
    bool known = caller == FJ_CALLER_DEFAULT || caller == FJ_CALLER_HELPS ||
                 caller == FJ_CALLER_BLOCKS;

    if (t == NULL || t->fn == NULL || !known) return FJ_EINVAL;
    fj_pool *p = fji_pool_or_common(pool);
    if (p == NULL) return FJ_ENOMEM;
    fji_worker *w = fji_worker_in(p);
    if (w != NULL) return fji_run_body(w, t);
    bool helps = caller == FJ_CALLER_HELPS || (caller == FJ_CALLER_DEFAULT && p->caller_helps);
    if (fji_submit_caller_works(p, helps)) {
        fji_worker *g = fji_common_guest_enter(p);
        if (g != NULL) {
            int code = fji_run_body(g, t);
            fji_guest_leave(g);
            return code;
        }
    }
    int err = fj_submit_external(p, t);
    return err != FJ_OK ? err : fji_submit_join(p, t, helps);
}

int fj_invoke(fj_pool *pool, fj_task *t)
{
    return fj_invoke_mode(pool, t, FJ_CALLER_DEFAULT);
}

/* A task whose body runs the body of `inner` with `token`, or returns FJ_ECANCELED if `token` is
 * cancelled already. */
struct with_token {
    fj_task task;
    fj_task *inner;
    fj_token *token;
};

static int with_token_run(fj_task *t)
{
    struct with_token *with = (struct with_token *)t;
    fji_worker *w = fji_worker_self();

    if (fj_token_is_cancelled(with->token)) return FJ_ECANCELED;
    if (w == NULL) return with->inner->fn(with->inner);
    fji_scope_saved saved = fji_scope_enter(w, with->token);
    int code = with->inner->fn(with->inner);
    fji_scope_leave(w, saved);
    return code;
}

int fj_invoke_token(fj_pool *pool, fj_task *t, fj_token *token)
{
    struct with_token with = {.inner = t, .token = token};

    if (t == NULL || t->fn == NULL || token == NULL) return FJ_EINVAL;
    fj_task_init(&with.task, with_token_run);
    return fj_invoke(pool, &with.task);
}

/* ---- Several tasks --------------------------------------------------------------------------- */

/* Returns a unless it is FJ_OK, else b. */
static int first_error(int a, int b)
{
    return a != FJ_OK ? a : b;
}

/*
 * A list of n tasks as one task, so that a thread that works for no pool can invoke the whole list
 * in the common pool. `pointers` is an array of n pointers to the tasks. If it is NULL,
 * `first` points to an array of n structs of `stride` bytes, each of which begins with a task.
 */
struct join_list {
    fj_task task;
    fj_task *const *pointers;
    char *first;
    size_t n, stride;
    bool ran; /* list_run() was called for this list, by any thread */
};

static fj_task *list_get(const struct join_list *l, size_t i)
{
    return l->pointers != NULL ? l->pointers[i] : (fj_task *)(void *)(l->first + i * l->stride);
}

/* The body of a join_list. Forks all tasks but the first, from the last to the second. Runs the
 * first task. Then joins the others, from the second to the last. Returns the first error in the
 * order of the list, or FJ_OK. */
static int list_run(fj_task *t)
{
    struct join_list *l = (struct join_list *)t;

    l->ran = true;
    for (size_t i = l->n; i-- > 1;) fj_fork(list_get(l, i));
    fj_task *a = list_get(l, 0);
    int code = a->fn(a);
    for (size_t i = 1; i < l->n; i++) code = first_error(code, fj_join(list_get(l, i)));
    return code;
}

static int list_invoke(struct join_list *l)
{
    if (l->n == 0) return FJ_OK;
    if (fji_worker_self() != NULL) return list_run(&l->task);
    fj_task_init(&l->task, list_run);
    int err = fj_invoke_mode(NULL, &l->task, FJ_CALLER_HELPS);
    /* Like a fork, this call does not fail for lack of memory. If no task has run because there is
     * no memory, the calling thread runs the tasks itself. FJ_ENOMEM with `ran` set is the code of
     * a task. */
    return err == FJ_ENOMEM && !l->ran ? list_run(&l->task) : err;
}

int fj_invoke_all(fj_task *const *tasks, size_t n)
{
    struct join_list l = {.pointers = tasks, .n = n};

    if (n != 0 && !fji_structs_ok(tasks, n, sizeof *tasks, sizeof *tasks)) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (tasks[i] == NULL || tasks[i]->fn == NULL) return FJ_EINVAL;
    return list_invoke(&l);
}

int fj_invoke_both(fj_task *a, fj_task *b)
{
    fj_task *const both[2] = {a, b};

    if (a == b) return FJ_EINVAL;
    return fj_invoke_all(both, 2);
}

int fj_invoke_array(void *first, size_t n, size_t stride)
{
    struct join_list l = {.first = first, .n = n, .stride = stride};

    if (n == 0) return FJ_OK;
    if (!fji_structs_ok(first, n, stride, sizeof(fj_task))) return FJ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (list_get(&l, i)->fn == NULL) return FJ_EINVAL;
    return list_invoke(&l);
}
