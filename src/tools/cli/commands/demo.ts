import { RedisStartError } from "../../../adapters/testing/index.ts";
import { runDemo } from "../demo/demo.ts";
import { work } from "../demo/worker.ts";
import { UsageError } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";

export const demo = defineCommand({
  usage: "demo [--once]",
  help: `Shows the queue at work: ten orders that fall due, two workers to kill, and the dashboard.
Starts the redis-server that is on the PATH, or uses the Redis at REDIS_URL or --redis, under a
name of its own. Whatever happens is told on the terminal, and single keys take part in it.
Leaves nothing behind.`,
  words: [0, 2],
  options: { once: { type: "boolean" } },
  optionHelp: { once: "runs by itself, without keys: pays one order, kills one worker, and ends" },
  async run(session, [role, queue = "", ...others], { once = false }) {
    const { io, addresses, namedUrls, signal, output } = session;
    if (typeof addresses.redis !== "string") {
      throw new UsageError(
        "the demo takes one server: neither --cluster nor --sentinel, and one --redis",
      );
    }
    // It starts its workers like this.
    if (role === "worker" && queue !== "") {
      await work(addresses.redis, queue, signal);
      return EXIT.done;
    }
    if (role !== undefined || others.length > 0)
      throw new UsageError("usage: delayline demo [--once]");
    if (!once && io.stdin.isTTY !== true) {
      throw new UsageError(
        "there is no terminal to press keys on: give --once to let the demo run by itself",
      );
    }
    try {
      const isKept = await runDemo(session, namedUrls[0], once);
      if (signal.aborted) return EXIT.interrupted;
      return isKept ? EXIT.done : EXIT.nothing;
    } catch (error) {
      if (!(error instanceof RedisStartError)) throw error;
      for (const line of error.message.split("\n")) output.say(line);
      return EXIT.redis;
    }
  },
});
