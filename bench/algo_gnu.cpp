// SPDX-License-Identifier: MIT
//
// algo_gnu.cpp - the algorithms of the GNU C++ library: its parallel mode on OpenMP, and std
//
// The file is built twice. The program `gnu` calls the algorithms of __gnu_parallel. The program
// `stl`, built with BENCH_STL defined, calls those of std, which run on one thread.
#include "algo.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <omp.h>
#include <parallel/algorithm>
#include <parallel/numeric>

namespace {

void start(int workers)
{
    omp_set_dynamic(0);
    omp_set_num_threads(workers);
}

template <class T> T *in(const algo *a)
{
    return static_cast<T *>(a->in);
}

template <class T> T *out(const algo *a)
{
    return static_cast<T *>(a->out);
}

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

using number = std::less<uint32_t>;

template <class T> uint64_t run_scan(const algo *a)
{
#ifdef BENCH_STL
    std::partial_sum(in<T>(a), in<T>(a) + a->n, out<T>(a));
#else
    __gnu_parallel::partial_sum(in<T>(a), in<T>(a) + a->n, out<T>(a));
#endif
    return 0;
}

uint64_t run_sum(const algo *a)
{
#ifdef BENCH_STL
    *out<double>(a) = std::accumulate(in<double>(a), in<double>(a) + a->n, 0.0);
#else
    *out<double>(a) = __gnu_parallel::accumulate(in<double>(a), in<double>(a) + a->n, 0.0);
#endif
    return 0;
}

uint64_t run_find(const algo *a)
{
    const uint32_t *from = in<uint32_t>(a);
#ifdef BENCH_STL
    return static_cast<uint64_t>(std::find(from, from + a->n, ALGO_FOUND) - from);
#else
    return static_cast<uint64_t>(__gnu_parallel::find(from, from + a->n, ALGO_FOUND) - from);
#endif
}

uint64_t run_merge(const algo *a)
{
    uint32_t *x = in<uint32_t>(a), *y = x + a->n / 2; // not const: __gnu_parallel::merge needs it
#ifdef BENCH_STL
    std::merge(x, y, y, y + a->n / 2, out<uint32_t>(a));
#else
    __gnu_parallel::merge(x, y, y, y + a->n / 2, out<uint32_t>(a));
#endif
    return 0;
}

template <class T, class Less> uint64_t run_sort(const algo *a)
{
#ifdef BENCH_STL
    std::sort(out<T>(a), out<T>(a) + a->n, Less());
#else
    __gnu_parallel::sort(out<T>(a), out<T>(a) + a->n, Less());
#endif
    return 0;
}

template <class T, class Less> uint64_t run_stable(const algo *a)
{
#ifdef BENCH_STL
    std::stable_sort(out<T>(a), out<T>(a) + a->n, Less());
#else
    __gnu_parallel::stable_sort(out<T>(a), out<T>(a) + a->n, Less());
#endif
    return 0;
}

#ifndef BENCH_STL
template <class T, class Less> uint64_t run_quick(const algo *a)
{
    __gnu_parallel::sort(out<T>(a), out<T>(a) + a->n, Less(),
                         __gnu_parallel::balanced_quicksort_tag());
    return 0;
}
#endif

const algo_entry entries[] = {
    {"sum", "accumulate", run_sum},
    {"scan-i64", "partial_sum", run_scan<int64_t>},
    {"scan-f64", "partial_sum", run_scan<double>},
    {"find", "find", run_find},
    {"sort-u32*", "sort", run_sort<uint32_t, number>},
    {"sort-u32*", "stable_sort", run_stable<uint32_t, number>},
    {"sort-struct", "sort", run_sort<algo_pair, key_less>},
    {"sort-strings", "sort", run_sort<const char *, text_less>},
#ifndef BENCH_STL
    {"sort-u32*", "quicksort", run_quick<uint32_t, number>},
    {"sort-struct", "quicksort", run_quick<algo_pair, key_less>},
    {"sort-strings", "quicksort", run_quick<const char *, text_less>},
#endif
    {"sort-kv32", "stable_sort", run_stable<algo_kv32, key_less>},
    {"sort-kv64", "stable_sort", run_stable<algo_kv64, key_less>},
    {"merge", "merge", run_merge},
    {nullptr, nullptr, nullptr},
};

} // namespace

int main(int argc, char **argv)
{
#ifdef BENCH_STL
    static const algo_runtime runtime = {"stl", entries, start, nullptr, nullptr};
#else
    static const algo_runtime runtime = {"gnu", entries, start, nullptr, nullptr};
#endif
    return algo_main(argc, argv, &runtime);
}
