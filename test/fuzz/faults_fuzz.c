/* SPDX-License-Identifier: MIT */
/*
 * faults_fuzz.c - runs the programs of graph_fuzz.c while system calls fail
 *
 * Each result is right, or the call has returned an error for lack of memory or of a thread.
 */
#include "fuzz/host.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_finish = fjp_finish;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_begin(bytes, n);
    (void)fjp_run(bytes, n, FJP_FAULTS | fuzz_show());
    fuzz_end();
    return 0;
}
