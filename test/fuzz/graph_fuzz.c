/* SPDX-License-Identifier: MIT */
/*
 * graph_fuzz.c - decodes bytes into a program of tasks and compares it with the oracle
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
    (void)fjp_run(bytes, n, fuzz_show());
    fuzz_end();
    return 0;
}
