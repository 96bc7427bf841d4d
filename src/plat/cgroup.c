/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the CPU limit of the control groups of this process
 *
 * In version 2 a group has a file cpu.max with "QUOTA PERIOD", or "max PERIOD" for no limit. In
 * version 1 it has the files cpu.cfs_quota_us, where -1 means no limit, and cpu.cfs_period_us,
 * under the cpu controller. Quota / period, rounded up, is the number of CPUs. The least number of
 * the process's group and all its ancestors is the limit. A file that cannot be read or parsed sets
 * no limit.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unix.h"

#define PATH_BYTES 4096

/* Returns quota / period, rounded up, or 0 for no limit. */
static int cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return 0;
    long long n = quota / period + (quota % period != 0);
    return n > 1000000 ? 0 : (int)n;
}

/* Sets *best to n if n is a limit and less than *best. 0 means no limit, for both. */
static void keep_tightest(int *best, int n)
{
    if (n > 0 && (*best == 0 || n < *best)) *best = n;
}

/* Sets path to dir followed by name. Returns false if it is too long. */
static bool path_of(char *path, const char *dir, const char *name)
{
    int n = snprintf(path, PATH_BYTES, "%s%s", dir, name);
    return n >= 0 && n < PATH_BYTES;
}

/* Reads at most cap - 1 bytes of a file into buf, as a string. Returns false if there are none. */
static bool read_text(const char *path, char *buf, size_t cap)
{
    FILE *f = fopen(path, "re");

    if (f == NULL) return false;
    size_t n = fread(buf, 1, cap - 1, f);
    (void)fclose(f); /* opened for reading, so no data can be lost */
    buf[n] = '\0';
    return n > 0;
}

static int quota_v2(const char *dir)
{
    char path[PATH_BYTES], text[128];
    char *rest;

    if (!path_of(path, dir, "/cpu.max") || !read_text(path, text, sizeof text)) return 0;
    /* strtoll() returns 0 for "max" and other text, which means no limit. */
    long long quota = strtoll(text, &rest, 10);
    return cpus_of(quota, strtoll(rest, NULL, 10));
}

static int quota_v1(const char *dir)
{
    char path[PATH_BYTES], text[64];

    if (!path_of(path, dir, "/cpu.cfs_quota_us") || !read_text(path, text, sizeof text)) return 0;
    long long quota = strtoll(text, NULL, 10);
    if (!path_of(path, dir, "/cpu.cfs_period_us") || !read_text(path, text, sizeof text)) return 0;
    return cpus_of(quota, strtoll(text, NULL, 10));
}

/* Returns the least limit of mount/group and all its parents, up to and including the mount. */
static int tightest_up(const char *mount, const char *group, int (*quota)(const char *))
{
    char dir[PATH_BYTES];
    size_t floor = strlen(mount);
    int best = 0;

    if (!path_of(dir, mount, group)) return 0;
    for (size_t n = strlen(dir); n > floor && dir[n - 1] == '/';) dir[--n] = '\0';
    for (;;) {
        keep_tightest(&best, quota(dir));
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < floor) return best;
        *slash = '\0';
    }
}

/* Whether the comma-separated list of n bytes has this name. */
static bool has_controller(const char *list, size_t n, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = list; p < list + n;) {
        const char *comma = memchr(p, ',', (size_t)(list + n - p));
        size_t length = comma != NULL ? (size_t)(comma - p) : (size_t)(list + n - p);
        if (length == len && memcmp(p, name, len) == 0) return true;
        p += length + 1;
    }
    return false;
}

/* Handles one line of /proc/self/cgroup, "id:controllers:path". In version 2 the list of
 * controllers is empty. */
static void read_line(const char *root, char *line, int *best)
{
    char mount[PATH_BYTES];
    char *list = strchr(line, ':');
    char *group = list != NULL ? strchr(list + 1, ':') : NULL;

    if (group == NULL) return;
    list++;
    size_t n = (size_t)(group - list);
    group++;
    if (strcmp(group, "/") == 0) group = "";
    if (n == 0) {
        if (path_of(mount, root, "/sys/fs/cgroup"))
            keep_tightest(best, tightest_up(mount, group, quota_v2));
    } else if (has_controller(list, n, "cpu")) {
        if (path_of(mount, root, "/sys/fs/cgroup/cpu"))
            keep_tightest(best, tightest_up(mount, group, quota_v1));
        if (path_of(mount, root, "/sys/fs/cgroup/cpu,cpuacct"))
            keep_tightest(best, tightest_up(mount, group, quota_v1));
    }
}

int fji_plat_cpus_quota(const char *root)
{
    char path[PATH_BYTES], text[8192];
    int best = 0;

    if (!path_of(path, root, "/proc/self/cgroup") || !read_text(path, text, sizeof text)) return 0;
    char *next;
    for (char *line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next))
        read_line(root, line, &best);
    return best;
}
