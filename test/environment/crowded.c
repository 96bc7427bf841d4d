/* SPDX-License-Identifier: MIT */
/*
 * crowded.c - more workers than CPUs, and workers that get little CPU time
 */
#include "environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- Many workers on few CPUs --------------------------------------------------------------- */

FJ_TEST(two_hundred_and_fifty_six_workers_share_what_there_is, 60)
{
    fj_pool *p = fjt_pool(256, 0);

    regression_all_at_once(p, 256); /* all of them are started */
    for (long i = fjt_rounds(30); i > 0; i--) use_pool(p);
    regression_rest(p);
    fjt_destroy(p);
}

static void on_one_cpu(void)
{
    cpu_set_t all, one;

    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        CPU_SET(i, &one);
        break;
    }
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

FJ_TEST(eight_workers_on_one_cpu_work, 60)
{
    struct users users;

    on_one_cpu();
    for (unsigned flags = 0; flags < 8; flags++) {
        fj_pool *p = fjt_pool(8, flags);
        start_users(&users, p, 2);
        for (long i = fjt_rounds(8); i > 0; i--) use_pool(p);
        end_users(&users);
        fjt_destroy(p);
    }
}

/* ---- Little CPU time ------------------------------------------------------------------------ */

static atomic_int refused_policies;

/* Every second worker runs only while no other thread wants the CPU; the others have a low
 * priority. */
static int on_start(fj_pool *p, int worker, void *arg)
{
    struct sched_param none = {.sched_priority = 0};
    int err = 0;

    (void)p, (void)arg;
    if (worker % 2 == 0)
        err = pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    else
        err = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), worker % 20);
    if (err != 0) atomic_fetch_add(&refused_policies, 1);
    return FJ_OK;
}

static void *hog(void *over)
{
    while (!atomic_load((atomic_bool *)over)) {}
    return NULL;
}

FJ_TEST(workers_with_hardly_any_time_get_everything_done, 60)
{
    fj_pool_options o = {0};
    atomic_bool over = false;
    pthread_t hogs[2];

    on_one_cpu();
    o.parallelism = 4;
    o.on_start = on_start;
    fj_pool *p = fjt_pool_with(&o);
    regression_all_at_once(p, 4);
    if (atomic_load(&refused_policies) == 4) fjt_skip("the priority of threads cannot be lowered");
    for (int i = 0; i < 2; i++) hogs[i] = regression_thread(hog, &over);
    for (long i = fjt_rounds(5); i > 0; i--) use_pool(p);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) pthread_join(hogs[i], NULL);
    fjt_destroy(p);
}

/* ---- A CPU quota ---------------------------------------------------------------------------- */

static bool put(const char *dir, const char *file, const char *text)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", dir, file);
    /* The file must already exist; the folder may be that of no control group. */
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && ok;
}

/* Limits the group to half of a CPU in periods of 10 ms, by control groups of version 2 or else of
 * version 1. */
static bool limit_group(const char *dir)
{
    if (put(dir, "cpu.max", "5000 10000")) return true;
    return put(dir, "cpu.cfs_period_us", "10000") && put(dir, "cpu.cfs_quota_us", "5000");
}

static void work_in_group(void *dir)
{
    if (!put(dir, "cgroup.procs", "0")) _exit(77);
    CHECK_EQ(fj_available_parallelism(), 1);
    fj_pool *p = fjt_pool(4, 0);
    for (long i = fjt_rounds(20); i > 0; i--) use_pool(p);
    fjt_destroy(p);
}

FJ_TEST(process_with_half_a_cpu_gets_everything_done, 60)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu",
                                         "/sys/fs/cgroup/cpu,cpuacct"};
    char dir[200] = "";
    int status = 77;

    need_processes();
    for (int i = 0; i < 3 && status == 77; i++) {
        snprintf(dir, sizeof dir, "%s/forkjoin-test-%d", mounts[i], (int)getpid());
        if (mkdir(dir, 0755) != 0) continue;
        if (limit_group(dir)) {
            status = 1 << 8;
            pid_t pid = fork();
            if (pid == 0) {
                child_begin();
                work_in_group(dir);
                _exit(0);
            }
            CHECK_EQ(waitpid(pid, &status, 0), pid);
            status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
        while (rmdir(dir) != 0 && errno == EBUSY) fjt_sleep_us(1000);
    }
    if (status == 77) fjt_skip("there is no control group whose CPU time can be limited");
    CHECK_EQ(status, 0);
}
