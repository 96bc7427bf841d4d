/* SPDX-License-Identifier: MIT */
/*
 * unix.h - what the POSIX-like platforms share
 */
#ifndef FJI_UNIX_H
#define FJI_UNIX_H

#include "plat.h"

/* CPUs by affinity (Linux) or online count. */
int fji_plat_cpus_online(void);

/* ceil(quota / period) over this process's cgroup and all its ancestors, v1 and v2;
 * 0 if there is no limit. `root` is put before every path. */
int fji_plat_cpus_quota(const char *root);

/* When the system's clock shows what fji_plat_now() calls t: t, but for faults of the clock. */
int64_t fji_plat_system_time(int64_t t);

/* A wake is to come late, or a second time: fji_fault_now() with what it means. */
void fji_fault_late(enum fji_fault kind);

/* pthread_atfork(), which may be refused. */
bool fji_plat_register_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif /* FJI_UNIX_H */
