package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBlockingQueue;

/** Threads that take whatever becomes ready, until they are stopped. */
final class Takers {
  private final RBlockingQueue<Object> queue;
  private final List<Object> taken = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean isStopped;

  Takers(RBlockingQueue<Object> queue, int count) {
    this.queue = queue;
    for (int i = 0; i < count; i++) {
      Thread thread = new Thread(this::run, "taker-" + i);
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
  }

  /** How many messages have been taken. */
  int count() {
    synchronized (taken) {
      return taken.size();
    }
  }

  /** Ends the threads, which finish what they wait for; answers all that they have taken. */
  List<Object> stop() throws InterruptedException {
    isStopped = true;
    for (Thread thread : threads) thread.join();
    synchronized (taken) {
      return taken;
    }
  }

  private void run() {
    while (!isStopped) {
      try {
        // Redisson counts in whole seconds.
        Object value = queue.poll(1, TimeUnit.SECONDS);
        if (value == null) continue;
        synchronized (taken) {
          taken.add(value);
        }
      } catch (InterruptedException e) {
        return;
      } catch (RuntimeException e) {
        // Redis is away for a while, or the client is shut down.
        System.err.println("a taker goes on after: " + e);
      }
    }
  }
}
