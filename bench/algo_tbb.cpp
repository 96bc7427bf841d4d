// SPDX-License-Identifier: MIT
//
// algo_tbb.cpp - the algorithms of oneTBB, and those of the C++ library that run on it
//
// Kernels run inside an arena with the requested number of workers; the calling thread is one of
// them. `for-tiny` is the exception: its calls are made outside the arena. A variant whose name
// begins with `std:` is a standard algorithm with std::execution::par.
#include "algo.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <execution>
#include <functional>
#include <memory>
#include <numeric>
#include <oneapi/tbb.h>

namespace {

using range = tbb::blocked_range<size_t>;

std::unique_ptr<tbb::global_control> limit;
std::unique_ptr<tbb::task_arena> arena;

void start(int workers)
{
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                  static_cast<size_t>(workers));
    arena = std::make_unique<tbb::task_arena>(workers, 1);
}

void stop()
{
    arena.reset();
    limit.reset();
}

uint64_t call(algo_kernel *run, const algo *a)
{
    if (algo_outside(a)) return run(a);
    return arena->execute([=] { return run(a); });
}

template <class T> T *in(const algo *a)
{
    return static_cast<T *>(a->in);
}

template <class T> T *out(const algo *a)
{
    return static_cast<T *>(a->out);
}

// ---- loops ----

template <class P, class F> uint64_t loop(const algo *a, const P &partitioner, F element)
{
    uint32_t *to = out<uint32_t>(a);
    tbb::parallel_for(
        range(0, a->n),
        [=](const range &r) {
            for (size_t i = r.begin(); i < r.end(); i++) to[i] = element(i);
        },
        partitioner);
    return 0;
}

template <class P> uint64_t run_even(const algo *a)
{
    return loop(a, P(), [](size_t i) { return algo_even(i); });
}

template <class P> uint64_t run_triangle(const algo *a)
{
    return loop(a, P(), [](size_t i) { return algo_triangle(i); });
}

template <class P> uint64_t run_heavy(const algo *a)
{
    size_t n = a->n;
    return loop(a, P(), [n](size_t i) { return algo_heavy(i, n); });
}

uint64_t run_grain1(const algo *a)
{
    return loop(a, tbb::simple_partitioner(), [](size_t i) { return algo_grain1(i); });
}

template <class P> uint64_t run_tiny(const algo *a)
{
    uint32_t *to = out<uint32_t>(a);
    for (size_t k = 0; k < a->n; k++)
        tbb::parallel_for(
            range(0, ALGO_TINY_LOOP),
            [=](const range &r) {
                for (size_t i = r.begin(); i < r.end(); i++) algo_tiny(to, i);
            },
            P());
    return 0;
}

template <class F> void region(const algo *a, F element)
{
    uint32_t *to = out<uint32_t>(a);
    for (size_t k = 0; k < a->loops; k++)
        tbb::parallel_for(
            range(0, a->n),
            [=](const range &r) {
                for (size_t i = r.begin(); i < r.end(); i++) element(to, i);
            },
            tbb::static_partitioner());
}

uint64_t run_region(const algo *a)
{
    if (a->c->shape == ALGO_REGION_HEAVY)
        region(a, [](uint32_t *to, size_t i) { algo_region_heavy(to, i); });
    else
        region(a, [](uint32_t *to, size_t i) { algo_region(to, i); });
    return 0;
}

uint64_t run_copy(const algo *a)
{
    const int64_t *from = in<int64_t>(a);
    int64_t *to = out<int64_t>(a);
    tbb::parallel_for(range(0, a->n), [=](const range &r) {
        std::memcpy(to + r.begin(), from + r.begin(), r.size() * sizeof *to);
    });
    return 0;
}

// ---- sums and scans ----

uint64_t run_sum(const algo *a)
{
    const double *from = in<double>(a);
    *out<double>(a) = tbb::parallel_reduce(
        range(0, a->n), 0.0,
        [=](const range &r, double s) { return s + algo_sum(from, r.begin(), r.end()); },
        std::plus<double>());
    return 0;
}

