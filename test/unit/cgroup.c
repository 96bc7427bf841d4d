/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the CPU quota of control groups, read from a root directory that the test creates
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fjtest.h"
#include "plat/unix.h"

static char root[512];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void root_end(void)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void root_make(void)
{
    const char *tmp = getenv("TMPDIR");

    if (tmp == NULL || strlen(tmp) > 400) tmp = "/tmp";
    snprintf(root, sizeof root, "%s/fjt-cgroup-XXXXXX", tmp);
    CHECK(mkdtemp(root) != NULL);
    atexit(root_end);
}

/* Creates a file under the root, and the directories above it. */
static void put(const char *path, const char *text)
{
    char full[2048];

    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; *p != '\0'; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0777);
            *p = '/';
        }
    FILE *f = fopen(full, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void v2(const char *group, const char *text)
{
    char path[1024];

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    put(path, text);
}

static void v1(const char *mount, const char *group, const char *quota, const char *period)
{
    char path[1024];

    snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/cpu.cfs_quota_us", mount, group);
    put(path, quota);
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/cpu.cfs_period_us", mount, group);
    put(path, period);
}

static void group(const char *text)
{
    put("/proc/self/cgroup", text);
}

static int quota(void)
{
    return fji_plat_cpus_quota(root);
}

FJ_TEST(no_control_group_is_no_limit, 10)
{
    root_make();
    CHECK_EQ(quota(), 0);
    CHECK_EQ(fji_plat_cpus_quota("/no/such/directory"), 0);
}

FJ_TEST(empty_control_group_file_is_no_limit, 10)
{
    root_make();
    group("");
    CHECK_EQ(quota(), 0);
    group("0::/a\n");
    CHECK_EQ(quota(), 0);
    v2("/a", "");
    CHECK_EQ(quota(), 0);
}

FJ_TEST(v2_max_is_no_limit, 10)
{
    root_make();
    group("0::/a\n");
    v2("/a", "max 100000\n");
    CHECK_EQ(quota(), 0);
}

FJ_TEST(v2_quota_is_rounded_up, 10)
{
    static const struct {
        const char *text;
        int cpus;
    } cases[] = {{"1000 100000", 1},       {"99999 100000", 1},    {"100000 100000", 1},
                 {"100001 100000", 2},     {"150000 100000\n", 2}, {"200000 100000\n", 2},
                 {"6400000 100000\n", 64}, {"50000 10000\n", 5},   {"3200000000 100000", 32000}};

    root_make();
    group("0::/a\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        v2("/a", cases[i].text);
        CHECK_EQ(quota(), cases[i].cpus);
    }
}

FJ_TEST(v2_of_the_root_group_counts, 10)
{
    root_make();
    group("0::/\n");
    v2("", "300000 100000\n");
    CHECK_EQ(quota(), 3);
}

FJ_TEST(v2_tightest_of_all_ancestors_counts, 10)
{
    root_make();
    group("0::/a/b/c\n");
    v2("/a/b/c", "800000 100000\n");
    CHECK_EQ(quota(), 8);
    v2("/a", "300000 100000\n");
    CHECK_EQ(quota(), 3);
    v2("/a/b", "max 100000\n");
    CHECK_EQ(quota(), 3);
    v2("", "200000 100000\n");
    CHECK_EQ(quota(), 2);
    v2("/a/b/c", "100000 100000\n");
    CHECK_EQ(quota(), 1);
}

FJ_TEST(v2_siblings_do_not_count, 10)
{
    root_make();
    group("0::/a/b\n");
    v2("/a/b", "800000 100000\n");
    v2("/a/bc", "100000 100000\n");
    v2("/a/b/c", "100000 100000\n");
    CHECK_EQ(quota(), 8);
}

/* Inside a container, the directory of the group may be missing, but that of the root is there. */
FJ_TEST(v2_group_that_is_not_there_leaves_its_ancestors, 10)
{
    root_make();
    group("0::/somewhere/else\n");
    v2("", "400000 100000\n");
    CHECK_EQ(quota(), 4);
}

FJ_TEST(v1_quota_is_rounded_up, 10)
{
    root_make();
    group("4:memory:/x\n3:cpu:/a\n");
    v1("cpu", "/a", "250000\n", "100000\n");
    CHECK_EQ(quota(), 3);
    v1("cpu", "/a", "-1\n", "100000\n");
    CHECK_EQ(quota(), 0);
}

FJ_TEST(v1_controllers_may_share_a_mount, 10)
{
    root_make();
    group("5:cpuset:/a\n3:cpu,cpuacct:/a\n");
    v1("cpu,cpuacct", "/a", "250000\n", "50000\n");
    CHECK_EQ(quota(), 5);
}

FJ_TEST(v1_other_controllers_do_not_count, 10)
{
    root_make();
    group("3:cpuset:/a\n2:cpuacct:/a\n1:name=systemd:/a\n");
    v1("cpu", "/a", "100000\n", "100000\n");
    v1("cpuset", "/a", "100000\n", "100000\n");
    CHECK_EQ(quota(), 0);
}

FJ_TEST(v1_tightest_of_all_ancestors_counts, 10)
{
    root_make();
    group("3:cpuacct,cpu:/a/b\n");
    v1("cpu", "/a/b", "900000\n", "100000\n");
    CHECK_EQ(quota(), 9);
    v1("cpu", "/a", "700000\n", "100000\n");
    CHECK_EQ(quota(), 7);
    v1("cpu", "", "200000\n", "100000\n");
    CHECK_EQ(quota(), 2);
}

FJ_TEST(v1_and_v2_together_the_tighter_counts, 10)
{
    root_make();
    group("3:cpu:/a\n0::/b\n");
    v1("cpu", "/a", "500000\n", "100000\n");
    v2("/b", "400000 100000\n");
    CHECK_EQ(quota(), 4);
    v1("cpu", "/a", "200000\n", "100000\n");
    CHECK_EQ(quota(), 2);
}

FJ_TEST(garbage_in_control_groups_is_no_limit, 10)
{
    static const char *const lines[] = {"\n\n\n",   ":::\n",      "::\n",   "x\n",
                                        "0:\n",     "0::",        "0::a\n", "3:cpu\n",
                                        "3:cpu:\n", "\xff\xfe\n", ",:,:,\n"};
    static const char *const maxes[] = {"max",
                                        "x y\n",
                                        "-1 100000\n",
                                        "100000\n",
                                        "100000 0\n",
                                        "0 100000",
                                        "100000 -5\n",
                                        "\n",
                                        "100000 max\n",
                                        "999999999999999999999999 1\n",
                                        "9223372036854775807 100000\n"};

    root_make();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        group(lines[i]);
        CHECK_EQ(quota(), 0);
    }
    group("0::/a\n3:cpu:/a\n");
    for (size_t i = 0; i < sizeof maxes / sizeof maxes[0]; i++) {
        v2("/a", maxes[i]);
        CHECK_EQ(quota(), 0);
    }
    v2("/a", "max 100000\n");
    v1("cpu", "/a", "many\n", "100000\n");
    CHECK_EQ(quota(), 0);
    v1("cpu", "/a", "100000\n", "none\n");
    CHECK_EQ(quota(), 0);
    v1("cpu", "/a", "", "");
    CHECK_EQ(quota(), 0);
}

FJ_TEST(very_long_group_is_no_limit, 10)
{
    static char text[9000];

    root_make();
    snprintf(text, sizeof text, "0::");
    for (size_t n = strlen(text); n < sizeof text - 10; n += 8) memcpy(text + n, "/deeper/", 9);
    group(text);
    CHECK_EQ(quota(), 0);
}

FJ_TEST(cpus_are_those_online_or_fewer_by_quota, 10)
{
    int online = fji_plat_cpus_online();

    root_make();
    CHECK(online >= 1);
    CHECK_EQ(fji_plat_cpus(root), online);
    group("0::/a\n");
    v2("/a", "100000 100000\n");
    CHECK_EQ(fji_plat_cpus(root), 1);
    v2("/a", "10 100000\n");
    CHECK_EQ(fji_plat_cpus(root), 1);
    v2("/a", "100000000 100000\n");
    CHECK_EQ(fji_plat_cpus(root), online < 1000 ? online : 1000);
}
