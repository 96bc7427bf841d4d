/* SPDX-License-Identifier: MIT */
/*
 * standalone.c - main() for a fuzzer without an engine: runs files, then random inputs
 *
 *     graph [--seconds N] [--runs N] [--seed S] [FILE...]
 *
 * The last line of output says how many inputs were run, and the total size of the random ones.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz/host.h"

static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* Runs the input from a block of exactly n bytes, so that a sanitizer reports reads beyond it. */
static void run_bytes(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    if (copy == NULL) abort();
    memcpy(copy, bytes, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int run_file(const char *name)
{
    static uint8_t bytes[1 << 16];
    FILE *f = fopen(name, "rb");

    if (f == NULL) {
        fprintf(stderr, "%s: %s\n", name, strerror(errno));
        return 1;
    }
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    run_bytes(bytes, n);
    return 0;
}

/*
 * Makes a random input. Most are short, because small programs show errors soonest. Bits that need
 * threads (see program.h) are rarely set.
 */
static size_t make_bytes(uint64_t *state, uint8_t *bytes)
{
    size_t most = (size_t)4 << random_next(state) % 7;
    size_t n = random_next(state) % (most + 1);

    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(random_next(state) >> 24);
    if (n > 0 && random_next(state) % 8 != 0) bytes[0] &= 0x7f;
    if (n > 1 && random_next(state) % 4 != 0) bytes[1] &= 0xc3;
    return n;
}

static long number_of(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*text == 0 || *end != 0 || n < 0) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    long seconds = 0, runs = 0, done = 0;
    uint64_t seed = (uint64_t)now_ns() % 1000000000, state;
    int64_t start = now_ns();
    size_t total = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--seconds") == 0 && more)
            seconds = number_of(argv[++i]);
        else if (strcmp(argv[i], "--runs") == 0 && more)
            runs = number_of(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && more)
            seed = (uint64_t)number_of(argv[++i]);
        else if (run_file(argv[i]) != 0)
            return 2;
        else
            done++;
    }
    state = seed;
    printf("fuzz: %ld files, seed %llu\n", done, (unsigned long long)seed);
    fflush(stdout);
    for (long k = 0; k < runs || now_ns() - start < seconds * 1000000000; k++, done++) {
        uint8_t bytes[FJP_MOST_BYTES];
        size_t n = make_bytes(&state, bytes);
        total += n;
        run_bytes(bytes, n);
    }
    printf("fuzz: %ld inputs, %zu random bytes, %.1f s\n", done, total,
           (double)(now_ns() - start) / 1e9);
    return 0;
}
