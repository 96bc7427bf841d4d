/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/typed.h - the typed tier: fork and join at the speed of a call
 *
 *     FJ_TASK(long, fib, long, n)
 *     {
 *         if (n < 2) return n;
 *         fib_task a;
 *         fib_fork(FJ, &a, n - 1);
 *         long y = fib_call(FJ, n - 2);
 *         return fib_join(FJ, &a) + y;
 *     }
 *
 *     long r;
 *     int err = fib_invoke(NULL, &r, 40);     (NULL: the common pool)
 *
 * FJ_TASK(R, NAME, T1, a1, ...) with one to six arguments makes of the function
 * below it
 *
 *     NAME_task               a handle: a local variable, one for each fork
 *     NAME_fork(FJ, &h, ...)  offers the call to the other workers
 *     NAME_join(FJ, &h)       its result: a direct call when nobody took it
 *     NAME_call(FJ, ...)      an ordinary call, which may be inlined
 *     NAME_invoke(pool, &r, ...)  from anywhere: runs it in the pool, 0 or an
 *                             error of the library; r is written on success only
 *
 * FJ_VOID_TASK(NAME, ...) does the same for a function without result (no `&r`).
 * FJ_TASK_DECLARE and FJ_TASK_BODY are its two halves, for mutual recursion.
 *
 * FJ stands for the worker and its position, which the generated functions hand
 * on in registers. Rules: every fork is joined in the same function, in any
 * order; FJ is not kept beyond the call; arguments and result together fit into
 * 48 bytes (pass a pointer for more), and are copied, so no `const` members.
 * A task cannot fail other than by its result; a stop of the pool does not keep
 * a forked one from being run.
 */
#ifndef FORKJOIN_TYPED_H
#define FORKJOIN_TYPED_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

/* The first argument of every generated function inside a typed body. */
#define FJ fj_w, &fj_p

/* Number of (type, name) pairs in the argument list: 1 to 6. */
#define FJI_PAIRS(...) FJI_PAIRS_(__VA_ARGS__, 6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0)
#define FJI_PAIRS_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define FJI_CAT(a, b) FJI_CAT_(a, b)
#define FJI_CAT_(a, b) a##b
#define FJI_EACH(kind, ...) FJI_CAT(kind, FJI_PAIRS(__VA_ARGS__))(__VA_ARGS__)

/* clang-format off */

/* , T a ...: parameters after the first ones */
#define FJI_PARAMS_1(T1, a) , T1 a
#define FJI_PARAMS_2(T1, a, T2, b) , T1 a, T2 b
#define FJI_PARAMS_3(T1, a, T2, b, T3, c) , T1 a, T2 b, T3 c
#define FJI_PARAMS_4(T1, a, T2, b, T3, c, T4, d) , T1 a, T2 b, T3 c, T4 d
#define FJI_PARAMS_5(T1, a, T2, b, T3, c, T4, d, T5, e) , T1 a, T2 b, T3 c, T4 d, T5 e
#define FJI_PARAMS_6(T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , T1 a, T2 b, T3 c, T4 d, T5 e, T6 f

/* T a; ...: members of the frame */
#define FJI_FIELDS_1(T1, a) T1 a;
#define FJI_FIELDS_2(T1, a, T2, b) T1 a; T2 b;
#define FJI_FIELDS_3(T1, a, T2, b, T3, c) T1 a; T2 b; T3 c;
#define FJI_FIELDS_4(T1, a, T2, b, T3, c, T4, d) T1 a; T2 b; T3 c; T4 d;
#define FJI_FIELDS_5(T1, a, T2, b, T3, c, T4, d, T5, e) T1 a; T2 b; T3 c; T4 d; T5 e;
#define FJI_FIELDS_6(T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) T1 a; T2 b; T3 c; T4 d; T5 e; T6 f;

/* fj_f->a = a; ...: into the frame, one by one: gcc would pack neighbours into a vector
 * first, which takes longer than the two stores. */
