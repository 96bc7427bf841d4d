/* SPDX-License-Identifier: MIT */
/*
 * limits.c - resource limits for threads, addresses and stacks; and invalid environment variables
 *
 * Each test runs in a child process that sets its limits before it uses the library. A call that
 * cannot be served returns an error, or fewer threads do the work. Nothing that was accepted is
 * lost. When the limit is removed, the pool works without restrictions.
 */
#include "environment.h"

#include <fcntl.h>
#include <limits.h>

static bool may(int err)
{
    return err == FJ_OK || err == FJ_ENOMEM;
}

/* Makes every kind of call except timers, which need a thread of their own. */
static void use_without_timers(fj_pool *p)
{
    struct fib f[100];
    bool accepted[100];
    atomic_int ran = 0;
    int sent = 0;
    long r = -1;

    for (int i = 0; i < 100; i++) {
        f[i].n = 5;
        fj_task_init(&f[i].task, fib_run);
        int err = fj_submit(p, &f[i].task);
        CHECK(may(err));
        accepted[i] = err == FJ_OK;
        CHECK(may(err = fj_execute(p, regression_count, &ran)));
        sent += err == FJ_OK;
    }
    for (int i = 0; i < 100; i++) {
        if (!accepted[i]) continue;
        CHECK_EQ(fj_join(&f[i].task), FJ_OK);
        CHECK_EQ(f[i].result, 5);
    }
    int err = environment_fib_invoke(p, &r, 12);
    CHECK(may(err));
    CHECK_EQ(r, err == FJ_OK ? 144 : -1);
    CHECK_EQ(fj_pool_await_quiescence(p, FJ_FOREVER), FJ_OK);
    CHECK_EQ(atomic_load(&ran), sent);
}

#ifdef __GLIBC__
typedef __rlimit_resource_t limit_of;
#else
typedef int limit_of;
#endif

static void set_limit(limit_of which, rlim_t soft)
{
    struct rlimit l;

    CHECK_EQ(getrlimit(which, &l), 0);
    l.rlim_cur = soft < l.rlim_max ? soft : l.rlim_max;
    CHECK_EQ(setrlimit(which, &l), 0);
}

/* ---- Threads -------------------------------------------------------------------------------- */

/* Runs as a user that has no other process, because the limit does not apply to root. */
static void work_with_few_threads(void *arg)
{
    uid_t nobody = (uid_t)(100000 + getpid() % 100000);
    rlim_t most = *(rlim_t *)arg;

    if (getuid() == 0 && setresuid(nobody, nobody, nobody) != 0) _exit(77);
    if (getuid() != nobody) most = 0; /* the user has other processes: allow no further thread */
    set_limit(RLIMIT_NPROC, most);
    fj_pool *p = fjt_pool(8, 0);
    for (long i = fjt_rounds(10); i > 0; i--) {
        use_without_timers(p);
        if (most > 0) CHECK(fj_pool_thread_count(p) < (int)most);
    }
    set_limit(RLIMIT_NPROC, RLIM_INFINITY);
    regression_all_at_once(p, 8);
    use_pool(p);
    fjt_destroy(p);
}

FJ_TEST(pool_makes_do_with_the_threads_it_gets, 60)
{
    need_processes();
    for (rlim_t most = 1; most <= 4; most++) in_child(work_with_few_threads, &most);
}

/* ---- Addresses ------------------------------------------------------------------------------ */

