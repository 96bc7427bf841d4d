/* SPDX-License-Identifier: MIT */
/*
 * omp.c - the fork/join workloads with OpenMP tasks
 *
 * Built with gcc, the program measures libgomp; built with clang, libomp. Each kernel opens one
 * parallel region. One thread of the region runs the root, and the others run the tasks that it
 * creates. A task can only be created inside a parallel region, and the calling thread is always a
 * thread of the region. So this program does not support the workloads whose caller is a thread
 * outside the pool: submit-1, submit-2, wake, trip-PAUSE, first and create.
 */
#include "dd.h"
#include "harness.h"
#include "tally.h"

#include <omp.h>

#ifdef __clang__
#define RUNTIME "libomp"
#else
#define RUNTIME "libgomp"
#endif

static int team;

static void start(int workers, bool outside)
{
    (void)outside;
    omp_set_dynamic(0);
    team = workers;
}

static uint64_t fib(unsigned n)
{
    uint64_t a, b;

    if (n < 2) return n;
#pragma omp task shared(a)
    a = fib(n - 1);
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

static double run_fib(const bench_case *c)
{
    uint64_t answer = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = fib(c->size);
    return (double)answer;
}

static double integrate(double x1, double y1, double x2, double y2, double area)
{
    double half = (x2 - x1) / 2;
    double xm = x1 + half;
    double ym = bench_integrand(xm);
    double left = (y1 + ym) * half / 2;
    double right = (ym + y2) * half / 2;
    double a, b;

    if (fabs(left + right - area) < BENCH_EPSILON) return left + right;
#pragma omp task shared(a)
    a = integrate(x1, y1, xm, ym, left);
    b = integrate(xm, ym, x2, y2, right);
#pragma omp taskwait
    return a + b;
}

static double run_integrate(const bench_case *c)
{
    double x = c->size, y0 = bench_integrand(0), y = bench_integrand(x), answer = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = integrate(0, y0, x, y, (y0 + y) * x / 2);
    return answer;
}

static uint64_t nqueens(const bench_board *board, int n, int row)
{
    bench_board next[BENCH_QUEENS_MAX];
    uint64_t part[BENCH_QUEENS_MAX], total = 0;
    int kids = 0;

    if (row == n) return 1;
    for (int col = 0; col < n; col++) {
        if (!bench_queen_fits(board, row, col)) continue;
        bench_queen_place(&next[kids], board, row, col);
#pragma omp task shared(next, part) firstprivate(kids)
        part[kids] = nqueens(&next[kids], n, row + 1);
        kids++;
    }
#pragma omp taskwait
    for (int i = 0; i < kids; i++) total += part[i];
    return total;
}

static double run_nqueens(const bench_case *c)
{
    bench_board board = {{0}};
    uint64_t answer = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = nqueens(&board, (int)c->size, 0);
    return (double)answer;
}

static bench_tree tree;

static uint64_t uts(bench_node node)
{
    uint32_t kids = bench_uts_kids(&tree, node);
    uint64_t total = 1;

    if (kids == 0) return 1;
    uint64_t part[kids];
    for (uint32_t i = 0; i + 1 < kids; i++) {
#pragma omp task shared(part) firstprivate(i)
        part[i] = uts(bench_uts_child(node, i));
    }
    part[kids - 1] = uts(bench_uts_child(node, kids - 1));
#pragma omp taskwait
    for (uint32_t i = 0; i < kids; i++) total += part[i];
    return total;
}

static double run_uts(const bench_case *c)
{
    uint64_t answer = 0;

    bench_tree_init(&tree, c);
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = uts(tree.root);
    return (double)answer;
}

static uint64_t skynet(uint64_t first, uint64_t leaves)
{
    uint64_t part[BENCH_SKYNET_ARITY], total = 0, share = leaves / BENCH_SKYNET_ARITY;

    if (leaves == 1) return first;
    for (unsigned i = 0; i < BENCH_SKYNET_ARITY; i++) {
#pragma omp task shared(part) firstprivate(i)
        part[i] = skynet(first + i * share, share);
    }
#pragma omp taskwait
    for (int i = 0; i < BENCH_SKYNET_ARITY; i++) total += part[i];
    return total;
}

static double run_skynet(const bench_case *c)
{
    uint64_t answer = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = skynet(0, c->size);
    return (double)answer;
}

static uint64_t fan(uint64_t *field, uint32_t n)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        field[i] = 0;
#pragma omp task firstprivate(field, i)
        field[i] += i;
    }
