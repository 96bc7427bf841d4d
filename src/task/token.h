/* SPDX-License-Identifier: MIT */
/*
 * token.h - the word of a cancellation token
 *
 * A token is cancelled by setting bits in its word. The bits are never cleared while a task runs with
 * the token. A task sees a cancel of its own token and of every parent of it.
 *
 * Edges            from                          to                     carries
 *   cancel.token   release or, fji_token_set()   acquire, token.c       what the canceller wrote
 *   cancel.wait    full fence, fji_token_set()   full fence, fji_interruptible_begin()
 *                                                                       token against wait bucket
 */
#ifndef FJI_TOKEN_H
#define FJI_TOKEN_H

#include "plat/atomic.h"

/* fj_token.word */
#define FJI_TOKEN_CANCELLED 1u
#define FJI_TOKEN_INTERRUPT 2u /* interruptible waits end, too */
#define FJI_TOKEN_SIGNALLED 4u /* a signal was sent to the thread that runs the body */

/* Whether t or one of its parents has one of the bits. t may be NULL. */
bool fji_token_has(const fj_token *t, uint32_t bits);

/* Whether `above` is t itself or one of its parents. */
bool fji_token_is_below(const fj_token *t, const fj_token *above);

/* Sets the bits. Afterwards the caller wakes the interruptible waits that the token concerns. */
void fji_token_set(fj_token *t, uint32_t bits);

#endif /* FJI_TOKEN_H */
