/* SPDX-License-Identifier: MIT */
/*
 * refusals.c - the sweep of sweep.h over the programs of programs.h
 */
#include "programs.h"
#include "sweep.h"

#define SWEEP(p)                         \
    FJ_TEST(p##_whatever_is_refused, 60) \
    {                                    \
        sweep(#p, run_##p);              \
    }

PROGRAMS(SWEEP)
