/* SPDX-License-Identifier: MIT */
/*
 * fork_generation.c - the fork generation of this process; see fork_generation.h
 */
#include "task/fork_generation.h"

#include "plat/config.h"

uint32_t fji_fork_generation = FJI_START_FORKS;