#define FJI_PUT(a) fj_f->a = a; FJ_IN_ORDER();
#define FJI_STORE_1(T1, a) FJI_PUT(a)
#define FJI_STORE_2(T1, a, T2, b) FJI_PUT(a) FJI_PUT(b)
#define FJI_STORE_3(T1, a, T2, b, T3, c) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c)
#define FJI_STORE_4(T1, a, T2, b, T3, c, T4, d) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d)
#define FJI_STORE_5(T1, a, T2, b, T3, c, T4, d, T5, e) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d) FJI_PUT(e)
#define FJI_STORE_6(T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d) FJI_PUT(e) FJI_PUT(f)

/* , fj_f->a ...: out of the frame */
#define FJI_LOAD_1(T1, a) , fj_f->a
#define FJI_LOAD_2(T1, a, T2, b) , fj_f->a, fj_f->b
#define FJI_LOAD_3(T1, a, T2, b, T3, c) , fj_f->a, fj_f->b, fj_f->c
#define FJI_LOAD_4(T1, a, T2, b, T3, c, T4, d) , fj_f->a, fj_f->b, fj_f->c, fj_f->d
#define FJI_LOAD_5(T1, a, T2, b, T3, c, T4, d, T5, e) , fj_f->a, fj_f->b, fj_f->c, fj_f->d, fj_f->e
#define FJI_LOAD_6(T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , fj_f->a, fj_f->b, fj_f->c, fj_f->d, fj_f->e, fj_f->f

/* , a ...: handed on */
#define FJI_PASS_1(T1, a) , a
#define FJI_PASS_2(T1, a, T2, b) , a, b
#define FJI_PASS_3(T1, a, T2, b, T3, c) , a, b, c
#define FJI_PASS_4(T1, a, T2, b, T3, c, T4, d) , a, b, c, d
#define FJI_PASS_5(T1, a, T2, b, T3, c, T4, d, T5, e) , a, b, c, d, e
#define FJI_PASS_6(T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , a, b, c, d, e, f

/* What a cell says of a typed task: its type, tagged by an addition the linker does. Made
 * anew each time, rather than kept in a saved register. */
#define FJI_TYPED_WHAT(type) ((uintptr_t)FJ_ADDRESS_AGAIN((const char *)&(type) + FJI_TAG_TYPED))

/*
 * The two shapes differ only in what is done with a result: FJI_R_* for a value,
 * FJI_V_* for void.
 */
#define FJI_R_FIELD(R) R fj_r;
#define FJI_R_SET(to, call) to = call
#define FJI_R_LET(R, to, call) R to = call
#define FJI_R_RETURN(call) return call
#define FJI_R_GET(from) return from
#define FJI_R_OUT(R) , R *fj_out
#define FJI_R_COPY *fj_out = fj_root.fj_f.fj_r;
#define FJI_V_FIELD(R)
#define FJI_V_SET(to, call) call
#define FJI_V_LET(R, to, call) call
#define FJI_V_RETURN(call) \
    do {                   \
        call;              \
        return;            \
    } while (0)
#define FJI_V_GET(from) return
#define FJI_V_OUT(R)
#define FJI_V_COPY

#define FJ_TASK(R, NAME, ...)             \
    FJ_TASK_DECLARE(R, NAME, __VA_ARGS__); \
    FJ_TASK_BODY(R, NAME, __VA_ARGS__)

#define FJ_VOID_TASK(NAME, ...)                \
    FJ_VOID_TASK_DECLARE(NAME, __VA_ARGS__); \
    FJ_VOID_TASK_BODY(NAME, __VA_ARGS__)

#define FJ_TASK_BODY(R, NAME, ...)                                               \
    static R NAME##_fji_body(fj_worker *fj_w __attribute__((unused)),            \
                             fj_cell *fj_p __attribute__((unused)) FJI_EACH(FJI_PARAMS_, __VA_ARGS__))

#define FJ_VOID_TASK_BODY(NAME, ...) FJ_TASK_BODY(void, NAME, __VA_ARGS__)

