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
 *     int err = fib_invoke(NULL, &r, 40); // NULL: the common pool
 *
 * `FJ` is a macro for the first two arguments of fib_fork(), fib_call() and fib_join(). FJ passes
 * the calling worker, and the position of the next free cell in the queue of that worker. The
 * generated functions keep both in registers. FJ is available only inside the body of a typed task.
 *
 * FJ_TASK(R, NAME, T1, a1, ...) replaces the head of a function. FJ_TASK defines a typed task NAME
 * with the result type R and at most six arguments, each given as a type and a name. FJ_TASK
 * generates:
 *
 *   NAME_task                   the type of a handle. Each fork needs a handle of its own, which is
 *                               a local variable.
 *   NAME_fork(FJ, &h, ...)      makes a call of the task with the arguments `...` available to the
 *                               other workers.
 *   NAME_join(FJ, &h)           returns the result of the call that was forked with the handle h.
 *                               If no other worker stole the call, NAME_join() calls the body
 *                               directly.
 *   NAME_unfork(FJ, &h)         takes the call back without running it. Returns 1; the handle is then
 *                               free, and the call is not joined. Returns 0 if another worker has
 *                               stolen the call, or if the call was run at its fork; NAME_join() then
 *                               returns the result.
 *   NAME_state(FJ, &h)          returns how far the call is: a value of enum fj_forked. It costs a few
 *                               nanoseconds and changes nothing.
 *   NAME_spawn(FJ, ...)         as NAME_fork(), without a handle.
 *   NAME_sync(FJ)               as NAME_join(), for the youngest spawned call that is not joined
 *                               yet.
 *   NAME_call(FJ, ...)          calls the body directly. The compiler may inline it.
 *   NAME_invoke(pool, &r, ...)  runs the task in `pool` (NULL: the common pool) and writes its
 *                               result to r. Any thread may call NAME_invoke(). It returns FJ_OK,
 *                               FJ_EINVAL if the pointer to r is NULL, or an error of fj_invoke().
 *                               On an error r is unchanged.
 *
 * FJ_VOID_TASK(NAME, T1, a1, ...) defines a task without a result. Its NAME_invoke() has no &r.
 * FJ_TASK_DECLARE(R, NAME, ...) and FJ_TASK_BODY(R, NAME, ...) are the two halves of FJ_TASK. With
 * these two macros, several tasks can call each other: declare all of them first, then write the
 * bodies. FJ_VOID_TASK_DECLARE and FJ_VOID_TASK_BODY are the same for tasks without a result.
 *
 * A task of several files. FJ_TASK_EXTERN(R, NAME, ...) in a header declares a task that other files
 * fork, join and invoke, and FJ_TASK_DEFINE(R, NAME, ...) in one file that includes the header
 * replaces the head of the function. FJ_VOID_TASK_EXTERN and FJ_VOID_TASK_DEFINE are the same for tasks
 * without a result:
 *
 *      FJ_TASK_EXTERN(long, fib, long, n);          // fib.h
 *
 *      FJ_TASK_DEFINE(long, fib, long, n) { ... }   // fib.c, which includes fib.h
 *
 * Only the body is a global symbol, NAME_fji_body. An attribute before FJ_TASK_EXTERN applies to it, so
 * a shared library that is compiled with -fvisibility=hidden exports a task as it exports a function:
 * `MYLIB_API FJ_TASK_EXTERN(...);`. If the file with the body is C, a C++ program puts FJ_TASK_EXTERN
 * into extern "C" { }. In the file with the body the compiler can inline the body, as with FJ_TASK. In
 * other files a join of a call that was not stolen calls the body.
 *
 * Rules
 *   - Every fork is joined exactly once, or taken back by NAME_unfork(), in the function that forked.
 *     The joins may come in any order.
 *   - Every spawn is joined by one NAME_sync() of the same NAME, in the function that spawned. A
 *     function that spawns joins all its spawned and forked calls in the reverse order.
 *   - FJ must not be stored or used after the body has returned.
 *   - The arguments and the result together take at most 48 bytes. Pass a pointer if they need
 *     more. The result does not use the bytes of the arguments, because the arguments may be needed
 *     after a thief has run the body: in the child process after a fork(), the joiner of a call whose
 *     thief exists only in the parent process runs the body again.
 *   - The arguments and the result are copied by assignment, so their types must not be const and
 *     must not have const members. A pointer to const is allowed.
 *   - A typed task has no error code; it reports a failure by its result. Stopping the pool does
 *     not cancel a forked typed task: the join of the task runs it.
 */
