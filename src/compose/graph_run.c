/* SPDX-License-Identifier: MIT */
/*
 * graph_run.c - running a graph
 *
 * A run is the body of the future of the graph. The thread that runs it works in a frame: it runs a
 * node, lowers `join` of its successors, and continues with the first successor that becomes ready.
 * Other ready successors are forked, so that other workers may steal them. When no successor is
 * ready, the frame takes back the task that it has forked last, and continues with its node. A task
 * that was stolen is run in a frame of its own by the thief, and the frame that has forked it joins
 * it at the end. So no counter of the whole run exists: the run ends when its first frame has
 * joined all its tasks. While a frame waits for a thief, its worker helps that thief, and runs no
 * node of another graph.
 *
 * Slots. A frame has SLOTS places for forked tasks, in the memory of the frame, because a node in a
 * loop may become ready again before the frame that has forked it has joined its task. `order` says
 * which slots are in use: order[0] to order[forked - 1], the oldest first; the rest are free. Ready
 * nodes that find no free slot, and the sources of the graph, wait in lists of the frame that no
 * other thread sees. The frame forks them as slots become free. If all slots hold stolen tasks, the
 * frame joins those that are `done`.
 *
 * A fork may find no memory and run the task at once, in the middle of the frame. That task does not
 * run its node, which could lead to a deep recursion. It puts the node into the list of the frame.
 *
 * Two kinds of runs. In a plain run every node becomes ready once, when its last predecessor ends:
 *   - A node with one predecessor needs no `join`.
 *   - A thread that reads join == 1 is the last predecessor, and needs no atomic operation. It sets
 *     `join` to the value for the next run. No other thread accesses `join` before that run.
 * A run is careful if the graph has conditions or grows. A node may then become ready several times,
 * so `join` is also a guard:
 *   - 0 means that the node is queued or running. The thread that lowers `join` from 1 to 0, by a
 *     predecessor, or from any value to 0, by a condition, has started the node.
 *   - When the node ends, before `join` of its successors is lowered, its own `join` gets its first value
 *     again.
 *   - A start that finds 0, or a value below 0, is an error of the program: the run fails.
 * A careful run begins with a pass that sets `join` of all nodes, because some may not have run.
 *
 * The end of a run. Each frame ends as described. The first frame also takes the nodes that added
 * edges have released (graph.c), until it finds none and clears `running`, both under the lock.
 *
 * Errors. The first thread that changes `code` decides the result. It sets `stop` and cancels the
 * token. A frame that sees `stop` begins no node, forgets its lists, and only joins its tasks.
 *
 * Edges         from                             to                               carries
 *   graph.join  acq_rel add, arrive()            acquire load or add, arrive()    what a node did
 */
#include "compose/graph.h"

/* Slots of a frame. A thief takes one node at a time, so the number is only the distance by which
 * thieves may be ahead of the frame. A frame then has less than 2 KiB. */
#define SLOTS 32

/* A frame asks whether its task is cancelled before every POLL-th node. */
#define POLL 8

struct frame;

struct slot {
    fj_task task;
    fj_node *node;
    struct frame *frame;
    uint32_t done; /* 1: the thief has finished, so a join does not wait long */
};

struct frame {
    fj_graph *g;
    fj_node *ready;                              /* ready nodes that are not forked; by `link` */
    fj_node *const *source, *const *sources_end; /* sources that are not forked */
    int worker; /* the index of the worker that runs the frame; -1: no worker */
    uint32_t polls;
    uint32_t forked; /* slots in use */
    uint8_t order[SLOTS];
    struct slot slots[SLOTS];
};

static void frame_run(struct frame *f, fj_node *n);

/* ---- Errors ------------------------------------------------------------------------------------ */

void fji_graph_fail(fj_graph *g, int code, enum fji_graph_problem problem, fj_node *n)
{
    uint32_t none = 0;

    /* relaxed: the code is read after all frames have been joined. */
    if (!fji_cas_relaxed(&g->code, &none, (uint32_t)code)) return;
    g->problem = problem;
    g->problem_node = n;
    fji_store_relaxed(&g->stop, 1u); /* relaxed: a frame that sees it late runs one more node */
    fj_token_cancel(&g->token);
}

static bool run_is_stopped(const fj_graph *g)
{
    return fji_load_relaxed(&g->stop) != 0; /* relaxed: as in fji_graph_fail() */
}

