/* SPDX-License-Identifier: MIT */
/*
 * fj.c - the workloads with plain tasks of this library (fj_task)
 *
 * A forked task is a local struct of the forking function whose first member is the fj_task.
 * fj_join_as() lets the compiler inline the body of a task that no other worker has stolen. uts and
 * skynet call fj_unfork() instead: if it returns 1, an ordinary call with arguments that are still
 * in registers follows, which is faster in a loop over many children. A function with several
 * children joins the youngest child first.
 */
#define _POSIX_C_SOURCE 200809L

#include "dd.h"
#include "fj_group.h"
#include "fj_kinds.h"
#include "fj_pool.h"

static void run_root(fj_task *t)
{
    must(fj_invoke_mode(pool, t, FJ_CALLER_BLOCKS));
}

/* ---- fib ---- */

struct fib {
    fj_task task;
    unsigned n;
    uint64_t result;
};

static int fib_run(fj_task *t);
static uint64_t fib_fork(unsigned n);

/* The leaf test is inlined at each call site, so that a leaf needs no function call. */
static inline uint64_t fib(unsigned n)
{
    return n < 2 ? n : fib_fork(n);
}

static uint64_t fib_fork(unsigned n)
{
    struct fib a;
    fj_task_init(&a.task, fib_run);
    a.n = n - 1;
    fj_fork(&a.task);
    uint64_t y = fib(n - 2);
    fj_join_as(&a.task, fib_run);
    return a.result + y;
}

static int fib_run(fj_task *t)
{
    struct fib *f = (struct fib *)t;
    f->result = fib(f->n);
    return FJ_OK;
}

static double run_fib(const bench_case *c)
{
    struct fib root = {.n = c->size};
    fj_task_init(&root.task, fib_run);
    run_root(&root.task);
    return (double)root.result;
}

/* ---- integrate ---- */

struct integrate {
    fj_task task;
    double x1, y1, x2, y2, area;
    double result;
};

static int integrate_run(fj_task *t);

static double integrate(double x1, double y1, double x2, double y2, double area)
{
    double half = (x2 - x1) / 2;
    double xm = x1 + half;
    double ym = bench_integrand(xm);
    double left = (y1 + ym) * half / 2;
    double right = (ym + y2) * half / 2;

    if (FJ_LEAF(fabs(left + right - area) < BENCH_EPSILON)) return left + right;

    struct integrate a;
    fj_task_init(&a.task, integrate_run);
    a.x1 = x1;
    a.y1 = y1;
    a.x2 = xm;
    a.y2 = ym;
    a.area = left;
    fj_fork(&a.task);
    double y = integrate(xm, ym, x2, y2, right);
    fj_join_as(&a.task, integrate_run);
    return a.result + y;
}

static int integrate_run(fj_task *t)
{
    struct integrate *i = (struct integrate *)t;
    i->result = integrate(i->x1, i->y1, i->x2, i->y2, i->area);
    return FJ_OK;
}

static double run_integrate(const bench_case *c)
{
    double x = c->size, y0 = bench_integrand(0), y = bench_integrand(x);
    struct integrate root = {.x1 = 0, .y1 = y0, .x2 = x, .y2 = y, .area = (y0 + y) * x / 2};
    fj_task_init(&root.task, integrate_run);
    run_root(&root.task);
    return root.result;
}

/* ---- nqueens ---- */

struct nqueens {
    fj_task task;
    bench_board board;
    int n, row;
    uint64_t result;
};

static int nqueens_run(fj_task *t);

static uint64_t nqueens(const bench_board *board, int n, int row)
{
    struct nqueens kid[BENCH_QUEENS_MAX];
    uint64_t total = 0;
    int kids = 0;

    if (row == n) return 1;
    for (int col = 0; col < n; col++) {
        if (!bench_queen_fits(board, row, col)) continue;
        struct nqueens *k = &kid[kids++];
        fj_task_init(&k->task, nqueens_run);
        bench_queen_place(&k->board, board, row, col);
        k->n = n;
        k->row = row + 1;
        fj_fork(&k->task);
    }
    while (kids > 0) {
        struct nqueens *k = &kid[--kids];
        fj_join_as(&k->task, nqueens_run);
        total += k->result;
    }
    return total;
}

static int nqueens_run(fj_task *t)
{
    struct nqueens *q = (struct nqueens *)t;
    q->result = nqueens(&q->board, q->n, q->row);
    return FJ_OK;
}

static double run_nqueens(const bench_case *c)
{
    struct nqueens root = {.n = (int)c->size};
    fj_task_init(&root.task, nqueens_run);
    run_root(&root.task);
    return (double)root.result;
}

/* ---- uts ---- */

struct uts {
    fj_task task;
    bench_node node;
    uint64_t result;
};

static bench_tree tree;

static int uts_run(fj_task *t);

static uint64_t uts(bench_node node)
{
    uint32_t kids = bench_uts_kids(&tree, node);
    uint64_t total = 1;

    if (FJ_LEAF(kids == 0)) return 1;

    /* The last child is not forked: this task runs it itself. */
    struct uts kid[kids];
    for (uint32_t i = 0; i + 1 < kids; i++) {
        fj_task_init(&kid[i].task, uts_run);
        kid[i].node = bench_uts_child(node, i);
        fj_fork(&kid[i].task);
    }
    total += uts(bench_uts_child(node, kids - 1));
    for (uint32_t i = kids - 1; i-- > 0;) {
        if (fj_unfork(&kid[i].task)) {
            total += uts(kid[i].node);
        } else {
            fj_join_stolen(&kid[i].task);
            total += kid[i].result;
        }
    }
    return total;
}