#ifndef FORKJOIN_TYPED_H
#define FORKJOIN_TYPED_H

#ifndef FORKJOIN_H
#error "include <forkjoin.h>"
#endif

/* What NAME_state() returns: how far a forked call is. */
enum fj_forked {
    FJ_FORKED_QUEUED =
        0, /* no other worker has taken the call; the join runs it. Another worker may
                           * take the call at any moment */
    FJ_FORKED_STOLEN = 1, /* another worker has taken the call and has not finished it */
    FJ_FORKED_DONE = 2    /* the call was run; the join returns at once */
};

/* The first two arguments of NAME_fork(), NAME_join() and NAME_call(): the worker, and the address
 * of the position of the next free cell. Worker and position are parameters of every typed body. */
#define FJ fj_w, &fj_p

#define FJI_CAT(a, b) FJI_CAT_(a, b)
#define FJI_CAT_(a, b) a##b
#define FJI_FIRST(a, ...) a
#define FJI_SECOND(a, b, ...) b

/* clang-format off */

/*
 * The macros take R, NAME and the arguments of the task as one list. The list is never empty,
 * because C11 requires at least one argument for every `...`. FJI_FORM(list) expands to the number
 * of pairs after R and NAME, 0 to 6. It expands to `odd` if a type or a name is missing, and to
 * `many` if there are more than six pairs.
 */
#define FJI_FORM(...) FJI_FORM_(__VA_ARGS__,                                                      \
    many, many, many, many, many, many, many, many, many, many, many, many, many, many, many,     \
    many, many, many, many, many, many, many, many, many, many, many,                             \
    6, odd, 5, odd, 4, odd, 3, odd, 2, odd, 1, odd, 0, odd, x)
#define FJI_FORM_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,   \
    a1, b1, c1, d1, e1, f1, g1, h1, i1, j1, k1, l1, m1, n1, form, ...) form
#define FJI_EACH(kind, ...) FJI_CAT(kind, FJI_FORM(__VA_ARGS__))(__VA_ARGS__)

/* FJI_IF(FJI_X_, list) expands to FJI_X_good, FJI_X_odd or FJI_X_many, according to FJI_FORM. */
#define FJI_IS_0 good
#define FJI_IS_1 good
#define FJI_IS_2 good
#define FJI_IS_3 good
#define FJI_IS_4 good
#define FJI_IS_5 good
#define FJI_IS_6 good
#define FJI_IS_odd odd
#define FJI_IS_many many
#define FJI_IF(kind, ...) FJI_CAT(kind, FJI_CAT(FJI_IS_, FJI_FORM(__VA_ARGS__)))

#define FJI_ODD "FJ_TASK: every argument is a type and a name, separated by a comma"
#define FJI_MANY "FJ_TASK takes at most six arguments: pass a pointer to a struct for more"
/* Replaces the definition of a task whose list is invalid. FJI_REFUSED ends with the head of a
 * function, so that the user's body after it still compiles. */
#define FJI_REFUSED(text) \
    FJI_STATIC_ASSERT(0, text); \
    __attribute__((unused)) static int FJI_CAT(fji_refused_, __LINE__)(void)

/* Expands to `, T a ...`: the task's arguments as further parameters of a function. */
#define FJI_PARAMS_0(R, N)
#define FJI_PARAMS_1(R, N, T1, a) , T1 a
#define FJI_PARAMS_2(R, N, T1, a, T2, b) , T1 a, T2 b
#define FJI_PARAMS_3(R, N, T1, a, T2, b, T3, c) , T1 a, T2 b, T3 c
#define FJI_PARAMS_4(R, N, T1, a, T2, b, T3, c, T4, d) , T1 a, T2 b, T3 c, T4 d
#define FJI_PARAMS_5(R, N, T1, a, T2, b, T3, c, T4, d, T5, e) , T1 a, T2 b, T3 c, T4 d, T5 e
#define FJI_PARAMS_6(R, N, T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , T1 a, T2 b, T3 c, T4 d, T5 e, T6 f

