package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RQueue;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** One Redisson client, its queues, and what can be asked of them. */
final class Client {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  /** How many offers of an offerMany are under way at once. */
  private static final int IN_FLIGHT = 100;

  private final RedissonClient redisson;
  private final Map<String, RDelayedQueue<Object>> delayed = new ConcurrentHashMap<>();
  private final Map<String, Takers> takers = new ConcurrentHashMap<>();
  private final Map<String, Bench> benches = new ConcurrentHashMap<>();

  /** Each call that blocks has a connection of the pool to itself. */
  Client(String url, int connections) {
    Config config = new Config();
    config.setThreads(4);
    config.setNettyThreads(4);
    config
        .useSingleServer()
        .setAddress(url)
        .setConnectionMinimumIdleSize(1)
        .setConnectionPoolSize(connections)
        .setSubscriptionConnectionMinimumIdleSize(1)
        .setSubscriptionConnectionPoolSize(4)
        // Each delayed queue is one.
        .setSubscriptionsPerConnection(1000);
    redisson = Redisson.create(config);
  }

  void shutdown() {
    redisson.shutdown(0, 2, TimeUnit.SECONDS);
  }

  JsonNode call(String method, JsonNode request) throws Exception {
    return switch (method) {
      case "construct" -> {
        delayed(request);
        yield null;
      }
      case "destroy" -> {
        // The same key as that of the handle which is destroyed: the next use makes a new one.
        delayed(request).destroy();
        delayed.remove(handle(request));
        yield null;
      }
      case "stopMoving" -> {
        // Redisson's destroy(), while the handle is kept: it still offers.
        delayed(request).destroy();
        yield null;
      }
      case "offer" -> {
        Object value = Values.read(request.get("value"));
        delayed(request).offer(value, request.get("delay").longValue(), TimeUnit.MILLISECONDS);
        yield null;
      }
      case "offerMany" -> {
        offerMany(delayed(request), request.get("values"), request.get("delays"));
        yield null;
      }
      case "put" -> {
        ready(request).put(Values.read(request.get("value")));
        yield null;
      }
      case "take" -> Values.write(ready(request).take());
      case "pollFor" ->
          Values.write(ready(request).poll(request.get("seconds").longValue(), TimeUnit.SECONDS));
      case "size" -> JSON.numberNode(view(request).size());
      case "readAll" -> Values.writeAll(view(request).readAll());
      case "iterate" -> Values.writeAll(view(request));
      case "peek" -> Values.write(view(request).peek());
      case "poll" -> Values.write(view(request).poll());
      case "pollMany" -> Values.writeAll(view(request).poll(request.get("limit").intValue()));
      case "contains" -> JSON.booleanNode(view(request).contains(Values.read(request.get("value"))));
      case "remove" -> JSON.booleanNode(view(request).remove(Values.read(request.get("value"))));
      case "removeAll" -> JSON.booleanNode(view(request).removeAll(Values.readAll(request.get("values"))));
      case "retainAll" -> JSON.booleanNode(view(request).retainAll(Values.readAll(request.get("values"))));
      case "startTaking" -> {
        takers.put(handle(request), new Takers(ready(request), request.get("threads").intValue()));
        yield null;
      }
      case "takenCount" -> JSON.numberNode(takers.get(handle(request)).count());
      case "stopTaking" -> Values.writeAll(takers.remove(handle(request)).stop());
      default -> bench(method, request);
    };
  }

  private JsonNode bench(String method, JsonNode request) throws Exception {
    Bench bench =
        benches.computeIfAbsent(
            request.get("queue").textValue(), queue -> new Bench(redisson, queue));
    return switch (method) {
      case "benchStopMoving" -> {
        bench.stopMoving();
        yield null;
      }
      case "benchOffer" -> bench.offer(request);
      case "benchStartTaking" -> {
        bench.startTaking(request.get("threads").intValue());
        yield null;
      }
      case "benchCount" -> bench.count();
      case "benchTaken" -> bench.taken();
      case "benchReset" -> {
        bench.reset();
        yield null;
      }
      default -> throw new IllegalArgumentException("no method is called " + method);
    };
  }

  private static String handle(JsonNode request) {
    return request.get("queue").textValue() + "\n" + request.get("codec").textValue();
  }

  private RBlockingQueue<Object> ready(JsonNode request) {
    return redisson.getBlockingQueue(
        request.get("queue").textValue(), Codecs.named(request.get("codec").textValue()));
  }

  /** The first call for a queue makes this client move its due messages. */
  private RDelayedQueue<Object> delayed(JsonNode request) {
    return delayed.computeIfAbsent(
        handle(request), unused -> redisson.getDelayedQueue(ready(request)));
  }

  private RQueue<Object> view(JsonNode request) {
    return "ready".equals(request.get("of").textValue()) ? ready(request) : delayed(request);
  }

  private static void offerMany(RDelayedQueue<Object> queue, JsonNode values, JsonNode delays)
      throws InterruptedException {
    Semaphore permits = new Semaphore(IN_FLIGHT);
    ArrayNode failures = JSON.arrayNode();
    for (int i = 0; i < values.size(); i++) {
      permits.acquire();
      queue
          .offerAsync(Values.read(values.get(i)), delays.get(i).longValue(), TimeUnit.MILLISECONDS)
          .whenComplete(
              (unused, error) -> {
                if (error != null) {
                  synchronized (failures) {
                    failures.add(error.toString());
                  }
                }
                permits.release();
              });
    }
    permits.acquire(IN_FLIGHT);
    if (!failures.isEmpty()) {
      throw new IllegalStateException(failures.size() + " offers failed: " + failures.get(0));
    }
  }
}
