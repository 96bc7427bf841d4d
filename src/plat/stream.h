/* SPDX-License-Identifier: MIT */
/*
 * stream.h - stores that bypass the caches
 *
 * For an ordinary store the processor first loads the cache line that is written to. If an
 * algorithm reads an array and writes its results to another array that is larger than the caches,
 * these loads are a third of the memory traffic. The stores of this file avoid them. On processors
 * other than x86-64 they are ordinary stores.
 */
#ifndef FJI_STREAM_H
#define FJI_STREAM_H

#include <forkjoin/attr.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

/* Copies `size` bytes from `from` to `to`. `size` is 4 or 8, and the address `to` is a
 * multiple of `size`. */
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

/* Orders the stores that the calling thread has made by fji_stream() before its later stores. A
 * release store does not order them. */
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