/* Expands to `T a; ...`: the members of the frame, which holds the arguments and the result. A task
 * without arguments and without a result gets a dummy member, because a struct needs at least one
 * member. */
#define FJI_FIELDS_0(R, N)
#define FJI_FIELDS_1(R, N, T1, a) T1 a;
#define FJI_FIELDS_2(R, N, T1, a, T2, b) T1 a; T2 b;
#define FJI_FIELDS_3(R, N, T1, a, T2, b, T3, c) T1 a; T2 b; T3 c;
#define FJI_FIELDS_4(R, N, T1, a, T2, b, T3, c, T4, d) T1 a; T2 b; T3 c; T4 d;
#define FJI_FIELDS_5(R, N, T1, a, T2, b, T3, c, T4, d, T5, e) T1 a; T2 b; T3 c; T4 d; T5 e;
#define FJI_FIELDS_6(R, N, T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) T1 a; T2 b; T3 c; T4 d; T5 e; T6 f;

#define FJI_VOID_FIELDS_0(R, N) char fj_none;
#define FJI_VOID_FIELDS_1 FJI_FIELDS_1
#define FJI_VOID_FIELDS_2 FJI_FIELDS_2
#define FJI_VOID_FIELDS_3 FJI_FIELDS_3
#define FJI_VOID_FIELDS_4 FJI_FIELDS_4
#define FJI_VOID_FIELDS_5 FJI_FIELDS_5
#define FJI_VOID_FIELDS_6 FJI_FIELDS_6

/* Expands to `fj_f->a = a; ...`: stores the arguments into the frame, one by one. Without
 * FJI_IN_ORDER() gcc would first combine adjacent arguments in a vector register, which is slower
 * than two stores. */
#define FJI_PUT(a) fj_f->a = a; FJI_IN_ORDER();
#define FJI_STORE_0(R, N) (void)fj_f;
#define FJI_STORE_1(R, N, T1, a) FJI_PUT(a)
#define FJI_STORE_2(R, N, T1, a, T2, b) FJI_PUT(a) FJI_PUT(b)
#define FJI_STORE_3(R, N, T1, a, T2, b, T3, c) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c)
#define FJI_STORE_4(R, N, T1, a, T2, b, T3, c, T4, d) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d)
#define FJI_STORE_5(R, N, T1, a, T2, b, T3, c, T4, d, T5, e) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d) FJI_PUT(e)
#define FJI_STORE_6(R, N, T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) FJI_PUT(a) FJI_PUT(b) FJI_PUT(c) FJI_PUT(d) FJI_PUT(e) FJI_PUT(f)

/* Expands to `, fj_f->a ...`: passes the arguments from the frame. */
#define FJI_LOAD_0(R, N)
#define FJI_LOAD_1(R, N, T1, a) , fj_f->a
#define FJI_LOAD_2(R, N, T1, a, T2, b) , fj_f->a, fj_f->b
#define FJI_LOAD_3(R, N, T1, a, T2, b, T3, c) , fj_f->a, fj_f->b, fj_f->c
#define FJI_LOAD_4(R, N, T1, a, T2, b, T3, c, T4, d) , fj_f->a, fj_f->b, fj_f->c, fj_f->d
#define FJI_LOAD_5(R, N, T1, a, T2, b, T3, c, T4, d, T5, e) , fj_f->a, fj_f->b, fj_f->c, fj_f->d, fj_f->e
#define FJI_LOAD_6(R, N, T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , fj_f->a, fj_f->b, fj_f->c, fj_f->d, fj_f->e, fj_f->f

/* Expands to `, a ...`: passes the parameters of the enclosing function. */
#define FJI_PASS_0(R, N)
#define FJI_PASS_1(R, N, T1, a) , a
#define FJI_PASS_2(R, N, T1, a, T2, b) , a, b
#define FJI_PASS_3(R, N, T1, a, T2, b, T3, c) , a, b, c
#define FJI_PASS_4(R, N, T1, a, T2, b, T3, c, T4, d) , a, b, c, d
#define FJI_PASS_5(R, N, T1, a, T2, b, T3, c, T4, d, T5, e) , a, b, c, d, e
#define FJI_PASS_6(R, N, T1, a, T2, b, T3, c, T4, d, T5, e, T6, f) , a, b, c, d, e, f

