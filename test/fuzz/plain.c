/* SPDX-License-Identifier: MIT */
/*
 * plain.c - random programs: children as structured tasks, typed tasks and actions
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <forkjoin/algo.h>
#include <forkjoin/block.h>

#include "fuzz/node.h"

static void task_init(fjp_node *c)
{
    fj_task_init(&c->is.task, fjp_task_run);
    fjp_expect(c, 1, 1);
}

/* ---- Forks ---------------------------------------------------------------------------------- */

static void join_some_way(fjp_node *n, fjp_node *c, int way)
{
    fj_task *t = &c->is.task;

    if (way == 0)
        fjp_settle(n, c, fj_join(t));
    else if (way == 1)
        fjp_settle(n, c, fj_join_stolen(t));
    else if (fj_unfork(t))
        fjp_settle(n, c, fjp_task_run(t));
    else
        fjp_settle(n, c, fj_join_stolen(t));
}

static void fork_all(fjp_node *n)
{
    for (int i = 0; i < n->children; i++) {
        task_init(&n->child[i]);
        fj_fork(&n->child[i].is.task);
    }
}

static void join_all(fjp_node *n)
{
    int order[FJP_MOST_CHILDREN];

    fjp_order(order, n->children, n->arg);
    if ((n->arg & 3) == 0) /* youngest first */
        for (int i = 0; i < n->children; i++) order[i] = n->children - 1 - i;
    for (int i = 0; i < n->children; i++)
        join_some_way(n, &n->child[order[i]], (n->arg >> 2) % 4 == 0 ? 0 : (n->arg >> i) % 3);
}

void fjp_fork(fjp_node *n)
{
    fork_all(n);
    join_all(n);
}

void fjp_invoke(fjp_node *n)
{
    fj_task *tasks[FJP_MOST_CHILDREN];
    int first = FJ_OK, got;

    for (int i = 0; i < n->children; i++) {
        task_init(&n->child[i]);
        tasks[i] = &n->child[i].is.task;
    }
    if (n->children == 2 && n->arg % 3 == 0)
        got = fj_invoke_both(tasks[0], tasks[1]);
    else if (n->arg % 2 == 0)
        got = fj_invoke_all(tasks, (size_t)n->children);
    else
        got = fj_invoke_array(n->child, (size_t)n->children, sizeof n->child[0]);
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        bool dropped = fjp_may_drop(n) && atomic_load(&c->runs) == 0;
        int code = dropped ? FJ_ECANCELED : c->code;
        if (first == FJ_OK) first = code;
        fjp_settle(n, c, code);
    }
    FJP_CHECK_EQ(got, first);
}

/* ---- Submissions ---------------------------------------------------------------------------- */

static int submit_some_way(fj_pool *pool, fjp_node *c, int way)
{
    if (way == 0) return fj_submit_external(pool, &c->is.task);
    return way == 1 ? fj_submit_lazy(pool, &c->is.task) : fj_submit(pool, &c->is.task);
}

void fjp_submit(fjp_node *n)
{
    int order[FJP_MOST_CHILDREN];
    bool there[FJP_MOST_CHILDREN];

    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        bool late = n->outside && c->pool == 0 && atomic_load(&n->program->ended);
        task_init(c);
        int err = submit_some_way(fjp_where(c), c, (n->arg >> i) % 4);
        there[i] = !fjp_refused(n, c, err);
        FJP_CHECK(!late || !there[i]); /* shutdown had returned before the call */
    }
    fjp_order(order, n->children, n->arg);
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[order[i]];
        if (there[order[i]]) fjp_settle(n, c, fj_join(&c->is.task));
    }
}

/* Checks the result of a call that starts a task and waits for it. */
static void settle_invoked(fjp_node *n, fjp_node *c, int got)
{
    if (got == FJ_EREJECTED || got == FJ_ENOMEM)
        (void)fjp_refused(n, c, got);
    else
        fjp_settle(n, c, got);
}

void fjp_elsewhere(fjp_node *n)
{
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        static const enum fj_caller all[] = {FJ_CALLER_DEFAULT, FJ_CALLER_HELPS, FJ_CALLER_BLOCKS};
        enum fj_caller by = all[(n->arg >> i) % 3];
        task_init(c);
        settle_invoked(n, c, fj_invoke_mode(fjp_where(c), &c->is.task, by));
    }
}

