/* SPDX-License-Identifier: MIT */
/*
 * frame.c - the test framework of fjtest.h on the simulator: runs each test under many schedules
 *
 * The tests are the same FJ_TESTs as elsewhere. But instead of a process of its own each test gets
 * runs of the simulator, every one with the next seed, until its time or its number of schedules is
 * used up. A failure prints the seed, and the command that repeats the run step by step. This file
 * is compiled without src/plat/sim/posix.h, so its calls of the system are real ones.
 */
#define _GNU_SOURCE
#include "../fjtest.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "plat/sim/sim.h"

static fjt_test *tests;

/* Data that outlive a run. A run resets all other data of the program: see sim_run(). */
static struct frame {
    bool skipped;
    char why[200];
    uint64_t seed;
    int64_t clock;       /* virtual time at the last call of on_watch() */
    uint64_t clock_seed; /* seed of the run at that call */
} * frame;

void fjt_register(fjt_test *t)
{
    fjt_test **at = &tests;

    while (*at != NULL) at = &(*at)->next;
    *at = t;
}

/* ---- Functions that tests call --------------------------------------------------------------- */

void fjt_fail(const char *file, int line, const char *fmt, ...)
{
    char text[300];
    const char *name = strrchr(file, '/');
    va_list list;

    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    sim_fail("%s:%d: %s", name != NULL ? name + 1 : file, line, text);
}

void fjt_skip(const char *why)
{
    frame->skipped = true;
    snprintf(frame->why, sizeof frame->why, "%s", why);
    sim_end();
}

void fjt_watch(fj_pool *pool)
{
    (void)pool;
}

void fjt_unwatch(fj_pool *pool)
{
    (void)pool;
}

fj_pool *fjt_pool_with(const fj_pool_options *o)
{
    fj_pool *pool;
    CHECK_EQ(fj_pool_create(&pool, o), FJ_OK);
    return pool;
}

fj_pool *fjt_pool(int n, unsigned flags)
{
    fj_pool_options o = {0};

    o.parallelism = n;
    o.flags = flags;
    return fjt_pool_with(&o);
}

void fjt_destroy(fj_pool *pool)
{
    CHECK_EQ(fj_pool_destroy(pool), FJ_OK);
}

long fjt_rounds(long n)
{
    return n < 2 ? n : 2;
}

uint64_t fjt_seed(void)
{
    return frame->seed;
}

uint64_t fjt_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int64_t fjt_now(void)
{
    return sim_now();
}

int64_t fjt_cpu(void)
{
    return sim_now();
}

void fjt_sleep_us(int64_t us)
{
    sim_sleep_until(sim_now() + us * 1000);
}

void fjt_spin_us(int64_t us)
{
    sim_work(us * 1000);
}

bool fjt_sanitized(void)
{
    return false;
}

/* ---- Running the tests ----------------------------------------------------------------------- */

struct choice {
    double seconds;
    long schedules, short_steps;
    uint64_t seed;
    bool trace, fixed_model, fixed_strategy, list, stop;
    int model, strategy;
};

struct tally {
    long schedules, steps, switches;
    int threads;
};

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_test_body(void *arg)
{
    ((fjt_test *)arg)->run();
}

static void on_crash(int number)
{
    if (!sim_inside()) _exit(99);
    sim_fail("signal %d (%s)", number, strsignal(number));
}

static void catch_crashes(void)
{
    static const int numbers[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction how = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};

    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &how, NULL);
}

/* Every step advances the virtual clock. If it stands still for this many seconds of computing,
 * the run is in a loop without a step. */
#define WATCH_SECONDS 5

static void on_watch(int number)
{
    (void)number;
    if (!sim_inside()) return;
    int64_t now = sim_now();
    if (now == frame->clock && frame->seed == frame->clock_seed)
        sim_fail("no step for %d seconds: an endless loop", WATCH_SECONDS);
    frame->clock = now;
    frame->clock_seed = frame->seed;
}