/* The word `item` of a cell with a typed task: the address of its fj_type plus FJI_TAG_TYPED. The
 * linker adds the tag. The address is computed at each use, so that the compiler does not keep it
 * in a callee-saved register. */
#define FJI_TYPED_ITEM(type) ((uintptr_t)FJI_ADDRESS_AGAIN((const char *)&(type) + FJI_TAG_TYPED))

/*
 * Tasks with a result use the macros FJI_R_*. Tasks without a result use the macros FJI_V_*. The
 * two sets differ only in how they handle the result.
 */
#define FJI_R_FIELDS(R, ...) FJI_EACH(FJI_FIELDS_, __VA_ARGS__) R fj_r;
#define FJI_R_SET(to, call) to = call
#define FJI_R_LET(R, to, call) R to = call
#define FJI_R_RETURN(call) return call
#define FJI_R_GET(from) return from
#define FJI_R_OUT(R) , R *fj_out
#define FJI_R_NEEDS if (fj_out == 0) return FJ_EINVAL;
#define FJI_R_COPY *fj_out = fj_root.fj_f.fj_r;
#define FJI_V_FIELDS(R, ...) FJI_EACH(FJI_VOID_FIELDS_, __VA_ARGS__)
#define FJI_V_SET(to, call) call
#define FJI_V_LET(R, to, call) call
#define FJI_V_RETURN(call) \
    do {                   \
        call;              \
        return;            \
    } while (0)
#define FJI_V_GET(from) return
#define FJI_V_OUT(R)
#define FJI_V_NEEDS
#define FJI_V_COPY

#define FJ_TASK(...) FJI_IF(FJI_TASK_, __VA_ARGS__)(FJI_R, __VA_ARGS__)
#define FJ_VOID_TASK(...) FJI_IF(FJI_TASK_, void, __VA_ARGS__)(FJI_V, void, __VA_ARGS__)
#define FJI_TASK_good(SHAPE, ...) \
    FJI_DECLARE_good(static, SHAPE, __VA_ARGS__); \
    FJI_BODY_good(__VA_ARGS__)
#define FJI_TASK_odd(...) FJI_REFUSED(FJI_ODD)
#define FJI_TASK_many(...) FJI_REFUSED(FJI_MANY)

#define FJ_TASK_BODY(...) FJI_IF(FJI_BODY_, __VA_ARGS__)(__VA_ARGS__)
#define FJ_VOID_TASK_BODY(...) FJI_IF(FJI_BODY_, void, __VA_ARGS__)(void, __VA_ARGS__)
#define FJI_BODY_good(...) \
    FJI_BODY(FJI_FIRST(__VA_ARGS__, x), FJI_SECOND(__VA_ARGS__, x), __VA_ARGS__)
#define FJI_BODY_odd(...) FJI_REFUSED(FJI_ODD)
#define FJI_BODY_many(...) FJI_REFUSED(FJI_MANY)
#define FJI_BODY(...) FJI_BODY_(__VA_ARGS__)
#define FJI_BODY_(R, NAME, ...)                                                                   \
    static R NAME##_fji_body(fj_worker *fj_w __attribute__((unused)),                             \
                             fj_cell *fj_p __attribute__((unused)) FJI_EACH(FJI_PARAMS_, __VA_ARGS__))

#define FJ_TASK_EXTERN(...) FJI_IF(FJI_EXTERN_, __VA_ARGS__)(FJI_R, __VA_ARGS__)
#define FJ_VOID_TASK_EXTERN(...) FJI_IF(FJI_EXTERN_, void, __VA_ARGS__)(FJI_V, void, __VA_ARGS__)
#define FJI_EXTERN_good(SHAPE, ...) \
    FJI_DECLARE_good(extern, SHAPE, __VA_ARGS__); \
    typedef char FJI_CAT(FJI_SECOND(__VA_ARGS__, x), _has_no_FJ_TASK_EXTERN)
#define FJI_EXTERN_odd(...) FJI_REFUSED(FJI_ODD)
#define FJI_EXTERN_many(...) FJI_REFUSED(FJI_MANY)

