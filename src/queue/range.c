/* SPDX-License-Identifier: MIT */
/*
 * range.c - a range of addresses for an array that grows without moving; see range.h
 */
#include "queue/range.h"

#include "plat/plat.h"

size_t fji_range_bytes(const fji_range *r, uint32_t n)
{
    size_t page = fji_plat_page();
    size_t bytes = ((size_t)n + r->extra) * r->size;

    return (bytes + page - 1) / page * page;
}

bool fji_range_init(fji_range *r, size_t size, uint32_t extra, uint32_t first, uint32_t limit)
{
    *r = (fji_range){.size = size, .extra = extra};
    for (; limit >= first; limit /= 2) {
        r->start = fji_plat_reserve(fji_range_bytes(r, limit), &r->committed);
        if (r->start != NULL || limit == first) break;
    }
    if (r->start == NULL) return false;
    r->limit = limit;
    r->reserved = fji_range_bytes(r, limit);
    if (fji_plat_commit(r->start, fji_range_bytes(r, first), &r->committed)) return true;
    fji_range_fini(r);
    return false;
}

void fji_range_fini(fji_range *r)
{
    if (r->start != NULL) fji_plat_release(r->start, r->reserved, r->committed);
    r->start = NULL;
}

uint32_t fji_range_grow(fji_range *r, uint32_t n)
{
    uint32_t more = n > r->limit / 2 ? r->limit : n * 2;

    if (more == n || !fji_plat_commit(r->start, fji_range_bytes(r, more), &r->committed)) return n;
    return more;
}

bool fji_range_shrink(fji_range *r, uint32_t n, uint32_t kept)
{
    size_t bytes = fji_range_bytes(r, kept);

    return fji_plat_discard(r->start + bytes, fji_range_bytes(r, n) - bytes);
}
