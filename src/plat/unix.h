/* SPDX-License-Identifier: MIT */
/*
 * unix.h - functions that the source files of the linux and posix layers share
 *
 * They are not part of the porting contract: only files in plat/ and tests call them.
 */
#ifndef FJI_UNIX_H
#define FJI_UNIX_H

#include "plat.h"

/* Returns the number of CPUs in the affinity mask of the calling thread (linux), or the number of
 * CPUs that are online (posix, or if the mask cannot be read). Returns a number below 1 if the
 * system does not know. May change errno. */
int fji_plat_cpus_online(void);

/*
 * Returns the number of CPUs to which control groups limit this process: the least quota / period,
 * rounded up, of its control group and all ancestors of the group, in versions 1 and 2. Returns 0
 * if there is no limit. `root` is put before the paths in /proc and /sys; only tests pass a string
 * that is not empty.
 */
int fji_plat_cpus_quota(const char *root);

/* Returns the time of the system's monotonic clock that corresponds to t, a time of fji_plat_now().
 * The two clocks differ only after an injected fault of the clock (FJI_FAULT_JUMP or
 * FJI_FAULT_STILL). */
int64_t fji_plat_system_time(int64_t t);

/* Counts a call of the kind `kind`, as fji_fault_now() does. Sleeps for 1 ms if this call is chosen
 * to fail. */
void fji_fault_late(enum fji_fault kind);

/* Returns the ranges that fji_plat_release() has kept to the system. The library calls it when it is
 * unloaded, and tests call it before they measure the mapped memory. */
void fji_plat_release_kept(void);

/* Calls pthread_atfork(). Returns false if it fails; no handler is installed then. */
bool fji_plat_register_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif /* FJI_UNIX_H */