#define FJ_TASK_DECLARE(R, NAME, ...) FJI_DECLARE(R, NAME, FJI_R, __VA_ARGS__)
#define FJ_VOID_TASK_DECLARE(NAME, ...) FJI_DECLARE(void, NAME, FJI_V, __VA_ARGS__)

#define FJI_DECLARE(R, NAME, SHAPE, ...)                                                          \
    static R NAME##_fji_body(fj_worker *fj_w, fj_cell *fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__));    \
                                                                                                  \
    struct NAME##_fji_frame {                                                                         \
        FJI_EACH(FJI_FIELDS_, __VA_ARGS__)                                                      \
        SHAPE##_FIELD(R)                                                                          \
    };                                                                                            \
    FJ_STATIC_ASSERT(sizeof(struct NAME##_fji_frame) <= sizeof(((fj_cell *)0)->args),                 \
                     "arguments and result of a typed task take more than 48 bytes: "             \
                     "pass a pointer");                                                           \
                                                                                                  \
typedef struct NAME##_task {                                                                   \
        fj_cell *fj_cell_; /* where it was forked */                                               \
    } NAME##_task;                                                                                 \
                                                                                                   \
    __attribute__((unused)) static void NAME##_fji_run(fj_worker *fj_w, void *fj_args)             \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)fj_args;                        \
        fji_typed_saved fj_saved;                                                                  \
        fj_cell *fj_p = fji_typed_enter(fj_w, &fj_saved);                                          \
        SHAPE##_SET(fj_f->fj_r, NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_LOAD_, __VA_ARGS__)));     \
        fji_typed_leave(fj_w, &fj_saved);                                                           \
    }                                                                                              \
                                                                                                   \
    static const fj_type NAME##_fji_type __attribute__((unused)) = {NAME##_fji_run, #NAME};        \
                                                                                                   \
    FJ_INLINE void NAME##_fji_offer(fj_worker *fj_w,                                               \
                                    fj_cell *fj_c FJI_EACH(FJI_PARAMS_, __VA_ARGS__))              \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        FJI_EACH(FJI_STORE_, __VA_ARGS__)                                                          \
        /* [queue.publish], [idle.dekker]: as in fj_fork(). */                                     \
        __atomic_store_n(&fj_c->what, FJI_TYPED_WHAT(NAME##_fji_type), __ATOMIC_RELEASE);          \
        FJ_LIGHT_FENCE();                                                                          \
        /* relaxed: as in fj_fork(). */                                                            \
        if (FJ_UNLIKELY(FJ_RELAXED_NEGATIVE(fj_w->ctl))) fji_signal_slow(fj_w);                 \
    }                                                                                              \
                                                                                                   \
    /* A fork that finds no free cell: looks for room, else runs the task at once and leaves       \
     * its result in a cell of its own. */                                                         \
    __attribute__((unused)) static FJ_COLD fj_cell *NAME##_fji_fork_slow(                          \
        fj_worker *fj_w, fj_cell *fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))                         \
    {                                                                                              \
        fj_cell *fj_c = fji_typed_room(fj_w, fj_p);                                                \
        if (fj_c != 0) {                                                                           \
            NAME##_fji_offer(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));                         \
            return fj_c;                                                                           \
        }                                                                                          \
        fj_c = fji_typed_spill(fj_w);                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        (void)fj_f;                                                                                \
        SHAPE##_SET(fj_f->fj_r, NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_PASS_, __VA_ARGS__)));     \
        return fj_c;                                                                               \
    }                                                                                              \
                                                                                                   \
    FJ_INLINE void NAME##_fork(fj_worker *fj_w, fj_cell **fj_p,                                    \
                               NAME##_task *fj_h FJI_EACH(FJI_PARAMS_, __VA_ARGS__))               \
    {                                                                                              \
        fj_cell *fj_c = *fj_p;                                                                     \
        if (FJ_UNLIKELY(fj_c->what != FJI_FREE))                                                   \
            fj_c = NAME##_fji_fork_slow(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));              \
        else                                                                                       \
            NAME##_fji_offer(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));                         \
        fj_h->fj_cell_ = fj_c;                                                                     \
        *fj_p = fj_c + 1;                                                                          \
    }                                                                                              \
                                                                                                   \
    FJ_INLINE R NAME##_call(fj_worker *fj_w, fj_cell **fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))    \
    {                                                                                              \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, *fj_p FJI_EACH(FJI_PASS_, __VA_ARGS__)));             \
    }                                                                                              \
                                                                                                   \
