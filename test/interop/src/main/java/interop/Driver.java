package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Does with Redisson what it is told on stdin, and answers on stdout; one JSON object per line.
 *
 * <p>A request has an {@code id}, a {@code client} (a name), a {@code method}, and what that needs. Its
 * answer has the same {@code id}, and a {@code value} or an {@code error}. Requests run at once, each on
 * a thread of its own, so that one may wait while others go on; who needs an order awaits the answers.
 * The process ends with its stdin.
 */
public final class Driver {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Client> CLIENTS = new ConcurrentHashMap<>();

  private Driver() {}

  public static void main(String[] args) throws Exception {
    PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    // Whatever else prints is not to be taken for an answer.
    System.setOut(System.err);
    ExecutorService threads =
        Executors.newCachedThreadPool(
            task -> {
              Thread thread = new Thread(task);
              thread.setDaemon(true);
              return thread;
            });
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      JsonNode request = JSON.readTree(line);
      threads.execute(() -> print(answers, answer(request)));
    }
    // Without shutdown(): that would take seconds, and nothing of ours is at stake.
    Runtime.getRuntime().halt(0);
  }

  private static ObjectNode answer(JsonNode request) {
    ObjectNode answer = JSON.createObjectNode();
    answer.set("id", request.get("id"));
    try {
      answer.set("value", call(request));
    } catch (Throwable error) {
      answer.put("error", error.toString());
    }
    return answer;
  }

  private static JsonNode call(JsonNode request) throws Exception {
    String name = request.get("client").textValue();
    String method = request.get("method").textValue();
    switch (method) {
      case "connect":
        int connections = request.get("connections").intValue();
        CLIENTS.put(name, new Client(request.get("url").textValue(), connections));
        return null;
      case "shutdown":
        CLIENTS.remove(name).shutdown();
        return null;
      default:
        return CLIENTS.get(name).call(method, request);
    }
  }

  private static void print(PrintStream answers, ObjectNode answer) {
    try {
      // All of a line in one call, since threads take turns.
      byte[] line = (JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8);
      synchronized (answers) {
        answers.write(line);
        answers.flush();
      }
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
