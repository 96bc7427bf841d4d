/* SPDX-License-Identifier: MIT */
/*
 * future.pml - a future gets one outcome, and waits can be interrupted
 *
 * Modelled: a future whose body is run once by a Runner, and an Owner that sleeps on the word until
 * DONE, then until LET_GO (RELEASED in the sources), and then frees the memory. With CANCELLER,
 * another thread cancels the future and interrupts its body. With COMPLETER, another thread
 * completes it (fji_future_resolve()). With NAPPER, a worker waits for the future in its wait
 * bucket (lot) by an interruptible wait (nap). With INTERRUPTER, the task of that worker is itself
 * interrupted. With SIGNAL, the pool has an interrupt_signal. The body of the future is chosen at
 * the start: it ends at once; it waits in a bucket until it is interrupted; it ends only after the
 * Napper has returned; it leaves the outcome to another thread (FJ_PENDING); or it waits in a
 * system call for the signal. A wait for an interrupt ends by itself if there was no cancel and no
 * other process can move.
 *
 * Checked: the outcome is set once, and a thread that sees DONE finds it complete; every waiter
 * returns; no thread touches the future after it is freed, nor the runner's worker (and with it the
 * pool) after the runner has continued with another task; a task whose token is set does not stay
 * asleep in its bucket; the signal reaches no other task. Spin reports a waiter that is not woken
 * as an invalid end state.
 *
 * Memory: stores to `nap` and to tokens may be delayed past everything but the full fence that
 * follows them. A missing fence is therefore found even if the next step is a read-modify-write, as
 * it would be on machines weaker than TSO. Every other access is a plain access followed by a
 * read-modify-write, which a store buffer cannot reorder.
 *
 * Bounds: one future, one process of each kind, each acts once. No call is made on a future that is
 * already freed, because that would be an error of the caller. Left out: OBSERVED_ANY (like
 * OBSERVED, in another bucket), two futures in one bucket and timeouts (both only cause additional
 * wake-ups), the number of the thief in the word (taskword.pml), futures that wait for their time
 * and are in no queue.
 */

#ifndef CANCELLER
#define CANCELLER 1
#endif
#ifndef COMPLETER
#define COMPLETER 0
#endif
#ifndef NAPPER
#define NAPPER 0
#endif
#ifndef INTERRUPTER
#define INTERRUPTER 0
#endif
#ifndef SIGNAL
#define SIGNAL 0
#endif

#define DONE 1
#define COMPLETING 2
#define CANCELLED 4
#define GIVEN 8
#define LET_GO 16
#define WAITING 32
#define OBSERVED 64
#define SIGNALLABLE 128

/* Outcomes, and what set them. */
#define BY_BODY 1
#define BY_CANCEL 2
#define BY_HAND 3

#define AT_ONCE 0
#define NAPS 1
#define AFTER_NAPPER 2
#define PENDING 3
#define IN_CALL 4

/* The future. */
byte word;
byte own;       /* the outcome that the body has stored */
byte given;
bit token;
bit signalled;  /* a flag in the token: the signal was sent */
bit told;       /* the same without an interrupt: completed by another thread */

/* Everything else. */
bit napper_token;
bit nap[2];     /* an interruptible wait: 0: the runner, in bucket 1; 1: the Napper, in bucket 0 */
byte lot[2];
bit asleep[3];  /* 0 and 1: in these buckets; 2: the Owner, on the word */
bit signal;     /* sent and not yet received */
bit gone_on;    /* the runner has continued with the next task, or has ended */
bit freed;
bit napper_back;
byte calls;     /* Hand processes that have not finished */
byte winner;
byte body;

#if defined(M_NO_NAP_FENCE) || defined(M_NO_TOKEN_FENCE)
#define LATE 1
bit late_nap[2], late_token, late_napper_token; /* stores that have not reached memory */
#else
#define LATE 0
#endif

#define TOUCH assert(!freed)
#define TOUCH_WORKER assert(!gone_on)

#ifdef M_NO_NAP_FENCE
#define NAP(i) late_nap[i] = 1
#else
#define NAP(i) nap[i] = 1
#endif
#ifdef M_NO_TOKEN_FENCE
#define SET(t) late_##t = 1
#else
#define SET(t) t = 1
#endif

inline win(who)
{
    assert(winner == 0);
    winner = who
}

/* fji_wait_bucket_notify() */
inline bump(i)
{
    lot[i]++;
    asleep[1 - i] = 0
}

/* fji_wake_interruptible(): for the token of the future only, and for any token. */
inline poke_own()
{
    if
    :: nap[0] -> bump(1)
    :: else
    fi
}

inline poke()
{
    poke_own();
    if
    :: nap[1] -> bump(0)
    :: else
    fi
}

/* future_wake() */
inline wake(old)
{
    if
    :: old & WAITING -> asleep[2] = 0
    :: else
    fi;
    if
    :: old & OBSERVED -> bump(0)
    :: else
    fi
}

