/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - a plugin that contains the static library is unloaded
 *
 * The plugin has used the common pool and has ended it with fj_common_shutdown(). After the unload
 * nothing of the plugin is left in the process: no thread, no mapping, no fork() handler, and no
 * destructor of thread-local data.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regression.h"

#ifndef FJT_PLUGIN
#define FJT_PLUGIN NULL
#endif

struct plugin {
    void *handle;
    int (*use)(void);
    int (*end)(void);
    void (*end_at_unload)(void);
};

static struct plugin plugin_load(void)
{
    struct plugin p;
    const char *path = FJT_PLUGIN;

    if (path == NULL) fjt_skip("built without the plugin");
    p.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (p.handle == NULL) fjt_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
    *(void **)&p.use = dlsym(p.handle, "plugin_use");
    *(void **)&p.end = dlsym(p.handle, "plugin_end");
    *(void **)&p.end_at_unload = dlsym(p.handle, "plugin_end_at_unload");
    CHECK(p.use != NULL && p.end != NULL && p.end_at_unload != NULL);
    return p;
}

static int threads_alive(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    if (d == NULL) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Returns the number of lines of /proc/self/maps, and in *of_plugin those that name the plugin. */
static int mappings(int *of_plugin)
{
    const char *path = FJT_PLUGIN;
    FILE *f = fopen("/proc/self/maps", "r");
    char line[4096];
    int n = 0;

    *of_plugin = 0;
    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL) {
        n++;
        if (strstr(line, strrchr(path, '/')) != NULL) ++*of_plugin;
    }
    fclose(f);
    return n;
}

static void *end_at_once(void *arg)
{
    return arg;
}

/* Calls fork() and ends a thread. Both would call a handler that the plugin has left behind. */
static void fork_and_thread_work(void)
{
    pthread_t thread;
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) _exit(7);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void check_gone(const struct plugin *p, int threads)
{
    int left;

    CHECK_EQ(dlclose(p->handle), 0);
    UNTIL(threads_alive() <= threads); /* /proc lists a joined thread for a moment */
    (void)mappings(&left);
    if (!fjt_sanitized()) CHECK_EQ(left, 0); /* AddressSanitizer keeps modules mapped */
    fork_and_thread_work();
}

/* The first rounds leave memory that the C library keeps: arenas, and a little for each cached
 * thread stack, of which a later round may need one more. If the library leaked one block in each
 * of at least 20 later rounds, that would be at least 128000 bytes. */
FJ_TEST(plugin_is_unloaded_again_and_again, 120)
{
    int threads = threads_alive(), of_plugin, maps = 0;
    long rounds = 40 + fjt_rounds(60), warm = rounds / 2;
    size_t heap = 0;

    CHECK_EQ(setenv("FORKJOIN_PARALLELISM", "3", 1), 0);
    (void)mallopt(M_ARENA_MAX, 1); /* with several arenas the figure would vary */
    for (long i = 0; i < rounds; i++) {
        struct plugin p = plugin_load();
        CHECK_EQ(p.use(), 0);
        if (i % 3 == 0) {
            CHECK_EQ(p.end(), FJ_OK);
            CHECK_EQ(p.use(), 0);
        }
        CHECK_EQ(p.end(), FJ_OK);
        check_gone(&p, threads);
        if (i == warm) maps = mappings(&of_plugin);
        if (i == warm) heap = mallinfo2().uordblks;
    }
    if (fjt_sanitized()) return;
    CHECK(mappings(&of_plugin) <= maps + 2);
    CHECK(mallinfo2().uordblks <= heap + 40000);
}

FJ_TEST(plugin_that_was_not_used_is_unloaded, 60)
{
    int threads = threads_alive();

    for (int i = 0; i < 10; i++) {
        struct plugin p = plugin_load();
        if (i % 2 == 0) CHECK_EQ(p.end(), FJ_OK);
        check_gone(&p, threads);
    }
}

/* The plugin may call fj_common_shutdown() in its destructor. */
FJ_TEST(plugin_ends_the_common_pool_while_it_is_unloaded, 60)
{
    int threads = threads_alive();

    for (int i = 0; i < 20; i++) {
        struct plugin p = plugin_load();
        p.end_at_unload();
        CHECK_EQ(p.use(), 0);
        check_gone(&p, threads);
    }
}

FJ_TEST(process_ends_with_a_plugin_that_ends_the_common_pool_in_its_destructor, 60)
{
    struct plugin p = plugin_load();

    p.end_at_unload();
    CHECK_EQ(p.use(), 0);
}

FJ_TEST(process_ends_with_a_plugin_that_is_not_unloaded, 60)
{
    struct plugin p = plugin_load();

    CHECK_EQ(p.use(), 0);
}

static struct {
    struct plugin plugin;
    atomic_int used, unloaded;
} outlive;

static void *outlive_main(void *arg)
{
    (void)arg;
    CHECK_EQ(outlive.plugin.use(), 0);
    atomic_fetch_add(&outlive.used, 1);
    while (!atomic_load(&outlive.unloaded)) fjt_sleep_us(100);
    return NULL; /* the plugin's thread-local data is already unmapped */
}

FJ_TEST(threads_that_have_used_a_plugin_end_after_it, 60)
{
    pthread_t thread[4];
    int threads = threads_alive();

    for (int i = 0; i < 10; i++) {
        atomic_store(&outlive.used, 0);
        atomic_store(&outlive.unloaded, 0);
        outlive.plugin = plugin_load();
        for (int k = 0; k < 4; k++)
            CHECK_EQ(pthread_create(&thread[k], NULL, outlive_main, NULL), 0);
        UNTIL(atomic_load(&outlive.used) == 4);
        CHECK_EQ(outlive.plugin.end(), FJ_OK);
        check_gone(&outlive.plugin, threads + 4);
        atomic_store(&outlive.unloaded, 1);
        for (int k = 0; k < 4; k++) CHECK_EQ(pthread_join(thread[k], NULL), 0);
    }
}

/* The plugin works in the child process of fork() as it does in the parent. */
FJ_TEST(child_of_fork_unloads_a_plugin, 60)
{
    int threads = threads_alive();

    if (fjt_sanitized()) fjt_skip("the sanitizers do not support threads after fork()");
    for (int i = 0; i < 5; i++) {
        struct plugin p = plugin_load();
        CHECK_EQ(p.use(), 0);
        pid_t pid = fork();
        int status;
        CHECK(pid >= 0);
        if (pid == 0) {
            if (i % 2 == 0) CHECK_EQ(p.use(), 0);
            CHECK_EQ(p.end(), FJ_OK);
            check_gone(&p, 1);
            _exit(0);
        }
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(p.use(), 0);
        CHECK_EQ(p.end(), FJ_OK);
        check_gone(&p, threads);
    }
}
