/* SPDX-License-Identifier: MIT */
/*
 * idle_aba.pml - only the stack of idle workers, with load and CAS as separate steps
 *
 * Modelled: the part of the control word that is a stack: the index of the top worker, and a
 * version that changes with every push. WORKERS workers push themselves, wait until they are popped
 * and push themselves again. SIGNALLERS processes pop. Each process reads the word, then reads the
 * link of the top worker (or writes its own link), then does the CAS. Other processes may run
 * between these steps.
 *
 * Bounds: none in time; all states are visited. The model stores no version, only whether it is
 * still the one that a process has read; this is exact, because a version only grows.
 *
 * Checked: a popped worker was on the stack; the workers below it remain; every idle worker can be
 * reached from the top.
 *
 * Left out: counts, park words (idle.pml), wrap of the version, workers that exit. A link is
 * written before the CAS that publishes it, so store buffers make no difference here.
 */

#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef SIGNALLERS
#define SIGNALLERS 2
#endif

#define NONE WORKERS
#define ALL (WORKERS + SIGNALLERS)

byte top = NONE;
byte link[WORKERS];
bit idle[WORKERS];
byte view[ALL]; /* the version that a process has read: 0 none, 1 the current one, 2 an older one */

byte k;
byte n;

#ifdef M_NO_VERSION
#define BUMP skip
#else
#define BUMP                                      \
    d_step {                                      \
        k = 0;                                    \
        do                                        \
        :: k < ALL -> view[k] = (view[k] -> 2 : 0); k++ \
        :: else -> break                          \
        od;                                       \
        k = 0                                     \
    }
#endif

/* Checks that exactly the idle workers can be reached from the top. */
inline check()
{
    d_step {
        n = 0;
        k = 0;
        do
        :: k < WORKERS -> n = n + idle[k]; k++
        :: else -> break
        od;
        k = top;
        do
        :: k != NONE && n > 0 -> assert(idle[k]); n--; k = link[k]
        :: else -> break
        od;
        assert(k == NONE && n == 0);
        k = 0
    }
}

proctype Worker(byte me)
{
    byte seen = NONE;

again:
    atomic { seen = top; view[me] = 1 }
    link[me] = seen;
    atomic {
        if
        :: top == seen && view[me] == 1 -> top = me; BUMP; idle[me] = 1; check()
        :: else -> view[me] = 0; goto again
        fi;
        view[me] = 0;
        seen = NONE
    }
    !idle[me];
    goto again
}

proctype Signaller(byte me)
{
    byte seen = NONE, next = NONE;

again:
    atomic {
        top != NONE;
        seen = top;
        view[me] = 1
    }
    next = link[seen];
    atomic {
        if
        :: top == seen && view[me] == 1 ->
            assert(idle[seen]);
            top = next;
            idle[seen] = 0;
            check()
        :: else
        fi;
        view[me] = 0;
        seen = NONE;
        next = NONE;
        goto again
    }
}

init
{
    byte i;
    atomic {
        do
        :: i < WORKERS -> link[i] = NONE; run Worker(i); i++
        :: else -> break
        od;
        do
        :: i < ALL -> run Signaller(i); i++
        :: else -> break
        od;
        i = 0
    }
}
