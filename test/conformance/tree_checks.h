/* SPDX-License-Identifier: MIT */
/*
 * tree_checks.h - pools, checks and steps for recursive tasks and completers
 *
 * All tests compute Fibonacci numbers with a tree of tasks, in one of three kinds:
 *
 *   TREE_ACTION     a future without a result; the tasks below it are structured tasks
 *   TREE_VALUE      a future with a result; the tasks below it are futures
 *   TREE_COMPLETER  a root of completers; the tasks below it are completers
 *
 * A step is a function that runs on a worker of a new pool and receives the kind. After each change
 * of a node it calls state_check_open() or state_check_done(). Each test destroys its pool at the
 * end, and so checks also that nothing keeps the pool from ending.
 */
#ifndef FJT_TREE_CHECKS_H
#define FJT_TREE_CHECKS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fjtest.h"
#include "state_checks.h"

#define TREE_N 14     /* 610 leaves */
#define TREE_CODE 113 /* the code of nodes that fail */
#define TREE_MOST 8   /* the largest number of nodes in one step */

enum tree_kind { TREE_ACTION, TREE_VALUE, TREE_COMPLETER };

struct tree_node {
    union {
        fj_future future;
        fj_completer completer;
    } head;
    enum tree_kind kind;
    int n;
    int code;    /* if not 0, one leaf fails with it */
    int kept;    /* freed after the pool, because tasks below it may outlive the wait for it */
    int no_run;  /* its body must not run; checked after the pool is destroyed */
    long number; /* the result that the body computes */
    atomic_int runs, completions, errors;
    int error;            /* the code of the last call of on_error */
    fj_completer *caller; /* the caller argument of the last callback of either kind */
    struct tree_node *child[2];
    struct tree_node *next;
};

/* How a step waits for a forked node. Returns the code of the node. */
typedef int tree_wait(struct tree_node *n);

/* How several tasks are passed: two pointers, an array of pointers, an array of structs. */
enum tree_form { TREE_BOTH, TREE_ARRAY, TREE_COLLECTION };

/* The parameters of a step. A step reads only those that it needs. */
struct tree_how {
    enum tree_kind kind;
    int code; /* the code with which the task, or one of several, fails */
    tree_wait *wait;
    int many;
    enum tree_form form;
    int (*poll)(fj_taken *taken);
};

typedef void tree_step(const struct tree_how *how);

/* ---- Pools ------------------------------------------------------------------------------------- */

static struct tree_node *_Atomic tree_kept;

static inline void tree_free_kept(void)
{
    struct tree_node *n = atomic_exchange(&tree_kept, NULL);

    while (n != NULL) {
        struct tree_node *next = n->next;
        if (n->no_run) CHECK_EQ(atomic_load(&n->runs), 0);
        free(n);
        n = next;
    }
}

struct tree_call {
    fj_task task;
    tree_step *step;
    const struct tree_how *how;
};

static inline int tree_call_run(fj_task *t)
{
    struct tree_call *c = (struct tree_call *)t;

    c->step(c->how);
    return FJ_OK;
}

static inline void tree_run_in(fj_pool *pool, tree_step *step, const struct tree_how *how)
{
    struct tree_call c = {.step = step, .how = how};

    fj_task_init(&c.task, tree_call_run);
    CHECK_EQ(fj_invoke_mode(pool, &c.task, FJ_CALLER_BLOCKS), FJ_OK);
    fjt_destroy(pool);
    tree_free_kept();
}

/* Runs the step on as many workers as the environment says. */
static inline void tree_run(tree_step *step, struct tree_how how)
{
    tree_run_in(fjt_pool(conformance_workers(), conformance_flags()), step, &how);
}

static inline int tree_wait_timed(struct tree_node *n);

/* Runs the step on one thread, which no other thread replaces. It must run everything itself, and
 * no other thread takes its tasks. A wait with a timeout runs no tasks, so for that wait the pool
 * may add threads, as in the Java test. */
