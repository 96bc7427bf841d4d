// SPDX-License-Identifier: MIT
//
// Then.java - the figures of bench/then.c with CompletableFuture
//
// Called as `java Then WORKERS`. It prints `result java NAME VALUE` for each figure, the best of
// several runs, in nanoseconds.

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;

public class Then {
    static final int MANY = 100000, LINKS = 1000, INPUTS = 1000, RUNS = 40;
    static long called;

    static void print(String name, double ns) {
        System.out.printf("result java %s %.1f%n", name, ns);
    }

    static double per(long begin, int n) {
        return (double) (System.nanoTime() - begin) / n;
    }

    @SuppressWarnings("unchecked")
    static CompletableFuture<Long>[] promises(int n) {
        CompletableFuture<Long>[] v = new CompletableFuture[n];
        for (int i = 0; i < n; i++) v[i] = new CompletableFuture<>();
        return v;
    }

    static void listeners() {
        double bare = 1e9, done = 1e9, pending = 1e9;
        for (int run = 0; run < RUNS; run++) {
            CompletableFuture<Long>[] v = promises(MANY);
            long begin = System.nanoTime();
            for (var f : v) f.complete(1L);
            bare = Math.min(bare, per(begin, MANY));
            begin = System.nanoTime();
            for (var f : v) f.whenComplete((x, e) -> called++);
            done = Math.min(done, per(begin, MANY));
            v = promises(MANY);
            begin = System.nanoTime();
            for (var f : v) {
                f.whenComplete((x, e) -> called++);
                f.complete(1L);
            }
            pending = Math.min(pending, per(begin, MANY));
        }
        print("complete", bare);
        print("done_done", done);
        print("done_malloc", pending);
    }

    static void chains(ForkJoinPool pool) {
        double built = 1e9, ran = 1e9, failed = 1e9;
        for (int run = 0; run < RUNS * 50; run++) {
            CompletableFuture<Long> first = new CompletableFuture<>(), last = first;
            long begin = System.nanoTime();
            for (int i = 0; i < LINKS; i++) last = last.thenApplyAsync(x -> x + 1, pool);
            built = Math.min(built, per(begin, LINKS));
            begin = System.nanoTime();
            if (run % 2 == 0) {
                first.complete(0L);
                if (last.join() != LINKS) System.exit(1);
                ran = Math.min(ran, per(begin, LINKS));
            } else {
                first.completeExceptionally(new RuntimeException("failed", null, false, false) {});
                try {
                    last.join();
                    System.exit(1);
                } catch (Exception e) {
                    failed = Math.min(failed, per(begin, LINKS));
                }
            }
        }
        print("link_built", built);
        print("link_run", ran);
        print("link_failed", failed);
    }

    static void gathered() {
        double best = 1e9;
        for (int run = 0; run < RUNS * 10; run++) {
            CompletableFuture<Long>[] v = promises(INPUTS);
            long begin = System.nanoTime();
            CompletableFuture<Void> all = CompletableFuture.allOf(v);
            for (var f : v) f.complete(1L);
            if (!all.isDone()) System.exit(1);
            best = Math.min(best, per(begin, INPUTS));
        }
        print("all_of", best);
    }

    public static void main(String[] args) {
        ForkJoinPool pool = new ForkJoinPool(args.length > 0 ? Integer.parseInt(args[0]) : 1);
        listeners();
        chains(pool);
        gathered();
        pool.shutdown();
    }
}
