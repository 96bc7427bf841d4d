/* SPDX-License-Identifier: MIT */
/*
 * forks.c - several threads call fork() in a loop while the pools of the process are busy
 *
 * The child processes use the pools they inherit, or a common pool that did not exist or was busy,
 * fork again, exit in different ways, or execute another program.
 */
#include "environment.h"

#include <spawn.h>

extern char **environ;

enum fate { USES_POOL, USES_COMMON, USES_NEW_POOL, FORKS_AGAIN, EXITS, QUICK_EXITS, EXECS, FATES };

static void use_new_pool(void)
{
    fj_pool *p = NULL;

    CHECK_EQ(fj_pool_create(&p, NULL), FJ_OK);
    use_pool(p);
    CHECK_EQ(fj_pool_destroy(p), FJ_OK);
}

__attribute__((noreturn)) static void live_and_end(fj_pool *p, enum fate fate)
{
    child_begin();
    switch (fate) {
        case USES_POOL: use_pool(p); break;
        case USES_COMMON: use_pool(NULL); break;
        case USES_NEW_POOL: use_new_pool(); break;
        case FORKS_AGAIN: {
            use_pool(p);
            pid_t pid = fork();
            if (pid == 0) live_and_end(p, USES_POOL);
            child_ended_well(pid);
            use_pool(p);
            CHECK_EQ(fj_pool_destroy(p), FJ_OK);
            break;
        }
        case EXITS: exit(0);
        case QUICK_EXITS: quick_exit(0);
        case EXECS:
            execl("/bin/true", "true", (char *)NULL);
            execl("/usr/bin/true", "true", (char *)NULL);
            break;
        default: break;
    }
    _exit(0);
}

struct forker {
    fj_pool *pool;
    uint64_t seed;
    long forks;
};

static void *forker_main(void *arg)
{
    struct forker *f = arg;

    for (long i = fjt_rounds(70); i > 0; i--, f->forks++) {
        enum fate fate = (enum fate)regression_below(&f->seed, FATES);
        fjt_sleep_us(regression_below(&f->seed, 300));
        pid_t pid = fork();
        if (pid == 0) live_and_end(f->pool, fate);
        child_ended_well(pid);
    }
    return NULL;
}

static void fork_under_load(bool common)
{
    fj_pool *p = fjt_pool(2, 0);
    struct users users, commons;
    struct forker f[2] = {{p, fjt_seed(), 0}, {p, fjt_seed() + 1, 0}};
    pthread_t t[2];

    start_users(&users, p, 2);
    if (common) start_users(&commons, NULL, 1);
    for (int i = 0; i < 2; i++) t[i] = regression_thread(forker_main, &f[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    end_users(&users);
    if (common) end_users(&commons);
    fjt_destroy(p);
    printf("# %ld forks\n", f[0].forks + f[1].forks);
    fflush(stdout);
}

FJ_TEST(children_of_two_forking_threads_live_as_they_like, 120)
{
    need_processes();
    fork_under_load(false);
}

FJ_TEST(children_of_a_process_with_a_busy_common_pool_live_as_they_like, 120)
{
    need_processes();
    fork_under_load(true);
}

/* posix_spawn() calls no fork handlers and does not copy the memory, so nothing of the pool may be
 * changed. */
FJ_TEST(programs_are_spawned_by_tasks_under_load, 60)
{
    fj_pool *p = fjt_pool(2, 0);
    struct users users;
    char name[] = "true";
    char *const argv[] = {name, NULL};
    long spawned = 0;

    if (access("/bin/true", X_OK) != 0) fjt_skip("there is no /bin/true");
    start_users(&users, p, 2);
    for (long i = fjt_rounds(60); i > 0; i--, spawned++) {
        pid_t pid = 0;
        CHECK_EQ(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
        child_ended_well(pid);
    }
    end_users(&users);
    fjt_destroy(p);
    printf("# %ld programs\n", spawned);
    fflush(stdout);
}