static inline void tree_run_alone(tree_step *step, struct tree_how how, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = 1;
    o.max_threads = how.wait == tree_wait_timed ? 0 : 1;
    o.flags = flags;
    tree_run_in(fjt_pool_with(&o), step, &how);
}

/* ---- Nodes ------------------------------------------------------------------------------------- */

static inline long tree_fib(int n)
{
    return n < 2 ? n : tree_fib(n - 1) + tree_fib(n - 2);
}

static inline fj_future *tree_future(struct tree_node *n)
{
    return &n->head.future;
}

static inline struct tree_node *tree_alloc(enum tree_kind kind, int n, int code)
{
    struct tree_node *node = calloc(1, sizeof *node);

    CHECK(node != NULL);
    node->kind = kind;
    node->n = n;
    node->code = code;
    return node;
}

static inline void tree_keep(struct tree_node *n)
{
    struct tree_node *head = atomic_load(&tree_kept);

    do {
        n->next = head;
    } while (!atomic_compare_exchange_weak(&tree_kept, &head, n));
}

/* A node that is a structured task. It has no future that a test could check. */
struct tree_small {
    fj_task task;
    int n, code;
    long number;
};

static inline int tree_small_run(fj_task *t)
{
    struct tree_small *me = (struct tree_small *)t;

    me->number = me->n;
    if (me->n < 2) return me->code;
    struct tree_small a = {.n = me->n - 1, .code = me->code}, b = {.n = me->n - 2};
    fj_task_init(&a.task, tree_small_run);
    fj_fork(&a.task);
    int y = tree_small_run(&b.task);
    int x = fj_join(&a.task);
    me->number = a.number + b.number;
    return x != FJ_OK ? x : y;
}

static inline struct tree_node *tree_new(enum tree_kind kind, int n, int code);
static inline void tree_drop(struct tree_node *n);

static inline int tree_action_run(fj_task *t)
{
    struct tree_node *me = (struct tree_node *)t;
    struct tree_small below = {.n = me->n, .code = me->code};

    atomic_fetch_add(&me->runs, 1);
    fj_task_init(&below.task, tree_small_run);
    int code = tree_small_run(&below.task);
    me->number = below.number;
    return code;
}

static inline int tree_value_run(fj_task *t)
{
    struct tree_node *me = (struct tree_node *)t;
    int code = me->n < 2 ? me->code : FJ_OK;

    atomic_fetch_add(&me->runs, 1);
    me->number = me->n;
    if (me->n >= 2) {
        struct tree_node *a = tree_new(TREE_VALUE, me->n - 1, me->code);
        struct tree_node *b = tree_new(TREE_VALUE, me->n - 2, 0);
        void *left = NULL, *right = NULL;
        CHECK_EQ(fj_future_fork(tree_future(a)), FJ_OK);
        CHECK_EQ(fj_future_run(tree_future(b)), FJ_OK);
        code = fj_future_join(tree_future(a));
        CHECK_EQ(fj_future_result(tree_future(a), &left), code);
        CHECK_EQ(fj_future_result(tree_future(b), &right), FJ_OK);
        me->number = (long)(intptr_t)left + (long)(intptr_t)right;
        tree_drop(a);
        tree_drop(b);
    }
    me->head.future.result = (void *)(intptr_t)me->number;
    return code;
}

static inline int tree_completion(fj_completer *c, fj_completer *caller)
{
    struct tree_node *me = (struct tree_node *)c;

    atomic_fetch_add(&me->completions, 1);
    me->caller = caller;
    for (int i = 0; i < 2 && me->child[i] != NULL; i++) {
        me->number += me->child[i]->number;
        if (!me->kept) free(me->child[i]);
        me->child[i] = NULL;
    }
    me->head.future.result = (void *)(intptr_t)me->number;
    return FJ_OK;
}

static inline int tree_error(fj_completer *c, int code, fj_completer *caller)
{
    struct tree_node *me = (struct tree_node *)c;

    atomic_fetch_add(&me->errors, 1);
    me->error = code;
    me->caller = caller;
    return 1;
}

