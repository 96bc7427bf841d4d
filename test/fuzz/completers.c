/* SPDX-License-Identifier: MIT */
/*
 * completers.c - random programs: children as roots of completers, and trees below them
 *
 * A node that runs as a completer fails with its code, unless that is FJ_OK. Otherwise it completes
 * when its body and all its children have completed. A node that swallows failures does not pass a
 * failure to its parent; it counts as completed for the parent instead.
 */
#include "fuzz/node.h"

static int completer_run(fj_task *t);

static fjp_node *node_of(fj_completer *c)
{
    return (fjp_node *)(void *)c;
}

/* ---- What the oracle knows ------------------------------------------------------------------ */

/* How a node forks its children. */
static int grow_way(const fjp_node *n)
{
    int way = n->arg % 3;

    return way == 0 && (n->program->faults || n->code != FJ_OK) ? 1 : way;
}

static bool in_tree_parent(const fjp_node *n)
{
    return n->in_tree && n->op == FJP_COMPLETERS;
}

bool fjp_swallows(const fjp_node *n)
{
    return (n->arg & 16) != 0;
}

bool fjp_completer_ok(const fjp_node *n)
{
    if (n->code != FJ_OK) return false;
    for (int i = 0; i < n->children && in_tree_parent(n); i++)
        if (!fjp_completer_ok(&n->child[i]) && !fjp_swallows(&n->child[i])) return false;
    return true;
}

static bool may_fail_with(const fjp_node *n, int code)
{
    if (n->code == code) return true;
    for (int i = 0; i < n->children && in_tree_parent(n); i++)
        if (may_fail_with(&n->child[i], code)) return true;
    return false;
}

/* ---- The tree ------------------------------------------------------------------------------- */

static void arrive(fjp_node *n)
{
    FJP_CHECK_EQ(atomic_fetch_add(&n->arrived, 1), 0);
}

/* Called when all children of n have completed. Checks that this happens only once and not too
 * early. */
static int complete_node(fj_completer *c, fj_completer *caller)
{
    fjp_node *n = node_of(c);

    FJP_CHECK_EQ(atomic_fetch_add(&n->completions, 1), 0);
    FJP_CHECK(caller == c || fj_completer_parent(caller) == c);
    FJP_CHECK_EQ(atomic_load(&n->runs), 1);
    if (!in_tree_parent(n)) return FJ_OK;
    uint64_t value = n->number;
    for (int i = 0; i < n->children; i++) {
        fjp_node *k = &n->child[i];
        FJP_CHECK_EQ(atomic_load(&k->arrived), 1);
        if (k->counts && atomic_load(&k->tainted)) atomic_store(&n->tainted, true);
        value = fjp_mix(value, k->counts ? k->value : k->number);
    }
    n->value = value;
    return FJ_OK;
}

/* Tells the parent, before the library can call the parent's function. */
static int completer_up(fj_completer *c, fj_completer *caller)
{
    int code = complete_node(c, caller);

    if (fj_completer_parent(c) != NULL) arrive(node_of(c));
    return code;
}

static int fail_node(fj_completer *c, int code, fj_completer *caller)
{
    fjp_node *n = node_of(c);
    fj_completer *parent = fj_completer_parent(c);

    FJP_CHECK(caller == c || fj_completer_parent(caller) == c);
    FJP_CHECK(may_fail_with(n, code) || (code == FJ_ECANCELED && fjp_may_break(n)));
    if (code == FJ_ECANCELED) atomic_store(&n->tainted, true);
    if (parent == NULL || !fjp_swallows(n)) return 1;
    if (atomic_exchange(&n->swallowed, 1) == 0) {
        arrive(n);
        fj_completer_try_complete(parent);
    }
    return 0;
}

static void completer_make(fjp_node *c, fjp_node *parent)
{
    fj_completer *p = parent != NULL ? &parent->is.completer : NULL;

    fj_completer_init(&c->is.completer, p, 0, completer_run, completer_up, fail_node);
    fjp_expect(c, 1, 1);
}

