/* SPDX-License-Identifier: MIT */
/*
 * micro.c - single figures of this library
 *
 * The program is called as `micro [--quick] [--idle SECONDS] [PART...]`; the parts are fork, leaf,
 * external and idle. It prints one line for each figure: its name, its value and a description.
 *
 *   fork_join_*_ns      one fork and its join, in a pool with one worker, where no task is stolen
 *   long_leaf_*_us      a worker forks ten tasks and then computes for 50 ms without calling the
 *                       library; this is the longest time from a fork to the start of its task
 *   external_*_us       one fj_invoke() of an empty task by a thread outside the pool
 *   idle_cpu_ms_in_Ns   processor time that the process uses in N seconds without work
 */
#define _POSIX_C_SOURCE 200809L

#include <forkjoin.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "workload.h"

enum {
    FIB_N = 27,
    FIB_FORKS = 317810, /* number of forks in fib(FIB_N): one in each call with n >= 2 */
    LEAF_TASKS = 10,
    ROUNDS_MAX = 5000
};

#define LEAF_NS 50000000u      /* how long the forking worker computes */
#define LEAF_HOLD_NS 10000000u /* how long a task sleeps if each task needs its own worker */
#define LEAF_PAUSE_NS 2000000u /* pause after each round, in which the workers fall asleep */
#define IDLE_PAUSE_NS 100000000u

/* Number of rounds of each part, and seconds of the idle time. plans[1] is for --quick. */
typedef struct plan {
    int fork_rounds, leaf_rounds, external_rounds;
    double idle_seconds;
} plan;

static const plan plans[2] = {{400, 20, 5000, 10.0}, {40, 4, 500, 1.0}};

static void must(int code)
{
    if (code == FJ_OK) return;
    fprintf(stderr, "micro: %s: %s\n", fj_error_name(code), fj_strerror(code));
    exit(1);
}

static fj_pool *make_pool(int workers)
{
    fj_pool *pool;
    fj_pool_options o = {0};
    o.parallelism = workers;
    must(fj_pool_create(&pool, &o));
    return pool;
}

static void print_figure(const char *name, double value, const char *what)
{
    printf("%-28s %12.2f   %s\n", name, value, what);
    fflush(stdout);
}

/* ---- a fork and its join ---- */

struct fib {
    fj_task task;
    unsigned n;
    uint64_t result;
};

static int fib_plain_run(fj_task *t);

static uint64_t fib_plain(unsigned n)
{
    if (n < 2) return n;

    struct fib a;
    fj_task_init(&a.task, fib_plain_run);
    a.n = n - 1;
    fj_fork(&a.task);
    uint64_t y = fib_plain(n - 2);
    fj_join(&a.task);
    return a.result + y;
}

static int fib_plain_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = fib_plain(f->n);
    return FJ_OK;
}

static int fib_unfork_run(fj_task *t);

static uint64_t fib_unfork(unsigned n)
{
    if (n < 2) return n;

    struct fib a;
    uint64_t x, y;
    fj_task_init(&a.task, fib_unfork_run);
    a.n = n - 1;
    fj_fork(&a.task);
    y = fib_unfork(n - 2);
    if (fj_unfork(&a.task)) {
        x = fib_unfork(n - 1);
    } else {
        fj_join(&a.task);
        x = a.result;
    }
    return x + y;
}

static int fib_unfork_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = fib_unfork(f->n);
    return FJ_OK;
}

FJ_TASK(uint64_t, fib_typed, unsigned, n)
{
    if (n < 2) return n;

    fib_typed_task a;
    fib_typed_fork(FJ, &a, n - 1);
    uint64_t y = fib_typed_call(FJ, n - 2);
    return fib_typed_join(FJ, &a) + y;
}

/* Returns the time of the shortest of `rounds` runs, in nanoseconds per fork. */
static double time_roots(fj_pool *pool, fj_task_fn *run, int rounds)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < rounds; i++) {
        struct fib root = {.n = FIB_N};
        fj_task_init(&root.task, run);
        uint64_t start = bench_now_ns();
        must(fj_invoke_mode(pool, &root.task, FJ_CALLER_BLOCKS));
        uint64_t ns = bench_now_ns() - start;
        if (ns < best) best = ns;
    }
    return (double)best / FIB_FORKS;
}

