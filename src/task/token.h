/* SPDX-License-Identifier: MIT */
/*
 * token.h - the word of a cancellation token
 *
 * A thread cancels a token by setting bits in its word. The bits are not cleared while a task runs
 * with the token. A cancel concerns all tasks that run with the token or with a descendant of it.
 *
 * Edges           from                         to                         carries
 *   cancel.token  release or, fji_token_set()  acquire, fji_token_has()   the canceller's writes
 *   cancel.wait   full fence, fji_token_set()  full fence,                token against wait_bucket
 *                                              fji_interruptible_begin()
 */
#ifndef FJI_TOKEN_H
#define FJI_TOKEN_H

#include "plat/atomic.h"

/* fj_token.word */
#define FJI_TOKEN_CANCELLED 1u
#define FJI_TOKEN_INTERRUPT 2u /* with CANCELLED: interruptible waits end too */
#define FJI_TOKEN_SIGNALLED 4u /* a signal was sent to the thread that runs the body */

/* Any thread. Returns whether t or an ancestor of t has one of the bits. t may be NULL. */
bool fji_token_has(const fj_token *t, uint32_t bits);

/* Returns whether `above` is t or an ancestor of t. t may be NULL. */
bool fji_token_is_below(const fj_token *t, const fj_token *above);

/* Any thread. Sets the bits. The caller then wakes the interruptible waits that the token concerns;
 * the full fence that this needs is executed here. */
void fji_token_set(fj_token *t, uint32_t bits);

#endif /* FJI_TOKEN_H */
