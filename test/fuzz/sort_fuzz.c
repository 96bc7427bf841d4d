/* SPDX-License-Identifier: MIT */
/*
 * sort_fuzz.c - decodes bytes into a sort, merge, filter or search, and its comparison's answers
 *
 *     0     bits 0-3 the call, 4-6 what the comparison answers, 7 see byte 3
 *     1     bits 0-1 workers (1, 2, 4, or the common pool), 2 no memory, 3 a comparison cancels,
 *           4-5 grain, 6-7 keys
 *     2     size of an element, or index of the type
 *     3-4   number of elements: byte 3, times eight if bit 7 of byte 0 is set. If bit 3 of byte 4
 *           is set, bits 0-2 of byte 4 are the higher byte instead. Bits 4-7 are added to the size
 *     5     share of the elements in the first run; bit 0: the script answers
 *     6-7   seed, and which comparison cancels; bit 0 of byte 6: the second half of the answers
 *     then  the script: one bit for each answer; after its end it starts again
 */
#include <stdio.h>

#include "fuzz/host.h"

#define INCONSISTENT_FAIL(...) fjp_fail(__FILE__, __LINE__, __VA_ARGS__)
#include "algo/inconsistent.h"

enum { HEAD = 8, POOLS = 3 };

static fj_pool *pools[POOLS];

static void finish(void)
{
    for (int i = 0; i < POOLS; i++) {
        if (pools[i] == NULL) continue;
        fjp_unwatch(pools[i]);
        if (fj_pool_destroy(pools[i]) != FJ_OK)
            fjp_fail(__FILE__, __LINE__, "a pool cannot be destroyed");
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_finish = finish;
    return 0;
}

static fj_pool *pool_of(unsigned i)
{
    fj_pool_options o;

    if (i >= POOLS) return NULL;
    if (pools[i] != NULL) return pools[i];
    memset(&o, 0, sizeof o);
    o.parallelism = 1 << i;
    if (fj_pool_create(&pools[i], &o) != FJ_OK)
        fjp_fail(__FILE__, __LINE__, "a pool cannot be created");
    fjp_watch(pools[i]);
    return pools[i];
}

static struct trial decode(const uint8_t b[HEAD])
{
    static const size_t grains[] = {0, 1, 16, 100};
    static const unsigned keys[] = {0, 1, 3, 1000};
    struct trial t = {.call = (enum call)((b[0] & 15) % CALLS), .answer = ANSWER_SCRIPT};

    if ((b[5] & 1) == 0) t.answer = (enum answer)((b[0] >> 4 & 7) + (b[6] & 1) * 8);
    if (t.answer >= ANSWERS) t.answer = ANSWER_SCRIPT;
    t.size = 1 + (b[2] + ((size_t)b[4] & 0xf0)) % SIZE_MOST;
    if (t.call >= CALL_TYPED_SORT && t.call <= CALL_TYPED_MERGE)
        t.size = typed_sizes[b[2] % TYPED].size;
    t.n = (b[4] & 8) != 0 ? b[3] + (((size_t)b[4] & 7) << 8) : (size_t)b[3] << (b[0] >> 7) * 3;
    t.na = t.n * b[5] / 255;
    t.pool = pool_of(b[1] & 3);
    t.no_memory = (b[1] & 4) != 0;
    t.grain = grains[b[1] >> 4 & 3];
    t.keys = keys[b[1] >> 6];
    t.seed = b[6] + ((uint64_t)b[7] << 8);
    if ((b[1] & 8) != 0) t.end = 1 + t.seed * (t.n + 1) / 8192;
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint8_t head[HEAD] = {0};

    fuzz_begin(bytes, n);
    memcpy(head, bytes, n < HEAD ? n : HEAD);
    struct trial t = decode(head);
    t.script = bytes + (n < HEAD ? n : HEAD);
    t.script_bytes = n < HEAD ? 0 : n - HEAD;
    if (fuzz_show() != 0)
        fprintf(stderr, "call %d, answer %d, size %zu, n %zu, na %zu, grain %zu, end %lu%s\n",
                t.call, t.answer, t.size, t.n, t.na, t.grain, t.end,
                t.no_memory ? ", no memory" : "");
    trial_run(t);
    fuzz_end();
    return 0;
}
