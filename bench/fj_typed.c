/* SPDX-License-Identifier: MIT */
/*
 * fj_typed.c - the workloads with typed tasks of this library (FJ_TASK)
 *
 * FJ_TASK generates the handle type, the fork and the join of each function. The queue cell holds
 * the arguments, and registers hold the worker and its position in its queue. A function with
 * several children has an array of handles and joins the youngest child first. Submissions from
 * outside the pool are the same as in fj.c.
 */
#define _POSIX_C_SOURCE 200809L

#include "dd.h"
#include "fj_pool.h"

/* ---- fib ---- */

FJ_TASK(uint64_t, fib, unsigned, n)
{
    if (FJ_LEAF(n < 2)) return n;

    fib_task a;
    fib_fork(FJ, &a, n - 1);
    uint64_t y = fib_call(FJ, n - 2);
    return fib_join(FJ, &a) + y;
}

static double run_fib(const bench_case *c)
{
    uint64_t answer = 0;
    must(fib_invoke(pool, &answer, c->size));
    return (double)answer;
}

/* ---- integrate ---- */

FJ_TASK(double, integrate, double, x1, double, y1, double, x2, double, y2, double, area)
{
    double half = (x2 - x1) / 2;
    double xm = x1 + half;
    double ym = bench_integrand(xm);
    double left = (y1 + ym) * half / 2;
    double right = (ym + y2) * half / 2;

    if (FJ_LEAF(fabs(left + right - area) < BENCH_EPSILON)) return left + right;

    integrate_task a;
    integrate_fork(FJ, &a, x1, y1, xm, ym, left);
    double y = integrate_call(FJ, xm, ym, x2, y2, right);
    return integrate_join(FJ, &a) + y;
}

static double run_integrate(const bench_case *c)
{
    double x = c->size, y0 = bench_integrand(0), y = bench_integrand(x), answer = 0;
    must(integrate_invoke(pool, &answer, 0, y0, x, y, (y0 + y) * x / 2));
    return answer;
}

/* ---- nqueens ---- */

FJ_TASK(uint64_t, nqueens, const bench_board *, board, int, n, int, row)
{
    bench_board next[BENCH_QUEENS_MAX];
    nqueens_task kid[BENCH_QUEENS_MAX];
    uint64_t total = 0;
    int kids = 0;

    if (row == n) return 1;
    for (int col = 0; col < n; col++) {
        if (!bench_queen_fits(board, row, col)) continue;
        bench_queen_place(&next[kids], board, row, col);
        nqueens_fork(FJ, &kid[kids], &next[kids], n, row + 1);
        kids++;
    }
    while (kids > 0) total += nqueens_join(FJ, &kid[--kids]);
    return total;
}

static double run_nqueens(const bench_case *c)
{
    bench_board board = {{0}};
    uint64_t answer = 0;
    must(nqueens_invoke(pool, &answer, &board, (int)c->size, 0));
    return (double)answer;
}

/* ---- uts ---- */

static bench_tree tree;

FJ_TASK_DECLARE(uint64_t, uts, bench_node, node);

/* Forks and joins the children `from` to `to` - 1 of a node with many children. Each recursive
 * call handles up to UTS_ROUND of them, with an array of handles of its own. */
enum { UTS_ROUND = 32 };

static uint64_t uts_many(fj_worker *fj_w, fj_cell *fj_p, bench_node node, uint32_t from,
                         uint32_t to)
{
    uts_task kid[UTS_ROUND];
    uint64_t total = 0;
    uint32_t n = to - from > UTS_ROUND ? UTS_ROUND : to - from;

    for (uint32_t i = 0; i < n; i++) uts_fork(FJ, &kid[i], bench_uts_child(node, from + i));
    if (from + n < to) total = uts_many(fj_w, fj_p, node, from + n, to);
    while (n > 0) total += uts_join(FJ, &kid[--n]);
    return total;
}

