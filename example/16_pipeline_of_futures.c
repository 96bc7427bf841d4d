/* SPDX-License-Identifier: MIT */
/*
 * 16_pipeline_of_futures.c - documents go through steps, and no thread waits for a step
 *
 * Each document is loaded, its words are counted, and the counts are added up when all documents are
 * done. fj_future_then() says what follows, fj_future_handle() replaces the count of a document that
 * cannot be loaded, and fj_future_all_of() ends with the last document. The main thread waits once,
 * for the end. Then the fastest of three servers answers a question (fj_future_any_of()), and a
 * function is called when the answer is there (fj_future_on_done()).
 */
#include <forkjoin/block.h>
#include <forkjoin/then.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENTS 4

static const char *const names[DOCUMENTS] = {"tides", "lost", "winds", "birds"};

/* Step 1: loads a document. The document "lost" is missing. */
static int load(void *arg, void **result)
{
    const char *name = arg;
    char *text = malloc(100);

    if (text == NULL) return FJ_ENOMEM;
    if (strcmp(name, "lost") == 0) {
        free(text);
        return 1;
    }
    snprintf(text, 100, "%s rise and %s fall", name, name);
    *result = text;
    return FJ_OK;
}

/* Step 2: counts the words and frees the text. Runs only if the document was loaded. */
static int count_words(int code, void *value, void *arg, void **result)
{
    char *text = value;
    intptr_t words = 1;

    (void)code, (void)arg;
    for (const char *c = text; *c != '\0'; c++) words += *c == ' ';
    free(text);
    *result = (void *)words;
    return FJ_OK;
}

/* Step 3: a document that failed counts as 0 words. */
static int or_zero(int code, void *value, void *arg, void **result)
{
    (void)arg;
    *result = code == FJ_OK ? value : NULL;
    return FJ_OK;
}

/* Starts the steps of a document and stores the last one in *last. */
static int start(const char *name, fj_future **last)
{
    fj_future *loaded, *counted;
    int err = fj_submit_call(NULL, load, (void *)(uintptr_t)name, &loaded);

    if (err != FJ_OK) return err;
    err = fj_future_then(loaded, count_words, NULL, &counted);
    fj_future_unref(loaded); /* it runs all the same */
    if (err != FJ_OK) return err;
    err = fj_future_handle(counted, or_zero, NULL, last);
    fj_future_unref(counted);
    return err;
}

/* ---- The fastest answer ---------------------------------------------------------------------- */

static int ask(void *arg, void **result)
{
    intptr_t ms = (intptr_t)arg;

    if (ms == 0) return 1; /* this server is down */
    (void)fj_sleep_ns(ms * 1000000);
    *result = arg;
    return FJ_OK;
}

static void answered(fj_future *f, void *arg)
{
    *(int *)arg = fj_future_error(f) == FJ_OK;
}

int main(void)
{
    fj_future *last[DOCUMENTS], *all, *server[3], *any;
    int called = 0;
    void *result;
    long words = 0;

    for (int i = 0; i < DOCUMENTS; i++)
        if (start(names[i], &last[i]) != FJ_OK) return 1;
    if (fj_future_all_of(last, DOCUMENTS, &all) != FJ_OK) return 1;
    if (fj_future_get(all, FJ_FOREVER, NULL) != FJ_OK) return 1; /* the only wait */
    fj_future_unref(all);
    for (int i = 0; i < DOCUMENTS; i++) {
        if (fj_future_result(last[i], &result) != FJ_OK) return 1;
        words += (long)(intptr_t)result;
        fj_future_unref(last[i]);
    }
    printf("%ld words\n", words);

    static const intptr_t ms[3] = {0, 5, 2000};
    for (int i = 0; i < 3; i++)
        if (fj_submit_call(NULL, ask, (void *)ms[i], &server[i]) != FJ_OK) return 1;
    if (fj_future_any_of(server, 3, &any) != FJ_OK) return 1;
    if (fj_future_on_done(any, answered, &called) != FJ_OK) return 1;
    if (fj_future_get(any, FJ_FOREVER, &result) != FJ_OK) return 1;
    size_t which = (size_t)(uintptr_t)result;
    printf("server %zu was first\n", which);
    for (int i = 0; i < 3; i++) {
        (void)fj_future_cancel(server[i], 1); /* ends the sleep of the slow server */
        fj_future_unref(server[i]);
    }
    fj_future_unref(any);
    if (fj_common_shutdown(FJ_FOREVER) != FJ_OK) return 1;
    return words != 15 || which == 0 || !called;
}
