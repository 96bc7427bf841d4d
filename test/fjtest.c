/* SPDX-License-Identifier: MIT */
/*
 * fjtest.c - the test framework
 *
 * The parent process never calls the library. It forks a child process for each test and waits for
 * it. The outcome is in a page that both processes share, so that it survives any end of the child.
 * It counts only together with the exit status: a test has passed if its function returned and the
 * process then ended with status 0. A leak or race report at exit changes that status.
 *
 * Three things can end a child process: the test itself, the watchdog thread after the time limit,
 * and the parent some seconds later if the watchdog does not run.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "fjtest.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define SECOND ((int64_t)1000000000)

#define EXIT_SKIPPED 77
#define EXIT_TIMED_OUT 124
#define OVERSTAY_SECONDS 10 /* how long the parent waits after the watchdog's limit */
#define MAX_WATCHED 64

enum outcome { RUNNING, RETURNED, FAILED, SKIPPED, TIMED_OUT };

/* Shared by the parent and the child process. */
struct report {
    atomic_int outcome;
    atomic_int teller; /* process that set FAILED, SKIPPED or TIMED_OUT */
    char text[2048];   /* the reason; written once, by the teller */
};

static struct report *report;
static fjt_test *first_test, **next_test = &first_test;
static const char *program;
static double scale = 1, patience = 4;
static uint64_t seed;
static _Atomic(fj_pool *) watched[MAX_WATCHED];
static sigset_t child_ended; /* SIGCHLD; the parent blocks it and waits for it */
static sigset_t mask;        /* the signal mask of the child processes */

void fjt_register(fjt_test *t)
{
    *next_test = t;
    next_test = &t->next;
}

/* ---- Time and numbers ------------------------------------------------------------------------ */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts.tv_sec * SECOND + ts.tv_nsec;
}

int64_t fjt_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t fjt_cpu(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static struct timespec timespec_of(int64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    return ts;
}

static void sleep_until(int64_t ns)
{
    struct timespec ts = timespec_of(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {}
}

void fjt_sleep_us(int64_t us)
{
    sleep_until(fjt_now() + us * 1000);
}

void fjt_spin_us(int64_t us)
{
    int64_t end = fjt_now() + us * 1000;
    while (fjt_now() < end) {}
}

long fjt_rounds(long n)
{
    double rounds = (double)n * scale;
    return rounds < 1 ? 1 : (long)rounds;
}

uint64_t fjt_seed(void)
{
    return seed;
}

/* splitmix64 */
uint64_t fjt_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool fjt_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

/* Options of ThreadSanitizer; TSAN_OPTIONS overrides them. By default it sleeps for a second at
 * every exit, and refuses threads in a process that was forked while there were several threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "atexit_sleep_ms=20:die_after_fork=0:halt_on_error=1";
}

/* ---- The end of a test ----------------------------------------------------------------------- */

/*
 * Makes `how` the outcome. Returns false if another thread or process has already set one. A
 * failure counts even after the test function has returned.
 */
static bool claim(enum outcome how)
{
    int was = atomic_load(&report->outcome);
    while (was == RUNNING || was == RETURNED) {
        if (atomic_compare_exchange_weak(&report->outcome, &was, how)) {
            atomic_store(&report->teller, (int)getpid());
            return true;
        }
    }
    return false;
}

/* Ends this process if another thread or process has set the outcome. If that is a thread of this
 * process, waits first, so that it can write its reason. */
__attribute__((noreturn)) static void end_second(void)
{
    if (atomic_load(&report->teller) == (int)getpid()) sleep_until(fjt_now() + 5 * SECOND);
    _exit(1);
}

void fjt_fail(const char *file, int line, const char *fmt, ...)
{
    if (!claim(FAILED)) end_second();

    const char *slash = strrchr(file, '/');
    size_t cap = sizeof report->text;
    int at = snprintf(report->text, cap, "%s:%d: ", slash ? slash + 1 : file, line);
    if (at < 0 || (size_t)at >= cap) at = 0;

    va_list args;
    va_start(args, fmt);
    vsnprintf(report->text + at, cap - (size_t)at, fmt, args);
    va_end(args);
    _exit(1);
}

void fjt_skip(const char *why)
{
    if (!claim(SKIPPED)) end_second();
    snprintf(report->text, sizeof report->text, "%s", why);
    _exit(EXIT_SKIPPED);
}

/* ---- Pools and the watchdog ------------------------------------------------------------------ */

void fjt_watch(fj_pool *pool)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *none = NULL;
        if (atomic_compare_exchange_strong(&watched[i], &none, pool)) return;
    }
}

