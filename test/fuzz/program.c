/* SPDX-License-Identifier: MIT */
/*
 * program.c - random programs: decoding, the oracle, the pools, and the final checks
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fuzz/node.h"
#include "plat/plat.h"

/* ---- Values --------------------------------------------------------------------------------- */

uint64_t fjp_mix(uint64_t value, uint64_t with)
{
    value = (value ^ with) * 0x9e3779b97f4a7c15u;
    return value ^ (value >> 29);
}

/* Computes the value of a node from those of its children: the expected value if `wanted`, else the
 * one of this run. */
static uint64_t value_of(const fjp_node *n, bool wanted)
{
    uint64_t value = n->number;

    if (n->op == FJP_REDUCE) value = fjp_mix(value, wanted ? fjp_reduce_serial(n) : n->extra);
    for (int i = 0; i < n->children; i++) {
        const fjp_node *c = &n->child[i];
        value = fjp_mix(value, !c->counts ? c->number : wanted ? c->want : c->value);
    }
    return value;
}

static void may_be_told(fjp_node *n)
{
    n->interruptible = true;
    for (int i = 0; i < n->children; i++) may_be_told(&n->child[i]);
}

static void oracle(fjp_node *n)
{
    for (int i = 0; i < n->children; i++) oracle(&n->child[i]);
    for (int i = 0; i < n->children && n->op == FJP_COMPLETERS; i++) {
        if (fjp_completer_ok(&n->child[i])) continue;
        n->child[i].counts = false;
        /* If a root fails, the nodes below it see the failure. */
        if (!n->in_tree) may_be_told(&n->child[i]);
    }
    n->want = value_of(n, true);
}

