/* SPDX-License-Identifier: MIT */
/*
 * tbb.cpp - the workloads with oneTBB
 *
 * The file is built twice. The program `tbb` forks with task_group. The program `tbb-invoke`, built
 * with BENCH_TBB_INVOKE defined, forks with parallel_invoke and supports only the workloads with
 * two-way forks.
 */
#include "dd.h"
#include "harness.h"
#include "tally.h"

#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include <tbb/global_control.h>
#include <tbb/parallel_for_each.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace {

tbb::task_scheduler_handle scheduler;
std::unique_ptr<tbb::global_control> control;
std::unique_ptr<tbb::task_arena> arena;

/*
 * In the fork/join workloads the main thread works in the arena and is one of the workers. If it
 * stays outside, the arena reserves no slot for it, and the limit of threads is one higher, because
 * oneTBB counts the main thread too.
 */
void start(int workers, bool outside)
{
    std::size_t threads = static_cast<std::size_t>(workers) + (outside ? 1 : 0);
    scheduler = tbb::task_scheduler_handle{tbb::attach{}};
    control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    threads);
    arena = std::make_unique<tbb::task_arena>(workers, outside ? 0 : 1);
    arena->initialize();
}

/* oneTBB has one set of threads for all arenas. finalize() ends them and waits for them. */
void stop()
{
    arena.reset();
    control.reset();
    if (tbb::finalize(scheduler, std::nothrow)) return;
    std::fprintf(stderr, "tbb: cannot end the threads\n");
    std::exit(1);
}

/* Runs both functions and waits for them. The first one is a task that another thread may steal. */
template <typename A, typename B> void both(const A &a, const B &b)
{
#ifdef BENCH_TBB_INVOKE
    tbb::parallel_invoke(a, b);
#else
    tbb::task_group group;
    group.run(a);
    b();
    group.wait();
#endif
}

std::uint64_t fib(unsigned n)
{
    std::uint64_t a, b;

    if (n < 2) return n;
    both([&a, n] { a = fib(n - 1); }, [&b, n] { b = fib(n - 2); });
    return a + b;
}

double run_fib(const bench_case *c)
{
    return arena->execute([=] { return static_cast<double>(fib(c->size)); });
}

double integrate(double x1, double y1, double x2, double y2, double area)
{
    double half = (x2 - x1) / 2;
    double xm = x1 + half;
    double ym = bench_integrand(xm);
    double left = (y1 + ym) * half / 2;
    double right = (ym + y2) * half / 2;
    double a, b;

    if (std::fabs(left + right - area) < BENCH_EPSILON) return left + right;
    both([&a, x1, y1, xm, ym, left] { a = integrate(x1, y1, xm, ym, left); },
         [&b, xm, ym, x2, y2, right] { b = integrate(xm, ym, x2, y2, right); });
    return a + b;
}

double run_integrate(const bench_case *c)
{
    double x = c->size, y0 = bench_integrand(0), y = bench_integrand(x);
    return arena->execute([=] { return integrate(0, y0, x, y, (y0 + y) * x / 2); });
}

std::uint32_t conjoin(std::uint32_t a, std::uint32_t b)
{
    dd_step s;
    std::uint32_t low, high;

    if (dd_known(&s, a, b)) return s.result;
    both([&high, &s] { high = conjoin(s.high_a, s.high_b); },
         [&low, &s] { low = conjoin(s.low_a, s.low_b); });
    return dd_finish(&s, low, high);
}

double run_dd(const bench_case *c)
{
    std::uint32_t n = c->size;

    dd_init(n);
    std::uint32_t all = arena->execute([=] {
        std::uint32_t f = DD_TRUE;
        for (std::uint32_t i = 0; i < dd_constraints(n); i++) f = conjoin(f, dd_constraint(n, i));
        return f;
    });
    return dd_answer(n, all);
}

#ifdef BENCH_TBB_INVOKE

const bench_entry entries[] = {
    {"fib", run_fib},     {"integrate", run_integrate}, {"dd", run_dd},
    {"oversub", run_fib}, {nullptr, nullptr},
};
const bench_runtime runtime = {"tbb-invoke", entries, start, stop, nullptr, nullptr};

#else

std::uint64_t nqueens(const bench_board *board, int n, int row)
{
    bench_board next[BENCH_QUEENS_MAX];
    std::uint64_t part[BENCH_QUEENS_MAX], total = 0;
    int kids = 0;

    if (row == n) return 1;
    tbb::task_group group;
    for (int col = 0; col < n; col++) {
        if (!bench_queen_fits(board, row, col)) continue;
        bench_board *to = &next[kids];
        std::uint64_t *out = &part[kids++];
        bench_queen_place(to, board, row, col);
        group.run([=] { *out = nqueens(to, n, row + 1); });
    }
    group.wait();
    for (int i = 0; i < kids; i++) total += part[i];
    return total;
}