void fjt_unwatch(fj_pool *pool)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *it = pool;
        if (atomic_compare_exchange_strong(&watched[i], &it, NULL)) return;
    }
}

fj_pool *fjt_pool_with(const fj_pool_options *o)
{
    fj_pool *pool = NULL;
    int err = fj_pool_create(&pool, o);
    if (err != FJ_OK) fjt_fail(__FILE__, __LINE__, "fj_pool_create: %s", fj_error_name(err));
    fjt_watch(pool);
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
    /* The pool stays watched until it is destroyed, because this call hangs if a worker is lost. */
    int err = fj_pool_destroy(pool);
    fjt_unwatch(pool);
    if (err != FJ_OK) fjt_fail(__FILE__, __LINE__, "fj_pool_destroy: %s", fj_error_name(err));
}

static void dump_line(const char *text, void *arg)
{
    (void)arg;
    dprintf(STDERR_FILENO, "#   %s\n", text);
}

static void dump_pools(void)
{
    for (int i = 0; i < MAX_WATCHED; i++) {
        fj_pool *pool = atomic_load(&watched[i]);
        char text[512] = "";
        if (pool == NULL) continue;
        fj_pool_describe(pool, text, sizeof text);
        dprintf(STDERR_FILENO, "# %s\n", text);
        fj_pool_dump(pool, dump_line, NULL);
    }
}

static int64_t limit_ns(const fjt_test *t)
{
    return (int64_t)(t->seconds * patience * 1e9);
}

static void *watchdog(void *arg)
{
    const fjt_test *t = arg;
    sleep_until(fjt_now() + limit_ns(t));

    if (!claim(TIMED_OUT)) end_second();
    snprintf(report->text, sizeof report->text, "not finished after %g s",
             (double)limit_ns(t) / 1e9);
    dprintf(STDERR_FILENO, "# %s: %s\n", t->name, report->text);
    dump_pools();
    _exit(EXIT_TIMED_OUT);
}

static void start_watchdog(fjt_test *t)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;

    /* The watchdog blocks all signals, so that they go to the threads of the test. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, watchdog, t) != 0) {
        fjt_fail(__FILE__, __LINE__, "cannot start the watchdog thread");
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- One test -------------------------------------------------------------------------------- */

__attribute__((noreturn)) static void run_child(fjt_test *t)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    sigprocmask(SIG_SETMASK, &mask, NULL);
    start_watchdog(t);
    t->run();

    int was = RUNNING;
    if (!atomic_compare_exchange_strong(&report->outcome, &was, RETURNED)) {
        /* A process that the test has forked has failed, or the time limit has passed. */
        end_second();
    }
    exit(0);
}

/* Waits for the child process, and kills it after the deadline. Returns its status. */
static int await_child(pid_t pid, int64_t deadline, bool *killed)
{
    int status = 0;

    *killed = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        int64_t left = deadline - fjt_now();
        if (left <= 0) {
            *killed = true;
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        struct timespec ts = timespec_of(left);
        sigtimedwait(&child_ended, NULL, &ts);
    }
    return status;
}

/* Prints the result of the test. Returns RETURNED, FAILED or SKIPPED. */
static enum outcome judge(const fjt_test *t, int status, bool killed, int64_t ns)
{
    int outcome = atomic_load(&report->outcome);
    int exited = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    if (outcome == RETURNED && exited == 0 && !killed) {
        printf("ok %s (%lld ms)\n", t->name, (long long)(ns / 1000000));
        return RETURNED;
    }
    if (outcome == SKIPPED && exited == EXIT_SKIPPED) {
        printf("skip %s: %s\n", t->name, report->text);
        return SKIPPED;
    }

    printf("not ok %s: ", t->name);
    if (outcome == FAILED || outcome == TIMED_OUT)
        printf("%s", report->text);
    else if (killed)
        printf("not finished, and not ended by its watchdog");
    else if (WIFSIGNALED(status))
        printf("killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        printf("exit status %d", exited);
    if (killed && outcome != RUNNING)
        printf("; then killed by the framework");
    else if (outcome == RETURNED)
        printf(" after the test returned");
    else if (outcome == RUNNING && exited >= 0)
        printf(" before the test returned");
    printf(" (seed %llu)\n", (unsigned long long)seed);
    return FAILED;
}

static enum outcome run_test(fjt_test *t)
{
    bool killed;

