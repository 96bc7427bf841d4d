/* SPDX-License-Identifier: MIT */
/*
 * merge.h - an order of elements, and the merging of two sorted runs, alone and by many
 *
 * A merge never writes to its runs, and out never overlaps them: one that is given up can be
 * forgotten. Whatever a comparison answers, out becomes the elements of both runs, each once,
 * and only elements are compared: how many are taken from where is bounded by the lengths of
 * the runs alone, never by the answers.
 */
#ifndef FJI_ALGO_MERGE_H
#define FJI_ALGO_MERGE_H

#include "job.h"

/* How elements are copied: the compiler makes a copy of the inner loops for each. */
enum fji_kind {
    FJI_KIND_4,        /* exactly 4 bytes */
    FJI_KIND_8,        /* exactly 8 bytes */
    FJI_KIND_INDIRECT, /* the same, and what is compared is probably where they point to */
    FJI_KIND_16,       /* 9 to 16 bytes */
    FJI_KIND_32,       /* 17 to 32 bytes */
    FJI_KIND_ANY,      /* any size */
    FJI_KIND_PTR,      /* pointers to elements, which lie elsewhere */
};

/* What is compared, and how. */
typedef struct fji_order {
    fj_compare_fn *cmp;
    void *arg;
    size_t size; /* of what is moved: of a pointer with FJI_KIND_PTR */
    enum fji_kind kind;
} fji_order;

/* Two sorted runs, and where they are to be merged to: room for na + nb. */
typedef struct fji_run_pair {
    const unsigned char *a, *b;
    unsigned char *out;
    size_t na, nb;
} fji_run_pair;

/* Whether it can be meant: elements of `size` bytes, both runs and out are there, and out
 * overlaps neither. */
bool fji_run_pair_args_ok(const fji_run_pair *p, size_t size);

/* The kind for elements of `size` bytes that are moved themselves. */
enum fji_kind fji_kind_of(size_t size);

/* Merges *p, on this thread, and leaves nothing in it. */
void fji_merge_sequential(const fji_order *o, fji_run_pair *p);

/*
 * Merges *p, by as many workers as want to. Looks at the job every `part` elements. It is not
 * complete if the job has a code afterwards.
 */
typedef struct fji_merge_context {
    fji_order order;
    fji_job *job;
    size_t chunk;
    bool parallel;        /* others may help */
    bool counts_progress; /* as the progress of the job */
} fji_merge_context;

void fji_merge_parallel(const fji_merge_context *m, const fji_run_pair *p);

/*
 * How many comparisons take about FJI_CHUNK_TICKS, by the time that a few of them take, of the
 * first two of n elements; at least 1, at most `most`.
 */
size_t fji_order_chunk_size(const fji_order *o, const void *first, size_t n, size_t max);

/* A part of about n elements, or as the job wants it. */
static inline size_t fji_job_chunk_size(const fji_job *j, size_t n)
{
    if (j->grain != 0) return j->grain;
    return n < j->min_grain ? j->min_grain : n > j->max_grain ? j->max_grain : n;
}

/* Whether the caller may do something small itself, without entering a pool. */
static inline bool fji_job_may_skip_pool(const fj_algo_options *how)
{
    return (how == NULL || (how->pool == NULL && how->token == NULL)) && fj_current_pool() == NULL;
}

#endif /* FJI_ALGO_MERGE_H */
