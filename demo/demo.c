/* SPDX-License-Identifier: MIT */
/*
 * demo.c - real computations, serially and on the common pool
 *
 * The program draws a picture, sorts an array, solves the queens problem, multiplies two matrices
 * and walks over a folder tree. It does each of these once serially and once in parallel, compares
 * the two results and prints a table. The exit status is 1 if any result differs.
 */
#define _POSIX_C_SOURCE 200809L

#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "progress.h"

static const demo *const demos[] = {&demo_mandelbrot, &demo_sort, &demo_queens, &demo_matrix,
                                    &demo_tree};

enum { DEMOS = sizeof demos / sizeof demos[0] };

void demo_fail(const char *what)
{
    fprintf(stderr, "forkjoin-demo: %s\n", what);
    exit(1);
}

void *demo_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL) demo_fail("out of memory");
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_serial(const demo *d, uint64_t steps)
{
    char label[64];

    snprintf(label, sizeof label, "%s, serial", d->name);
    progress_start(label, steps);
    double start = now();
    d->serial();
    double seconds = now() - start;
    progress_stop();
    return seconds;
}

static double time_parallel(const demo *d, uint64_t steps)
{
    char label[64];

    snprintf(label, sizeof label, "%s, parallel", d->name);
    progress_start(label, steps);
    double start = now();
    int err = d->parallel();
    double seconds = now() - start;
    progress_stop();
    if (err != FJ_OK) demo_fail(fj_strerror(err));
    return seconds;
}

/* Runs a demo and prints its row of the table, with the state of the pool below it. Returns whether
 * the results are right. */
static bool run_demo(const demo *d, const demo_options *o)
{
    char what[128], note[4200] = "", pool[512];

    uint64_t steps = d->prepare(o, what, sizeof what);
    double serial = time_serial(d, steps);
    double parallel = time_parallel(d, steps);
    fj_pool_describe(NULL, pool, sizeof pool);
    bool right = d->finish(o, note, sizeof note);

    printf("%-15s %-34s %9.3f %10.3f %8.2f   %s\n", d->name, what, serial, parallel,
           serial / parallel, right ? "equal" : "DIFFERENT");
    printf("    %s\n", pool);
    if (note[0] != '\0') printf("    %s\n", note);
    fflush(stdout);
    return right;
}

/* Checks an argument. main() calls it before the first computation, so that a wrong argument does
 * not cost the time of a run. */
static bool is_folder(const char *path)
{
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return true;
    fprintf(stderr, "forkjoin-demo: not a folder: %s\n", path);
    return false;
}

static void help(void)
{
    printf("usage: forkjoin-demo [--quick] [--out DIR] [--dir DIR]\n"
           "\n"
           "Runs real computations serially and on the common pool, and compares the results.\n"
           "\n"
           "  --quick    small sizes: some seconds instead of up to a minute\n"
           "  --out DIR  the folder for mandelbrot.png; default: the current folder\n"
           "  --dir DIR  the folder whose files are counted; default: /usr, or /usr/share with\n"
           "             --quick\n"
           "  --help     print this text\n"
           "\n"
           "The environment variable FORKJOIN_PARALLELISM sets the number of workers of the\n"
           "common pool. The calling thread works too.\n");
}

int main(int argc, char **argv)
{
    demo_options o = {.quick = false, .out = ".", .dir = NULL};
    int wrong = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            help();
            return 0;
        }
        if (strcmp(argv[i], "--quick") == 0) {
            o.quick = true;
        } else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) {
            o.out = argv[++i];
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            o.dir = argv[++i];
        } else {
            fprintf(stderr, "forkjoin-demo: unknown argument: %s (try --help)\n", argv[i]);
            return 2;
        }
    }

    if (o.dir == NULL) o.dir = o.quick ? "/usr/share" : "/usr";
    if (!is_folder(o.dir) || !is_folder(o.out)) return 2;

    printf("%d processors; workers of the common pool: %d; the calling thread works too\n\n",
           fj_available_parallelism(), fj_common_parallelism());
    printf("%-15s %-34s %9s %10s %8s   %s\n", "name", "what", "serial s", "parallel s", "speedup",
           "results");
    for (int i = 0; i < DEMOS; i++)
        if (!run_demo(demos[i], &o)) wrong++;
    if (wrong != 0) printf("\n%d of %d results differ\n", wrong, DEMOS);
    return wrong != 0 ? 1 : 0;
}
