/* SPDX-License-Identifier: MIT */
/*
 * taskword.pml - completion and waiting on a task's 32-bit state word
 *
 * Modelled: a queued task that is claimed once: by a thief, by the sweep of a pool that is being
 * stopped, or by its joiner. A thief or the sweep (a Stranger process) puts its own number into the
 * word (MARK) with a fetch_or, writes the result and then sets DONE with one fetch_or. It calls the
 * kernel's wake, which takes an address, only if the old value had WAITING. JOINERS joiners read
 * the word, set WAITING with a fetch_or that also returns DONE, and let the kernel compare the word
 * before they sleep. The last joiner that returns frees the memory at once. One spurious wake-up
 * may occur, as if it was sent to an earlier task at this address.
 *
 * Checked: after a task is freed, only the kernel's wake uses its address; a joiner that returns
 * finds the result; every joiner returns.
 *
 * Bounds: one task. Left out: machines weaker than TSO (the result is a plain store before a
 * read-modify-write, so TSO makes no difference); helping and spinning while waiting.
 */

#ifndef JOINERS
#define JOINERS 1
#endif

bit done;       /* the state word: */
bit waiting;    /* three of its bits */
bit mark;
bit result;
bit claimed;
bit freed;
byte returned;
bit asleep[JOINERS];

#define TOUCH assert(!freed)

inline wake_all()
{
    d_step {
#ifdef M_WAKE_ONE
        if
        :: asleep[0] -> asleep[0] = 0
        :: else -> asleep[JOINERS - 1] = 0
        fi
#else
        asleep[0] = 0;
        asleep[JOINERS - 1] = 0
#endif
    }
}

/* A thief or the sweep. */
proctype Stranger()
{
    bit wake;

#ifdef M_TOUCH_BEFORE_CLAIM
    atomic { TOUCH; wake = result; wake = 0 }
#endif
    atomic { /* the CAS in the queue */
        if
        :: !claimed -> claimed = 1
        :: else -> goto out
        fi
    }
    atomic {
        TOUCH;
#ifdef M_MARK_STORED
        waiting = 0; /* a plain store, which clears WAITING */
#endif
        mark = 1
    }
#ifdef M_FLAG_FIRST
    atomic { TOUCH; wake = waiting }
#endif
#ifndef M_DONE_FIRST
    atomic { TOUCH; result = 1 }
#endif
    atomic { /* fetch_or: the last touch */
        TOUCH;
        done = 1;
#if !defined(M_FLAG_FIRST) && !defined(M_TOUCH_AFTER_DONE)
        wake = waiting
#endif
    }
#ifdef M_TOUCH_AFTER_DONE
    atomic { TOUCH; wake = waiting }
#endif
#ifdef M_DONE_FIRST
    atomic { TOUCH; result = 1 }
#endif
    if
    :: wake -> wake_all()
    :: else
    fi;
out:
    skip
}

proctype Joiner(byte me)
{
    bit old, seen;

#if JOINERS == 1
    atomic { /* no thief has it: the joiner runs it */
        if
        :: !claimed -> claimed = 1; goto free
        :: else
        fi
    }
#endif
again:
    atomic {
        TOUCH;
        if
        :: done -> goto back
        :: else
        fi
    }
    atomic { /* fetch_or; the kernel compares the word with the resulting value */
        TOUCH;
        waiting = 1;
        seen = mark;
#ifndef M_STALE_VALUE
        old = 0;
        if
        :: done -> goto back
        :: else
        fi
    }
#else
    }
    atomic { TOUCH; seen = mark; old = done } /* reads the word a second time */
#endif
    atomic { /* the kernel */
        TOUCH;
#ifdef M_SLEEP_ANYWAY
        asleep[me] = 1
#else
        if
        :: done == old && waiting && mark == seen -> asleep[me] = 1
        :: else -> goto again
        fi
#endif
    }
    !asleep[me];
#ifndef M_NO_LOOP
    goto again;
#endif
back:
    atomic { TOUCH; assert(result) }
free:
    atomic {
        returned++;
        if
        :: returned == JOINERS -> freed = 1
        :: else
        fi
    }
}

/* A wake-up that was sent for an earlier task at this address. */
proctype Ghost()
{
end_ghost:
    atomic { asleep[0] || asleep[JOINERS - 1]; wake_all() }
}

init
{
    byte i;
    atomic {
        run Stranger();
        run Stranger();
        run Ghost();
        do
        :: i < JOINERS -> run Joiner(i); i++
        :: else -> break
        od;
        i = 0
    }
}
