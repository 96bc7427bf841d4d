/* SPDX-License-Identifier: MIT */
/*
 * local.cpp - the cost of finding the value of the calling worker
 *
 *     local [workers]
 *
 * Every body of a parallel loop finds the value of its worker and adds a number to it. The program
 * measures fj_local_get() in a loop of forkjoin, and enumerable_thread_specific::local() in a loop of
 * oneTBB, with the same chunks, in turns. `thread_local` is a C++ thread-local variable in the loop
 * of forkjoin, and `none` the loop with an ordinary variable. It prints the best of several runs, ns
 * for each body.
 */
#include <forkjoin/algo.h>
#include <forkjoin/worker_local.h>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

const size_t bodies = 20000000, grain = 20000;
const int rounds = 9;

fj_pool *pool;
fj_local local;
thread_local long of_thread;
tbb::enumerable_thread_specific<long> *specific;

int body_fj(size_t begin, size_t end, void *)
{
    for (size_t i = begin; i < end; i++) {
        long *v = static_cast<long *>(fj_local_get(&local));
        if (v == nullptr) return FJ_ENOMEM;
        *v += static_cast<long>(i);
        FJI_IN_ORDER(); /* the compiler keeps neither the value nor its address in a register */
    }
    return FJ_OK;
}

int body_thread_local(size_t begin, size_t end, void *)
{
    for (size_t i = begin; i < end; i++) {
        of_thread += static_cast<long>(i);
        FJI_IN_ORDER();
    }
    return FJ_OK;
}

int body_none(size_t begin, size_t end, void *)
{
    long sum = 0;

    for (size_t i = begin; i < end; i++) {
        sum += static_cast<long>(i);
        FJI_IN_ORDER();
    }
    of_thread += sum;
    return FJ_OK;
}

template <typename F> double seconds(F f)
{
    auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <int (*body)(size_t, size_t, void *)> void loop_fj()
{
    fj_algo_options how = {};

    how.pool = pool;
    how.grain = grain;
    if (fj_for(0, bodies, body, nullptr, &how) != FJ_OK) std::abort();
}

void loop_tbb()
{
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, bodies, grain),
        [](const tbb::blocked_range<size_t> &r) {
            for (size_t i = r.begin(); i < r.end(); i++) {
                specific->local() += static_cast<long>(i);
                FJI_IN_ORDER();
            }
        },
        tbb::simple_partitioner());
}

int add(void *value, void *into)
{
    *static_cast<long *>(into) += *static_cast<long *>(value);
    return FJ_OK;
}

} // namespace

int main(int argc, char **argv)
{
    int workers = argc > 1 ? std::atoi(argv[1]) : 1;
    fj_pool_options po = {};
    fj_local_options lo = {};
    double best[4] = {1e9, 1e9, 1e9, 1e9};

    po.parallelism = workers;
    if (fj_pool_create(&pool, &po) != FJ_OK) return 1;
    lo.pool = pool;
    lo.bytes = sizeof(long);
    if (fj_local_init(&local, &lo) != FJ_OK) return 1;
    tbb::task_arena arena(workers);
    tbb::enumerable_thread_specific<long> values(0L);
    specific = &values;

    for (int i = 0; i < rounds; i++) {
        double t[4] = {seconds([] { loop_fj<body_fj>(); }),
                       seconds([&] { arena.execute([] { loop_tbb(); }); }),
                       seconds([] { loop_fj<body_thread_local>(); }),
                       seconds([] { loop_fj<body_none>(); })};
        for (int k = 0; k < 4; k++)
            if (t[k] < best[k]) best[k] = t[k];
    }
    long sum_fj = 0, want = static_cast<long>(bodies * (bodies - 1) / 2) * rounds;
    if (fj_local_each(&local, add, &sum_fj) != FJ_OK || sum_fj != want) return 1;
    if (values.combine([](long a, long b) { return a + b; }) != want) return 1;
    static const char *const names[] = {"fj_local_get", "tbb local()", "thread_local", "none"};
    for (int k = 0; k < 4; k++)
        std::printf("%-14s %6.2f ns\n", names[k], best[k] * 1e9 / static_cast<double>(bodies));
    return fj_local_fini(&local) != FJ_OK || fj_pool_destroy(pool) != FJ_OK;
}
