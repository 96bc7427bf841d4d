/* SPDX-License-Identifier: MIT */
/*
 * listen.pml - every listener of a future is called once, and the future is not used after that
 *
 * Modelled: a future that a Runner finishes and, with RESOLVER, another thread resolves. ADDERS
 * threads each add a listener. An Owner waits for DONE, then calls fj_future_fini(), which waits
 * for RELEASED and for CALLED, and frees the future. With RELEASES, the Owner does not call
 * fj_future_fini(): the release function, which one of the other threads calls, frees the future.
 * The body may return FJ_PENDING if there is a resolver.
 *
 * Checked: each listener is called exactly once, and not before DONE; two threads never change the
 * list at the same time; no thread touches the future after it is freed; the release function is
 * called once, after the listeners; every waiter returns. Spin reports a waiter that is not woken as
 * an invalid end state.
 *
 * Memory: every access to the word is a read-modify-write or a load, and the list is accessed
 * between two of them, so the model needs no store buffers.
 *
 * Bounds: one future, one runner, one resolver. An adder that comes after the future was freed does
 * nothing, because such a call would be an error of the caller. Left out: completers that run
 * on_error (the simulator has a scenario), references of allocated futures.
 */

#ifndef ADDERS
#define ADDERS 2
#endif
#ifndef RESOLVER
#define RESOLVER 1
#endif
#ifndef RELEASES
#define RELEASES 0
#endif

#define DONE 1
#define COMPLETING 2
#define LET_GO 4
#define WAITING 8
#define LISTING 16
#define LISTENED 32
#define CALLED 64

byte word;
byte list;          /* the listeners in the list: one bit for each adder */
bit writing;        /* a thread is changing or taking the list */
byte added;         /* the adders that have added a listener */
byte called[ADDERS];
bit asleep;         /* the Owner, on the word */
bit freed;
bit closed;         /* the program makes no further call */
byte released;      /* calls of the release function */
byte users;         /* adders and resolvers in a call; the program does not free the future meanwhile */
bit pending;        /* the body returns FJ_PENDING */

#define TOUCH assert(!freed)

inline wake(old)
{
    if
    :: old & WAITING -> asleep = 0
    :: else
    fi
}

inline release()
{
    atomic { released++; assert(released == 1) }
#if RELEASES
    atomic { users == 0 -> freed = 1 }
#endif
}

/* fji_listeners_call() */
inline call_all(taken)
{
    k = 0;
    do
    :: k < ADDERS ->
        if
        :: taken & (1 << k) -> atomic { TOUCH; assert(word & DONE); called[k]++ }
        :: else
        fi;
        k++
    :: else -> break
    od
}

/* listen_add() */
proctype Adder(byte me)
{
    byte s;

    atomic {
        if
        :: freed || closed || (RELEASES && released) -> goto out
        :: (word & DONE) && RELEASES -> goto out /* the release function may free it at any time */
        :: else -> users++
        fi
    }
    do
    ::
        atomic { TOUCH; s = word }
        if
        :: s & DONE -> atomic { TOUCH; called[me]++; users--; goto out }
        :: else
        fi;
#ifdef M_ADD_WHILE_COMPLETING
        if
        :: s & LISTING -> goto again /* not if COMPLETING is set */
        :: else
        fi;
#else
        if
        :: s & (LISTING | COMPLETING) -> goto again
        :: else
        fi;
#endif
#ifdef M_NO_LISTING
        break;
#else
        atomic { /* CAS */
            TOUCH;
            if
            :: word == s -> word = s | LISTING; break
            :: else
            fi
        }
#endif
again:
        skip
    od;
    atomic { TOUCH; assert(!writing); writing = 1 }
    atomic { TOUCH; list = (s & LISTENED -> list : 0) | (1 << me); writing = 0 }
    atomic { TOUCH; word = (word & ~LISTING) | LISTENED; added = added | (1 << me); users-- }
out:
    skip
}

/* What the finishing or resolving thread does after it has set DONE with LISTENED in the old word s.
 * `always`: it calls the release function; otherwise only if LET_GO was set after DONE and before
 * CALLED. */
inline listeners(always)
{
    call_all(taken);
#ifndef M_NO_CALLED
    atomic { TOUCH; c = word; word = word | CALLED }
#endif
#ifndef M_CALLED_WAKES_NOBODY
    wake(c);
#endif
    if
    :: always || (!(s & LET_GO) && (c & LET_GO)) -> release()
    :: else
    fi
}

