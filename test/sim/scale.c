/* SPDX-License-Identifier: MIT */
/*
 * scale.c - measures the pool on a simulated machine with many processors
 *
 *     scale WORKLOAD WORKERS...
 *
 * Runs a workload for each number of workers, on that many virtual processors with the costs of
 * src/plat/sim/cost.c. Prints a line for each run: virtual time, speedup over the first run, steals
 * for each worker, transfers of the cache line of the control word, openings of queues, heavy
 * fences, wake-ups. docs/scaling.md says what is counted and what is left out.
 */
#include <forkjoin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plat/sim/sim.h"
#include "sched/pool.h"

struct run {
    const char *workload;
    int workers;
    int64_t work; /* ns of all bodies together */
    int64_t began, ended;
    fj_stats stats;
    uint64_t ctl; /* transfers of the cache line of the control word */
};

static struct run *run;

static void must(int err)
{
    if (err != FJ_OK) sim_fail("%s", fj_strerror(err));
}

/* ---- fib: a fork in every call, nearly no work ----------------------------------------------- */

FJ_TASK(int, tree, int, n)
{
    if (n < 2) return n;
    tree_task a;
    tree_fork(FJ, &a, n - 1);
    int y = tree_call(FJ, n - 2);
    return tree_join(FJ, &a) + y;
}

static void run_fib(fj_pool *pool)
{
    int result = 0;

    int n = run->workload[3] != 0 ? atoi(run->workload + 3) : 30; /* "fib" or "fib33" */

    must(tree_invoke(pool, &result, n));
    if (n == 30 && result != 832040) sim_fail("fib is wrong");
}

/* ---- uts: a tree whose shape is not known in advance ----------------------------------------- */

#define UTS_WORK 1000

struct node {
    fj_task task;
    uint64_t state;
    int depth;
    long count;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Children of a node: 4 near the root, then 0 or 8 with a mean just below one. */
static int children(const struct node *n)
{
    if (n->depth < 6) return 4;
    return n->depth < 200 && mix(n->state) % 1000 < 121 ? 8 : 0;
}

static int node_run(fj_task *t)
{
    struct node *n = (struct node *)t, child[8];
    int m = children(n);

    sim_work(UTS_WORK);
    n->count = 1;
    for (int i = 0; i < m; i++) {
        memset(&child[i], 0, sizeof child[i]);
        fj_task_init(&child[i].task, node_run);
        child[i].state = mix(n->state + (uint64_t)i + 1);
        child[i].depth = n->depth + 1;
        fj_fork(&child[i].task);
    }
    for (int i = m; i-- > 0;) {
        must(fj_join(&child[i].task));
        n->count += child[i].count;
    }
    return FJ_OK;
}

static void run_uts(fj_pool *pool)
{
    struct node root = {.state = 42};

    fj_task_init(&root.task, node_run);
    must(fj_invoke(pool, &root.task));
    run->work = root.count * UTS_WORK;
}

/* ---- loop: a range that is halved recursively ------------------------------------------------ */

#define LOOP_N 262144
#define LOOP_GRAIN 64
#define LOOP_WORK 100

FJ_TASK(int, halve, int, from, int, to)
{
    if (to - from <= LOOP_GRAIN) {
        sim_work((int64_t)(to - from) * LOOP_WORK);
        return to - from;
    }
    halve_task a;
    halve_fork(FJ, &a, from + (to - from) / 2, to);
    int y = halve_call(FJ, from, from + (to - from) / 2);
    return halve_join(FJ, &a) + y;
}

static void run_loop(fj_pool *pool)
{
    int n = 0;

    must(halve_invoke(pool, &n, 0, LOOP_N));
    if (n != LOOP_N) sim_fail("the loop is wrong");
    run->work = (int64_t)LOOP_N * LOOP_WORK;
}

/* ---- burst: actions of one submitting thread ------------------------------------------------- */

#define BURST_N 20000
#define BURST_WORK 5000

static int burst_action(void *arg)
{
    (void)arg;
    sim_work(BURST_WORK);
    return FJ_OK;
}

static void run_burst(fj_pool *pool)
{
    for (int i = 0; i < BURST_N; i++) must(fj_execute(pool, burst_action, NULL));
    must(fj_pool_await_quiescence(pool, FJ_FOREVER));
    run->work = (int64_t)BURST_N * BURST_WORK;
}

/* ---- The runs -------------------------------------------------------------------------------- */

static const struct workload {
    const char *name;
    void (*run)(fj_pool *pool);
} workloads[] = {{"fib", run_fib}, {"uts", run_uts}, {"loop", run_loop}, {"burst", run_burst}};

static void simulated(void *arg)
{
    struct run *r = arg;
    fj_pool_options o = {0};
    fj_pool *pool;

    o.parallelism = r->workers;
    must(fj_pool_create(&pool, &o));
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (strncmp(workloads[i].name, r->workload, strlen(workloads[i].name)) != 0) continue;
        workloads[i].run(pool); /* not measured: starts the threads */
        r->began = sim_now();
        workloads[i].run(pool);
        r->ended = sim_now();
    }
    must(fj_pool_stats(pool, &r->stats));
    r->ctl = sim_transfers_of(&pool->ctl);
}

/* Makes one run and prints its line. The speedup is relative to `alone`, the time of the first
 * run, which is 0 in the first run. Returns `alone`. */
static int64_t one_run(const char *workload, int workers, int64_t alone)
{
    sim_options o;
    sim_result result;
    sim_counts counts;

    sim_options_of(7, &o);
    o.strategy = SIM_TIMED;
    o.model = SIM_SC;
    o.races = false;
    o.reuse = true;
    o.heavy_fence = true;
    o.steps = 4000000000;
    o.cpus = workers;
    memset(run, 0, sizeof *run);
    run->workload = workload;
    run->workers = workers;
    sim_run(&o, simulated, run, &result);
    if (result.failed) {
        printf("failed: %s\n", result.text);
        exit(1);
    }
    sim_counted(&counts);
    int64_t time = run->ended - run->began;
    if (alone == 0) alone = time;
    printf("%-6s %5d %12.3f %8.2f %8.1f %10llu %8llu %8llu %8llu\n", workload, workers,
           (double)time / 1e6, (double)alone / (double)time,
           (double)run->stats.steals / (double)workers, (unsigned long long)run->ctl,
           (unsigned long long)run->stats.openings, (unsigned long long)counts.barriers,
           (unsigned long long)counts.wakes);
    fflush(stdout);
    return alone;
}

int main(int argc, char **argv)
{
    int64_t alone = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: scale fib|uts|loop|burst WORKERS...\n");
        return 2;
    }
    /* sim_run() resets the data of the program, so the results are outside of them. */
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) return 1;
    printf("%-6s %5s %12s %8s %8s %10s %8s %8s %8s\n", "load", "cpus", "ms", "speedup", "steals",
           "ctl", "openings", "fences", "wakes");
    for (int i = 2; i < argc; i++) alone = one_run(argv[1], atoi(argv[i]), alone);
    return 0;
}
