/* SPDX-License-Identifier: MIT */
/*
 * stream.h - stores that go past the caches
 *
 * A store brings the line it writes to into the cache first. For results larger than any cache,
 * which nobody reads soon, that is a third of all the traffic with memory. Where the processor
 * has no such stores these are ordinary ones.
 */
#ifndef FJI_STREAM_H
#define FJI_STREAM_H

#include <forkjoin/attr.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

/* *to = *from, of 4 or 8 bytes, at an address that is a multiple of that. */
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

/* Orders all that was streamed before what the caller stores afterwards, as no other fence or
 * release does. */
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