/* A join off the fast path. Knows nothing of the position of whoever joins, whose address     \
     * would otherwise escape and keep it in memory on the fast path. */                           \
    __attribute__((unused)) static FJ_COLD R NAME##_fji_join_slow(fj_worker *fj_w, fj_cell *fj_c,  \
                                                                  int fj_popped)                   \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        uintptr_t fj_what = FJI_TYPED_WHAT(NAME##_fji_type);                                       \
        fj_cell *fj_p = fji_typed_join(fj_w, fj_c, fj_what, fj_popped);                            \
        if (fj_p == 0) {                                                                           \
            struct NAME##_fji_frame fj_copy = *fj_f;                                               \
            (void)fj_copy;                                                                         \
            fji_typed_release(fj_w, fj_c);                                                         \
            SHAPE##_GET(fj_copy.fj_r);                                                             \
        }                                                                                          \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_LOAD_, __VA_ARGS__)));              \
    }                                                                                              \
                                                                                                   \
    FJ_INLINE_LATE R NAME##_fji_join(fj_worker *fj_w, fj_cell *fj_c)                               \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        int fj_got = fji_pop(fj_w, fj_c);                                                          \
        if (FJ_UNLIKELY(fj_got <= 0))                                                              \
            SHAPE##_RETURN(NAME##_fji_join_slow(fj_w, fj_c, fj_got < 0));                          \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, fj_c FJI_EACH(FJI_LOAD_, __VA_ARGS__)));              \
    }                                                                                              \
                                                                                                   \
    /* Afterwards the position is the cell's: at the boundary, or below it where tasks were        \
     * joined out of order; the next fork then looks for it. */                                    \
    FJ_INLINE R NAME##_join(fj_worker *fj_w, fj_cell **fj_p, NAME##_task *fj_h)                    \
    {                                                                                              \
        *fj_p = fj_h->fj_cell_;                                                                    \
        SHAPE##_RETURN(NAME##_fji_join(fj_w, fj_h->fj_cell_));                                     \
    }                                                                                              \
                                                                                                   \
    struct NAME##_fji_root {                                                                          \
        fj_task fj_t;                                                                             \
        struct NAME##_fji_frame fj_f;                                                                 \
    };                                                                                            \
                                                                                                  \
    __attribute__((unused)) static int NAME##_fji_root_run(fj_task *fj_t)                             \
    {                                                                                             \
        NAME##_fji_run(fji_self, &((struct NAME##_fji_root *)(void *)fj_t)->fj_f);                        \
        return FJ_OK;                                                                             \
    }                                                                                             \
                                                                                                  \
    __attribute__((unused)) static FJ_NODISCARD int NAME##_invoke(                                \
        fj_pool *fj_on SHAPE##_OUT(R) FJI_EACH(FJI_PARAMS_, __VA_ARGS__))                       \
    {                                                                                             \
        struct NAME##_fji_root fj_root;                                                               \
        struct NAME##_fji_frame *fj_f = &fj_root.fj_f;                                                \
        FJI_EACH(FJI_STORE_, __VA_ARGS__)                                                       \
        fj_task_init(&fj_root.fj_t, NAME##_fji_root_run);                                             \
        int fj_err = fj_invoke(fj_on, &fj_root.fj_t);                                             \
        if (fj_err != FJ_OK) return fj_err;                                                       \
        SHAPE##_COPY return FJ_OK;                                                                \
    }                                                                                             \
    struct NAME##_fji_root

/* clang-format on */

#endif /* FORKJOIN_TYPED_H */