static inline struct tree_node *tree_completer(struct tree_node *parent, int n, int code,
                                               fj_task_fn *run)
{
    struct tree_node *node = tree_alloc(TREE_COMPLETER, n, code);

    node->kept = code != 0 || (parent != NULL && parent->kept);
    fj_completer_init(&node->head.completer, parent != NULL ? &parent->head.completer : NULL, 0,
                      run, tree_completion, tree_error);
    if (node->kept && parent != NULL) tree_keep(node);
    return node;
}

static inline int tree_completer_run(fj_task *t)
{
    struct tree_node *me = (struct tree_node *)t;

    atomic_fetch_add(&me->runs, 1);
    if (me->n < 2) {
        me->number = me->n;
        if (me->code != 0) return me->code;
    } else {
        struct tree_node *a = tree_completer(me, me->n - 1, me->code, tree_completer_run);
        struct tree_node *b = tree_completer(me, me->n - 2, 0, tree_completer_run);
        me->child[0] = a;
        me->child[1] = b;
        fj_completer_set_pending(&me->head.completer, 2);
        CHECK_EQ(fj_completer_fork(&a->head.completer), FJ_OK);
        CHECK_EQ(fj_completer_fork(&b->head.completer), FJ_OK);
    }
    fj_completer_try_complete(&me->head.completer);
    return FJ_OK;
}

/* Returns a root that computes a Fibonacci number. If `code` is not 0, it fails with that code. */
static inline struct tree_node *tree_new(enum tree_kind kind, int n, int code)
{
    if (kind == TREE_COMPLETER) return tree_completer(NULL, n, code, tree_completer_run);
    struct tree_node *node = tree_alloc(kind, n, code);
    fj_future_init(tree_future(node), kind == TREE_ACTION ? tree_action_run : tree_value_run);
    return node;
}

/*
 * Frees a root. A future is finished with fj_future_fini() first. A root of completers may be freed
 * when a wait for it has returned, if its children completed it. Otherwise it stays until the pool
 * is destroyed.
 */
static inline void tree_drop(struct tree_node *n)
{
    if (n->kind != TREE_COMPLETER) {
        fj_future_fini(tree_future(n));
        if (n->no_run) CHECK_EQ(atomic_load(&n->runs), 0);
        free(n);
    } else if (n->kept || n->no_run) {
        tree_keep(n);
    } else {
        free(n);
    }
}

static inline int tree_fork(struct tree_node *n)
{
    if (n->kind == TREE_COMPLETER) return fj_completer_fork(&n->head.completer);
    return fj_future_fork(tree_future(n));
}

static inline int tree_invoke(struct tree_node *n)
{
    if (n->kind == TREE_COMPLETER) return fj_completer_run(&n->head.completer);
    return fj_future_run(tree_future(n));
}

static inline int tree_join(struct tree_node *n)
{
    if (n->kind == TREE_COMPLETER) return fj_completer_join(&n->head.completer);
    return fj_future_join(tree_future(n));
}

static inline void tree_check_new(struct tree_node *n)
{
    state_check_stuck(tree_future(n));
    CHECK_EQ(atomic_load(&n->runs), 0);
}

/* Checks that the node ran once and has the expected outcome. */
static inline void tree_check_ran(struct tree_node *n)
{
    long want = tree_fib(n->n);
    void *value = n->kind == TREE_ACTION ? NULL : (void *)(intptr_t)want;

    state_check_done(tree_future(n), n->code, value);
    CHECK_EQ(atomic_load(&n->runs), 1);
    if (n->code == FJ_OK) CHECK_EQ(n->number, want);
    if (n->kind != TREE_COMPLETER) return;
    CHECK_EQ(atomic_load(&n->completions), n->code == FJ_OK);
    CHECK_EQ(atomic_load(&n->errors), n->code != FJ_OK);
}

/* Checks that a call resolved the node, and that its body never ran. */
static inline void tree_check_by_hand(struct tree_node *n, int code, void *value)
{
    state_check_done(tree_future(n), code, value);
    CHECK_EQ(atomic_load(&n->runs), 0);
    n->no_run = 1;
}