/* Checks the outcome in a thread that has seen DONE. */
inline outcome()
{
    atomic {
        TOUCH;
        assert(word & DONE);
        if
        :: word & CANCELLED -> assert(winner == BY_CANCEL)
        :: !(word & CANCELLED) && (word & GIVEN) -> assert(given == BY_HAND && winner == BY_HAND)
        :: else -> assert(own == BY_BODY && winner == BY_BODY)
        fi
    }
}

/* Sleeps in bucket 1 until the token is set: sleep_until(), await_interruptible(). */
inline nap_until_interrupted()
{
    NAP(0);
    do
    ::
#ifndef M_LOT_LATE
        seen = lot[1];
#endif
        atomic { TOUCH; if :: token -> break :: else fi }
#ifdef M_LOT_LATE
        seen = lot[1];
#endif
        atomic { /* the kernel */
            if
            :: lot[1] == seen -> asleep[0] = 1
            :: else
            fi
        }
        if
        :: !asleep[0]
        :: timeout && !token -> asleep[0] = 0; break
        fi
    od;
    nap[0] = 0
}

/* The signal is unblocked only inside the system call: fji_plat_poll_signal(). */
inline call_until_interrupted()
{
    do
    ::
        atomic { TOUCH; if :: token -> break :: else fi }
        if
        :: signal -> signal = 0
        :: timeout && !token -> break
        fi
    od
}

proctype Runner()
{
    byte s, n, seen;
    bit was_signalled;

    /* fji_future_execute() */
    atomic { TOUCH; if :: word & (DONE | COMPLETING) -> goto finish :: else fi }
#if SIGNAL
    /* future_body_signallable(): one read-modify-write, after the store of the runner's worker */
#ifdef M_RUNNER_LATE
    atomic { TOUCH; s = word }
    if
    :: s & (DONE | COMPLETING) -> goto finish
    :: else
    fi;
    atomic { TOUCH; word = word | SIGNALLABLE }
#else
    atomic {
        TOUCH;
        s = word;
        word = word | SIGNALLABLE;
        if
        :: s & (DONE | COMPLETING) -> goto finish
        :: else
        fi
    }
#endif
#endif
    if
    :: body == NAPS -> nap_until_interrupted()
    :: body == AFTER_NAPPER -> napper_back
    :: body == IN_CALL -> call_until_interrupted()
    :: else
    fi;
#ifndef M_BODY_LATE
    atomic { TOUCH; own = BY_BODY }
#endif

finish: /* fji_future_finish() */
    atomic { TOUCH; s = word }
#ifdef M_SIGNALLED_FIRST
    atomic { TOUCH; was_signalled = signalled }
#endif
    do
    ::
#ifndef M_NO_WAIT
        if
        :: s & COMPLETING -> atomic { !(word & COMPLETING); TOUCH; s = word }
        :: else
        fi;
#endif
        atomic {
            TOUCH;
#ifndef M_SIGNALLED_FIRST
            was_signalled = signalled;
#endif
            n = s | LET_GO;
            if
            :: !(s & (DONE | COMPLETING)) && body != PENDING -> n = n | DONE
            :: else
            fi
        }
#ifdef M_WAKE_FIRST
        wake(s);
#endif
        atomic { /* CAS */
            TOUCH;
#ifdef M_FINISH_OR
            s = word; /* no comparison: the bits are added to the current value */
            n = s | n;
#endif
            if
            :: word == s ->
                if
                :: (n & DONE) && !(s & DONE) -> win(BY_BODY)
                :: else
                fi;
                word = n;
                break
            :: else -> s = word
            fi
        }
    od;
#ifdef M_TOUCH_AFTER
    atomic { TOUCH; s = word }
#endif
#ifdef M_BODY_LATE
    atomic { TOUCH; own = BY_BODY }
#endif
#ifndef M_WAKE_FIRST
    wake(s);
#endif
    if
    :: was_signalled -> signal = 0 /* consumed in the yield */
    :: else
    fi;
    atomic { gone_on = 1; assert(!signal) }
}

