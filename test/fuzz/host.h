/* SPDX-License-Identifier: MIT */
/*
 * host.h - what the fuzzers run in: failures, a watchdog, and inputs without a fuzzing engine
 */
#ifndef FUZZ_HOST_H
#define FUZZ_HOST_H

#include "fuzz/program.h"

/* Around each input: if it is not over after FUZZ_LIMIT seconds (default 60) the watchdog dumps
 * the pools, keeps the input in a file and aborts. */
void fuzz_begin(const uint8_t *bytes, size_t n);
void fuzz_end(void);

/* FJP_SHOW if the environment has FUZZ_SHOW. */
unsigned fuzz_show(void);

/* Called once at the end, before exit. */
extern void (*fuzz_finish)(void);

/* What an engine calls, and what main() of standalone.c calls in its place. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Writes the present input to KIND-PID in the folder FUZZ_KEEP (default: here). */
void fuzz_keep(const char *kind);

#endif /* FUZZ_HOST_H */