// The grain is 4096 elements, because the default is 1.
uint64_t run_sum_fixed(const algo *a)
{
    const double *from = in<double>(a);
    *out<double>(a) = tbb::parallel_deterministic_reduce(
        range(0, a->n, 4096), 0.0,
        [=](const range &r, double s) { return s + algo_sum(from, r.begin(), r.end()); },
        std::plus<double>());
    return 0;
}

uint64_t run_std_sum(const algo *a)
{
    const double *from = in<double>(a);
    *out<double>(a) = std::reduce(std::execution::par, from, from + a->n, 0.0);
    return 0;
}

template <class T> uint64_t run_scan(const algo *a)
{
    const T *from = in<T>(a);
    T *to = out<T>(a);
    tbb::parallel_scan(
        range(0, a->n), T(0),
        [=](const range &r, T sum, bool last) {
            if (last)
                for (size_t i = r.begin(); i < r.end(); i++) to[i] = sum += from[i];
            else
                for (size_t i = r.begin(); i < r.end(); i++) sum += from[i];
            return sum;
        },
        std::plus<T>());
    return 0;
}

template <class T> uint64_t run_std_scan(const algo *a)
{
    const T *from = in<T>(a);
    std::inclusive_scan(std::execution::par, from, from + a->n, out<T>(a));
    return 0;
}

// ---- filter, find, histogram ----

uint64_t run_filter(const algo *a)
{
    const uint32_t *from = in<uint32_t>(a);
    uint32_t *to = out<uint32_t>(a);
    return tbb::parallel_scan(
        range(0, a->n), size_t(0),
        [=](const range &r, size_t k, bool last) {
            if (!last) return k + algo_kept_count(from, r.begin(), r.end());
            uint32_t *end = algo_keep_part(from, r.begin(), r.end(), to + k);
            return static_cast<size_t>(end - to);
        },
        std::plus<size_t>());
}

uint64_t run_std_filter(const algo *a)
{
    const uint32_t *from = in<uint32_t>(a);
    uint32_t *to = out<uint32_t>(a);
    return static_cast<uint64_t>(std::copy_if(std::execution::par, from, from + a->n, to,
                                              [](uint32_t x) { return algo_kept(x) != 0; }) -
                                 to);
}

uint64_t run_find(const algo *a)
{
    const uint32_t *from = in<uint32_t>(a);
    size_t n = a->n;
    tbb::task_group_context context;
    std::atomic<size_t> at(n);
    // The value occurs once, so the body that finds it may cancel all others.
    tbb::parallel_for(
        range(0, n),
        [&](const range &r) {
            size_t i = algo_find(from, r.begin(), r.end());
            if (i == r.end()) return;
            at = i;
            context.cancel_group_execution();
        },
        tbb::auto_partitioner(), context);
    return at;
}

uint64_t run_std_find(const algo *a)
{
    const uint32_t *from = in<uint32_t>(a);
    return static_cast<uint64_t>(std::find(std::execution::par, from, from + a->n, ALGO_FOUND) -
                                 from);
}

template <class T> uint64_t run_count(const algo *a)
{
    struct counts {
        uint64_t of[ALGO_BINS] = {};
    };
    const T *from = in<T>(a);
    uint64_t *to = out<uint64_t>(a);
    tbb::combinable<counts> all;
    tbb::parallel_for(range(0, a->n, 4096), [&](const range &r) {
        uint64_t *mine = all.local().of;
        for (size_t i = r.begin(); i < r.end(); i++) mine[from[i]]++;
    });
    all.combine_each([=](const counts &c) {
        for (size_t k = 0; k < ALGO_BINS; k++) to[k] += c.of[k];
    });
    return 0;
}

// ---- sorts ----

struct key_less {
    template <class T> bool operator()(const T &a, const T &b) const
    {
        return a.key < b.key;
    }
};

struct text_less {
    bool operator()(const char *a, const char *b) const
    {
        return std::strcmp(a, b) < 0;
    }
};