/* ---- Typed ---------------------------------------------------------------------------------- */

FJ_TASK(int, typed_child, fjp_node *, c)
{
    return fjp_body(c);
}

FJ_TASK(int, typed_children, fjp_node *, n)
{
    typed_child_task handle[FJP_MOST_CHILDREN];
    int order[FJP_MOST_CHILDREN];
    int called = (n->arg & 1) != 0 ? 0 : n->children - 1;

    fjp_order(order, n->children, n->arg);
    for (int i = 0; i < n->children; i++)
        if (i != called) typed_child_fork(FJ, &handle[i], &n->child[i]);
    FJP_CHECK_EQ(typed_child_call(FJ, &n->child[called]), n->child[called].code);
    for (int i = 0; i < n->children; i++) {
        int k = order[i];
        if (k != called) FJP_CHECK_EQ(typed_child_join(FJ, &handle[k]), n->child[k].code);
    }
    return n->arg;
}

void fjp_typed(fjp_node *n)
{
    int r = -1;

    for (int i = 0; i < n->children; i++) fjp_expect(&n->child[i], 1, 1);
    int err = typed_children_invoke(fjp_where(n->child), &r, n);
    FJP_CHECK(err != FJ_OK ? r == -1 : r == n->arg);
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        if (err == FJ_OK)
            fjp_settle_runs(n, c); /* typed tasks are never dropped */
        else
            settle_invoked(n, c, err);
    }
}

/* ---- Tokens --------------------------------------------------------------------------------- */

enum { TOKEN_ALONE, TOKEN_BELOW, TOKEN_DEAD, TOKEN_DIES };

bool fjp_token_spares(const fjp_node *n)
{
    return n->arg % 4 >= TOKEN_DEAD;
}

void fjp_token(fjp_node *n)
{
    fj_token outer, token;
    fjp_deed deed = {.kind = FJP_CANCEL_TOKEN, .token = (n->arg & 4) != 0 ? &outer : &token};
    int way = n->arg % 4;

    fj_token_init(&outer, NULL);
    fj_token_init(&token, way == TOKEN_ALONE ? NULL : &outer);
    if (way == TOKEN_DEAD) fj_token_cancel(deed.token);
    if (way == TOKEN_DIES) fjp_have_done(&deed);
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        task_init(c);
        if (way >= TOKEN_DEAD) c->low = 0;
        int got = fj_invoke_token(fjp_where(c), &c->is.task, &token);
        if (way >= TOKEN_DEAD && got == FJ_ECANCELED)
            fjp_never_ran(n, c);
        else
            settle_invoked(n, c, got);
        if (way == TOKEN_DEAD) FJP_CHECK_EQ(atomic_load(&c->runs), 0);
    }
    if (way == TOKEN_DIES) fjp_await_done(&deed);
    FJP_CHECK_EQ(fj_token_is_cancelled(&token), way >= TOKEN_DEAD);
}

/* ---- Actions -------------------------------------------------------------------------------- */

static int action_run(void *arg)
{
    fjp_node *c = arg;
    int code = fjp_body(c);

    if (c->program->mode == FJP_QUIESCES && c->number % 4 == 0) {
        fj_help_quiesce();
        /* A worker in fj_help_quiesce() counts as idle, so the program may already be freed
         * here. */
        return FJ_OK;
    }
    atomic_fetch_add(&c->program->wrong[c->pool], code);
    return code;
}

void fjp_actions(fjp_node *n)
{
    for (int i = 0; i < n->children; i++) {
        fjp_node *c = &n->child[i];
        fjp_expect(c, 1, 1);
        (void)fjp_refused(n, c, fj_execute(fjp_where(c), action_run, c));
    }
}

/* ---- Map and reduce ------------------------------------------------------------------------- */

/* A map x -> a x + b. Composing two maps is associative but not commutative. */
struct affine {
    uint64_t a, b;
    unsigned char rest[384]; /* not always used in full */
};

static size_t reduce_length(const fjp_node *n)
{
    return 1 + (size_t)(n->arg * 3 % 200);
}

