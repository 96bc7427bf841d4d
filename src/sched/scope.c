/* SPDX-License-Identifier: MIT */
/*
 * scope.c - finds the token that a task runs with; see scope.h
 */

#include "sched/scope.h"

/* Returns the size of w's array of scopes, which exists, in bytes. */
static size_t scope_bytes(const fji_worker *w)
{
    return (size_t)(w->scope_end - w->scope_base) * sizeof *w->scope_base;
}

/* Doubles the memory of w's array of scopes; the first call creates the array. Returns false if
 * there is no memory, or if the reserved addresses are used up. Only w may call it. */
static bool scope_grow(fji_worker *w)
{
    size_t all = FJI_SCOPES_RESERVED * sizeof *w->scope, bytes = fji_plat_page();
    bool first = w->scope_end == NULL;
    size_t have = first ? 0 : scope_bytes(w);
    fji_scope *range = first ? fji_plat_reserve(all, &have) : w->scope_base;

    if (range == NULL) return false;
    if (!first) bytes = 2 * have;
    if (bytes > all || !fji_plat_commit(range, bytes, &have)) {
        if (first) fji_plat_release(range, all, have);
        return false;
    }
    fji_memory_count(w->pool->memory, FJI_MEMORY_SCOPES, (int64_t)(first ? bytes : bytes - have));
    w->scope_base = range;
    w->scope_end = range + bytes / sizeof *range;
    if (first) fji_scope_reset(w); /* the new memory is zeroed: the lowest entry is {0, NULL} */
    /* If the pool has an interrupt_signal, the limit stays NULL, so that fj_future_join() pushes no
     * entry itself: it has to store which worker runs the body, for cancellers (future.c). */
    if (w->pool->options.interrupt_signal == 0) w->scope_limit = w->scope_end - 1;
    return true;
}

fji_scope_saved fji_scope_enter(fji_worker *w, const fj_token *token)
{
    bool no_memory = w->scope == &w->scope_none[1];
    bool has_space = !no_memory && w->scope + 1 < w->scope_end;

    if (!has_space && !no_memory) has_space = scope_grow(w);
    fji_scope_saved saved = {w->scope, w->scope_limit, w->scope_none[1].token};
    if (has_space) {
        fji_scope_push(w, w->scope, token, fji_worker_boundary(w));
    } else {
        /* There is no memory for an entry: tasks stolen from w during this body have no token. */
        w->scope_none[1].token = token;
        w->scope_limit = NULL;
        /* relaxed: `from` of scope_none[1] never changes, and a thief reads nothing else of this
         * entry, because its `from` is above every cell. */
        fji_store_relaxed(&w->scope, &w->scope_none[1]);
    }
    return saved;
}

fji_scope_saved fji_scope_enter_stolen(fji_worker *w, const fj_token *token)
{
    fji_scope_saved saved = fji_scope_enter(w, token);
    fji_scope *e = w->scope;

    /* relaxed: w has forked no task under this entry yet, so no thief depends on its `from`. */
    if (e != &w->scope_none[1]) fji_store_relaxed(&e->from, e->from - 1);
    return saved;
}

void fji_scope_replace(fji_worker *w, const fj_token *token)
{
    fji_scope_reset(w);
    (void)fji_scope_enter(w, token);
    /* relaxed: w has forked no task under this entry yet, so no thief depends on its `from`. */
    if (w->scope != &w->scope_none[1])
        fji_store_relaxed(&w->scope->from, (uintptr_t)w->q.cells - 1);
}

void fji_scope_leave(fji_worker *w, fji_scope_saved saved)
{
    if (w->scope == &w->scope_none[1]) {
        w->scope_none[1].token = saved.token;
        w->scope_limit = saved.limit;
    }
    /* relaxed: every task that was forked under the removed entry is joined, so no thief needs the
     * entry. */
    fji_store_relaxed(&w->scope, saved.scope);
}

const fj_token *fji_scope_of_stolen(fji_worker *victim, const fji_taken *taken)
{
    /* A detached task may outlive the frame that queued it, and the token of that frame. */
    if (fji_item_is_detached(taken->item)) return NULL;
    /* [cancel.scope] acquire <- release in fji_scope_push(): `from` and `token` of the entries up
     * to this one. */
    const fji_scope *e = fji_load_acquire(&victim->scope);
    /* relaxed: the victim wrote the entry that is found here before it published the task, and it
     * does not change the entry until the task is done. */
    while (fji_load_relaxed(&e->from) > (uintptr_t)taken->cell) e--;
    return fji_load_relaxed(&e->token);
}

/* Returns `from` of v's entry with this token, or 0 if v has no such entry. If v changes the entry
 * during the call, the body with this token is done, and the result may be wrong. So the caller
 * then checks whether the body is done. */
static uintptr_t scope_find(const fji_worker *v, const fj_token *token)
{
    /* [cancel.scope] acquire <- release in fji_scope_push(): `from` and `token` of the entries up
     * to this one. */
    const fji_scope *e = fji_load_acquire(&v->scope);
    uintptr_t from;

    /* [cancel.runner] acquire <- release in fji_scope_push(): that the body for which the entry was
     * used before is done. The loop ends at the lowest entry, whose `from` is 0. */
    for (; (from = fji_load_acquire(&e->from)) != 0; e--) {
        /* [cancel.runner] acquire <- release in fji_scope_push(): the `from` that was stored before
         * this token, or a later one. The value of `from` that is read above may be older. */
        if (from == FJI_SCOPE_NO_MEMORY || fji_load_acquire(&e->token) != token) continue;
        /* [cancel.runner] acquire <- release in fji_scope_push(): if this `from` was stored for a
         * later token, that the body with `token` is done. The caller checks for that. */
        return fji_load_acquire(&e->from);
    }
    return 0;
}

fji_worker *fji_scope_runner(fj_pool *p, const fji_worker *except, const fj_token *token,
                             uint32_t *from)
{
    uint32_t n = fji_pool_nworkers(p);

    for (uint32_t i = 0; i < n; i++) {
        fji_worker *v = fji_pool_worker(p, i);
        if (v == NULL || v == except) continue;
        uintptr_t cell = scope_find(v, token);
        if (cell == 0) continue;
        /* An odd `from` is one less than the address of its cell: see scope.h. */
        *from = fji_queue_position(&v->q, (const fj_cell *)(cell + cell % 2));
        return v;
    }
    return NULL;
}

void fji_scope_fini(fji_worker *w)
{
    if (w->scope_end == NULL) return;
    fji_memory_count(w->pool->memory, FJI_MEMORY_SCOPES, -(int64_t)scope_bytes(w));
    fji_plat_release(w->scope_base, FJI_SCOPES_RESERVED * sizeof *w->scope, scope_bytes(w));
}

bool fji_scope_runs(const fji_worker *w, const fj_token *token)
{
    const fji_scope *e = w->scope;

    if (e == &w->scope_none[1]) return fji_token_is_below(e->token, token); /* no memory */
    /* The body with `token` may have called fj_invoke_token(). The entries of these calls have
     * tokens whose ancestor is `token`. An entry with any other token belongs to another body. */
    for (; e > w->scope_base && fji_token_is_below(e->token, token); e--)
        if (e->token == token) return e->from % 2 == 0;
    return false;
}