/* Asks now and then whether the calling task was cancelled, for example because its pool stops.
 * Returns whether n may run. */
static inline bool frame_may_run(struct frame *f)
{
    if (FJI_UNLIKELY(f->polls++ % POLL == 0) && fj_is_cancelled())
        fji_graph_fail(f->g, FJ_ECANCELED, FJI_GRAPH_FINE, NULL);
    return FJI_LIKELY(!run_is_stopped(f->g));
}

/* ---- Frames ------------------------------------------------------------------------------------ */

static void frame_init(struct frame *f, fj_graph *g)
{
    f->g = g;
    f->ready = NULL;
    f->source = f->sources_end = NULL;
    f->worker = fj_current_worker();
    f->polls = 0;
    f->forked = 0;
    for (uint8_t i = 0; i < SLOTS; i++) f->order[i] = i;
}

/* Keeps the ready node n in the list of the frame. */
static void frame_keep(struct frame *f, fj_node *n)
{
    n->link = f->ready;
    f->ready = n;
}

/* The body of a slot's task. */
static int slot_run(fj_task *t)
{
    struct slot *s = (struct slot *)t;

    if (s->frame->worker == fj_current_worker()) {
        frame_keep(s->frame, s->node); /* the fork has run the task: see the head of this file */
    } else {
        struct frame f;
        frame_init(&f, s->frame->g);
        frame_run(&f, s->node);
    }
    fji_store_relaxed(&s->done, 1u); /* relaxed: a hint; the join orders what the nodes did */
    return FJ_OK;
}

static inline bool frame_has_slot(const struct frame *f)
{
    return f->forked < SLOTS;
}

/* Forks the ready node n. The frame has a free slot. */
static inline void frame_fork(struct frame *f, fj_node *n)
{
    struct slot *s = &f->slots[f->order[f->forked++]];

    s->node = n;
    s->frame = f;
    s->done = 0;
    fj_task_init(&s->task, slot_run);
    fj_fork(&s->task);
}

/* Takes a node out of the lists of the frame; NULL if they are empty. */
static fj_node *frame_take(struct frame *f)
{
    fj_node *n = f->ready;

    if (n != NULL)
        f->ready = n->link;
    else if (f->source < f->sources_end)
        n = *f->source++;
    return n;
}

/* Forks nodes of the lists while there are free slots. A thread that is not a worker forks none. */
static void frame_expose(struct frame *f)
{
    while (f->worker >= 0 && frame_has_slot(f)) {
        fj_node *n = frame_take(f);
        if (n == NULL) return;
        frame_fork(f, n);
    }
}

/* Makes the ready node n available to other workers, or keeps it. */
static inline void frame_give(struct frame *f, fj_node *n)
{
    if (FJI_LIKELY(frame_has_slot(f) && f->worker >= 0))
        frame_fork(f, n);
    else
        frame_keep(f, n);
}

/* Joins the task of a slot that was not taken back. Its code is an error only if the task did not
 * run, because the pool was stopped. */
static void frame_join(struct frame *f, struct slot *s)
{
    int code = fj_join_stolen(&s->task);

    if (code != FJ_OK) fji_graph_fail(f->g, code, FJI_GRAPH_FINE, NULL);
}

/* Joins the stolen tasks that are done, so that their slots are free. */
static void frame_reclaim(struct frame *f)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < f->forked; i++) {
        uint8_t number = f->order[i];
        struct slot *s = &f->slots[number];
        if (fji_load_relaxed(&s->done) != 0) { /* relaxed: as in slot_run() */
            frame_join(f, s);
        } else {
            f->order[i] = f->order[kept];
            f->order[kept++] = number;
        }
    }
    f->forked = kept;
}

/* The run has failed: forgets the nodes in the lists. */
static void frame_forget(struct frame *f)
{
    f->ready = NULL;
    f->source = f->sources_end;
}

/* Returns the next node to run: the one that was forked last, or one of the lists. If thieves have
 * all forked nodes and the lists are empty, waits for the thieves and returns NULL. */