static double time_typed(fj_pool *pool, int rounds)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < rounds; i++) {
        uint64_t answer = 0;
        uint64_t start = bench_now_ns();
        must(fib_typed_invoke(pool, &answer, FIB_N));
        uint64_t ns = bench_now_ns() - start;
        if (ns < best) best = ns;
    }
    return (double)best / FIB_FORKS;
}

static void measure_fork(const plan *p)
{
    fj_pool *pool = make_pool(1);

    print_figure("fork_join_plain_ns", time_roots(pool, fib_plain_run, p->fork_rounds),
                 "fj_fork, fj_join");
    print_figure("fork_join_unfork_ns", time_roots(pool, fib_unfork_run, p->fork_rounds),
                 "fj_fork, fj_unfork, call");
    print_figure("fork_join_typed_ns", time_typed(pool, p->fork_rounds),
                 "NAME_fork, NAME_join of FJ_TASK");
    must(fj_pool_destroy(pool));
}

/* ---- a long leaf ---- */

struct leaf_task {
    fj_task task;
    uint64_t hold_ns; /* if not 0, the body sleeps, so that its worker takes no other task */
    uint64_t forked_ns, started_ns;
    int worker;
};

struct leaf_root {
    fj_task task;
    uint64_t hold_ns;
    uint64_t longest_ns; /* longest time from the fork of a task to its start */
    int own;             /* number of tasks that the forking worker ran itself */
};

static int leaf_task_run(fj_task *t)
{
    struct leaf_task *l = (struct leaf_task *)t;

    l->started_ns = bench_now_ns();
    l->worker = fj_current_worker();
    if (l->hold_ns != 0) bench_sleep_ns(l->hold_ns);
    return FJ_OK;
}

static volatile uint64_t leaf_sink;

static void compute_until(uint64_t end_ns)
{
    uint64_t x = end_ns;

    while (bench_now_ns() < end_ns)
        for (int i = 0; i < 1000; i++) x = bench_mix(x);
    leaf_sink = x;
}

