/* SPDX-License-Identifier: MIT */
/*
 * fj_typed.c - the workloads with typed tasks of this library (FJ_TASK)
 *
 * FJ_TASK generates the fork and the join of each function. The queue cell holds the arguments, and
 * registers hold the worker and its position in its queue. A function with several children spawns
 * them, without handles. Submissions from outside the pool are the same as in fj.c.
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
    uint64_t total = 0;
    int kids = 0;

    if (row == n) return 1;
    for (int col = 0; col < n; col++) {
        if (!bench_queen_fits(board, row, col)) continue;
        bench_queen_place(&next[kids], board, row, col);
        nqueens_spawn(FJ, &next[kids], n, row + 1);
        kids++;
    }
    for (; kids > 0; kids--) total += nqueens_sync(FJ);
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

FJ_TASK(uint64_t, uts, bench_node, node)
{
    uint32_t kids = bench_uts_kids(&tree, node);
    uint64_t total = 1;

    if (FJ_LEAF(kids == 0)) return 1;

    /* The last child is not forked: this task calls it. */
    for (uint32_t i = 0; i + 1 < kids; i++) uts_spawn(FJ, bench_uts_child(node, i));
    total += uts_call(FJ, bench_uts_child(node, kids - 1));
    for (uint32_t i = kids - 1; i > 0; i--) total += uts_sync(FJ);
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
    uint64_t total = 0, share = leaves / BENCH_SKYNET_ARITY;

    if (FJ_LEAF(leaves == 1)) return first;
    for (unsigned i = 0; i < BENCH_SKYNET_ARITY; i++) skynet_spawn(FJ, first + i * share, share);
    for (unsigned i = BENCH_SKYNET_ARITY; i > 0; i--) total += skynet_sync(FJ);
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

FJ_TASK(uint64_t, fan, uint64_t *, field, uint32_t, n)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        field[i] = 0;
        fan_add_spawn(FJ, &field[i], i);
    }
    for (uint32_t i = n; i-- > 0;) {
        fan_add_sync(FJ);
        total += field[i];
    }
    return total;
}

static double run_fan(const bench_case *c)
{
    uint64_t answer = 0;
    uint64_t *field = (uint64_t *)bench_array(c->size * sizeof answer);
    must(fan_invoke(pool, &answer, field, c->size));
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