/* ---- Running, forking, waiting ------------------------------------------------------------------ */

static inline void step_invoke(const struct tree_how *how)
{
    struct tree_node *n = tree_new(how->kind, TREE_N, how->code);

    tree_check_new(n);
    CHECK_EQ(tree_invoke(n), how->code);
    tree_check_ran(n);
    tree_drop(n);
}

static inline int tree_wait_get(struct tree_node *n)
{
    return fj_future_get(tree_future(n), FJ_FOREVER, NULL);
}

static inline int tree_wait_timed(struct tree_node *n)
{
    return fj_future_get(tree_future(n), LONG_NS, NULL);
}

/* This wait reports only that the node is done, so the code is read afterwards. */
static inline int tree_wait_quiet(struct tree_node *n)
{
    CHECK_EQ(fj_future_wait_quietly(tree_future(n), FJ_FOREVER), FJ_OK);
    return fj_future_error(tree_future(n));
}

static inline void step_fork(const struct tree_how *how)
{
    struct tree_node *n = tree_new(how->kind, TREE_N, how->code);

    tree_check_new(n);
    CHECK_EQ(tree_fork(n), FJ_OK);
    CHECK_EQ(how->wait(n), how->code);
    tree_check_ran(n);
    CHECK_EQ(tree_fork(n), FJ_EINVAL); /* a queued future must be reset first */
    tree_drop(n);
}

/* Cancels a node, then forks it and waits for it, or runs it here if there is no wait. */
static inline void step_cancelled(const struct tree_how *how)
{
    for (int interrupt = 0; interrupt < 2; interrupt++) {
        struct tree_node *n = tree_new(how->kind, TREE_N, 0);
        tree_check_new(n);
        CHECK_EQ(fj_future_cancel(tree_future(n), interrupt), 1);
        if (how->wait != NULL) CHECK_EQ(tree_fork(n), FJ_OK);
        CHECK_EQ(how->wait != NULL ? how->wait(n) : tree_invoke(n), FJ_ECANCELED);
        tree_check_by_hand(n, FJ_ECANCELED, NULL);
        tree_drop(n);
    }
}

/* Ignores the code of the call. The future itself has the whole outcome. */
static inline void step_quietly_invoke(const struct tree_how *how)
{
    struct tree_node *n = tree_new(how->kind, TREE_N, how->code);

    (void)tree_invoke(n);
    CHECK_EQ(fj_future_wait_quietly(tree_future(n), 0), FJ_OK);
    tree_check_ran(n);
    tree_drop(n);
}

/* A quiescent pool runs nothing, so the forked node is already done when the call returns. */
static inline void step_fork_help_quiesce(const struct tree_how *how)
{
    struct tree_node *n = tree_new(how->kind, TREE_N, 0);

    CHECK_EQ(tree_fork(n), FJ_OK);
    fj_help_quiesce();
    CHECK_EQ(fj_worker_queued(), 0);
    tree_check_ran(n);
    tree_drop(n);
}

/* ---- Where a body runs --------------------------------------------------------------------------- */

static struct {
    fj_pool *pool;
    int worker;
} tree_seen;

static inline int tree_probe_run(fj_task *t)
{
    struct tree_node *me = (struct tree_node *)t;

    atomic_fetch_add(&me->runs, 1);
    tree_seen.pool = fj_current_pool();
    tree_seen.worker = fj_current_worker();
    if (me->kind == TREE_COMPLETER) fj_completer_try_complete(&me->head.completer);
    return FJ_OK;
}

static inline struct tree_node *tree_probe(enum tree_kind kind)
{
    if (kind == TREE_COMPLETER) return tree_completer(NULL, 0, 0, tree_probe_run);
    struct tree_node *n = tree_alloc(kind, 0, 0);
    fj_future_init(tree_future(n), tree_probe_run);
    return n;
}

