/* SPDX-License-Identifier: MIT */
/*
 * stream.h - stores that bypass the caches
 *
 * An ordinary store first loads the cache line that it writes to. If the results are larger than
 * the caches and are not read soon, that load is a third of the memory traffic. On processors other
 * than x86-64 these functions are ordinary stores.
 */
#ifndef FJI_STREAM_H
#define FJI_STREAM_H

#include <forkjoin/attr.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

/* Copies `size` bytes, 4 or 8, to an address that is a multiple of `size`. */
FJI_INLINE void fji_stream(void *to, const void *from, size_t size)
{
    if (size == 4) {
        int v;
        memcpy(&v, from, sizeof v);
        _mm_stream_si32(to, v);
    } else {
        long long v;
        memcpy(&v, from, sizeof v);
        _mm_stream_si64(to, v);
    }
}

/* Orders the caller's fji_stream() stores before its later stores. A release store or another fence
 * does not order them. */
FJI_INLINE void fji_stream_end(void)
{
    _mm_sfence();
}

#else

FJI_INLINE void fji_stream(void *to, const void *from, size_t size)
{
    memcpy(to, from, size == 4 ? 4 : 8);
}

FJI_INLINE void fji_stream_end(void)
{
}

#endif

#endif /* FJI_STREAM_H */