static int uts_run(fj_task *t)
{
    struct uts *u = (struct uts *)t;
    u->result = uts(u->node);
    return FJ_OK;
}

static double run_uts(const bench_case *c)
{
    struct uts root;
    bench_tree_init(&tree, c);
    root.node = tree.root;
    fj_task_init(&root.task, uts_run);
    run_root(&root.task);
    return (double)root.result;
}

/* ---- skynet ---- */

struct skynet {
    fj_task task;
    uint64_t first, leaves;
    uint64_t result;
};

static int skynet_run(fj_task *t);

static uint64_t skynet(uint64_t first, uint64_t leaves)
{
    struct skynet kid[BENCH_SKYNET_ARITY];
    uint64_t total = 0, share = leaves / BENCH_SKYNET_ARITY;

    if (FJ_LEAF(leaves == 1)) return first;
    for (unsigned i = 0; i < BENCH_SKYNET_ARITY; i++) {
        fj_task_init(&kid[i].task, skynet_run);
        kid[i].first = first + i * share;
        kid[i].leaves = share;
        fj_fork(&kid[i].task);
    }
    for (unsigned i = BENCH_SKYNET_ARITY; i-- > 0;) {
        if (fj_unfork(&kid[i].task)) {
            total += skynet(first + i * share, share);
        } else {
            fj_join_stolen(&kid[i].task);
            total += kid[i].result;
        }
    }
    return total;
}

static int skynet_run(fj_task *t)
{
    struct skynet *s = (struct skynet *)t;
    s->result = skynet(s->first, s->leaves);
    return FJ_OK;
}

static double run_skynet(const bench_case *c)
{
    struct skynet root = {.first = 0, .leaves = c->size};
    fj_task_init(&root.task, skynet_run);
    run_root(&root.task);
    return (double)root.result;
}

/* ---- fan ---- */

struct fan_task {
    fj_task task;
    uint64_t number, field;
};

struct fan {
    fj_task task;
    struct fan_task *kid;
    uint32_t n;
    uint64_t result;
};

static int fan_task_run(fj_task *t)
{
    struct fan_task *k = (struct fan_task *)t;
    k->field += k->number;
    return FJ_OK;
}

static int fan_run(fj_task *t)
{
    struct fan *f = (struct fan *)t;
    uint64_t total = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        struct fan_task *k = &f->kid[i];
        fj_task_init(&k->task, fan_task_run);
        k->number = i;
        k->field = 0;
        fj_fork(&k->task);
    }
    for (uint32_t i = f->n; i-- > 0;) {
        fj_join_as(&f->kid[i].task, fan_task_run);
        total += f->kid[i].field;
    }
    f->result = total;
    return FJ_OK;
}

static double run_fan(const bench_case *c)
{
    struct fan root = {.n = c->size};
    root.kid = (struct fan_task *)bench_array(c->size * sizeof *root.kid);
    fj_task_init(&root.task, fan_run);
    run_root(&root.task);
    return (double)root.result;
}

/* ---- dd ---- */

struct conjoin {
    fj_task task;
    uint32_t a, b;
    uint32_t result;
};

static int conjoin_run(fj_task *t);

static uint32_t conjoin(uint32_t a, uint32_t b)
{
    dd_step s;

    if (FJ_LEAF(dd_known(&s, a, b))) return s.result;

    struct conjoin h;
    fj_task_init(&h.task, conjoin_run);
    h.a = s.high_a;
    h.b = s.high_b;
    fj_fork(&h.task);
    uint32_t low = conjoin(s.low_a, s.low_b);
    fj_join_as(&h.task, conjoin_run);
    return dd_finish(&s, low, h.result);
}

static int conjoin_run(fj_task *t)
{
    struct conjoin *c = (struct conjoin *)t;
    c->result = conjoin(c->a, c->b);
    return FJ_OK;
}

struct conjoin_all {
    fj_task task;
    uint32_t n;
    uint32_t result;
};

static int conjoin_all_run(fj_task *t)
{
    struct conjoin_all *all = (struct conjoin_all *)t;
    uint32_t f = DD_TRUE;

    for (uint32_t i = 0; i < dd_constraints(all->n); i++) f = conjoin(f, dd_constraint(all->n, i));
    all->result = f;
    return FJ_OK;
}

static double run_dd(const bench_case *c)
{
    struct conjoin_all root = {.n = c->size};
    dd_init(c->size);
    fj_task_init(&root.task, conjoin_all_run);
    run_root(&root.task);
    return dd_answer(c->size, root.result);
}

/* ---- one task from outside ---- */

static void round_trip(bench_body *body, void *arg)
{
    struct trip t = {.body = body, .arg = arg};
    fj_task_init(&t.task, trip_run);
    run_root(&t.task);
}

int main(int argc, char **argv)
{
    static const bench_entry entries[] = {
        {"fib", run_fib},
        {"integrate", run_integrate},
        {"nqueens", run_nqueens},
        {"uts-geo", run_uts},
        {"uts-bin", run_uts},
        {"skynet", run_skynet},
        {"fan", run_fan},
        {"dd", run_dd},
        {"fib-future", run_fib_future},
        {"fib-completer", run_fib_completer},
        {"sum-completer", run_sum_completer},
        {"group-fan", run_group_fan},
        {"group-fib", run_group_fib},
        {"each-uts", run_each_uts},
        {"each-array", run_each_array},
        {"oversub", run_fib},
        {"idle", run_fib},
        {NULL, NULL},
    };
    static const bench_runtime fj = {"fj", entries, start, stop, submit, round_trip};

    return bench_main(argc, argv, &fj);
}