/* The pool is that of the caller, whether the body runs inline or is forked. */
static inline void step_pool_of_a_body(const struct tree_how *how)
{
    for (int forked = 0; forked < 2; forked++) {
        struct tree_node *n = tree_probe(how->kind);
        tree_seen.pool = NULL;
        if (forked) CHECK_EQ(tree_fork(n), FJ_OK);
        CHECK_EQ(forked ? tree_join(n) : tree_invoke(n), FJ_OK);
        CHECK(tree_seen.pool != NULL && tree_seen.pool == fj_current_pool());
        tree_check_ran(n);
        tree_drop(n);
    }
}

static inline void step_worker_of_a_body(const struct tree_how *how)
{
    struct tree_node *n = tree_probe(how->kind);

    CHECK(fj_current_pool() != NULL);
    CHECK(fj_current_worker() >= 0);
    tree_seen.worker = -2;
    CHECK_EQ(tree_invoke(n), FJ_OK);
    CHECK_EQ(tree_seen.worker, fj_current_worker());
    tree_check_ran(n);
    tree_drop(n);
}

/* Runs a body in a thread outside the pool. A pool exists, but the body must not see it. */
static inline void tree_run_outside(enum tree_kind kind)
{
    fj_pool *pool = fjt_pool(conformance_workers(), conformance_flags());
    struct tree_node *n = tree_probe(kind);

    CHECK(fj_current_pool() == NULL);
    CHECK_EQ(fj_current_worker(), -1);
    tree_seen.pool = pool;
    tree_seen.worker = 0;
    CHECK_EQ(tree_invoke(n), FJ_OK);
    CHECK(tree_seen.pool == NULL);
    CHECK_EQ(tree_seen.worker, -1);
    tree_check_ran(n);
    tree_drop(n);
    fjt_destroy(pool);
    tree_free_kept();
}

/* ---- Resolved by a call, and reset ------------------------------------------------------------------ */

/* A stored result is returned when the future is done. If none was stored, it is NULL. */
static inline void step_set_result(const struct tree_how *how)
{
    for (int stored = 0; stored < 2; stored++) {
        struct tree_node *n = tree_new(how->kind, 1, 0);
        void *want = stored ? (void *)n : NULL;
        if (stored) tree_future(n)->result = n;
        tree_check_new(n);
        CHECK_EQ(fj_future_complete_quietly(tree_future(n)), 1);
        tree_check_by_hand(n, FJ_OK, want);
        tree_drop(n);
    }
}

static inline void step_complete(const struct tree_how *how)
{
    for (int null = 0; null < 2; null++) {
        struct tree_node *n = tree_new(how->kind, TREE_N, 0);
        void *value = null ? NULL : (void *)n;
        tree_check_new(n);
        CHECK_EQ(fj_future_complete(tree_future(n), value), 1);
        tree_check_by_hand(n, FJ_OK, value);
        CHECK_EQ(tree_invoke(n), FJ_OK);
        tree_check_by_hand(n, FJ_OK, value);
        tree_drop(n);
    }
}

static inline void step_complete_exceptionally(const struct tree_how *how)
{
    static const int given[] = {TREE_CODE, 0, FJ_ENOMEM};

    for (int i = 0; i < 3; i++) {
        struct tree_node *n = tree_new(how->kind, TREE_N, 0);
        int code = given[i] != 0 ? given[i] : FJ_EFAILED;
        tree_check_new(n);
        CHECK_EQ(fj_future_fail(tree_future(n), given[i]), 1);
        tree_check_by_hand(n, code, NULL);
        CHECK_EQ(tree_invoke(n), code);
        tree_check_by_hand(n, code, NULL);
        tree_drop(n);
    }
}

/* Runs a node three times, forked in the first and the last round, with a reset after each. */
static inline void step_reinit(const struct tree_how *how)
{
    struct tree_node *n = tree_new(how->kind, TREE_N, how->code);

    for (int round = 0; round < 3; round++) {
        tree_check_new(n);
        CHECK_EQ(fj_future_set_tag(tree_future(n), 7), 0);
        if (round != 1) CHECK_EQ(tree_fork(n), FJ_OK);
        CHECK_EQ(round != 1 ? tree_join(n) : tree_invoke(n), how->code);
        tree_check_ran(n);
        void *result = tree_future(n)->result;
        CHECK_EQ(fj_future_reinit(tree_future(n)), FJ_OK);
        CHECK(tree_future(n)->result == result);
        CHECK_EQ(fj_future_tag(tree_future(n)), 0);
        atomic_store(&n->runs, 0);
    }
    tree_check_new(n);
    /* It is not done, so it cannot be reset. */
    if (how->code == FJ_OK) CHECK_EQ(fj_future_reinit(tree_future(n)), FJ_EBUSY);
    tree_drop(n);
}