/* The code that the element at this index returns, or 0. */
static int reduce_bad(const fjp_node *n, size_t at)
{
    size_t length = reduce_length(n);

    if ((n->arg & 16) == 0) return 0;
    if (at == length / 3) return 100;
    /* Both elements return the same code, because it is not defined which of two codes is
     * returned. */
    return at == length - length / 4 ? 100 : 0;
}

static struct affine affine_at(const fjp_node *n, size_t at)
{
    return (struct affine){.a = (n->number + at) | 1, .b = fjp_mix(n->number, at)};
}

static void affine_then(struct affine *into, uint64_t a, uint64_t b)
{
    into->b = a * into->b + b;
    into->a = a * into->a;
}

static const struct affine identity = {.a = 1};

static int reduce_fold(size_t begin, size_t end, void *acc, void *arg)
{
    const fjp_node *n = arg;
    struct affine *into = acc;

    for (size_t i = begin; i < end; i++) {
        struct affine x = affine_at(n, i);
        if (reduce_bad(n, i) != 0) return reduce_bad(n, i);
        affine_then(into, x.a, x.b);
    }
    return FJ_OK;
}

static int reduce_combine(void *into, const void *right, void *arg)
{
    const struct affine *r = right;

    (void)arg;
    affine_then(into, r->a, r->b);
    return FJ_OK;
}

uint64_t fjp_reduce_serial(const fjp_node *n)
{
    struct affine all = identity;
    int code = reduce_fold(0, reduce_length(n), &all, (void *)(uintptr_t)n);

    return code != FJ_OK ? (uint64_t)code : fjp_mix(all.a, all.b);
}

void fjp_reduce(fjp_node *n)
{
    struct affine all;
    fj_algo_options how = {.pool = fjp_here(n), .grain = (size_t)(n->arg % 9)};
    size_t bytes = (n->arg & 32) != 0 ? sizeof all : 2 * sizeof(uint64_t);
    const fjp_program *p = n->program;
    int got = fj_reduce(0, reduce_length(n), reduce_fold, reduce_combine, &identity, bytes, n, &all,
                        &how);

    if (got == FJ_OK || got >= 100) {
        n->extra = got != FJ_OK ? (uint64_t)got : fjp_mix(all.a, all.b);
        return;
    }
    bool cancelled = got == FJ_ECANCELED && fjp_may_break(n);
    bool rejected = got == FJ_EREJECTED && fjp_is_ending(p);
    if (!cancelled && !rejected && !(got == FJ_ENOMEM && p->faults)) FJP_CHECK_EQ(got, FJ_OK);
    atomic_store(&n->tainted, true);
}

/* ---- Other blocking waits ------------------------------------------------------------------- */

static int ready_at_last(void *arg)
{
    return *(int *)arg <= 0;
}

static int block_once(void *arg)
{
    struct timespec t = {.tv_nsec = 3000};

    nanosleep(&t, NULL);
    --*(int *)arg;
    return 0;
}

static void guarded_section(fjp_program *p, bool waits)
{
    FJP_CHECK_EQ(fj_block_mutex_lock(&p->mutex), FJ_OK);
    long seen = ++p->guarded;
    atomic_fetch_add(&p->guarded_too, 1);
    if (waits) {
        int got = fj_block_cond_wait(&p->cond, &p->mutex, 20 * FJP_US);
        FJP_CHECK(got == FJ_OK || got == FJ_ETIMEDOUT);
    } else {
        FJP_CHECK_EQ(p->guarded, seen);
    }
    pthread_cond_signal(&p->cond);
    pthread_mutex_unlock(&p->mutex);
}

static void through_a_pipe(void)
{
    int fd[2];
    char c = 'x';

    if (pipe(fd) != 0) return;
    struct pollfd one = {.fd = fd[0], .events = POLLIN};
    FJP_CHECK_EQ(fj_block_poll(&one, 1, 0), 0);
    FJP_CHECK_EQ(fj_block_write(fd[1], &c, 1), 1);
    FJP_CHECK_EQ(fj_block_poll(&one, 1, FJ_FOREVER), 1);
    FJP_CHECK_EQ(fj_block_read(fd[0], &c, 1), 1);
    close(fd[0]);
    close(fd[1]);
}

