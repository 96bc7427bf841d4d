/* SPDX-License-Identifier: MIT */
/*
 * 17_build_graph.c - a build of eight steps that depend on each other
 *
 * Each step makes a file, whose size is the sum of the sizes of the files that it needs, plus its
 * own. A step that needs no other, or whose steps are done, runs at once, in parallel with others.
 */
#include <forkjoin/graph.h>
#include <stdio.h>

enum { CONFIGURE, GENERATE, LEXER, PARSER, MAIN, ARCHIVE, LINK, TEST, STEPS };

struct step {
    const char *name;
    long own, size;
};

static struct step steps[STEPS] = {
    [CONFIGURE] = {"configure", 1, 0}, [GENERATE] = {"generate", 2, 0},
    [LEXER] = {"lexer.o", 10, 0},      [PARSER] = {"parser.o", 20, 0},
    [MAIN] = {"main.o", 30, 0},        [ARCHIVE] = {"libparse.a", 100, 0},
    [LINK] = {"app", 1000, 0},         [TEST] = {"test", 0, 0},
};

static const int needs[][2] = {{CONFIGURE, GENERATE}, {GENERATE, LEXER}, {GENERATE, PARSER},
                               {CONFIGURE, MAIN},     {LEXER, ARCHIVE},  {PARSER, ARCHIVE},
                               {ARCHIVE, LINK},       {MAIN, LINK},      {LINK, TEST}};

static int make(fj_node *n, void *arg)
{
    struct step *s = arg;

    s->size = s->own;
    for (size_t i = 0; i < fj_node_input_count(n); i++)
        s->size += ((const struct step *)fj_node_input(n, i))->size;
    fj_node_set_result(n, s);
    return s->size > 0 ? FJ_OK : 1;
}

static int build(fj_graph *g)
{
    fj_node *n[STEPS];
    int err = FJ_OK;

    for (int i = 0; i < STEPS && err == FJ_OK; i++)
        err = fj_graph_add(g, make, &steps[i], steps[i].name, &n[i]);
    for (size_t i = 0; i < sizeof needs / sizeof needs[0] && err == FJ_OK; i++)
        err = fj_graph_edge(g, n[needs[i][0]], n[needs[i][1]]);
    return err;
}

int main(void)
{
    fj_graph *g;

    if (fj_graph_create(&g, NULL) != FJ_OK) return 1;
    int err = build(g);
    for (int i = 0; i < 3 && err == FJ_OK; i++) err = fj_graph_run(g, NULL); /* the common pool */
    if (err != FJ_OK) {
        char text[100];
        (void)fj_graph_error(g, text, sizeof text);
        printf("%s\n", text);
    }
    printf("%s has %ld bytes\n", steps[LINK].name, steps[LINK].size);
    (void)fj_graph_destroy(g);
    return err != FJ_OK || steps[TEST].size != 1167;
}
