/* SPDX-License-Identifier: MIT */
/*
 * token.c - the word of a cancellation token; see token.h
 */
#include "task/token.h"

bool fji_token_has(const fj_token *t, uint32_t bits)
{
    /* [cancel.token] acquire <- release in fji_token_set(): what the canceller wrote before. */
    for (; t != NULL; t = t->parent)
        if ((fji_load_acquire(&t->word) & bits) != 0) return true;
    return false;
}

bool fji_token_is_below(const fj_token *t, const fj_token *above)
{
    while (t != NULL && t != above) t = t->parent;
    return t != NULL;
}

void fji_token_set(fj_token *t, uint32_t bits)
{
    /* [cancel.token] release -> acquire in fji_token_has(): what the canceller wrote before. */
    fji_or_release(&t->word, bits);
    /* [cancel.wait] the store to t->word above; below, in the caller, the loads of wait_bucket of
     * the workers; partner: the fence in fji_interruptible_begin(). Either the canceller sees that
     * a worker waits, and wakes it, or the worker sees the bits and does not sleep. */
    fji_fence_full();
}

void fj_token_init(fj_token *token, const fj_token *parent)
{
    if (token == NULL) return;
    token->word = 0;
    token->parent = parent;
}

int fj_token_is_cancelled(const fj_token *token)
{
    return fji_token_has(token, FJI_TOKEN_CANCELLED);
}