FJ_TASK_BODY(uint64_t, uts, bench_node, node)
{
    enum { FEW = 12 };
    uint32_t kids = bench_uts_kids(&tree, node);
    uint64_t total = 1;

    if (FJ_LEAF(kids == 0)) return 1;
    if (FJI_UNLIKELY(kids > FEW)) return 1 + uts_many(fj_w, fj_p, node, 0, kids);

    /* The last child is not forked: this task calls it. */
    uts_task kid[FEW];
    for (uint32_t i = 0; i + 1 < kids; i++) uts_fork(FJ, &kid[i], bench_uts_child(node, i));
    total += uts_call(FJ, bench_uts_child(node, kids - 1));
    for (uint32_t i = kids - 1; i-- > 0;) total += uts_join(FJ, &kid[i]);
    return total;
}

static double run_uts(const bench_case *c)
{
    uint64_t answer = 0;
    bench_tree_init(&tree, c);
    must(uts_invoke(pool, &answer, tree.root));
    return (double)answer;
}

/* ---- skynet ---- */

FJ_TASK(uint64_t, skynet, uint64_t, first, uint64_t, leaves)
{
    skynet_task kid[BENCH_SKYNET_ARITY];
    uint64_t total = 0, share = leaves / BENCH_SKYNET_ARITY;

    if (FJ_LEAF(leaves == 1)) return first;
    for (unsigned i = 0; i < BENCH_SKYNET_ARITY; i++)
        skynet_fork(FJ, &kid[i], first + i * share, share);
    for (unsigned i = BENCH_SKYNET_ARITY; i-- > 0;) total += skynet_join(FJ, &kid[i]);
    return total;
}

static double run_skynet(const bench_case *c)
{
    uint64_t answer = 0;
    must(skynet_invoke(pool, &answer, 0, c->size));
    return (double)answer;
}

/* ---- fan ---- */

FJ_VOID_TASK(fan_add, uint64_t *, field, uint64_t, number)
{
    *field += number;
}

FJ_TASK(uint64_t, fan, fan_add_task *, kid, uint64_t *, field, uint32_t, n)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        field[i] = 0;
        fan_add_fork(FJ, &kid[i], &field[i], i);
    }
    for (uint32_t i = n; i-- > 0;) {
        fan_add_join(FJ, &kid[i]);
        total += field[i];
    }
    return total;
}

static double run_fan(const bench_case *c)
{
    uint64_t answer = 0;
    fan_add_task *kid = (fan_add_task *)bench_array(c->size * (sizeof *kid + sizeof answer));
    must(fan_invoke(pool, &answer, kid, (uint64_t *)(kid + c->size), c->size));
    return (double)answer;
}

/* ---- dd ---- */

FJ_TASK(uint32_t, conjoin, uint32_t, a, uint32_t, b)
{
    dd_step s;

    if (FJ_LEAF(dd_known(&s, a, b))) return s.result;

    conjoin_task high;
    conjoin_fork(FJ, &high, s.high_a, s.high_b);
    uint32_t low = conjoin_call(FJ, s.low_a, s.low_b);
    return dd_finish(&s, low, conjoin_join(FJ, &high));
}

FJ_TASK(uint32_t, conjoin_all, uint32_t, n)
{
    uint32_t f = DD_TRUE;

    for (uint32_t i = 0; i < dd_constraints(n); i++) f = conjoin_call(FJ, f, dd_constraint(n, i));
    return f;
}

static double run_dd(const bench_case *c)
{
    uint32_t f = DD_FALSE;
    dd_init(c->size);
    must(conjoin_all_invoke(pool, &f, c->size));
    return dd_answer(c->size, f);
}

/* ---- one task from outside ---- */

FJ_VOID_TASK(trip, bench_body *, body, void *, arg)
{
    body(arg);
}

static void round_trip(bench_body *body, void *arg)
{
    must(trip_invoke(pool, body, arg));
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
        {"oversub", run_fib},
        {"idle", run_fib},
        {NULL, NULL},
    };
    static const bench_runtime fj = {"fj-typed", entries, start, stop, submit, round_trip};

    return bench_main(argc, argv, &fj);
}
