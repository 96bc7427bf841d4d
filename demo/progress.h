/* SPDX-License-Identifier: MIT */
/*
 * progress.h - a progress bar on the terminal
 *
 * The workers only increase a counter, with demo_step() of demo.h. A separate thread reads the
 * counter and draws the bar. There is no bar if standard error is not a terminal.
 */
#ifndef DEMO_PROGRESS_H
#define DEMO_PROGRESS_H

#include <stdint.h>

/* Shows `label` and the share of the `steps` steps that are done, until progress_stop(). */
void progress_start(const char *label, uint64_t steps);

/* Removes the bar and ends its thread. */
void progress_stop(void);

#endif