/* ---- Several nodes at once -------------------------------------------------------------------------- */

static inline int tree_small_all(struct tree_small *t, int n, enum tree_form form)
{
    fj_task *at[TREE_MOST];

    for (int i = 0; i < n; i++) at[i] = &t[i].task;
    if (form == TREE_BOTH) return fj_invoke_both(at[0], at[1]);
    if (form == TREE_COLLECTION) return fj_invoke_array(t, (size_t)n, sizeof *t);
    return fj_invoke_all(at, (size_t)n);
}

/* Structured tasks: the call returns the error, and all tasks have ended when it returns. */
static inline void tree_all_small(int n, int failing, enum tree_form form)
{
    struct tree_small t[TREE_MOST];

    memset(t, 0, sizeof t);
    for (int i = 0; i < n; i++) {
        t[i].n = TREE_N - i;
        t[i].code = i == failing ? TREE_CODE : 0;
        fj_task_init(&t[i].task, tree_small_run);
    }
    CHECK_EQ(tree_small_all(t, n, form), failing >= 0 ? TREE_CODE : FJ_OK);
    for (int i = 0; i < n; i++) CHECK_EQ(t[i].number, tree_fib(t[i].n));
}

/* Completers below a parent: an error of one is the error of the parent. */
static inline void tree_all_below(int n, int failing)
{
    struct tree_node *many = calloc((size_t)n + 1, sizeof *many), *parent = many + n;
    long sum = 0;

    CHECK(many != NULL);
    fj_completer_init(&parent->head.completer, NULL, 0, tree_completer_run, tree_completion,
                      tree_error);
    for (int i = 0; i < n; i++) {
        many[i].kind = TREE_COMPLETER;
        many[i].n = TREE_N - i;
        many[i].code = i == failing ? TREE_CODE : 0;
        many[i].kept = failing >= 0;
        fj_completer_init(&many[i].head.completer, &parent->head.completer, 0, tree_completer_run,
                          tree_completion, tree_error);
    }
    CHECK_EQ(fj_completer_fork_all(&parent->head.completer, many, (size_t)n, sizeof *many), FJ_OK);
    CHECK_EQ(fj_completer_join(&parent->head.completer), failing >= 0 ? TREE_CODE : FJ_OK);
    CHECK_EQ(atomic_load(&parent->completions), failing < 0);
    CHECK_EQ(atomic_load(&parent->errors), failing >= 0);
    fj_help_quiesce(); /* the others still run after one has failed */
    for (int i = 0; i < n; i++) {
        CHECK_EQ(atomic_load(&many[i].runs), 1);
        CHECK_EQ(atomic_load(&many[i].completions), i != failing);
        CHECK_EQ(atomic_load(&many[i].errors), i == failing);
        if (i != failing) sum += many[i].number;
    }
    if (failing < 0) {
        for (int i = 0; i < n; i++) sum -= tree_fib(TREE_N - i);
        CHECK_EQ(sum, 0);
    }
    free(many);
}

/* Futures, also those of completers: all are done, and the failed one has the error code. */
static inline void tree_all_futures(enum tree_kind kind, int n, int failing, enum tree_form form)
{
    struct tree_node *node[TREE_MOST];
    fj_future *f[TREE_MOST];
    fj_pool *pool = fj_current_pool();

    for (int i = 0; i < n; i++) {
        node[i] = tree_new(kind, TREE_N - i, i == failing ? TREE_CODE : 0);
        f[i] = tree_future(node[i]);
    }
    int err = form == TREE_COLLECTION ? fj_future_invoke_all_quietly(pool, f, (size_t)n)
                                      : fj_future_invoke_all(pool, f, (size_t)n, FJ_FOREVER);
    CHECK_EQ(err, form != TREE_COLLECTION && failing >= 0 ? TREE_CODE : FJ_OK);
    for (int i = 0; i < n; i++) {
        CHECK(fj_future_is_done(f[i]));
        tree_check_ran(node[i]);
        tree_drop(node[i]);
    }
}

