package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Offers and takes as fast as Redisson can, for benchmarks: all that is measured happens in here.
 *
 * <p>Instants are in epoch milliseconds, on this machine's clock, which has to be Redis's as well.
 */
final class Bench {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private final RBlockingQueue<String> ready;
  private RDelayedQueue<String> delayed;

  private record Taken(int number, double at) {}

  private final List<Taken> taken = new ArrayList<>();

  Bench(RedissonClient redisson, String queue) {
    ready = redisson.getBlockingQueue(queue, StringCodec.INSTANCE);
    delayed = redisson.getDelayedQueue(ready);
  }

  /** From now on it moves nothing; it can still offer. */
  void stopMoving() {
    delayed.destroy();
  }

  /**
   * Offers messages {@code first} to {@code first + count - 1}, with {@code inFlight} under way at any
   * time; one of them by the call that waits, more by the one that does not. {@code perSecond}: evenly
   * spread.
   */
  ObjectNode offer(JsonNode plan) throws InterruptedException {
    int first = plan.get("first").intValue();
    int count = plan.get("count").intValue();
    int bytes = plan.get("payloadBytes").intValue();
    String filler = plan.get("filler").textValue();
    int inFlight = plan.get("inFlight").intValue();
    double pause = plan.has("perSecond") ? 1e9 / plan.get("perSecond").doubleValue() : 0;
    Semaphore permits = new Semaphore(inFlight);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    long[] deadlines = new long[count];

    long startedAt = System.nanoTime();
    for (int i = 0; i < count; i++) {
      if (pause > 0) {
        long ahead = startedAt + (long) (i * pause) - System.nanoTime();
        if (ahead > 0) LockSupport.parkNanos(ahead);
      }
      String payload = ((first + i) + " " + filler).substring(0, bytes);
      if (inFlight == 1) {
        long delay = choose(plan);
        deadlines[i] = System.currentTimeMillis() + delay;
        delayed.offer(payload, delay, TimeUnit.MILLISECONDS);
      } else {
        permits.acquire();
        long delay = choose(plan);
        deadlines[i] = System.currentTimeMillis() + delay;
        delayed
            .offerAsync(payload, delay, TimeUnit.MILLISECONDS)
            .whenComplete(
                (unused, error) -> {
                  if (error != null) failure.set(error);
                  permits.release();
                });
      }
    }
    permits.acquire(inFlight);
    double duration = (System.nanoTime() - startedAt) / 1e6;
    if (failure.get() != null) throw new IllegalStateException("an offer failed", failure.get());

    ArrayNode all = JSON.arrayNode();
    for (long deadline : deadlines) all.add(deadline);
    ObjectNode offered = JSON.objectNode();
    offered.set("deadlines", all);
    return offered.put("duration", duration);
  }

  private static long choose(JsonNode plan) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    if (plan.has("from")) {
      long at = random.nextLong(plan.get("from").longValue(), plan.get("to").longValue() + 1);
      return Math.max(0, at - System.currentTimeMillis());
    }
    return random.nextLong(plan.get("minDelay").longValue(), plan.get("maxDelay").longValue() + 1);
  }

  /** Takes on so many threads, until the process ends. */
  void startTaking(int threads) {
    for (int i = 0; i < threads; i++) {
      Thread thread = new Thread(this::takeOn, "taker-" + i);
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void takeOn() {
    try {
      while (true) {
        String payload = ready.take();
        Instant now = Instant.now();
        double at = now.getEpochSecond() * 1e3 + now.getNano() / 1e6;
        int number = Integer.parseInt(payload.substring(0, payload.indexOf(' ')));
        synchronized (taken) {
          taken.add(new Taken(number, at));
        }
      }
    } catch (InterruptedException end) {
      Thread.currentThread().interrupt();
    }
  }

  JsonNode count() {
    synchronized (taken) {
      return JSON.numberNode(taken.size());
    }
  }

  ObjectNode taken() {
    ArrayNode numbers = JSON.arrayNode();
    ArrayNode takenAt = JSON.arrayNode();
    synchronized (taken) {
      for (Taken each : taken) {
        numbers.add(each.number());
        takenAt.add(each.at());
      }
    }
    ObjectNode all = JSON.objectNode();
    all.set("numbers", numbers);
    all.set("takenAt", takenAt);
    return all;
  }

  void reset() {
    synchronized (taken) {
      taken.clear();
    }
  }
}