template <class T, class Less> uint64_t run_sort(const algo *a)
{
    tbb::parallel_sort(out<T>(a), out<T>(a) + a->n, Less());
    return 0;
}

template <class T, class Less> uint64_t run_std_sort(const algo *a)
{
    std::sort(std::execution::par, out<T>(a), out<T>(a) + a->n, Less());
    return 0;
}

template <class T, class Less> uint64_t run_std_stable(const algo *a)
{
    std::stable_sort(std::execution::par, out<T>(a), out<T>(a) + a->n, Less());
    return 0;
}

uint64_t run_std_merge(const algo *a)
{
    const uint32_t *x = in<uint32_t>(a), *y = x + a->n / 2;
    std::merge(std::execution::par, x, y, y, y + a->n / 2, out<uint32_t>(a));
    return 0;
}

// ---- pipeline ----

uint64_t run_pipe(const algo *a)
{
    using mode = tbb::filter_mode;
    uint32_t *to = out<uint32_t>(a);
    size_t made = 0, done = 0, n = a->n;
    tbb::parallel_pipeline(
        ALGO_TOKENS,
        tbb::make_filter<void, size_t>(mode::serial_in_order, [&](tbb::flow_control &flow) {
            if (made == n) flow.stop();
            return made++;
        }) & tbb::make_filter<size_t, uint32_t>(mode::parallel, [](size_t i) {
            return algo_item(i);
        }) & tbb::make_filter<uint32_t, void>(mode::serial_in_order, [&](uint32_t x) {
            to[done++] = x;
        }));
    return 0;
}

using by_auto = tbb::auto_partitioner;
using by_one = tbb::simple_partitioner;
using number = std::less<uint32_t>;

const algo_entry entries[] = {
    {"for-even", "auto", run_even<by_auto>},
    {"for-even", "simple", run_even<by_one>},
    {"for-triangle", "auto", run_triangle<by_auto>},
    {"for-triangle", "simple", run_triangle<by_one>},
    {"for-heavy", "auto", run_heavy<by_auto>},
    {"for-heavy", "simple", run_heavy<by_one>},
    {"for-grain1", "simple", run_grain1},
    {"for-tiny*", "auto", run_tiny<by_auto>},
    {"for-tiny*", "simple", run_tiny<by_one>},
    {"region-*", "static", run_region},
    {"sum", "reduce", run_sum},
    {"sum", "std:reduce", run_std_sum},
    {"sum-fixed", "deterministic", run_sum_fixed},
    {"scan-i64", "scan", run_scan<int64_t>},
    {"scan-i64", "std:scan", run_std_scan<int64_t>},
    {"scan-f64", "scan", run_scan<double>},
    {"scan-f64", "std:scan", run_std_scan<double>},
    {"copy", "for", run_copy},
    {"filter", "scan", run_filter},
    {"filter", "std:copy_if", run_std_filter},
    {"find", "for", run_find},
    {"find", "std:find", run_std_find},
    {"histogram-u8", "combinable", run_count<uint8_t>},
    {"histogram-u32", "combinable", run_count<uint32_t>},
    {"sort-u32*", "sort", run_sort<uint32_t, number>},
    {"sort-u32*", "std:sort", run_std_sort<uint32_t, number>},
    {"sort-struct", "sort", run_sort<algo_pair, key_less>},
    {"sort-struct", "std:sort", run_std_sort<algo_pair, key_less>},
    {"sort-strings", "sort", run_sort<const char *, text_less>},
    {"sort-strings", "std:sort", run_std_sort<const char *, text_less>},
    {"sort-kv32", "std:stable_sort", run_std_stable<algo_kv32, key_less>},
    {"sort-kv64", "std:stable_sort", run_std_stable<algo_kv64, key_less>},
    {"merge", "std:merge", run_std_merge},
    {"pipeline", "pipeline", run_pipe},
    {nullptr, nullptr, nullptr},
};

} // namespace

int main(int argc, char **argv)
{
    static const algo_runtime tbb_runtime = {"tbb", entries, start, stop, call};
    return algo_main(argc, argv, &tbb_runtime);
}