static rlim_t bytes_mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;

    CHECK(f != NULL);
    CHECK_EQ(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void work_in_few_addresses(void *arg)
{
    fj_pool *p = NULL;

    set_limit(RLIMIT_AS, bytes_mapped() + *(rlim_t *)arg);
    int err = fj_pool_create(&p, NULL);
    CHECK(may(err));
    if (err == FJ_OK) {
        fjt_watch(p);
        for (int i = 0; i < 3; i++) use_without_timers(p);
    }
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    if (err != FJ_OK) p = fjt_pool(2, 0);
    use_pool(p);
    fjt_destroy(p);
}

FJ_TEST(pool_makes_do_with_the_addresses_it_gets, 60)
{
    static const rlim_t kib[] = {0, 16, 80, 200, 500, 1000, 4000, 16000, 70000, 150000, 500000};

    need_processes();
    for (size_t i = 0; i < sizeof kib / sizeof kib[0]; i++) {
        rlim_t bytes = kib[i] * 1024;
        in_child(work_in_few_addresses, &bytes);
    }
}

/* ---- Stacks --------------------------------------------------------------------------------- */

static void use_stacks_of(size_t bytes)
{
    fj_pool_options o = {0};

    o.parallelism = 3;
    o.stack_bytes = bytes;
    fj_pool *p = fjt_pool_with(&o);
    for (int i = 0; i < 5; i++) use_without_timers(p);
    fjt_destroy(p);
}

FJ_TEST(workers_have_stacks_of_any_size_or_the_callers_do_the_work, 60)
{
    static const size_t odd[] = {1, 4095, 4096, 65536 + 1, 100000, (size_t)1 << 46, SIZE_MAX};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) use_stacks_of(odd[i]);
    if (fjt_sanitized()) return; /* frames are larger in such builds */
    use_stacks_of((size_t)PTHREAD_STACK_MIN);
    use_stacks_of((size_t)PTHREAD_STACK_MIN + 1);
}

/* The C library reads the limit when a program starts, so the test executes its program again. */
FJ_TEST(limit_on_stacks_does_not_make_those_of_workers_too_small, 60)
{
    static const rlim_t limits[] = {65536, 256 * 1024, 1 << 20, 64 << 20, RLIM_INFINITY};

    if (getenv("ENVIRONMENT_STACK") != NULL) {
        fj_pool *p = fjt_pool(3, 0);
        use_pool(p);
        fjt_destroy(p);
        return;
    }
    setenv("ENVIRONMENT_STACK", "1", 1);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child_begin();
            set_limit(RLIMIT_STACK, limits[i]);
            int none = open("/dev/null", O_WRONLY);
            if (none < 0 || dup2(none, STDOUT_FILENO) < 0) _exit(1);
            execl("/proc/self/exe", "limits",
                  "=limit_on_stacks_does_not_make_those_of_workers_too_small", (char *)NULL);
            _exit(1);
        }
        child_ended_well(pid);
    }
}

/* ---- The environment ------------------------------------------------------------------------ */

static void work_in_garbage(void *value)
{
    static const char *const names[] = {"FORKJOIN_PARALLELISM", "FORKJOIN_MAX_SPARES",
                                        "FORKJOIN_KEEP_ALIVE_MS", "FORKJOIN_SPIN_US",
                                        "FORKJOIN_FENCES"};
    int cpus = fj_available_parallelism();

    for (int i = 0; i < 5; i++) CHECK_EQ(setenv(names[i], value, 1), 0);
    CHECK_EQ(fj_common_parallelism(), cpus > 1 ? cpus - 1 : 1);
    use_pool(NULL);
}

FJ_TEST(garbage_in_the_environment_is_ignored, 60)
{
    static char endless[200000], digits[100000];
    static const char *const garbage[] = {
        "-1",
        "-2147483649",
        "32768x",
        "0x10",
        "1e9",
        "99999999999999999999999999",
        "\x01",
        "\xff\xfe\x80 \xc3\x28",
        "%s%n%s%n%s%n",
        "--",
        "+",
        "5 6",
        "١٢",
    };

    need_processes();
    memset(endless, 'x', sizeof endless - 1);
    memset(digits, '9', sizeof digits - 1);
    in_child(work_in_garbage, endless);
    in_child(work_in_garbage, digits);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        in_child(work_in_garbage, (void *)(uintptr_t)garbage[i]);
}