/* The type and the pointer before the body are refused by the compiler if FJ_TASK_EXTERN is missing
 * or has other types. In C++ other types would otherwise declare a second function. */
#define FJ_TASK_DEFINE(...) FJI_IF(FJI_DEFINE_, __VA_ARGS__)(__VA_ARGS__)
#define FJ_VOID_TASK_DEFINE(...) FJI_IF(FJI_DEFINE_, void, __VA_ARGS__)(void, __VA_ARGS__)
#define FJI_DEFINE_good(...) \
    FJI_DEFINE(FJI_FIRST(__VA_ARGS__, x), FJI_SECOND(__VA_ARGS__, x), __VA_ARGS__)
#define FJI_DEFINE_odd(...) FJI_REFUSED(FJI_ODD)
#define FJI_DEFINE_many(...) FJI_REFUSED(FJI_MANY)
#define FJI_DEFINE(...) FJI_DEFINE_(__VA_ARGS__)
#define FJI_DEFINE_(R, NAME, ...)                                                                 \
    FJI_STATIC_ASSERT(sizeof(NAME##_has_no_FJ_TASK_EXTERN) == 1, "");                             \
    __attribute__((unused)) static R (*const NAME##_fji_declared)(                                \
        fj_worker *, fj_cell *FJI_EACH(FJI_PARAMS_, __VA_ARGS__)) = NAME##_fji_body;              \
    R NAME##_fji_body(fj_worker *fj_w __attribute__((unused)),                                    \
                      fj_cell *fj_p __attribute__((unused)) FJI_EACH(FJI_PARAMS_, __VA_ARGS__))

#define FJ_TASK_DECLARE(...) FJI_IF(FJI_DECLARE_, __VA_ARGS__)(static, FJI_R, __VA_ARGS__)
#define FJ_VOID_TASK_DECLARE(...) FJI_IF(FJI_DECLARE_, void, __VA_ARGS__)(static, FJI_V, void, __VA_ARGS__)
#define FJI_DECLARE_good(LINK, SHAPE, ...) \
    FJI_DECLARE(LINK, SHAPE, FJI_FIRST(__VA_ARGS__, x), FJI_SECOND(__VA_ARGS__, x), __VA_ARGS__)
#define FJI_DECLARE_odd(...) FJI_REFUSED(FJI_ODD)
#define FJI_DECLARE_many(...) FJI_REFUSED(FJI_MANY)
#define FJI_DECLARE(...) FJI_DECLARE_(__VA_ARGS__)

#define FJI_DECLARE_(LINK, SHAPE, R, NAME, ...)                                                   \
    LINK R NAME##_fji_body(fj_worker *fj_w, fj_cell *fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__));    \
                                                                                                  \
    struct NAME##_fji_frame {                                                                         \
        SHAPE##_FIELDS(R, __VA_ARGS__)                                                            \
    };                                                                                            \
    FJI_STATIC_ASSERT(sizeof(struct NAME##_fji_frame) <= sizeof(((fj_cell *)0)->args),                 \
                     "arguments and result of a typed task take more than 48 bytes: "             \
                     "pass a pointer");                                                           \
                                                                                                  \
typedef struct NAME##_task {                                                                   \
        fj_cell *fj_cell_; /* the cell or overflow cell of the forked call */                      \
    } NAME##_task;                                                                                 \
                                                                                                   \
    __attribute__((unused)) static void NAME##_fji_run(fj_worker *fj_w, void *fj_args)             \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)fj_args;                        \
        fji_typed_saved fj_saved;                                                                  \
        (void)fj_f;                                                                                \
        fj_cell *fj_p = fji_typed_enter(fj_w, &fj_saved);                                          \
        SHAPE##_SET(fj_f->fj_r, NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_LOAD_, __VA_ARGS__)));     \
        fji_typed_leave(fj_w, &fj_saved);                                                           \
    }                                                                                              \
                                                                                                   \
    static const fj_type NAME##_fji_type __attribute__((unused)) = {NAME##_fji_run, #NAME};        \
                                                                                                   \
    FJI_INLINE void NAME##_fji_offer(fj_worker *fj_w,                                               \
                                    fj_cell *fj_c FJI_EACH(FJI_PARAMS_, __VA_ARGS__))              \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        FJI_EACH(FJI_STORE_, __VA_ARGS__)                                                          \
        /* [queue.publish], [idle.dekker]: as in fj_fork(). */                                     \
        __atomic_store_n(&fj_c->item, FJI_TYPED_ITEM(NAME##_fji_type), __ATOMIC_RELEASE);          \
        FJI_LIGHT_FENCE();                                                                          \
        /* relaxed: as in fj_fork(). */                                                            \
        if (FJI_UNLIKELY(FJI_RELAXED_NEGATIVE(fj_w->ctl))) fji_wake_slow(fj_w);                 \
    }                                                                                              \
                                                                                                   \
    /* A fork whose next cell is not free. It uses the free cell at the boundary, and grows the    \
     * queue if necessary. If the queue cannot grow, or if the thread works for no pool, it runs   \
     * the body at once and stores the result in an overflow cell. Returns the cell. */            \
    __attribute__((unused)) static FJI_COLD fj_cell *NAME##_fji_fork_slow(                          \
        fj_worker *fj_w, fj_cell *fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))                         \
    {                                                                                              \
        fj_cell *fj_c = fji_typed_room(fj_w, fj_p);                                                \
        if (fj_c != 0) {                                                                           \
            NAME##_fji_offer(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));                         \
            return fj_c;                                                                           \
        }                                                                                          \
        fj_c = fji_typed_overflow(fj_w);                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        (void)fj_f;                                                                                \
        SHAPE##_SET(fj_f->fj_r, NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_PASS_, __VA_ARGS__)));     \
        return fj_c;                                                                               \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE void NAME##_fork(fj_worker *fj_w, fj_cell **fj_p,                                    \
                               NAME##_task *fj_h FJI_EACH(FJI_PARAMS_, __VA_ARGS__))               \
    {                                                                                              \
        fj_cell *fj_c = *fj_p;                                                                     \
        if (FJI_UNLIKELY(fj_c->item != FJI_FREE))                                                   \
            fj_c = NAME##_fji_fork_slow(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));              \
        else                                                                                       \
            NAME##_fji_offer(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));                         \
        fj_h->fj_cell_ = fj_c;                                                                     \
        *fj_p = fj_c + 1;                                                                          \
    }                                                                                              \
                                                                                                   \
    /* A spawn whose next cell is not free. Returns the position after the spawn. NAME_sync() takes  \
     * the cell below this position. If the call is in another cell, that cell is a link to it. */    \
    __attribute__((unused)) static FJI_COLD fj_cell *NAME##_fji_spawn_slow(                         \
        fj_worker *fj_w, fj_cell *fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))                         \
    {                                                                                              \
        fj_cell *fj_c = NAME##_fji_fork_slow(fj_w, fj_p FJI_EACH(FJI_PASS_, __VA_ARGS__));         \
        return fj_c == fj_p ? fj_p + 1 : fji_typed_link(fj_w, fj_p, fj_c);                         \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE void NAME##_spawn(fj_worker *fj_w,                                                   \
                                fj_cell **fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))                 \
    {                                                                                              \
        fj_cell *fj_c = *fj_p;                                                                     \
        if (FJI_UNLIKELY(fj_c->item != FJI_FREE)) {                                                 \
            *fj_p = NAME##_fji_spawn_slow(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));            \
            return;                                                                                \
        }                                                                                          \
        NAME##_fji_offer(fj_w, fj_c FJI_EACH(FJI_PASS_, __VA_ARGS__));                             \
        *fj_p = fj_c + 1;                                                                          \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE R NAME##_call(fj_worker *fj_w, fj_cell **fj_p FJI_EACH(FJI_PARAMS_, __VA_ARGS__))    \
    {                                                                                              \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, *fj_p FJI_EACH(FJI_PASS_, __VA_ARGS__)));             \
    }                                                                                              \
                                                                                                   \
    /* The slow path of a join. It does not take the address of the joiner's position, because     \
     * the position would then have to be in memory on the fast path too. */                       \
    __attribute__((unused)) static FJI_COLD R NAME##_fji_join_slow(fj_worker *fj_w, fj_cell *fj_c,  \
                                                                  int fj_popped)                   \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        uintptr_t fj_item = FJI_TYPED_ITEM(NAME##_fji_type);                                       \
        fj_cell *fj_p = fji_typed_join(fj_w, fj_c, fj_item, fj_popped);                            \
        if (fj_p == 0) {                                                                           \
            struct NAME##_fji_frame fj_copy = *fj_f;                                               \
            (void)fj_copy;                                                                         \
            fji_typed_release(fj_w, fj_c);                                                         \
            SHAPE##_GET(fj_copy.fj_r);                                                             \
        }                                                                                          \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, fj_p FJI_EACH(FJI_LOAD_, __VA_ARGS__)));              \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE_LATE R NAME##_fji_join(fj_worker *fj_w, fj_cell *fj_c)                               \
    {                                                                                              \
        struct NAME##_fji_frame *fj_f = (struct NAME##_fji_frame *)(void *)fj_c->args;             \
        int fj_got = fji_pop(fj_w, fj_c);                                                          \
        (void)fj_f;                                                                                \
        if (FJI_UNLIKELY(fj_got <= 0))                                                              \
            SHAPE##_RETURN(NAME##_fji_join_slow(fj_w, fj_c, fj_got < 0));                          \
        SHAPE##_RETURN(NAME##_fji_body(fj_w, fj_c FJI_EACH(FJI_LOAD_, __VA_ARGS__)));              \
    }                                                                                              \
                                                                                                   \
    /* After the join the position is the cell of the joined task. If the tasks were joined out of \
     * order, that cell may be below the first free cell; the next fork then searches for it. */   \
    FJI_INLINE R NAME##_join(fj_worker *fj_w, fj_cell **fj_p, NAME##_task *fj_h)                    \
    {                                                                                              \
        *fj_p = fj_h->fj_cell_;                                                                    \
        SHAPE##_RETURN(NAME##_fji_join(fj_w, fj_h->fj_cell_));                                     \
    }                                                                                              \
                                                                                                   \
    /* If the call is taken back, the position is the cell of the call, as after a join. */        \
    FJI_INLINE int NAME##_unfork(fj_worker *fj_w, fj_cell **fj_p, const NAME##_task *fj_h)         \
    {                                                                                              \
        fj_cell *fj_c = fj_h->fj_cell_;                                                            \
        int fj_got = fji_pop(fj_w, fj_c);                                                          \
        if (FJI_UNLIKELY(fj_got <= 0))                                                             \
            fj_got = fji_typed_unfork(fj_w, fj_c, FJI_TYPED_ITEM(NAME##_fji_type), fj_got < 0);    \
        if (fj_got) *fj_p = fj_c;                                                                  \
        return fj_got;                                                                             \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE enum fj_forked NAME##_state(fj_worker *fj_w, fj_cell **fj_p, const NAME##_task *fj_h) \
    {                                                                                              \
        (void)fj_p;                                                                                \
        return (enum fj_forked)fji_typed_state(fj_w, fj_h->fj_cell_);                              \
    }                                                                                              \
                                                                                                   \
    FJI_INLINE R NAME##_sync(fj_worker *fj_w, fj_cell **fj_p)                                       \
    {                                                                                              \
        fj_cell *fj_c = *fj_p - 1;                                                                 \
        *fj_p = fj_c;                                                                              \
        if (FJI_UNLIKELY(fj_c->item != FJI_TYPED_ITEM(NAME##_fji_type))) {                         \
            fji_typed_linked fj_l = fji_typed_unlink(fj_w, fj_c);                                  \
            *fj_p = fj_l.position;                                                                 \
            fj_c = fj_l.cell;                                                                      \
        }                                                                                          \
        SHAPE##_RETURN(NAME##_fji_join(fj_w, fj_c));                                               \
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
        SHAPE##_NEEDS                                                                             \
        FJI_EACH(FJI_STORE_, __VA_ARGS__)                                                       \
        fj_task_init(&fj_root.fj_t, NAME##_fji_root_run);                                             \
        int fj_err = fj_invoke(fj_on, &fj_root.fj_t);                                             \
        if (fj_err != FJ_OK) return fj_err;                                                       \
        SHAPE##_COPY return FJ_OK;                                                                \
    }                                                                                             \
    struct NAME##_fji_root

/* clang-format on */

#endif /* FORKJOIN_TYPED_H */
