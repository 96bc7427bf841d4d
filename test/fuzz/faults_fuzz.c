/* SPDX-License-Identifier: MIT */
/*
 * faults_fuzz.c - the same as graph_fuzz.c while calls of the system fail: results are right, or
 * the call has said that there was no memory or no thread
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
