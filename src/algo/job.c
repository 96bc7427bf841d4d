/* SPDX-License-Identifier: MIT */
/*
 * job.c - the start, the end and the cancellation of a call of an algorithm
 */
#include "job.h"

int fji_job_init(fji_job *j, const fj_algo_options *how, uint64_t amount)
{
    static const fj_algo_options defaults;

    if (how == NULL) how = &defaults;
    for (size_t i = 0; i < sizeof how->reserved / sizeof how->reserved[0]; i++)
        if (how->reserved[i] != 0) return FJ_EINVAL;
    if (how->max_grain != 0 && how->min_grain > how->max_grain) return FJ_EINVAL;

    j->progress = how->progress;
    j->grain = how->grain;
    j->min_grain = how->min_grain != 0 ? how->min_grain : 1;
    j->max_grain = how->max_grain != 0 ? how->max_grain : SIZE_MAX;
    j->code = FJ_OK;
    j->caller = NULL;
    if (j->progress != NULL && j->progress->adds)
        (void)fji_add_relaxed(&j->progress->total, amount); /* relaxed: the total is only
                                                             * displayed */
    return FJ_OK;
}

/* Runs `root` in `pool`, which is NULL for the default of the options: the pool of the calling
 * thread or, outside a pool, the common pool. If the calling thread is already in that pool and
 * `token` is NULL, this is an ordinary function call, and the tasks of the call run under the token
 * of the calling task. Otherwise they run under `token`, or under no token if that is NULL, and
 * they test the token of the calling task through j->caller. Returns the code of `root`. Returns
 * FJ_ECANCELED, and does not run `root`, if the calling task or `token` is already cancelled. Other
 * errors of fj_invoke(), for example because the pool is shut down, are returned too. */
static int job_enter(fji_job *j, fj_pool *pool, fj_token *token, fj_task *root)
{
    fj_pool *here = fj_current_pool();

    if (fj_is_cancelled()) return FJ_ECANCELED;
    if (here != NULL && (pool == NULL || pool == here)) {
        if (token == NULL) return root->fn(root);
        pool = here;
    }
    j->caller = fj_current_token();
    return token != NULL ? fj_invoke_token(pool, root, token) : fj_invoke(pool, root);
}

int fji_job_run(fji_job *j, const fj_algo_options *how, fj_task *root)
{
    int code = how != NULL ? job_enter(j, how->pool, how->token, root)
                           : job_enter(j, NULL, NULL, root);

    return j->code != FJ_OK ? j->code : code; /* a plain read: all tasks are joined */
}

bool fji_job_fail(fji_job *j, int code)
{
    int none = FJ_OK;
    return fji_cas_relaxed(&j->code, &none, code); /* relaxed: the code carries no other data */
}

bool fji_job_should_continue(fji_job *j)
{
    /* relaxed: the code carries no other data. */
    if (FJI_UNLIKELY(fji_load_relaxed(&j->code) != FJ_OK)) return false;
    bool by_caller = FJI_UNLIKELY(j->caller != NULL) && fj_token_is_cancelled(j->caller);
    if (FJI_LIKELY(!by_caller && !fj_is_cancelled())) return true;
    (void)fji_job_fail(j, FJ_ECANCELED);
    return false;
}