double run_nqueens(const bench_case *c)
{
    bench_board board = {{0}};
    return arena->execute(
        [&] { return static_cast<double>(nqueens(&board, static_cast<int>(c->size), 0)); });
}

bench_tree tree;

std::uint64_t uts(bench_node node)
{
    std::uint32_t kids = bench_uts_kids(&tree, node);
    std::uint64_t total = 1;

    if (kids == 0) return 1;
    auto *part = static_cast<std::uint64_t *>(alloca(kids * sizeof(std::uint64_t)));
    tbb::task_group group;
    for (std::uint32_t i = 0; i + 1 < kids; i++) {
        std::uint64_t *out = &part[i];
        group.run([=] { *out = uts(bench_uts_child(node, i)); });
    }
    part[kids - 1] = uts(bench_uts_child(node, kids - 1));
    group.wait();
    for (std::uint32_t i = 0; i < kids; i++) total += part[i];
    return total;
}

double run_uts(const bench_case *c)
{
    bench_tree_init(&tree, c);
    return arena->execute([] { return static_cast<double>(uts(tree.root)); });
}

std::uint64_t skynet(std::uint64_t first, std::uint64_t leaves)
{
    std::uint64_t part[BENCH_SKYNET_ARITY], total = 0, share = leaves / BENCH_SKYNET_ARITY;

    if (leaves == 1) return first;
    tbb::task_group group;
    for (unsigned i = 0; i < BENCH_SKYNET_ARITY; i++) {
        std::uint64_t *out = &part[i];
        group.run([=] { *out = skynet(first + i * share, share); });
    }
    group.wait();
    for (std::uint64_t p : part) total += p;
    return total;
}

double run_skynet(const bench_case *c)
{
    return arena->execute([=] { return static_cast<double>(skynet(0, c->size)); });
}

double fan(std::uint64_t *field, std::uint32_t n)
{
    std::uint64_t total = 0;

    tbb::task_group group;
    for (std::uint32_t i = 0; i < n; i++) {
        field[i] = 0;
        group.run([=] { field[i] += i; });
    }
    group.wait();
    for (std::uint32_t i = n; i-- > 0;) total += field[i];
    return static_cast<double>(total);
}

double run_fan(const bench_case *c)
{
    auto *field = static_cast<std::uint64_t *>(bench_array(c->size * sizeof(std::uint64_t)));
    return arena->execute([=] { return fan(field, c->size); });
}

void group_fib(tbb::task_group &group, unsigned n)
{
    if (n < 2) {
        bench_tally_add(n);
        return;
    }
    group.run([&group, n] { group_fib(group, n - 1); });
    group.run([&group, n] { group_fib(group, n - 2); });
}

double run_group_fib(const bench_case *c)
{
    arena->execute([=] {
        tbb::task_group group;
        group.run([&group, c] { group_fib(group, c->size); });
        group.wait();
    });
    return static_cast<double>(bench_tally_take());
}

double run_each_uts(const bench_case *c)
{
    bench_tree_init(&tree, c);
    arena->execute([] {
        tbb::parallel_for_each(&tree.root, &tree.root + 1,
                               [](const bench_node &node, tbb::feeder<bench_node> &feeder) {
                                   std::uint32_t kids = bench_uts_kids(&tree, node);
                                   bench_tally_add(1);
                                   for (std::uint32_t i = 0; i < kids; i++)
                                       feeder.add(bench_uts_child(node, i));
                               });
    });
    return static_cast<double>(bench_tally_take());
}

double run_each_array(const bench_case *c)
{
    auto *field = static_cast<std::uint64_t *>(bench_array(c->size * sizeof(std::uint64_t)));
    std::uint64_t total = 0;

    arena->execute([=] {
        tbb::parallel_for_each(field, field + c->size, [=](std::uint64_t &x) {
            x = static_cast<std::uint64_t>(&x - field);
        });
    });
    for (std::uint32_t i = c->size; i-- > 0;) total += field[i];
    return static_cast<double>(total);
}

void submit(bench_body *body, void *arg)
{
    arena->enqueue([=] { body(arg); });
}

/* The main thread waits outside the arena, so it cannot run the task itself. */
void round_trip(bench_body *body, void *arg)
{
    tbb::task_group group;
    arena->enqueue(group.defer([=] { body(arg); }));
    group.wait();
}

const bench_entry entries[] = {
    {"fib", run_fib},           {"integrate", run_integrate},
    {"nqueens", run_nqueens},   {"uts-geo", run_uts},
    {"uts-bin", run_uts},       {"skynet", run_skynet},
    {"fan", run_fan},           {"dd", run_dd},
    {"group-fan", run_fan},     {"group-fib", run_group_fib},
    {"each-uts", run_each_uts}, {"each-array", run_each_array},
    {"oversub", run_fib},       {"idle", run_fib},
    {nullptr, nullptr},
};
const bench_runtime runtime = {"tbb", entries, start, stop, submit, round_trip};

#endif

} // namespace

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &runtime);
}
