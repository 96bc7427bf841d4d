// SPDX-License-Identifier: MIT
//
// Timers.java - adding and cancelling of timers as in timers.c, with ScheduledThreadPoolExecutor

import java.util.concurrent.*;

public final class Timers {
    static final int ROUNDS = 200_000, IN_HAND = 256;

    static long delay(long[] seed) {
        long x = seed[0];
        x ^= x << 13;
        x ^= x >>> 7;
        x ^= x << 17;
        seed[0] = x;
        return 1 + Math.floorMod(x, 600L);
    }

    static void hand(ScheduledThreadPoolExecutor e, long start) {
        ScheduledFuture<?>[] hand = new ScheduledFuture<?>[IN_HAND];
        long[] seed = {start};
        for (int i = 0; i < ROUNDS; i++) {
            int k = i % IN_HAND;
            if (i >= IN_HAND) hand[k].cancel(false);
            hand[k] = e.schedule(() -> { }, delay(seed), TimeUnit.SECONDS);
        }
        for (ScheduledFuture<?> f : hand) f.cancel(false);
    }

    static void cancel(int threads, int waiting, boolean print) throws Exception {
        ScheduledThreadPoolExecutor e = new ScheduledThreadPoolExecutor(2);
        e.setRemoveOnCancelPolicy(true);
        long[] seed = {88172645463325252L};
        for (int i = 0; i < waiting; i++) e.schedule(() -> { }, delay(seed) + 600, TimeUnit.SECONDS);
        Thread[] t = new Thread[threads];
        long start = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            long s = 1234567 + i;
            t[i] = new Thread(() -> hand(e, s));
            t[i].start();
        }
        for (Thread x : t) x.join();
        double ns = (System.nanoTime() - start) / ((double) ROUNDS * threads);
        if (print) System.out.printf("result java cancel_%d_%d %.3f%n", threads, waiting, ns);
        e.shutdownNow();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5; i++) cancel(2, 1000, false);
        for (int threads = 1; threads <= 2; threads++) {
            cancel(threads, 1000, true);
            cancel(threads, 1_000_000, true);
        }
        System.exit(0);
    }
}
