/* SPDX-License-Identifier: MIT */
/*
 * 08_completer.c - completers: the last child to finish continues the work of its parent
 *
 * The program counts the words of a text by halving it. No thread waits for a half. A task, and
 * each of its two halves, calls fj_completer_try_complete() at its end. The last of these three
 * calls runs the task's completion function count_done(), which adds up the two counts, and then
 * does the same for the task's parent.
 */
#include <forkjoin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct count {
    fj_completer c; /* first */
    const char *text;
    size_t n, words;
    struct count *halves; /* two of them, or NULL */
};

static int count_done(fj_completer *c, fj_completer *caller)
{
    struct count *me = (struct count *)c;

    (void)caller;
    if (me->halves == NULL) return FJ_OK;
    me->words = me->halves[0].words + me->halves[1].words;
    free(me->halves); /* no thread uses them any more */
    return FJ_OK;
}

static int count_run(fj_task *t)
{
    struct count *me = (struct count *)t;

    if (me->n <= 64) {
        for (size_t i = 0; i < me->n; i++)
            me->words += me->text[i] != ' ' && (i + 1 == me->n || me->text[i + 1] == ' ');
    } else {
        size_t middle = me->n / 2;
        while (middle < me->n && me->text[middle] != ' ') middle++; /* do not split a word */
        me->halves = calloc(2, sizeof *me->halves);
        if (me->halves == NULL) return 1;
        fj_completer_set_pending(&me->c, 2);
        for (int i = 0; i < 2; i++) {
            struct count *half = &me->halves[i];
            fj_completer_init(&half->c, &me->c, 0, count_run, count_done, NULL);
            half->text = me->text + (i == 0 ? 0 : middle);
            half->n = i == 0 ? middle : me->n - middle;
            int err = fj_completer_fork(&half->c);
            if (err != FJ_OK) return err;
        }
    }
    fj_completer_try_complete(&me->c); /* *me may be freed from here on */
    return FJ_OK;
}

int main(void)
{
    static char text[60001];
    struct count all = {.text = text, .n = sizeof text - 1};

    for (size_t i = 0; i + 6 < sizeof text; i += 6) memcpy(text + i, "words ", 6);
    fj_completer_init(&all.c, NULL, 0, count_run, count_done, NULL);
    if (fj_completer_invoke(NULL, &all.c) != FJ_OK) return 1;
    printf("%zu words\n", all.words);
    return all.words != 10000;
}
