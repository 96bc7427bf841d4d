/* SPDX-License-Identifier: MIT */
/*
 * future_read.c - reading the state and the outcome of a future; its release function, and its tag,
 * a number that only the program uses (fj_future_set_tag())
 *
 * The bits of the state word are explained in future.c.
 *
 * Edges         from                           to                          carries
 *   future.tag  acq_rel, fj_future_set_tag(),  acquire, fj_future_tag()    data of the program
 *               fj_future_cas_tag()
 */

#include "future/future.h"

/* ---- State and outcome ----------------------------------------------------------------------- */

int fj_future_is_done(const fj_future *f)
{
    return f != NULL && (fji_future_word(f) & FJI_DONE) != 0;
}

int fj_future_succeeded(const fj_future *f)
{
    if (f == NULL) return 0;
    return (fji_future_word(f) & (FJI_DONE | FJI_FAILED | FJI_CANCELLED)) == FJI_DONE;
}

int fj_future_failed(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = fji_future_word(f);
    return (s & FJI_DONE) != 0 && (s & (FJI_FAILED | FJI_CANCELLED)) != 0;
}

int fj_future_is_cancelled(const fj_future *f)
{
    if (f == NULL) return 0;
    uint32_t s = fji_future_word(f);
    return (s & FJI_DONE) != 0 && (s & FJI_CANCELLED) != 0;
}

enum fj_future_state fj_future_state(const fj_future *f)
{
    if (f == NULL) return FJ_FUTURE_RUNNING;
    uint32_t s = fji_future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_FUTURE_RUNNING;
    if ((s & FJI_CANCELLED) != 0) return FJ_FUTURE_CANCELLED;
    return (s & FJI_FAILED) != 0 ? FJ_FUTURE_FAILED : FJ_FUTURE_SUCCESS;
}

int fji_future_code(const fj_future *f)
{
    uint32_t s = fji_future_word(f);

    if ((s & FJI_CANCELLED) != 0) return FJ_ECANCELED;
    if ((s & FJI_FAILED) == 0) return FJ_OK;
    return (s & FJI_EXTERNAL) != 0 ? f->external_code : f->task.code;
}

int fj_future_result(const fj_future *f, void **result)
{
    if (f == NULL) return FJ_EINVAL;
    uint32_t s = fji_future_word(f);
    if ((s & FJI_DONE) == 0) return FJ_EBUSY;
    int code = fji_future_code(f);
    if (code == FJ_OK && result != NULL)
        *result = (s & FJI_EXTERNAL) != 0 ? f->external : f->result;
    return code;
}

int fj_future_error(const fj_future *f)
{
    if (f == NULL) return FJ_EINVAL;
    return fj_future_is_done(f) ? fji_future_code(f) : FJ_OK;
}

void fj_future_set_release_fn(fj_future *f, void (*released)(fj_future *f))
{
    if (f == NULL) return;
    f->released = released;
    f->flags = released != NULL ? f->flags | FJI_FUTURE_RELEASES : f->flags & ~FJI_FUTURE_RELEASES;
}

bool fji_future_is_in_use(const fj_future *f)
{
    /* relaxed: `cell` is only compared with NULL. */
    return fji_load_relaxed(&f->task.cell) != NULL && (fji_future_word(f) & FJI_RELEASED) == 0;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

int16_t fj_future_tag(const fj_future *f)
{
    if (f == NULL) return 0;
    /* [future.tag] acquire <- acq_rel in fj_future_set_tag() and fj_future_cas_tag(): what the
     * program did before it set the tag. */
    return (int16_t)(uint16_t)fji_load_acquire(&f->tag);
}

int16_t fj_future_set_tag(fj_future *f, int16_t tag)
{
    if (f == NULL) return 0;
    /* [future.tag] acq_rel -> acquire in fj_future_tag(): what the program did before this call. */
    return (int16_t)(uint16_t)fji_swap_acq_rel(&f->tag, (uint32_t)(uint16_t)tag);
}

int fj_future_cas_tag(fj_future *f, int16_t expected, int16_t tag)
{
    uint32_t old = (uint16_t)expected;

    if (f == NULL) return 0;
    /* [future.tag] acq_rel -> acquire in fj_future_tag(): what the program did before this call. */
    return fji_cas_acq_rel_32(&f->tag, &old, (uint16_t)tag);
}
