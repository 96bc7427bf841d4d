/* SPDX-License-Identifier: MIT */
/*
 * host.h - the environment of the fuzzers: failures, a watchdog, inputs without a fuzzing engine
 */
#ifndef FUZZ_HOST_H
#define FUZZ_HOST_H

#include "fuzz/program.h"

/* Call these before and after each input. If the input takes more than FUZZ_LIMIT seconds (default
 * 60), the watchdog dumps the pools, writes the input to a file and aborts. */
void fuzz_begin(const uint8_t *bytes, size_t n);
void fuzz_end(void);

/* Returns FJP_SHOW if the environment variable FUZZ_SHOW is set, else 0. */
unsigned fuzz_show(void);

/* Called once at the end, before exit. */
extern void (*fuzz_finish)(void);

/* A fuzzing engine calls these. Without one, main() of standalone.c calls them. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Writes the current input to a file KIND-PID in the folder FUZZ_KEEP (default: the current
 * one). */
void fuzz_keep(const char *kind);

#endif /* FUZZ_HOST_H */
