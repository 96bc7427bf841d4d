/* SPDX-License-Identifier: MIT */
/*
 * serial.c - the fork/join workloads as plain recursion
 *
 * The same computations without forks. The times of all other programs are compared with these.
 */
#include "dd.h"
#include "harness.h"

static uint64_t fib(unsigned n)
{
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
}

static double run_fib(const bench_case *c)
{
    return (double)fib(c->size);
}

static double integrate(double x1, double y1, double x2, double y2, double area)
{
    double half = (x2 - x1) / 2;
    double xm = x1 + half;
    double ym = bench_integrand(xm);
    double left = (y1 + ym) * half / 2;
    double right = (ym + y2) * half / 2;

    if (fabs(left + right - area) < BENCH_EPSILON) return left + right;
    return integrate(x1, y1, xm, ym, left) + integrate(xm, ym, x2, y2, right);
}

static double run_integrate(const bench_case *c)
{
    double x = c->size, y0 = bench_integrand(0), y = bench_integrand(x);
    return integrate(0, y0, x, y, (y0 + y) * x / 2);
}

static uint64_t nqueens(const bench_board *board, int n, int row)
{
    uint64_t total = 0;

    if (row == n) return 1;
    for (int col = 0; col < n; col++) {
        bench_board next;
        if (!bench_queen_fits(board, row, col)) continue;
        bench_queen_place(&next, board, row, col);
        total += nqueens(&next, n, row + 1);
    }
    return total;
}

static double run_nqueens(const bench_case *c)
{
    bench_board board = {{0}};
    return (double)nqueens(&board, (int)c->size, 0);
}

static bench_tree tree;

static uint64_t uts(bench_node node)
{
    uint32_t kids = bench_uts_kids(&tree, node);
    uint64_t total = 1;

    for (uint32_t i = 0; i < kids; i++) total += uts(bench_uts_child(node, i));
    return total;
}

static double run_uts(const bench_case *c)
{
    bench_tree_init(&tree, c);
    return (double)uts(tree.root);
}

/* Returns the sum of the numbers first, first + 1, ..., first + leaves - 1. */
static uint64_t skynet(uint64_t first, uint64_t leaves)
{
    uint64_t total = 0, part = leaves / BENCH_SKYNET_ARITY;

    if (leaves == 1) return first;
    for (int i = 0; i < BENCH_SKYNET_ARITY; i++, first += part) total += skynet(first, part);
    return total;
}

static double run_skynet(const bench_case *c)
{
    return (double)skynet(0, c->size);
}

static double run_fan(const bench_case *c)
{
    uint64_t *field = (uint64_t *)bench_array(c->size * sizeof *field), total = 0;

    for (uint32_t i = 0; i < c->size; i++) field[i] = 0;
    for (uint32_t i = c->size; i-- > 0;) {
        field[i] += i;
        total += field[i];
    }
    return (double)total;
}

static uint32_t conjoin(uint32_t a, uint32_t b)
{
    dd_step s;

    if (dd_known(&s, a, b)) return s.result;
    uint32_t low = conjoin(s.low_a, s.low_b);
    return dd_finish(&s, low, conjoin(s.high_a, s.high_b));
}

static double run_dd(const bench_case *c)
{
    uint32_t f = DD_TRUE;

    dd_init(c->size);
    for (uint32_t i = 0; i < dd_constraints(c->size); i++)
        f = conjoin(f, dd_constraint(c->size, i));
    return dd_answer(c->size, f);
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
        {"group-fan", run_fan},
        {"group-fib", run_fib},
        {"each-uts", run_uts},
        {"each-array", run_fan},
        {NULL, NULL},
    };
    static const bench_runtime serial = {"serial", entries, NULL, NULL, NULL, NULL};

    return bench_main(argc, argv, &serial);
}