/* fji_future_finish() */
proctype Runner()
{
    byte s, n, c, taken, k;

    atomic { TOUCH; s = word }
    do
    ::
#ifdef M_FINISH_DOES_NOT_WAIT
        if
        :: s & COMPLETING -> atomic { !(word & COMPLETING); TOUCH; s = word }
        :: else
        fi;
#else
        if
        :: s & (COMPLETING | LISTING) -> atomic { !(word & (COMPLETING | LISTING)); TOUCH; s = word }
        :: else
        fi;
#endif
        n = s | LET_GO;
        if
        :: !(s & DONE) && !pending -> n = n | DONE
        :: else
        fi;
        atomic { /* CAS */
            TOUCH;
            if
            :: word == s -> word = n; break
            :: else -> s = word
            fi
        }
    od;
    wake(s);
    if
    :: (s & LISTENED) && !(s & DONE) && (n & DONE) ->
        atomic { TOUCH; assert(!writing); taken = list }
        listeners(1)
    :: (s & LISTENED) && (s & DONE) && !(s & CALLED) ->
#ifdef M_BOTH_RELEASE
        release()
#else
        skip
#endif
    :: else -> release()
    fi
}

#if RESOLVER
/* fji_future_resolve() */
proctype Resolver()
{
    byte s, c, taken, k;

    if
    :: true
    :: !pending -> goto out /* does nothing */
    fi;
    atomic {
        if
        :: freed || closed || (RELEASES && released) -> goto out
        :: else -> users++
        fi
    }
    atomic { TOUCH; s = word }
    do
    ::
#ifdef M_CLAIM_DOES_NOT_WAIT
        if
        :: s & COMPLETING -> atomic { !(word & COMPLETING); TOUCH; s = word }
        :: else
        fi;
#else
        if
        :: s & (COMPLETING | LISTING) -> atomic { !(word & (COMPLETING | LISTING)); TOUCH; s = word }
        :: else
        fi;
#endif
        if
        :: s & DONE -> users--; goto out
        :: else
        fi;
        atomic { /* CAS */
            TOUCH;
            if
            :: word == s -> word = s | COMPLETING; break
            :: else -> s = word
            fi
        }
    od;
    if
    :: s & LISTENED -> atomic { TOUCH; assert(!writing); taken = list }
    :: else
    fi;
    atomic { TOUCH; list = 255 } /* writes `external`, which is the same memory */
    atomic { TOUCH; s = word; word = (word & ~COMPLETING) | DONE; users-- }
    wake(s);
    if
    :: s & LISTENED -> listeners(0)
    :: else
    fi;
out:
    skip
}
#endif

inline sleep_until(bits)
{
    atomic { TOUCH; word = word | WAITING; s = word }
    do
    :: s & bits -> break
    :: else ->
        atomic { /* the kernel */
            if
            :: word == s -> asleep = 1
            :: else
            fi
        }
        !asleep;
        atomic { TOUCH; s = word }
    od
}

proctype Owner()
{
    byte s;

    sleep_until(DONE);
    atomic { users == 0 -> closed = 1 } /* the program makes no further call on the future */
    sleep_until(LET_GO);
    atomic { TOUCH; s = word }
#ifndef M_FINI_IGNORES_CALLED
    if
    :: (s & LISTENED) && !(s & CALLED) -> sleep_until(CALLED)
    :: else
    fi;
#endif
    freed = 1
}

init {
    byte i;

    atomic {
#if RESOLVER && !RELEASES
        if
        :: pending = 1
        :: pending = 0
        fi;
#endif
        run Runner();
#if RESOLVER
        run Resolver();
#endif
        i = 0;
        do
        :: i < ADDERS -> run Adder(i); i++
        :: else -> break
        od;
#if !RELEASES
        run Owner()
#endif
    }
    _nr_pr == 1; /* all have ended */
    i = 0;
    do
    :: i < ADDERS ->
        assert(called[i] <= 1);
        assert(!(added & (1 << i)) || called[i] == 1);
        i++
    :: else -> break
    od;
    assert(!(word & LISTENED) || (word & CALLED));
    assert(released == 1)
}
