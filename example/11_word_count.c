/* SPDX-License-Identifier: MIT */
/*
 * 11_word_count.c - the most frequent words of a text: a reduction into hash tables
 *
 *     11_word_count [--quick | FILE]
 *
 * fj_reduce() divides the text into chunks, and a chunk may begin or end in the middle of a word. A
 * word belongs to the chunk in which it begins, so count_words() may read beyond the end of its
 * chunk. The words of consecutive chunks go into one hash table. A thief takes a range of chunks
 * and begins a new table for it; combine_tables() later merges this table into the other one.
 */
#include <forkjoin/algo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct text {
    char *bytes; /* letters are lower case */
    size_t n;
};

struct word {
    const char *at; /* in the text; NULL if the place is free */
    size_t length;
    size_t hash;
    unsigned long count;
};

/* A hash table with open addressing. `places` is a power of 2. In an empty table all members are
 * 0. */
struct table {
    struct word *word;
    size_t places, used;
};

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static struct word *table_find(const struct table *t, const struct word *w)
{
    for (size_t i = w->hash;; i++) {
        struct word *place = &t->word[i & (t->places - 1)];
        if (place->at == NULL) return place;
        if (place->hash == w->hash && place->length == w->length &&
            memcmp(place->at, w->at, w->length) == 0)
            return place;
    }
}

static int table_grow(struct table *t)
{
    struct table larger = {.places = t->places != 0 ? 2 * t->places : 1024, .used = t->used};

    larger.word = calloc(larger.places, sizeof *larger.word);
    if (larger.word == NULL) return FJ_ENOMEM;
    for (size_t i = 0; i < t->places; i++)
        if (t->word[i].at != NULL) *table_find(&larger, &t->word[i]) = t->word[i];
    free(t->word);
    *t = larger;
    return FJ_OK;
}

static int table_add(struct table *t, const struct word *w)
{
    if (2 * t->used >= t->places) {
        int err = table_grow(t);
        if (err != FJ_OK) return err;
    }
    struct word *place = table_find(t, w);
    if (place->at != NULL) {
        place->count += w->count;
    } else {
        *place = *w;
        t->used++;
    }
    return FJ_OK;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static int is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Counts the words that begin at a position i with begin <= i < end. */
static int count_words(size_t begin, size_t end, void *acc, void *arg)
{
    const struct text *t = arg;
    size_t i = begin;

    /* Skips the rest of a word that begins in the chunk before this one. */
    if (begin > 0 && is_letter(t->bytes[begin - 1]))
        while (i < end && is_letter(t->bytes[i])) i++;
    while (i < end) {
        if (!is_letter(t->bytes[i])) {
            i++;
            continue;
        }
        struct word w = {.at = t->bytes + i, .hash = 5381, .count = 1};
        for (; i < t->n && is_letter(t->bytes[i]); i++)
            w.hash = (w.hash ^ (size_t)t->bytes[i]) * 1099511628211u;
        w.hash ^= w.hash >> 29;
        w.length = (size_t)(t->bytes + i - w.at);
        int err = table_add(acc, &w);
        if (err != FJ_OK) return err;
    }
    return FJ_OK;
}

static int combine_tables(void *left, const void *right, void *arg)
{
    const struct table *from = right;
    int err = FJ_OK;

    (void)arg;
    for (size_t i = 0; i < from->places && err == FJ_OK; i++)
        if (from->word[i].at != NULL) err = table_add(left, &from->word[i]);
    free(from->word);
    return err;
}

static int count_serial(struct text *t, struct table *words)
{
    *words = (struct table){0};
    return count_words(0, t->n, words, t);
}

static int count_parallel(struct text *t, struct table *words)
{
    const struct table none = {0};
    return fj_reduce(0, t->n, count_words, combine_tables, &none, sizeof none, t, words, NULL);
}

/* ---- The text -------------------------------------------------------------------------------- */

/* Generates words of one to four syllables. Words with small numbers are by far the most frequent.
 * The text is always the same. */
static void text_generate(struct text *t, size_t n)
{
    static const char *const part[] = {"the",  "of", "an",  "to",  "in",  "re", "con", "ter",
                                       "ment", "al", "ing", "ous", "per", "lo", "mi",  "ka"};
    unsigned long long random = 88172645463325252u;

    t->bytes = malloc(n + 32);
    if (t->bytes == NULL) exit(1);
    for (t->n = 0; t->n < n;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned long rank = (unsigned long)(random >> 20) & 0xffff;
        rank >>= random & 15; /* makes small numbers frequent */
        do {
            const char *s = part[rank & 15];
            size_t length = strlen(s);
            memcpy(t->bytes + t->n, s, length);
            t->n += length;
            rank >>= 4;
        } while (rank != 0);
        t->bytes[t->n++] = random >> 60 == 0 ? '\n' : ' ';
    }
    t->n = n;
}

static int to_lower(const void *in, void *out, size_t n, void *arg)
{
    const char *a = in;
    char *b = out;

    (void)arg;
    for (size_t i = 0; i < n; i++) b[i] = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] + 32) : a[i];
    return FJ_OK;
}