static void semaphore_in_vain(void)
{
    sem_t s;

    sem_init(&s, 0, 0);
    FJP_CHECK_EQ(fj_block_sem_wait(&s, 5 * FJP_US), FJ_ETIMEDOUT);
    sem_post(&s);
    FJP_CHECK_EQ(fj_block_sem_wait(&s, 0), FJ_OK);
    sem_destroy(&s);
}

static void wait_some_way(fjp_node *n)
{
    fjp_deed deed = {.kind = FJP_NOTHING};
    fj_blocking b;
    int times = 1 + n->arg % 3, got = FJ_OK;

    switch (n->arg >> 3 & 7) {
        case 0: got = fj_sleep_ns(10 * FJP_US); break;
        case 1: got = fj_managed_block(ready_at_last, block_once, &times); break;
        case 2: guarded_section(n->program, false); break;
        case 3: guarded_section(n->program, true); break;
        case 4:
            fjp_have_done(&deed);
            fjp_await_done(&deed);
            break;
        case 5:
            FJP_CHECK_EQ(fj_block_begin(&b), FJ_OK);
            (void)block_once(&times);
            fj_block_end(&b);
            break;
        case 6: through_a_pipe(); break;
        default: semaphore_in_vain();
    }
    if (got != FJ_OK) FJP_CHECK(got == FJ_ECANCELED && fjp_may_break(n) && !n->outside);
}

void fjp_block(fjp_node *n)
{
    if ((n->arg & 64) == 0) wait_some_way(n);
    fjp_plain_children(n);
    if ((n->arg & 64) != 0) wait_some_way(n);
}

/* ---- Tasks taken from the queues ------------------------------------------------------------ */

static size_t take_some_way(const fjp_node *n, fj_taken *taken)
{
    switch (n->arg >> 4 & 3) {
        case 0: return (size_t)fj_take_local(taken);
        case 1: return (size_t)fj_take_task(taken);
        case 2: return (size_t)fj_take_submission(taken);
        default: return fj_pool_drain(fjp_here(n), taken, 4);
    }
}

void fjp_local(fjp_node *n)
{
    fj_taken taken[4];

    fork_all(n);
    (void)fj_peek_local();
    size_t got = take_some_way(n, taken);
    for (size_t i = 0; i < got; i++) {
        bool drops = fjp_may_drop(n) && (n->arg & 8) != 0 && fj_taken_task(&taken[i]) != NULL;
        if (drops)
            fj_taken_cancel(&taken[i]);
        else
            fj_taken_run(&taken[i]);
    }
    join_all(n);
}

/* ---- The state of the pool ------------------------------------------------------------------ */

static void count_line(const char *text, void *arg)
{
    FJP_CHECK(text[0] != 0);
    ++*(int *)arg;
}

static void look(fjp_node *n, fj_pool *pool)
{
    fj_stats s;
    char text[300];
    int lines = 0;

    FJP_CHECK_EQ(fj_pool_stats(pool, &s), FJ_OK);
    FJP_CHECK(s.threads >= 0 && s.parallelism >= 0 && s.idle >= 0 && s.blocked >= 0);
    FJP_CHECK(fj_pool_describe(pool, text, sizeof text) > 0);
    if ((n->arg & 32) != 0 && !FJP_TSAN) fj_pool_dump(pool, count_line, &lines);
    (void)fj_pool_has_queued_submissions(pool);
    (void)fj_pool_queued_task_count(pool);
    (void)fj_worker_surplus();
    if (n->outside) return;
    if (!n->program->faults) FJP_CHECK(!fj_pool_is_terminated(fjp_here(n)));
    /* The calling task is running. */
    if (!fjp_may_drop(n) && !n->program->faults) FJP_CHECK(!fj_pool_is_quiescent(fjp_here(n)));
}

void fjp_look(fjp_node *n)
{
    if ((n->arg & 64) != 0 && !n->program->tight && !n->program->common[n->pool])
        FJP_CHECK(fj_pool_set_parallelism(fjp_here(n), 1 + n->arg % 8) >= 1);
    look(n, n->program->pool[n->arg & 1]);
    if (n->outside && (n->arg & 2) != 0) {
        int got = fj_pool_await_quiescence(n->program->pool[n->arg & 1], 30 * FJP_US);
        FJP_CHECK(got == FJ_OK || got == FJ_ETIMEDOUT);
    }
    fjp_plain_children(n);
}