/* If there is a code, each node in turn is the one that fails. */
static inline void step_invoke_all(const struct tree_how *how)
{
    int first = how->code == FJ_OK ? -1 : 0, last = how->code == FJ_OK ? -1 : how->many - 1;

    for (int failing = first; failing <= last; failing++) {
        tree_all_futures(how->kind, how->many, failing, how->form);
        if (how->kind == TREE_COMPLETER)
            tree_all_below(how->many, failing);
        else
            tree_all_small(how->many, failing, how->form);
    }
}

/* The call is refused before any node has begun. The nodes are unchanged and can be run
 * afterwards. */
static inline void tree_null_futures(enum tree_kind kind, int null)
{
    struct tree_node *node[3];
    fj_future *f[3];
    fj_pool *pool = fj_current_pool();

    for (int i = 0; i < 3; i++) {
        node[i] = tree_new(kind, TREE_N, 0);
        f[i] = i == null ? NULL : tree_future(node[i]);
    }
    CHECK_EQ(fj_future_invoke_all(pool, f, 3, FJ_FOREVER), FJ_EINVAL);
    CHECK_EQ(fj_future_invoke_all_quietly(pool, f, 3), FJ_EINVAL);
    fj_help_quiesce();
    for (int i = 0; i < 3; i++) {
        tree_check_new(node[i]);
        CHECK_EQ(tree_invoke(node[i]), FJ_OK);
        tree_check_ran(node[i]);
        tree_drop(node[i]);
    }
}

static inline int tree_trap_run(fj_task *t)
{
    (void)t;
    CHECK(!"a task of a refused call runs");
    return FJ_OK;
}

static inline void step_invoke_all_null(const struct tree_how *how)
{
    fj_task a, *t[3];
    fj_completer parent;

    for (int null = 0; null < 3; null++) tree_null_futures(how->kind, null);
    CHECK_EQ(fj_future_invoke_all(fj_current_pool(), NULL, 1, FJ_FOREVER), FJ_EINVAL);
    fj_task_init(&a, tree_trap_run);
    if (how->kind == TREE_COMPLETER) {
        fj_completer_init(&parent, NULL, 0, tree_trap_run, NULL, NULL);
        CHECK_EQ(fj_completer_fork_all(NULL, &parent, 1, sizeof parent), FJ_EINVAL);
        CHECK_EQ(fj_completer_fork_all(&parent, NULL, 1, sizeof parent), FJ_EINVAL);
        CHECK_EQ(fj_completer_fork(NULL), FJ_EINVAL);
        return;
    }
    for (int null = 0; null < 3; null++) {
        for (int i = 0; i < 3; i++) t[i] = i == null ? NULL : &a;
        CHECK_EQ(fj_invoke_all(t, 3), FJ_EINVAL);
    }
    CHECK_EQ(fj_invoke_both(NULL, &a), FJ_EINVAL);
    CHECK_EQ(fj_invoke_both(&a, NULL), FJ_EINVAL);
    CHECK_EQ(fj_invoke_all(NULL, 1), FJ_EINVAL);
    CHECK_EQ(fj_invoke_array(NULL, 1, sizeof a), FJ_EINVAL);
    fj_help_quiesce();
}

/* ---- The queue of the worker, on one thread ---------------------------------------------------------- */

/* Two nodes in the queue of the calling worker. No other thread can take them. */
struct tree_pair {
    struct tree_node *older, *newer;
};

