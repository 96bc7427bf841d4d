/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the CPU limit of the control groups of this process
 *
 * A control group of version 2 has a file cpu.max with "QUOTA PERIOD", or "max PERIOD" for no
 * limit. A control group of version 1 has the files cpu.cfs_quota_us, where -1 means no limit, and
 * cpu.cfs_period_us, under the cpu controller. Quota / period, rounded up, is the number of CPUs
 * that the group may use. The limit of the process is the least number of its own group and of all
 * ancestors of this group. A file that cannot be read or parsed sets no limit.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unix.h"

#define PATH_BYTES 4096

/* Returns quota / period, rounded up. Returns 0, which means no limit, if one of them is not
 * positive or if the result is above 1000000. */
static int cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return 0;
    long long n = quota / period + (quota % period != 0);
    return n > 1000000 ? 0 : (int)n;
}

/* Sets *best to n if n is a tighter limit than *best. In both, 0 means no limit. */
static void keep_tightest(int *best, int n)
{
    if (n > 0 && (*best == 0 || n < *best)) *best = n;
}

/* Writes dir, followed by name, to `path`, which has PATH_BYTES bytes. Returns false if the result
 * does not fit. */
static bool path_of(char *path, const char *dir, const char *name)
{
    int n = snprintf(path, PATH_BYTES, "%s%s", dir, name);
    return n >= 0 && n < PATH_BYTES;
}

/* Reads at most cap - 1 bytes of the file `path` into buf, as a string. Returns false if the file
 * cannot be opened or no byte can be read. */
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
    /* For "max", and for text that is no number, strtoll() returns 0, which means no limit. */
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

/* Returns the least limit of the directory mount/group and all its parents, up to and including
 * `mount`, or 0 if none of them has a limit. quota(dir) returns the limit of one directory. */
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

/* Returns whether `name` is in the comma-separated list of n bytes. */
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

/* Parses one line of /proc/self/cgroup, "id:controllers:path", and lowers *best to the limit of
 * this group and its ancestors, if that is lower. In version 2 the list of controllers is empty. A
 * line of version 1 whose list does not contain "cpu" is ignored. `root` is put before the path of
 * each mount. */
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