static int text_read(struct text *t, const char *path)
{
    FILE *f = fopen(path, "rb");

    if (f == NULL) return 1;
    size_t room = 1 << 20;
    t->n = 0;
    t->bytes = malloc(room);
    while (t->bytes != NULL) {
        t->n += fread(t->bytes + t->n, 1, room - t->n, f);
        if (t->n < room) break;
        char *more = realloc(t->bytes, room *= 2);
        if (more == NULL) free(t->bytes);
        t->bytes = more;
    }
    int err = t->bytes == NULL || ferror(f) != 0;
    fclose(f);
    return err != 0 ? 1 : fj_transform(t->bytes, 1, t->bytes, 1, t->n, to_lower, NULL, NULL);
}

/* ---- Results --------------------------------------------------------------------------------- */

static int same_tables(const struct table *a, const struct table *b)
{
    if (a->used != b->used) return 0;
    for (size_t i = 0; i < a->places; i++)
        if (a->word[i].at != NULL && table_find(b, &a->word[i])->count != a->word[i].count)
            return 0;
    return 1;
}

static int by_count(const void *x, const void *y)
{
    const struct word *a = x, *b = y;

    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    if (a->at == NULL || b->at == NULL) return 0;
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->at, b->at, common);
    return order != 0 ? order : a->length < b->length ? -1 : 1;
}

static void print_first(struct table *t, size_t n)
{
    if (t->places != 0) qsort(t->word, t->places, sizeof *t->word, by_count);
    for (size_t i = 0; i < n && i < t->used; i++)
        printf("%10lu %.*s\n", t->word[i].count, (int)t->word[i].length, t->word[i].at);
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    struct table one = {0}, all = {0};
    struct text t;

    if (argc > 1 && !quick) {
        if (text_read(&t, argv[1]) != 0) {
            fprintf(stderr, "%s: cannot be read\n", argv[1]);
            return 1;
        }
    } else {
        text_generate(&t, quick ? 2000000 : 50000000);
    }

    double start = seconds();
    int err = count_serial(&t, &one);
    double middle = seconds();
    if (err == FJ_OK) err = count_parallel(&t, &all);
    double serial = middle - start, parallel = seconds() - middle;
    if (err != FJ_OK) { /* tables that were not combined are not freed */
        fprintf(stderr, "word count: %s\n", fj_strerror(err));
        return 1;
    }

    int same = same_tables(&one, &all);
    print_first(&all, 10);
    printf("%zu bytes, %zu words: serial %.1f ms, parallel %.1f ms, speedup %.2f\n", t.n, all.used,
           serial * 1e3, parallel * 1e3, serial / parallel);
    if (!same) fprintf(stderr, "the counts differ\n");
    free(one.word);
    free(all.word);
    free(t.bytes);
    return same ? 0 : 1;
}
