/* SPDX-License-Identifier: MIT */
/*
 * unix.h - functions that the parts of the linux and posix layers share
 *
 * Not part of the porting contract: only files in plat/ call them, and tests.
 */
#ifndef FJI_UNIX_H
#define FJI_UNIX_H

#include "plat.h"

/* Returns the number of CPUs in the affinity mask of the process (linux), or that are online
 * (posix, or if the mask cannot be read). May return 0 or less if the system does not tell. */
int fji_plat_cpus_online(void);

/*
 * Returns the CPU limit of the control group of this process and of all its ancestors, versions 1
 * and 2: the least quota / period, rounded up. Returns 0 if there is no limit. `root` is put before
 * every path; tests use it.
 */
int fji_plat_cpus_quota(const char *root);

/* Converts a time of fji_plat_now() to the time of the system's clock. They differ only after a
 * fault of the clock. */
int64_t fji_plat_system_time(int64_t t);

/* Sleeps for 1 ms if this call of that kind is to fail (fji_fault_now()). */
void fji_fault_late(enum fji_fault kind);

/* pthread_atfork(). Returns false if it failed, and then no handler is installed. */
bool fji_plat_register_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif /* FJI_UNIX_H */
