/* SPDX-License-Identifier: MIT */
/*
 * token.h - the word of a cancellation token
 *
 * A thread cancels a token by setting bits in the token's word. The bits are not cleared while a
 * task runs with the token. A cancel applies to all tasks that run with the token or with a
 * descendant of the token. A token has at most one parent; its ancestors are its parent, the parent
 * of its parent, and so on, and it is a descendant of each of them.
 *
 * Edges           from                         to                         carries
 *   cancel.token  release or, fji_token_set()  acquire, fji_token_has()   the canceller's writes
 *   cancel.wait   full fence, fji_token_set()  full fence,                token against wait_bucket
 *                                              fji_interruptible_begin()
 */
#ifndef FJI_TOKEN_H
#define FJI_TOKEN_H

#include "plat/atomic.h"

/* The bits of fj_token.word. */
#define FJI_TOKEN_CANCELLED 1u
#define FJI_TOKEN_INTERRUPT 2u /* with CANCELLED: interruptible waits of the tasks end too */
/* Of a future's own token: the interrupt_signal of the pool was sent to the thread that runs the
 * body of the future. */
#define FJI_TOKEN_SIGNALLED 4u

/* Any thread. Returns whether t or an ancestor of t has at least one of the bits. Returns false if
 * t is NULL. */
bool fji_token_has(const fj_token *t, uint32_t bits);

/* Any thread. Returns whether `above` is t or an ancestor of t. Returns false if t is NULL. */
bool fji_token_is_below(const fj_token *t, const fj_token *above);

/* Any thread. Sets the bits in the word of t, and then executes a full fence. If INTERRUPT is one
 * of the bits, the caller afterwards wakes the interruptible waits that the cancel applies to; it
 * needs no fence of its own. */
void fji_token_set(fj_token *t, uint32_t bits);

#endif /* FJI_TOKEN_H */