static fj_node *frame_next(struct frame *f)
{
    for (;;) {
        if (FJI_UNLIKELY(run_is_stopped(f->g))) frame_forget(f);
        bool empty = f->ready == NULL && f->source == f->sources_end;
        if (empty && f->forked == 0) return NULL;
        struct slot *s = f->forked > 0 ? &f->slots[f->order[f->forked - 1]] : NULL;
        if (s != NULL && fj_unfork(&s->task)) {
            fj_node *n = s->node; /* read before frame_expose() uses the slot again */
            f->forked--;
            if (!empty && f->forked < SLOTS / 2) frame_expose(f);
            return n;
        }
        if (!empty) {
            frame_reclaim(f);
            fj_node *n = frame_take(f);
            frame_expose(f);
            return n;
        }
        f->forked--;
        frame_join(f, s);
    }
}

/* ---- Plain runs -------------------------------------------------------------------------------- */

/* A strong predecessor of the node s has ended. Returns whether s is ready. */
static inline bool arrive(fj_node *s)
{
    /* [graph.join] acquire <- acq_rel below, executed for the other predecessors of s: what they
     * did. If this load reads 1, all others have ended. */
    if (fji_load_acquire(&s->join) != 1) {
        /* [graph.join] acq_rel -> acquire above and acq_rel here, executed for the last predecessor
         * of s: what this one did. */
        if (fji_add_acq_rel(&s->join, (uint32_t)-1) != 1) return false;
    }
    /* relaxed: no other thread accesses `join` before the next run. */
    fji_store_relaxed(&s->join, s->strong);
    return true;
}

/* Runs n. Returns a successor that is ready, and gives the others to the frame; NULL if none is
 * ready. */
static inline fj_node *plain_step(struct frame *f, fj_node *n)
{
    fj_node *next = NULL;

    if (!frame_may_run(f)) return NULL;
    int code = n->fn(n, n->arg);
    if (FJI_UNLIKELY(code != 0)) {
        fji_graph_fail(f->g, code, FJI_GRAPH_FAILED, n);
        return NULL;
    }
    const uintptr_t *e = f->g->successors + n->first, *end = e + n->successor_count;
    for (; e < end; e++) {
        fj_node *s = (fj_node *)(*e & ~(uintptr_t)1);
        if ((*e & 1) == 0 && !arrive(s)) continue;
        if (next == NULL)
            next = s;
        else
            frame_give(f, s);
    }
    return next;
}

/* ---- Careful runs ------------------------------------------------------------------------------ */

static void started_twice(struct frame *f, fj_node *s)
{
    fji_graph_fail(f->g, FJ_EBUSY, FJI_GRAPH_TWICE, s);
}

/* Puts the ready node s into *next, or gives *next to the frame if it is taken. */
static void careful_ready(struct frame *f, fj_node *s, fj_node **next)
{
    if (*next == NULL)
        *next = s;
    else
        frame_give(f, s);
}

/* A strong predecessor of s has ended. */
static void careful_arrive(struct frame *f, fj_node *s, fj_node **next)
{
    /* [graph.join] acq_rel -> acq_rel here, executed for the last predecessor of s: what this
     * predecessor did; and in edge_join_run(). */
    uint32_t old = fji_add_acq_rel(&s->join, (uint32_t)-1);

    if (old == 1)
        careful_ready(f, s, next);
    else if (old == 0)
        started_twice(f, s);
}

/* A condition has chosen s. */
static void careful_choose(struct frame *f, fj_node *s, fj_node **next)
{
    uint32_t old = fji_load_relaxed(&s->join); /* relaxed: the CAS checks the value */

    do {
        if (old == 0 || (int32_t)old < 0) {
            started_twice(f, s);
            return;
        }
        /* [graph.join] acq_rel <- acq_rel in careful_arrive(): what the predecessors of s that have
         * ended did; <- release in careful_end(): what s did before. */
    } while (!fji_cas_acq_rel_32(&s->join, &old, 0));
    careful_ready(f, s, next);
}

/* The edges of a node that were added during this run. */
struct added {
    fji_added *first, *last;
};

/* n has ended: prepares it for its next start. Returns the edges that were added, and gives released
 * nodes to the frame. */
static struct added careful_end(struct frame *f, fj_node *n, fj_node **next)
{
    fj_graph *g = f->g;
    fj_node *released = NULL;
    struct added added = {NULL, NULL};