static int leaf_root_run(fj_task *t)
{
    struct leaf_root *r = (struct leaf_root *)t;
    struct leaf_task task[LEAF_TASKS];
    int self = fj_current_worker();

    for (int i = 0; i < LEAF_TASKS; i++) {
        task[i].hold_ns = r->hold_ns;
        task[i].forked_ns = bench_now_ns();
        fj_task_init(&task[i].task, leaf_task_run);
        fj_fork(&task[i].task);
    }
    compute_until(bench_now_ns() + LEAF_NS);
    r->longest_ns = 0;
    r->own = 0;
    for (int i = LEAF_TASKS; i-- > 0;) {
        fj_join(&task[i].task);
        uint64_t ns = task[i].started_ns - task[i].forked_ns;
        if (task[i].worker == self) r->own++;
        if (ns > r->longest_ns) r->longest_ns = ns;
    }
    return FJ_OK;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * In the first round the pool has not started its threads yet; in the others its workers sleep. A
 * time above LEAF_NS means that a task waited until the forking worker had finished computing.
 */
static void measure_leaf_with(int workers, int rounds)
{
    static double us[ROUNDS_MAX];
    fj_pool *pool = make_pool(workers);
    double cold = 0;
    char name[64], what[64];
    int own = 0;

    for (int i = 0; i <= rounds; i++) {
        struct leaf_root root = {.hold_ns = workers > LEAF_TASKS ? LEAF_HOLD_NS : 0};
        fj_task_init(&root.task, leaf_root_run);
        must(fj_invoke_mode(pool, &root.task, FJ_CALLER_BLOCKS));
        double longest = (double)root.longest_ns / 1e3;
        if (i == 0)
            cold = longest;
        else
            us[i - 1] = longest;
        own += root.own;
        bench_sleep_ns(LEAF_PAUSE_NS);
    }
    must(fj_pool_destroy(pool));
    qsort(us, (size_t)rounds, sizeof us[0], compare_double);

    snprintf(what, sizeof what, "%d workers, no thread started yet", workers);
    snprintf(name, sizeof name, "long_leaf_%d_cold_us", workers);
    print_figure(name, cold, what);
    snprintf(what, sizeof what, "%d workers, all asleep: median", workers);
    snprintf(name, sizeof name, "long_leaf_%d_us", workers);
    print_figure(name, us[rounds / 2], what);
    snprintf(what, sizeof what, "worst of %d; run by their forker: %d", rounds, own);
    snprintf(name, sizeof name, "long_leaf_%d_worst_us", workers);
    print_figure(name, us[rounds - 1], what);
}

static void measure_leaf(const plan *p)
{
    measure_leaf_with(2, p->leaf_rounds); /* one thief steals all ten tasks */
    measure_leaf_with(3, p->leaf_rounds);
    measure_leaf_with(LEAF_TASKS + 1, p->leaf_rounds); /* each task occupies a thief of its own */
}

/* ---- invoke by a thread outside the pool ---- */

static int empty_run(fj_task *t)
{
    (void)t;
    return FJ_OK;
}

static void measure_external_by(enum fj_caller caller, const char *word, int rounds)
{
    static double us[ROUNDS_MAX];
    fj_pool *pool = make_pool(2);
    char name[64], what[64];

    for (int i = -10; i < rounds; i++) {
        fj_task t;
        fj_task_init(&t, empty_run);
        uint64_t start = bench_now_ns();
        must(fj_invoke_mode(pool, &t, caller));
        if (i >= 0) us[i] = (double)(bench_now_ns() - start) / 1e3;
    }
    must(fj_pool_destroy(pool));
    qsort(us, (size_t)rounds, sizeof us[0], compare_double);
    snprintf(name, sizeof name, "external_invoke_%s_us", word);
    snprintf(what, sizeof what, "caller %s: median of %d, best %.2f", word, rounds, us[0]);
    print_figure(name, us[rounds / 2], what);
}

static void measure_external(const plan *p)
{
    measure_external_by(FJ_CALLER_BLOCKS, "blocks", p->external_rounds);
    measure_external_by(FJ_CALLER_HELPS, "helps", p->external_rounds);
}

/* ---- an idle pool ---- */

static double cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void measure_idle(const plan *p)
{
    int workers = fj_available_parallelism();
    fj_pool *pool = make_pool(workers);
    uint64_t answer = 0;
    char name[64], what[64];

    must(fib_typed_invoke(pool, &answer, FIB_N));
    bench_sleep_ns(IDLE_PAUSE_NS);
    double before = cpu_ms();
    bench_sleep_ns((uint64_t)(p->idle_seconds * 1e9));
    double used = cpu_ms() - before;
    must(fj_pool_destroy(pool));
    snprintf(name, sizeof name, "idle_cpu_ms_in_%gs", p->idle_seconds);
    snprintf(what, sizeof what, "%d workers, from 100 ms after their last task", workers);
    print_figure(name, used, what);
}

/* ---- main ---- */

typedef struct part {
    const char *name;
    void (*measure)(const plan *p);
    bool chosen;
} part;

static part parts[] = {
    {"fork", measure_fork, false},
    {"leaf", measure_leaf, false},
    {"external", measure_external, false},
    {"idle", measure_idle, false},
};

enum { PARTS = sizeof parts / sizeof parts[0] };

static bool choose(const char *name)
{
    for (int i = 0; i < PARTS; i++) {
        if (strcmp(parts[i].name, name) != 0) continue;
        parts[i].chosen = true;
        return true;
    }
    return false;
}

static int usage(void)
{
    fprintf(stderr, "usage: micro [--quick] [--idle SECONDS] [fork|leaf|external|idle ...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    bool quick = false, all = true;
    double idle_seconds = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--idle") == 0 && i + 1 < argc)
            idle_seconds = atof(argv[++i]);
        else if (choose(argv[i]))
            all = false;
        else
            return usage();
    }
    plan p = plans[quick];
    if (idle_seconds > 0) p.idle_seconds = idle_seconds;
    for (int i = 0; i < PARTS; i++)
        if (all || parts[i].chosen) parts[i].measure(&p);
    return 0;
}