static inline struct tree_pair tree_fork_two(enum tree_kind kind)
{
    struct tree_pair p = {tree_new(kind, TREE_N, 0), tree_new(kind, TREE_N - 1, 0)};

    CHECK_EQ(tree_fork(p.older), FJ_OK);
    CHECK_EQ(tree_fork(p.newer), FJ_OK);
    CHECK_EQ(fj_worker_queued(), 2);
    state_check_open(tree_future(p.older));
    state_check_open(tree_future(p.newer));
    return p;
}

static inline void tree_join_and_drop(struct tree_node *n)
{
    CHECK_EQ(tree_join(n), FJ_OK);
    tree_check_ran(n);
    tree_drop(n);
}

static inline void step_unfork(const struct tree_how *how)
{
    struct tree_pair p = tree_fork_two(how->kind);

    state_check_stuck(tree_future(p.newer)); /* a wait with timeout 0 runs nothing */
    CHECK_EQ(fj_worker_queued(), 2);
    CHECK_EQ(fj_future_unfork(tree_future(p.newer)), 1);
    CHECK_EQ(fj_future_unfork(tree_future(p.newer)), 0);
    CHECK_EQ(fj_worker_queued(), 1);
    fj_help_quiesce();
    tree_check_ran(p.older);
    CHECK_EQ(fj_future_unfork(tree_future(p.older)), 0);
    tree_check_new(p.newer);
    CHECK_EQ(tree_fork(p.newer), FJ_OK); /* it can be forked again */
    tree_join_and_drop(p.newer);
    tree_join_and_drop(p.older);
}

static inline void step_surplus(const struct tree_how *how)
{
    struct tree_node *n[3];

    CHECK_EQ(fj_worker_surplus(), 0);
    for (int i = 0; i < 3; i++) {
        n[i] = tree_new(how->kind, TREE_N, 0);
        CHECK_EQ(tree_fork(n[i]), FJ_OK);
        CHECK_EQ(fj_worker_surplus(), i + 1); /* the only worker is not idle */
    }
    fj_help_quiesce();
    CHECK_EQ(fj_worker_surplus(), 0);
    for (int i = 0; i < 3; i++) tree_join_and_drop(n[i]);
}

static inline void step_peek(const struct tree_how *how)
{
    bool fifo = fj_pool_is_fifo(fj_current_pool()) != 0;

    CHECK(fj_peek_local() == NULL);
    struct tree_pair p = tree_fork_two(how->kind);
    CHECK(fj_peek_local() == (const void *)(fifo ? p.older : p.newer));
    CHECK_EQ(fj_worker_queued(), 2); /* peeking does not take it */
    tree_join_and_drop(p.newer);
    state_check_open(tree_future(p.older));
    CHECK(fj_peek_local() == (const void *)p.older);
    fj_help_quiesce();
    CHECK(fj_peek_local() == NULL);
    tree_join_and_drop(p.older);
}

/* Takes the next node. The other one runs; the taken one runs only when the test runs it. */
static inline void step_poll(const struct tree_how *how)
{
    bool fifo = fj_pool_is_fifo(fj_current_pool()) != 0;
    fj_taken taken;

    for (int cancel = 0; cancel < 2; cancel++) {
        CHECK_EQ(how->poll(&taken), 0);
        struct tree_pair p = tree_fork_two(how->kind);
        struct tree_node *next = fifo ? p.older : p.newer, *other = fifo ? p.newer : p.older;
        CHECK_EQ(how->poll(&taken), 1);
        CHECK(fj_taken_task(&taken) == &tree_future(next)->task);
        CHECK_EQ(fj_worker_queued(), 1);
        fj_help_quiesce();
        tree_join_and_drop(other);
        state_check_open(tree_future(next));
        CHECK_EQ(atomic_load(&next->runs), 0);
        if (cancel) {
            next->kept = 1;
            fj_taken_cancel(&taken);
            tree_check_by_hand(next, FJ_ECANCELED, NULL);
        } else {
            fj_taken_run(&taken);
            CHECK_EQ(tree_join(next), FJ_OK);
            tree_check_ran(next);
        }
        tree_drop(next);
    }
}

#endif /* FJT_TREE_CHECKS_H */