    memset(report, 0, sizeof *report);
    fflush(NULL);

    int64_t start = fjt_now();
    pid_t pid = fork();
    if (pid < 0) {
        printf("not ok %s: fork: %s\n", t->name, strerror(errno));
        return FAILED;
    }
    if (pid == 0) run_child(t);

    int64_t deadline = start + limit_ns(t) + OVERSTAY_SECONDS * SECOND;
    int status = await_child(pid, deadline, &killed);
    enum outcome result = judge(t, status, killed, fjt_now() - start);
    fflush(stdout);
    return result;
}

/* ---- The program ----------------------------------------------------------------------------- */

static void usage(FILE *out)
{
    fprintf(out,
            "usage: %s [--list] [--seed N] [--scale X] [FILTER...]\n"
            "  FILTER    runs the tests whose names contain it; =NAME: that test only\n"
            "  --list    prints the names of the tests\n"
            "  --seed    start of the pseudo-random numbers (FJT_SEED); default: random\n"
            "  --scale   multiplies the rounds of long tests (FJT_SCALE)\n"
            "FJT_PATIENCE multiplies the time limits; default 4.\n",
            program);
}

static bool chosen(const char *name, char *const *filters)
{
    if (*filters == NULL) return true;
    for (; *filters != NULL; filters++) {
        const char *f = *filters;
        if (f[0] == '=' ? strcmp(name, f + 1) == 0 : strstr(name, f) != NULL) return true;
    }
    return false;
}

static double positive(const char *what, const char *text)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end != '\0' || !(x > 0)) {
        fprintf(stderr, "%s: %s is not a positive number: %s\n", program, what, text);
        exit(2);
    }
    return x;
}

static uint64_t number(const char *what, const char *text)
{
    char *end;
    uint64_t x = strtoull(text, &end, 0);
    if (end == text || *end != '\0') {
        fprintf(stderr, "%s: %s is not a number: %s\n", program, what, text);
        exit(2);
    }
    return x;
}

static void read_environment(void)
{
    const char *text;
    if ((text = getenv("FJT_SCALE")) != NULL) scale = positive("FJT_SCALE", text);
    if ((text = getenv("FJT_PATIENCE")) != NULL) patience = positive("FJT_PATIENCE", text);
    uint64_t mix = (uint64_t)clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
    seed = fjt_random(&mix) % 1000000000;
    if ((text = getenv("FJT_SEED")) != NULL) seed = number("FJT_SEED", text);
}

/* Reads the options and moves the filters to the front of argv. NULL follows the last filter. */
static void read_arguments(int argc, char **argv, bool *list)
{
    int filters = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--list") == 0)
            *list = true;
        else if (strcmp(argv[i], "--seed") == 0 && more)
            seed = number("--seed", argv[++i]);
        else if (strcmp(argv[i], "--scale") == 0 && more)
            scale = positive("--scale", argv[++i]);
        else if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (argv[i][0] == '-') {
            usage(stderr);
            exit(2);
        } else
            argv[filters++] = argv[i];
    }
    argv[filters] = NULL;
}

static int run_all(char *const *filters)
{
    int passed = 0, failed = 0, skipped = 0;

    printf("# %s: seed %llu\n", program, (unsigned long long)seed);
    for (fjt_test *t = first_test; t != NULL; t = t->next) {
        if (!chosen(t->name, filters)) continue;
        enum outcome result = run_test(t);
        passed += result == RETURNED;
        failed += result == FAILED;
        skipped += result == SKIPPED;
    }
    printf("# %s: %d passed, %d failed, %d skipped\n", program, passed, failed, skipped);
    if (*filters != NULL && passed + failed + skipped == 0) {
        fprintf(stderr, "%s: no test has such a name\n", program);
        return 2;
    }
    return failed > 0;
}

int main(int argc, char **argv)
{
    bool list = false;
    const char *slash = strrchr(argv[0], '/');

    program = slash ? slash + 1 : argv[0];
    read_environment();
    read_arguments(argc, argv, &list);
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    setenv("FORKJOIN_CHAOS_SEED", text, 0); /* a build with chaos uses this seed */
    if (list) {
        for (fjt_test *t = first_test; t != NULL; t = t->next) {
            if (chosen(t->name, argv)) puts(t->name);
        }
        return 0;
    }

    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED) {
        perror(program);
        return 2;
    }
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, &mask);
    return run_all(argv);
}
