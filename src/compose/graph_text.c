/* SPDX-License-Identifier: MIT */
/*
 * graph_text.c - a graph as text: the description of a problem, and the language of Graphviz
 *
 * Both hold the lock of the graph, so that no other thread changes the graph meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "compose/graph.h"

/* ---- Problems ---------------------------------------------------------------------------------- */

/* A text. `length` counts all its bytes, also those that `buf` has no room for. */
struct text {
    char *buf;
    size_t cap, length;
};

static void text_add(struct text *t, const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++)
        if (t->length + i + 1 < t->cap) t->buf[t->length + i] = s[i];
    t->length += n;
}

static void text_add_node(struct text *t, const fj_node *n)
{
    char number[16];

    if (n->more->name == NULL) (void)snprintf(number, sizeof number, "#%u", n->more->index);
    text_add(t, n->more->name != NULL ? n->more->name : number);
}

static void text_add_cycle(struct text *t, const fj_node *first)
{
    const fj_node *n = first;

    text_add(t, t->length == 0 ? "cycle: " : "; cycle: ");
    text_add_node(t, n);
    do {
        n = n->more->next;
        text_add(t, " -> ");
        text_add_node(t, n);
    } while (n != first);
}

static void text_add_problem(struct text *t, const fj_graph *g)
{
    char code[32];

    switch (g->problem) {
        case FJI_GRAPH_FINE: break;
        case FJI_GRAPH_NO_START:
            text_add(t, "every node has a predecessor, so none can begin");
            break;
        case FJI_GRAPH_FAILED:
            (void)snprintf(code, sizeof code, " failed with %d", (int)g->code);
            text_add(t, "node ");
            text_add_node(t, g->problem_node);
            text_add(t, code);
            break;
        case FJI_GRAPH_TWICE:
            text_add(t, "node ");
            text_add_node(t, g->problem_node);
            text_add(t, " was started while it was queued or running");
            break;
    }
}

size_t fj_graph_error(fj_graph *g, char *buf, size_t cap)
{
    struct text t = {buf, cap, 0};

    if (g == NULL || (buf == NULL && cap != 0)) return 0;
    fji_lock_take(&g->lock);
    if (!fji_graph_is_busy(g)) text_add_problem(&t, g);
    if (!g->preparing && g->cycle != NULL) text_add_cycle(&t, g->cycle);
    fji_lock_drop(&g->lock);
    if (cap != 0) buf[t.length < cap ? t.length : cap - 1] = 0;
    return t.length;
}

fj_node *fj_graph_failed(fj_graph *g)
{
    if (g == NULL) return NULL;
    fji_lock_take(&g->lock);
    bool failed = !fji_graph_is_busy(g) && g->problem == FJI_GRAPH_FAILED;
    fj_node *n = failed ? g->problem_node : NULL;
    fji_lock_drop(&g->lock);
    return n;
}

/* ---- Graphviz ---------------------------------------------------------------------------------- */

/* Where fj_graph_dot() writes to. After an error `code` is not 0, and nothing more is written. */
struct dot {
    int (*write)(const char *text, size_t bytes, void *arg);
    void *arg;
    int code;
};

static void dot_bytes(struct dot *d, const char *text, size_t bytes)
{
    if (d->code == 0 && bytes != 0) d->code = d->write(text, bytes, d->arg);
}

static void dot_text(struct dot *d, const char *text)
{
    dot_bytes(d, text, strlen(text));
}

/* Writes `text` between quotation marks. Graphviz reads \" as a quotation mark and \\ as one
 * backslash; a line break is written as \n. */
static void dot_quoted(struct dot *d, const char *text)
{
    const char *from = text;

    dot_text(d, "\"");
    for (; *text != 0; text++) {
        if (*text != '"' && *text != '\\' && *text != '\n') continue;
        dot_bytes(d, from, (size_t)(text - from));
        dot_text(d, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        from = text + 1;
    }
    dot_bytes(d, from, (size_t)(text - from));
    dot_text(d, "\"");
}

static void dot_node(struct dot *d, const fj_graph *g, const fj_node *n)
{
    char id[32];

    (void)snprintf(id, sizeof id, "  n%u [label=", n->more->index);
    dot_text(d, id);
    (void)snprintf(id, sizeof id, "#%u", n->more->index);
    dot_quoted(d, n->more->name != NULL ? n->more->name : id);
    if (fji_node_is_condition(n)) dot_text(d, ", shape=diamond");
    bool failed = !fji_graph_is_busy(g) && g->problem == FJI_GRAPH_FAILED;
    if (failed && g->problem_node == n) dot_text(d, ", color=red");
    dot_text(d, "];\n");
}

/* number: the index of the edge among the edges of its condition. */
static void dot_edge(struct dot *d, const fji_edge *e, uint32_t number)
{
    char line[96];
    bool weak = fji_node_is_condition(e->from);

    (void)snprintf(line, sizeof line, "  n%u -> n%u", e->from->more->index, e->to->more->index);
    dot_text(d, line);
    (void)snprintf(line, sizeof line, " [style=dashed, label=\"%u\"]", number);
    if (weak) dot_text(d, line);
    dot_text(d, ";\n");
}

static void dot_graph(struct dot *d, fj_graph *g)
{
    dot_text(d, "digraph ");
    dot_quoted(d, g->name != NULL ? g->name : "graph");
    dot_text(d, " {\n");
    FJI_PILE_EACH(&g->nodes, fj_node, n)
    {
        n->more->written = 0;
        dot_node(d, g, n);
    }
    FJI_PILE_EACH(&g->edges, fji_edge, e)
    {
        dot_edge(d, e, e->from->more->written++);
    }
    dot_text(d, "}\n");
}

int fj_graph_dot(fj_graph *g, int (*write)(const char *text, size_t bytes, void *arg), void *arg)
{
    struct dot d = {write, arg, FJ_OK};

    if (g == NULL || write == NULL) return FJ_EINVAL;
    fji_lock_take(&g->lock);
    dot_graph(&d, g);
    fji_lock_drop(&g->lock);
    return d.code;
}