#pragma omp taskwait
    for (uint32_t i = n; i-- > 0;) total += field[i];
    return total;
}

static double run_fan(const bench_case *c)
{
    uint64_t *field = (uint64_t *)bench_array(c->size * sizeof *field), answer = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    answer = fan(field, c->size);
    return (double)answer;
}

/* The tasks of the next three workloads do not wait for their children. A taskgroup does. */
static void group_fan(uint64_t *field, uint32_t n)
{
#pragma omp taskgroup
    for (uint32_t i = 0; i < n; i++) {
        field[i] = 0;
#pragma omp task firstprivate(field, i)
        field[i] += i;
    }
}

static double run_group_fan(const bench_case *c)
{
    uint64_t *field = (uint64_t *)bench_array(c->size * sizeof *field), total = 0;
#pragma omp parallel num_threads(team)
#pragma omp single
    group_fan(field, c->size);
    for (uint32_t i = c->size; i-- > 0;) total += field[i];
    return (double)total;
}

static void group_fib(uint32_t n)
{
    if (n < 2) {
        bench_tally_add(n);
        return;
    }
#pragma omp task firstprivate(n)
    group_fib(n - 1);
#pragma omp task firstprivate(n)
    group_fib(n - 2);
}

static double run_group_fib(const bench_case *c)
{
#pragma omp parallel num_threads(team)
#pragma omp single
    {
#pragma omp taskgroup
        group_fib(c->size);
    }
    return (double)bench_tally_take();
}

static void each_node(bench_node node)
{
    uint32_t kids = bench_uts_kids(&tree, node);

    bench_tally_add(1);
    for (uint32_t i = 0; i < kids; i++) {
#pragma omp task firstprivate(node, i)
        each_node(bench_uts_child(node, i));
    }
}

static double run_each_uts(const bench_case *c)
{
    bench_tree_init(&tree, c);
#pragma omp parallel num_threads(team)
#pragma omp single
    {
#pragma omp taskgroup
        each_node(tree.root);
    }
    return (double)bench_tally_take();
}

static uint32_t conjoin(uint32_t a, uint32_t b)
{
    dd_step s;
    uint32_t low, high;

    if (dd_known(&s, a, b)) return s.result;
#pragma omp task shared(s, high)
    high = conjoin(s.high_a, s.high_b);
    low = conjoin(s.low_a, s.low_b);
#pragma omp taskwait
    return dd_finish(&s, low, high);
}

static uint32_t conjoin_all(uint32_t n)
{
    uint32_t f = DD_TRUE;

    for (uint32_t i = 0; i < dd_constraints(n); i++) f = conjoin(f, dd_constraint(n, i));
    return f;
}

static double run_dd(const bench_case *c)
{
    uint32_t f = DD_TRUE;

    dd_init(c->size);
#pragma omp parallel num_threads(team)
#pragma omp single
    f = conjoin_all(c->size);
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
        {"group-fan", run_group_fan},
        {"group-fib", run_group_fib},
        {"each-uts", run_each_uts},
        {"oversub", run_fib},
        {"idle", run_fib},
        {NULL, NULL},
    };
    static const bench_runtime omp = {RUNTIME, entries, start, NULL, NULL, NULL};

    return bench_main(argc, argv, &omp);
}
