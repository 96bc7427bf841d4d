/* SPDX-License-Identifier: MIT */
/*
 * plat_common.h - what the POSIX-like platforms share
 */
#ifndef FJI_PLAT_COMMON_H
#define FJI_PLAT_COMMON_H

#include "plat.h"

/* CPUs by affinity (Linux) or online count. */
int fji_plat_cpus_online(void);

/* ceil(quota / period) over this process's cgroup and all its ancestors, v1 and v2;
 * 0 if there is no limit. `root` is put before every path. */
int fji_plat_cpus_quota(const char *root);

#endif /* FJI_PLAT_COMMON_H */