#if CANCELLER || COMPLETER
/* fji_future_resolve() */
proctype Hand(byte who)
{
    byte s;

    if
    :: true
    :: body != PENDING || who != BY_HAND -> goto out /* does nothing */
    fi;
    atomic {
        if
        :: !freed -> calls++
        :: else -> goto out
        fi
    }
    atomic { TOUCH; s = word }
    do
    ::
        if
        :: s & COMPLETING -> atomic { !(word & COMPLETING); TOUCH; s = word }
        :: else
        fi;
        if
        :: s & DONE -> calls--; goto out
        :: else
        fi;
#ifdef M_DECIDE_OR
        break
#else
        atomic { /* CAS */
            TOUCH;
            if
            :: word == s -> word = s | COMPLETING; win(who); break
            :: else -> s = word
            fi
        }
#endif
    od;
#ifndef M_GIVEN_LATE
    atomic { TOUCH; given = who }
#endif
#ifdef M_TOKEN_LATE
    goto decide;
set_token:
#endif
    if
    :: who == BY_CANCEL ->
#ifndef M_POKE_FIRST
        atomic { TOUCH; SET(token) } /* and the fence */
#endif
        poke_own();
#if SIGNAL
        if
#ifdef M_RUNNER_STAYS
        :: s & SIGNALLABLE ->
#else
        :: (s & SIGNALLABLE) && !(s & LET_GO) -> /* the value before COMPLETING */
#endif
            atomic { TOUCH_WORKER; TOUCH; signalled = 1 }
            atomic { TOUCH_WORKER; signal = 1 }
        :: else
        fi;
#endif
#ifdef M_POKE_FIRST
        atomic { TOUCH; SET(token) }
#endif
    :: else -> atomic { TOUCH; told = 1 }
    fi;
#ifdef M_TOKEN_LATE
    goto out;
decide:
#endif
#ifdef M_WAKE_FIRST
    atomic { TOUCH; s = word }
    wake(s);
#endif
    atomic {
        TOUCH;
        s = word;
#ifdef M_DECIDE_OR
        win(who);
        word = word | DONE | GIVEN | (who == BY_CANCEL -> CANCELLED : 0);
#else
        word = word ^ (COMPLETING | DONE | GIVEN | (who == BY_CANCEL -> CANCELLED : 0));
#endif
#ifdef M_LET_GO_EARLY
        word = word | LET_GO;
#endif
        calls--
    }
#ifdef M_GIVEN_LATE
    atomic { TOUCH; given = who }
#endif
#ifndef M_WAKE_FIRST
    wake(s);
#endif
#ifdef M_TOKEN_LATE
    goto set_token;
#endif
out:
    skip
}
#endif

/* await_sleep() */
inline sleep_on_word(bits)
{
    atomic { TOUCH; word = word | WAITING; s = word }
    do
    :: s & bits -> break
    :: else ->
        atomic { /* the kernel */
            TOUCH;
            if
            :: word == s -> asleep[2] = 1
            :: else
            fi
        }
        !asleep[2];
        atomic { TOUCH; s = word }
    od
}

proctype Owner()
{
    byte s;

    sleep_on_word(DONE);
    outcome();
#ifndef M_FREE_AT_DONE
    sleep_on_word(LET_GO); /* fj_future_fini() */
    outcome();
#endif
    atomic { napper_back && calls == 0; freed = 1 }
}

#if NAPPER
/* await_interruptible() */
proctype Napper()
{
    byte s, seen;

    NAP(1);
#ifdef M_OBSERVED_LATE
    atomic { TOUCH; s = word; if :: s & DONE -> goto back :: else fi }
    seen = lot[0];
#endif
    atomic { TOUCH; word = word | OBSERVED }
    do
    ::
#if !defined(M_LOT_LATE) && !defined(M_OBSERVED_LATE)
        seen = lot[0];
#endif
#ifndef M_OBSERVED_LATE
        atomic { TOUCH; s = word; if :: s & DONE -> break :: else fi }
#endif
        if
        :: napper_token -> break
        :: else
        fi;
#ifdef M_LOT_LATE
        seen = lot[0];
#endif
        atomic { /* the kernel */
            if
            :: lot[0] == seen -> asleep[1] = 1
            :: else
            fi
        }
        !asleep[1];
#ifdef M_OBSERVED_LATE
        seen = lot[0];
        atomic { TOUCH; s = word; if :: s & DONE -> break :: else fi }
#endif
    od;
back:
    if
    :: s & DONE -> outcome()
    :: else
    fi;
    atomic { nap[1] = 0; napper_back = 1 }
}
#endif

#if INTERRUPTER
/* fj_token_cancel() on the token of the Napper's task. */
proctype Interrupter()
{
#ifdef M_POKE_FIRST
    poke();
#endif
    SET(napper_token); /* and the fence */
#ifndef M_POKE_FIRST
    poke()
#endif
}
#endif

#if LATE
proctype Drain()
{
end_drain:
    do
    :: atomic { late_nap[0] -> late_nap[0] = 0; nap[0] = 1 }
    :: atomic { late_nap[1] -> late_nap[1] = 0; nap[1] = 1 }
    :: atomic { late_token -> late_token = 0; token = 1 }
    :: atomic { late_napper_token -> late_napper_token = 0; napper_token = 1 }
    od
}
#endif

init
{
    atomic {
        if
        :: body = AT_ONCE
#if CANCELLER
        :: body = NAPS
#endif
#if INTERRUPTER
        :: body = AFTER_NAPPER
#endif
#if COMPLETER
        :: body = PENDING
#endif
#if SIGNAL
        :: body = IN_CALL
#endif
        fi;
        run Runner();
        run Owner();
#if NAPPER
        run Napper();
#else
        napper_back = 1;
#endif
#if CANCELLER
        run Hand(BY_CANCEL);
#endif
#if COMPLETER
        run Hand(BY_HAND);
#endif
#if INTERRUPTER
        run Interrupter();
#endif
#if LATE
        run Drain();
#endif
    }
}
