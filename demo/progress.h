/* SPDX-License-Identifier: MIT */
/*
 * progress.h - a bar on the terminal while a computation runs
 *
 * The workers only add to a counter (demo_step() in demo.h); a thread of its own reads it and
 * draws. Nothing is shown where standard error is not a terminal.
 */
#ifndef DEMO_PROGRESS_H
#define DEMO_PROGRESS_H

#include <stdint.h>

/* Shows `label` and how many of `steps` steps are done, until progress_stop(). */
void progress_start(const char *label, uint64_t steps);

/* Ends the display and removes it. */
void progress_stop(void);

#endif