void fjp_order(int *order, int n, int arg)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--, arg = arg * 5 + 3) {
        int k = (arg & 0xff) % (i + 1), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

/* ---- Decoding ------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    size_t left;
};

static int next_byte(struct reader *r)
{
    if (r->left == 0) return 0;
    r->left--;
    return *r->at++;
}

static fjp_node *new_nodes(fjp_program *p, int *n)
{
    int left = FJP_MOST_NODES - p->nodes;

    if (*n > left) *n = left;
    fjp_node *first = p->node + p->nodes;
    p->nodes += *n;
    for (int i = 0; i < *n; i++) {
        first[i].program = p;
        first[i].number = fjp_mix(1, (uint64_t)(first + i - p->node));
        first[i].most = 1;
        first[i].counts = true;
    }
    return first;
}

/* Replaces operations that would be invalid here, or that could wait forever. */
static enum fjp_op legal_op(const fjp_node *n, int byte)
{
    const fjp_program *p = n->program;
    enum fjp_op op = (enum fjp_op)(byte % FJP_OPS);

    if (op == FJP_CROSS && (p->mode != FJP_CROSSES || p->tight || n->outside)) op = FJP_FUTURES;
    if (op == FJP_LOCAL && p->mode != FJP_POLLS) op = FJP_FORK;
    if (n->outside && (op == FJP_FORK || op == FJP_INVOKE || op == FJP_LOCAL)) op = FJP_SUBMIT;
    return op;
}

static bool moves_children(const fjp_node *n)
{
    switch (n->op) {
        case FJP_ELSEWHERE: return true;
        case FJP_SUBMIT:
        case FJP_TYPED:
        case FJP_TOKEN:
        case FJP_ACTIONS:
        case FJP_FUTURES:
        case FJP_RACE:
        case FJP_GROUP:
        case FJP_CALLS:
        case FJP_TIMERS: return (n->arg & 128) != 0;
        case FJP_COMPLETERS: return (n->arg & 128) != 0 && !n->in_tree;
        default: return false;
    }
}

/* Sets what follows for a child from the operation of its parent. */
static void inherit(const fjp_node *n, fjp_node *c)
{
    bool away = moves_children(n) && (!n->program->tight || n->pool == 0);

    c->pool = away ? 1 - n->pool : n->pool;
    c->interruptible = n->interruptible;
    c->typed = n->typed || n->op == FJP_TYPED;
    switch (n->op) {
        case FJP_TOKEN:
            c->counts = !fjp_token_spares(n);
            c->interruptible |= !c->counts;
            break;
        case FJP_ACTIONS: c->counts = false; break;
        case FJP_RACE:
            c->counts = false;
            c->interruptible = true;
            c->open = (n->arg & 64) != 0;
            break;
        case FJP_GROUP:
            c->counts = !fjp_group_spares(n);
            /* If one is refused, the others are cancelled. */
            c->interruptible |= !c->counts || n->program->ends != 0 || n->program->faults;
            break;
        case FJP_TIMERS: {
            enum fjp_timer_way way = fjp_timer_way(n);
            bool series = way == FJP_RATE || way == FJP_DELAY || way == FJP_RATE_CANCELLED;
            c->counts = way == FJP_ONCE;
            c->interruptible |= !c->counts;
            if (series) c->most = 1 << 30;
            break;
        }
        case FJP_COMPLETERS: c->in_tree = true; break;
        default: break;
    }
}

static void decode(struct reader *r, fjp_node *n, int depth)
{
    n->op = legal_op(n, next_byte(r));
    if (n->most > 1) n->op = FJP_LEAF; /* it runs several times */
    if (n->op == FJP_LEAF && !n->outside) {
        n->arg = next_byte(r);
        n->code = n->arg % 8 == 7 ? n->arg : FJ_OK;
        return;
    }
    int shape = next_byte(r);
    n->arg = next_byte(r);
    n->code = shape >> 5 == 7 ? 1 + (shape & 31) : FJ_OK;
    if (n->op == FJP_LEAF) n->op = FJP_SUBMIT;
    if (n->op == FJP_REDUCE || depth >= FJP_MOST_DEPTH) return;
    n->children = 1 + (shape & 3) % FJP_MOST_CHILDREN;
    n->child = new_nodes(n->program, &n->children);
    for (int i = 0; i < n->children; i++) inherit(n, &n->child[i]);
    for (int i = 0; i < n->children; i++) decode(r, &n->child[i], depth + 1);
}

static const char *const op_names[FJP_OPS] = {"leaf",      "fork",  "invoke",  "submit",    "typed",
                                              "elsewhere", "token", "actions", "reduce",    "block",
                                              "local",     "look",  "futures", "race",      "group",
                                              "cross",     "calls", "timers",  "completers"};

static void show(const fjp_node *n, int depth)
{
    fprintf(stderr, "%*s%d: %s, argument %d, code %d, pool %d%s%s%s\n", 2 * depth + 2, "",
            (int)(n - n->program->node), op_names[n->op], n->arg, n->code, n->pool,
            n->interruptible ? ", interruptible" : "", n->open ? ", open" : "",
            n->counts ? "" : ", does not count");
    for (int i = 0; i < n->children; i++) show(&n->child[i], depth + 1);
}

static void show_all(const fjp_program *p, int pools, int outsides)
{
    fprintf(stderr, "pools %#x, mode %d, ends %d%s%s\n", (unsigned)pools, (int)p->mode, p->ends,
            p->tight ? ", tight" : "", p->faults ? ", faults" : "");
    for (int i = 0; i < outsides; i++) show(&p->node[i], 0);
}

/* ---- Pools ---------------------------------------------------------------------------------- */

static const int worker_counts[4] = {1, 2, 3, 8};

/* Pools that are kept for later programs, by the bits of byte 0 that describe them. */
static struct kept {
    fj_pool *pool;
    atomic_long errors;
    atomic_int starts, stops;
    int uses;
} kept[64];

static int kept_start(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    atomic_fetch_add(&((struct kept *)arg)->starts, 1);
    return 0;
}

static void kept_stop(fj_pool *pool, int worker, void *arg)
{
    (void)pool, (void)worker;
    atomic_fetch_add(&((struct kept *)arg)->stops, 1);
}

static void kept_error(fj_pool *pool, int code, void *arg)
{
    (void)pool;
    atomic_fetch_add(&((struct kept *)arg)->errors, code);
}

static void dispose(struct kept *k)
{
    if (k->pool == NULL) return;
    fjp_unwatch(k->pool);
    FJP_CHECK_EQ(fj_pool_destroy(k->pool), FJ_OK);
    k->pool = NULL;
    FJP_CHECK_EQ(atomic_load(&k->starts), atomic_load(&k->stops));
    atomic_store(&k->starts, 0);
    atomic_store(&k->stops, 0);
}

void fjp_finish(void)
{
    for (int i = 0; i < 64; i++) dispose(&kept[i]);
}

static void create(struct kept *k, int key, bool faults)
{
    fj_pool_options o = {0};

    o.parallelism = worker_counts[key & 3];
    o.flags = ((unsigned)key >> 2) & 7;
    o.max_threads = (key & 32) != 0 ? o.parallelism : 0;
    o.arg = k;
    o.on_start = kept_start;
    o.on_stop = kept_stop;
    o.on_error = kept_error;
    int err = fj_pool_create(&k->pool, &o);
    if (err != FJ_OK && faults) { /* This is allowed. The program continues without the fault. */
        FJP_CHECK_EQ(err, FJ_ENOMEM);
        for (int i = 0; i < FJI_FAULT_N; i++) fji_fault_set((enum fji_fault)i, 1, 0);
        err = fj_pool_create(&k->pool, &o);
    }
    FJP_CHECK_EQ(err, FJ_OK);
    k->uses = 0;
    fjp_watch(k->pool);
}

static void take_pool(fjp_program *p, int which, int key, bool fresh)
{
    struct kept *k = &kept[key];

    if (fresh || ++k->uses > 200) dispose(k);
    if (k->pool == NULL) create(k, key, p->faults);
    p->pool[which] = k->pool;
    p->errors[which] = &k->errors;
    atomic_store(&k->errors, 0);
}

static void take_pools(fjp_program *p, int byte)
{
    bool fresh = (byte & 128) != 0 || p->faults;

    take_pool(p, 0, byte & 63, fresh);
    if ((byte & 64) != 0 && (p->pool[1] = fj_common_pool()) != NULL)
        p->common[1] = true;
    else
        take_pool(p, 1, (byte & 63) ^ 1, fresh);
}

static void leave_pools(fjp_program *p, int byte)
{
    for (int i = 0; i < 2; i++) {
        int key = (byte & 63) ^ i;
        if (p->common[i]) continue;
        if ((byte & 128) != 0 || p->faults || (i == 0 && p->ends != 0))
            dispose(&kept[key]);
        else
            FJP_CHECK(fj_pool_set_parallelism(p->pool[i], worker_counts[key & 3]) > 0);
    }
}

/* ---- Running a node ------------------------------------------------------------------------- */

fj_pool *fjp_here(const fjp_node *n)
{
    return n->program->pool[n->pool];
}

fj_pool *fjp_where(const fjp_node *child)
{
    return fjp_here(child);
}

bool fjp_may_break(const fjp_node *n)
{
    return n->interruptible || n->program->ends == 2;
}

bool fjp_may_drop(const fjp_node *n)
{
    return n->program->ends == 2;
}

void fjp_expect(fjp_node *c, int low, int high)
{
    c->low = fjp_may_drop(c) ? 0 : low;
    c->high = high;
}

void fjp_never_ran(fjp_node *n, fjp_node *c)
{
    FJP_CHECK_EQ(atomic_load(&c->runs), 0);
    c->low = c->high = 0;
    if (c->counts) atomic_store(&n->tainted, true);
}

void fjp_settle_runs(fjp_node *n, fjp_node *c)
{
    FJP_CHECK_EQ(atomic_load(&c->runs), 1);
    c->low = c->high = 1;
    if (atomic_load(&c->tainted)) {
        if (c->counts) atomic_store(&n->tainted, true);
    } else if (c->value != c->want) {
        fjp_fail(__FILE__, __LINE__, "wrong value of a node, operation %d", (int)c->op);
    }
}

void fjp_settle(fjp_node *n, fjp_node *c, int got)
{
    if (got == FJ_ECANCELED && fjp_may_drop(n)) {
        fjp_never_ran(n, c);
        return;
    }
    FJP_CHECK_EQ(got, c->code);
    fjp_settle_runs(n, c);
}

bool fjp_refused(fjp_node *n, fjp_node *c, int err)
{
    if (err == FJ_OK) return false;
    bool memory = (err == FJ_ENOMEM || err == FJ_EAGAIN) && n->program->faults;
    bool shut = err == FJ_EREJECTED && fjp_is_ending(n->program) && c->pool == 0;
    if (!memory && !shut)
        fjp_fail(__FILE__, __LINE__, "operation %d was refused: %d", (int)n->op, err);
    fjp_never_ran(n, c);
    return true;
}

void fjp_plain_children(fjp_node *n)
{
    if (n->outside)
        fjp_submit(n);
    else
        fjp_fork(n);
}

static void (*const operations[FJP_OPS])(fjp_node *) = {
    [FJP_FORK] = fjp_fork,       [FJP_INVOKE] = fjp_invoke,       [FJP_SUBMIT] = fjp_submit,
    [FJP_TYPED] = fjp_typed,     [FJP_ELSEWHERE] = fjp_elsewhere, [FJP_TOKEN] = fjp_token,
    [FJP_ACTIONS] = fjp_actions, [FJP_REDUCE] = fjp_reduce,       [FJP_BLOCK] = fjp_block,
    [FJP_LOCAL] = fjp_local,     [FJP_LOOK] = fjp_look,           [FJP_FUTURES] = fjp_futures,
    [FJP_RACE] = fjp_race,       [FJP_GROUP] = fjp_group,         [FJP_CROSS] = fjp_cross,
    [FJP_CALLS] = fjp_calls,     [FJP_TIMERS] = fjp_timers,       [FJP_COMPLETERS] = fjp_completers,
};

/* Wastes a little time, so that other threads run in between. */
static void dawdle(int arg)
{
    if ((arg & 15) == 15) sched_yield();
    for (volatile int i = (arg & 7) * 20; i > 0;) i--;
}

static void check_place(const fjp_node *n)
{
    /* Without memory an outside thread may run the task itself, without a worker. The thread that
     * stops a pool runs the typed tasks that have not begun. */
    if (n->program->faults || (n->typed && n->program->ends == 2)) return;
    fj_pool *pool = fj_current_pool();
    if (pool != fjp_here(n))
        fjp_fail(__FILE__, __LINE__, "node %d is run in %s", (int)(n - n->program->node),
                 pool == NULL ? "no pool" : "the wrong pool");
    FJP_CHECK(fj_current_worker() >= 0);
    if (!fjp_may_break(n)) FJP_CHECK(!fj_is_cancelled() && !fj_is_stopping());
}

int fjp_body(fjp_node *n)
{
    int before = atomic_fetch_add(&n->runs, 1);

    if (before >= n->most)
        fjp_fail(__FILE__, __LINE__, "operation %d was run too often", (int)n->op);
    atomic_fetch_add(&n->program->ran, 1);
    if (!n->outside) check_place(n);
    if (n->waits != NULL) fjp_cross_wait(n);
    if (n->op == FJP_LEAF) dawdle(n->arg);
    if (operations[n->op] != NULL && (n->children > 0 || n->op == FJP_REDUCE)) operations[n->op](n);
    /* In a tree of completers the children have not run yet. */
    if (!n->in_tree || n->op != FJP_COMPLETERS) n->value = value_of(n, false);
    return n->open ? FJ_PENDING : n->code;
}

int fjp_task_run(fj_task *t)
{
    return fjp_body((fjp_node *)(void *)t);
}

/* ---- One program ---------------------------------------------------------------------------- */

static void *outside_main(void *arg)
{
    (void)fjp_body(arg);
    return NULL;
}

static void run_outsides(fjp_program *p, int outsides)
{
    pthread_t thread[3];

    for (int i = 1; i < outsides; i++)
        FJP_CHECK_EQ(pthread_create(&thread[i], NULL, outside_main, &p->node[i]), 0);
    (void)fjp_body(&p->node[0]);
    for (int i = 1; i < outsides; i++) pthread_join(thread[i], NULL);
}

/* Runs in a separate thread, because the thread that stops a pool may have to run typed tasks. */
static void *end_pool(void *arg)
{
    fjp_program *p = arg;
    struct timespec t = {.tv_nsec = p->end_after_ns};

    if (p->end_after_ns > 0) nanosleep(&t, NULL);
    atomic_store(&p->ending, 1);
    int err = p->ends == 2 ? fj_pool_shutdown_now(p->pool[0]) : fj_pool_shutdown(p->pool[0]);
    FJP_CHECK_EQ(err, FJ_OK);
    FJP_CHECK(fj_pool_is_shutdown(p->pool[0]));
    atomic_store(&p->ended, 1);
    return NULL;
}

static void await_pools(fjp_program *p)
{
    for (int i = 0; i < 2; i++) {
        bool shut = i == 0 && p->ends != 0;
        FJP_CHECK_EQ(shut ? fj_pool_await_termination(p->pool[i], FJ_FOREVER)
                          : fj_pool_await_quiescence(p->pool[i], FJ_FOREVER),
                     FJ_OK);
    }
}

/*
 * Waits until nothing runs in either pool. A task of one pool may have started something in the
 * other pool or left a timer, so this repeats until there was nothing new twice in a row.
 */
static void await_rest(fjp_program *p)
{
    for (int quiet = 0; quiet < 2;) {
        long before = atomic_load(&p->ran);
        int timers = 0;
        await_pools(p);
        for (int i = 0; i < p->nodes; i++) timers += fjp_timer_finish(&p->node[i]);
        quiet = timers == 0 && before == atomic_load(&p->ran) ? quiet + 1 : 0;
    }
}

static void check_rest(fjp_program *p)
{
    for (int i = 0; i < 2; i++) {
        fj_stats s;
        FJP_CHECK_EQ(fj_pool_stats(p->pool[i], &s), FJ_OK);
        FJP_CHECK_EQ(s.queued, 0);
        FJP_CHECK_EQ(s.submitted, 0);
        FJP_CHECK_EQ(s.blocked, 0);
        FJP_CHECK_EQ(fj_pool_delayed_count(p->pool[i]), 0);
        FJP_CHECK_EQ(s.state, i == 0 && p->ends != 0 ? 3 : 0);
        /* The code of an action that a thread of no pool has taken and run is not reported to
         * on_error. */
        if (p->errors[i] != NULL && !(p->faults && p->mode == FJP_POLLS))
            FJP_CHECK_EQ(atomic_load(p->errors[i]), atomic_load(&p->wrong[i]));
    }
    FJP_CHECK_EQ(p->guarded, atomic_load(&p->guarded_too));
}

static void check_nodes(const fjp_program *p)
{
    for (int i = 0; i < p->nodes; i++) {
        const fjp_node *n = &p->node[i];
        int runs = atomic_load(&n->runs);
        if (runs < n->low || runs > n->high)
            fjp_fail(__FILE__, __LINE__, "node %d, operation %d: ran %d times, not %d to %d", i,
                     (int)n->op, runs, n->low, n->high);
        bool exact = runs == 1 && n->most == 1 && !atomic_load(&n->tainted);
        if (n->in_tree && n->op == FJP_COMPLETERS && atomic_load(&n->completions) == 0)
            exact = false;
        if (exact && n->value != n->want)
            fjp_fail(__FILE__, __LINE__, "node %d, operation %d: wrong value", i, (int)n->op);
        if (atomic_load(&n->tainted)) FJP_CHECK(p->ends != 0 || p->faults || n->interruptible);
    }
}

static void set_faults(fjp_program *p, struct reader *r)
{
    static const enum fji_fault kinds[3] = {FJI_FAULT_ALLOC, FJI_FAULT_COMMIT, FJI_FAULT_THREAD};
    enum fji_fault kind = kinds[next_byte(r) % 3];
    long n = 1 + next_byte(r) % 48, count = next_byte(r);

    p->faults = true;
    fji_fault_set(kind, n, count >= 224 ? 1000000000 : 1 + count % 32);
}

static void clear_faults(void)
{
    for (int i = 0; i < FJI_FAULT_N; i++) fji_fault_set((enum fji_fault)i, 1, 0);
}

static void start_outsides(fjp_program *p, struct reader *r, int outsides)
{
    (void)new_nodes(p, &outsides);
    for (int i = 0; i < outsides; i++) {
        p->node[i].outside = true;
        fjp_expect(&p->node[i], 1, 1);
    }
    for (int i = 0; i < outsides; i++) decode(r, &p->node[i], 0);
    for (int i = 0; i < outsides; i++) oracle(&p->node[i]);
}

long fjp_run(const uint8_t *bytes, size_t size, unsigned flags)
{
    static const int outside_counts[4] = {1, 1, 2, 3};
    struct reader r = {bytes, size < FJP_MOST_BYTES ? size : FJP_MOST_BYTES};
    fjp_program p = {0};
    pthread_t ender;

    if ((flags & FJP_FAULTS) != 0) set_faults(&p, &r);
    int pools = next_byte(&r), how = next_byte(&r);
    p.mode = (enum fjp_mode)(how & 3);
    p.ends = (how >> 2 & 3) % 3;
    p.tight = (pools & 32) != 0 || p.faults;
    p.end_after_ns = (how >> 6) * 15 * FJP_US;
    p.node = calloc(FJP_MOST_NODES, sizeof *p.node);
    FJP_CHECK(p.node != NULL);
    pthread_mutex_init(&p.mutex, NULL);
    pthread_cond_init(&p.cond, NULL);
    start_outsides(&p, &r, outside_counts[how >> 4 & 3]);
    if ((flags & FJP_SHOW) != 0) show_all(&p, pools, outside_counts[how >> 4 & 3]);
    take_pools(&p, pools);

    if (p.ends != 0) FJP_CHECK_EQ(pthread_create(&ender, NULL, end_pool, &p), 0);
    run_outsides(&p, outside_counts[how >> 4 & 3]);
    if (p.ends != 0) pthread_join(ender, NULL);
    await_rest(&p);
    check_rest(&p);
    leave_pools(&p, pools);
    clear_faults();
    check_nodes(&p);
    pthread_cond_destroy(&p.cond);
    pthread_mutex_destroy(&p.mutex);
    free(p.node);
    return atomic_load(&p.ran);
}