    if (g->grows) fji_lock_take(&g->lock);
    /* [graph.join] release -> acq_rel in careful_arrive() and careful_choose(): what n did, for the
     * next start of n. */
    fji_store_release(&n->join, fji_node_initial(n));
    if (!g->grows) return added;
    n->more->growth->ended = true;
    added = (struct added){n->more->growth->first_out, n->more->growth->last_out};
    released = g->released;
    g->released = NULL;
    fji_lock_drop(&g->lock);
    while (released != NULL) {
        fj_node *s = released;
        released = s->link;
        careful_ready(f, s, next);
    }
    return added;
}

/* The condition n has returned the index `chosen`. */
static void careful_branch(struct frame *f, const fj_node *n, uint32_t chosen, struct added added,
                           fj_node **next)
{
    if (chosen < n->successor_count) {
        careful_choose(f, fji_node_successor(f->g, n, chosen), next);
        return;
    }
    fji_added *e = added.first;
    for (uint32_t i = n->successor_count; e != NULL && i < chosen; i++)
        e = e != added.last ? e->next_out : NULL;
    if (e != NULL) careful_choose(f, e->to, next);
}

/* n has begun again: it has not ended any more. */
static void careful_begin(fj_graph *g, fj_node *n)
{
    if (!n->more->growth->ended) return;
    fji_lock_take(&g->lock);
    n->more->growth->ended = false;
    fji_lock_drop(&g->lock);
}

/* As plain_step(). */
static fj_node *careful_step(struct frame *f, fj_node *n)
{
    fj_node *next = NULL;
    bool condition = fji_node_is_condition(n);

    if (!frame_may_run(f)) return NULL;
    if (f->g->grows) careful_begin(f->g, n);
    int code = n->fn(n, n->arg);
    if (condition ? code < 0 : code != 0) {
        fji_graph_fail(f->g, code, FJI_GRAPH_FAILED, n);
        return NULL;
    }
    struct added added = careful_end(f, n, &next);
    if (condition) {
        careful_branch(f, n, (uint32_t)code, added, &next);
        return next;
    }
    for (uint32_t i = 0; i < n->successor_count; i++)
        careful_arrive(f, fji_node_successor(f->g, n, i), &next);
    for (fji_added *e = added.first; e != NULL; e = e != added.last ? e->next_out : NULL)
        careful_arrive(f, e->to, &next);
    return next;
}

/* ---- The run ----------------------------------------------------------------------------------- */

/* Runs n and everything that becomes ready after it in this frame. Returns when all tasks of the
 * frame are joined. */
static void frame_run(struct frame *f, fj_node *n)
{
    if (f->g->careful) {
        for (; n != NULL; n = frame_next(f))
            while (n != NULL) n = careful_step(f, n);
    } else {
        for (; n != NULL; n = frame_next(f))
            while (n != NULL) n = plain_step(f, n);
    }
}

/* Ends the run, unless nodes were released. Returns whether it did. */
static bool run_end(struct frame *f)
{
    fj_graph *g = f->g;

    fji_lock_take(&g->lock);
    bool stopped = run_is_stopped(g);
    f->ready = stopped ? NULL : g->released;
    g->released = NULL;
    bool ended = f->ready == NULL;
    if (ended) {
        g->running = false;
        g->dirty = stopped;
    }
    fji_lock_drop(&g->lock);
    return ended;
}

/* The first frame of a run, in the scope of the token. */
struct root {
    fj_task task;
    fj_graph *g;
};

static int root_run(fj_task *t)
{
    fj_graph *g = ((struct root *)t)->g;
    struct frame f;

    frame_init(&f, g);
    f.source = g->sources;
    f.sources_end = g->sources + g->source_count;
    do {
        fj_node *n = frame_next(&f);
        frame_run(&f, n);
    } while (!run_end(&f));
    return FJ_OK;
}

int fji_graph_body(fj_task *t)
{
    fj_graph *g = (fj_graph *)(void *)((char *)t - offsetof(fj_graph, future));
    struct root root = {.g = g};

    fj_task_init(&root.task, root_run);
    if (fj_current_pool() == NULL) return root_run(&root.task);
    int err = fj_invoke_token(fj_current_pool(), &root.task, &g->token);
    if (err != FJ_OK) fji_graph_fail(g, err, FJI_GRAPH_FINE, NULL); /* cancelled before it began */
    return FJ_OK;
}