/* Forks the children of a node that is itself a completer. No thread waits for them. */
static void grow(fjp_node *n)
{
    fj_completer *me = &n->is.completer;
    int way = grow_way(n);

    for (int i = 0; i < n->children; i++) completer_make(&n->child[i], n);
    if (way == 0) return; /* the body calls fork_all as its last step */
    if (way == 1) fj_completer_set_pending(me, n->children);
    if (way != 1) fj_completer_add_pending(me, n->children);
    for (int i = 0; i < n->children; i++) {
        fj_completer *c = &n->child[i].is.completer;
        if (fj_completer_fork(c) == FJ_OK) continue;
        FJP_CHECK(n->program->faults); /* no worker, and no memory for one */
        (void)completer_run(&c->future.task);
    }
}

/* Does with the other calls what fj_completer_try_complete() does. */
static void complete_by_hand(fj_completer *me)
{
    fj_completer *caller = me;

    for (fj_completer *c = fj_completer_first(me); c != NULL; c = fj_completer_next(c)) {
        (void)complete_node(c, caller);
        caller = c;
        if (fj_completer_parent(c) != NULL) arrive(node_of(c));
    }
}

static int completer_run(fj_task *t)
{
    fjp_node *n = (fjp_node *)(void *)t;
    fj_completer *me = &n->is.completer;
    bool parent = in_tree_parent(n) && n->children > 0;

    int code = fjp_body(n);
    if (code != FJ_OK) return code; /* the node has failed, whatever its children return */
    if (parent && grow_way(n) == 0) {
        FJP_CHECK_EQ(fj_completer_fork_all(me, n->child, (size_t)n->children, sizeof n->child[0]),
                     FJ_OK);
    } else if (!parent && (n->arg & 12) == 4) {
        fj_completer_complete(me, &n->value);
    } else if ((n->arg & 12) == 8) {
        complete_by_hand(me);
    } else {
        fj_completer_try_complete(me);
    }
    return FJ_OK;
}

/* ---- Roots ---------------------------------------------------------------------------------- */

static int root_run(fjp_node *n, fjp_node *c, int way)
{
    fj_completer *root = &c->is.completer;
    bool own = !n->outside && c->pool == n->pool && !n->program->faults;
    int err;

    switch (way % 4) {
        case 0: return own ? fj_completer_run(root) : fj_completer_invoke(fjp_where(c), root);
        case 1: return fj_completer_invoke(fjp_where(c), root);
        case 2:
            err = own ? fj_completer_fork(root) : fj_completer_submit(fjp_where(c), root);
            break;
        default: err = fj_completer_submit(fjp_where(c), root);
    }
    if (err != FJ_OK) return err;
    if (own && (n->arg & 64) != 0) (void)fj_completer_help(root, 3);
    return fj_completer_join(root);
}

static void root_settle(fjp_node *n, fjp_node *c, int got)
{
    if (got == FJ_EREJECTED || got == FJ_ENOMEM) {
        (void)fjp_refused(n, c, got);
    } else if (got == FJ_ECANCELED) {
        FJP_CHECK(fjp_may_drop(n));
        atomic_store(&c->tainted, true);
        if (c->counts) atomic_store(&n->tainted, true);
    } else if (fjp_completer_ok(c) && !fjp_may_drop(n)) {
        FJP_CHECK_EQ(got, FJ_OK);
        FJP_CHECK_EQ(atomic_load(&c->completions), 1);
        fjp_settle_runs(n, c);
    } else if (got == FJ_OK) {
        FJP_CHECK(fjp_completer_ok(c));
        fjp_settle_runs(n, c);
    } else {
        FJP_CHECK(may_fail_with(c, got));
    }
}

void fjp_completers(fjp_node *n)
{
    if (n->in_tree) {
        grow(n);
        return;
    }
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        completer_make(c, NULL);
        root_settle(n, c, root_run(n, c, (n->arg >> i) + 1));
        fj_future_fini(&c->is.future);
    }
}