static void watch_loops(void)
{
    struct sigaction how = {.sa_handler = on_watch,
                            .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
    struct itimerval every = {.it_interval = {.tv_sec = WATCH_SECONDS},
                              .it_value = {.tv_sec = WATCH_SECONDS}};

    sigaction(SIGVTALRM, &how, NULL); /* counts only the time in which this program computes */
    setitimer(ITIMER_VIRTUAL, &every, NULL);
}

static void one_schedule(fjt_test *t, const struct choice *c, uint64_t seed, long expected,
                         sim_result *r)
{
    sim_options o;

    sim_options_of(seed, &o);
    if (c->fixed_model) o.model = (enum sim_model)c->model;
    if (c->fixed_strategy) o.strategy = (enum sim_strategy)c->strategy;
    o.trace = c->trace && expected > 0;
    o.expected = expected;
    if (c->short_steps > 0) { /* tests of other folders expect a clock that does not jump */
        o.steps = expected == 0 ? c->short_steps : 60 * expected + 200000;
        o.jump_in = o.freezes = 0;
    }
    frame->seed = seed;
    frame->skipped = false;
    sim_run(&o, run_test_body, t, r);
}

static const char *program;

static bool report_failure(const fjt_test *t, const struct choice *c, uint64_t seed,
                           const sim_result *r, const struct tally *all)
{
    printf("# seed %llu, after %ld schedules; again, step by step:\n", (unsigned long long)seed,
           all->schedules);
    printf("#   %s --seed %llu --schedules 1 --trace", program, (unsigned long long)seed);
    if (c->fixed_model) printf(" --model %d", c->model);
    if (c->fixed_strategy) printf(" --strategy %d", c->strategy);
    printf(" =%s\n", t->name);
    printf("not ok %s: %s\n", t->name, r->text);
    return false;
}

/* Runs a test under many schedules. Returns false after a failure, which it prints. */
static bool run_test(fjt_test *t, const struct choice *c)
{
    struct tally all = {0, 0, 0, 0};
    sim_result r;
    uint64_t seed = c->seed;
    int left_out = 0;

    one_schedule(t, c, 1, 0, &r); /* measures the number of steps, always with seed 1 */
    if (r.failed && c->short_steps == 0 && !frame->skipped && strncmp(r.text, "too many", 8) != 0) {
        all.schedules = 1;
        return report_failure(t, c, 1, &r, &all);
    }
    double until = seconds_now() + c->seconds; /* the measuring run does not count */
    long expected = r.steps > 0 ? r.steps : 1;
    if (c->short_steps > 0 && r.steps > c->short_steps) {
        printf("skip %s: more than %ld steps\n", t->name, c->short_steps);
        return true;
    }
    while (all.schedules < c->schedules && (all.schedules == 0 || seconds_now() < until)) {
        one_schedule(t, c, seed, expected, &r);
        if (frame->skipped) {
            printf("skip %s: %s\n", t->name, frame->why);
            return true;
        }
        if (r.failed && strncmp(r.text, "too many", 8) == 0) {
            if (all.schedules > 0 && ++left_out < 100) { /* random size: another seed may fit */
                seed++;
                continue;
            }
            printf("skip %s: %s\n", t->name, r.text);
            return true;
        }
        all.schedules++;
        all.steps += r.steps;
        all.switches += r.switches;
        if (r.threads > all.threads) all.threads = r.threads;
        if (!r.failed && r.blocks > 0 && c->short_steps == 0) { /* scenarios free all memory */
            r.failed = true;
            snprintf(r.text, sizeof r.text, "%ld blocks of memory were not freed", r.blocks);
        }
        if (r.failed) return report_failure(t, c, seed, &r, &all);
        seed++;
    }
    printf("ok %s (%ld schedules, %ld steps, %ld switches, %d threads)\n", t->name, all.schedules,
           all.steps, all.switches, all.threads);
    return true;
}

static bool wanted(const fjt_test *t, int n, char **filters)
{
    for (int i = 0; i < n; i++) {
        const char *f = filters[i];
        if (f[0] == '=' ? strcmp(f + 1, t->name) == 0 : strstr(t->name, f) != NULL) return true;
    }
    return n == 0;
}

static void usage(FILE *out)
{
    fprintf(out,
            "usage: %s [OPTION...] [FILTER...]\n"
            "  --seconds S    time for each test (default 1)\n"
            "  --schedules N  run each test at most N times\n"
            "  --short N      skip tests of more than N steps\n"
            "  --seed S       seed of the first run; each run adds 1 (default: from the clock)\n"
            "  --trace        print every step\n"
            "  --model N      memory model: 0 sc, 1 tso, 2 weak (default: by the seed)\n"
            "  --strategy N   schedules: 0 random, 1 pct (default: by the seed)\n"
            "  --stop         stop after the first test that fails\n"
            "  --list         only print the names of the tests\n",
            program);
}

static int parse(int argc, char **argv, struct choice *c)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *name = argv[i] + 2, *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "trace") == 0) {
            c->trace = true;
        } else if (strcmp(name, "stop") == 0) {
            c->stop = true;
        } else if (strcmp(name, "list") == 0) {
            c->list = true;
        } else if (strcmp(name, "help") == 0) {
            usage(stdout);
            exit(0);
        } else if (i + 1 >= argc) {
            usage(stderr);
            exit(2);
        } else {
            i++;
            if (strcmp(name, "seconds") == 0)
                c->seconds = atof(value);
            else if (strcmp(name, "schedules") == 0)
                c->schedules = atol(value);
            else if (strcmp(name, "short") == 0)
                c->short_steps = atol(value);
            else if (strcmp(name, "seed") == 0)
                c->seed = strtoull(value, NULL, 0);
            else if (strcmp(name, "model") == 0)
                c->fixed_model = true, c->model = atoi(value);
            else if (strcmp(name, "strategy") == 0)
                c->fixed_strategy = true, c->strategy = atoi(value);
            else
                usage(stderr), exit(2);
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    struct choice c = {.seconds = 1, .schedules = 1000000000};
    int passed = 0, failed = 0;

    program = argv[0];
    c.seed = (uint64_t)time(NULL) * 1000;
    int first = parse(argc, argv, &c);
    setvbuf(stdout, NULL, _IOLBF, 0);
    frame = mmap(NULL, sizeof *frame, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    catch_crashes();
    watch_loops();
    if (!c.list) printf("# %s: seed %llu\n", program, (unsigned long long)c.seed);
    for (fjt_test *t = tests; t != NULL && (failed == 0 || !c.stop); t = t->next) {
        if (!wanted(t, argc - first, argv + first)) continue;
        if (c.list)
            printf("%s\n", t->name);
        else if (run_test(t, &c))
            passed++;
        else
            failed++;
    }
    if (!c.list) printf("# %s: %d passed, %d failed, 0 skipped\n", program, passed, failed);
    return failed > 0;
}
