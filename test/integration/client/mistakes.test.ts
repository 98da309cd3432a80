import { describe, expect, test } from "vitest";
import { DelaylineError } from "../../../src/index.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { ACCEPTED, REFUSED, type Bench } from "./mistakes.ts";

/*
 * Mistakes that users make, by the table beside. Each is refused by an error that says what was wrong, the rule, the
 * value, and the way out unless the rule is the way out; or it is accepted for a reason.
 */

async function newBench(): Promise<Bench> {
  const line = newLine();
  const ended = newLineThatMayFail({ transfer: false });
  const name = uniqueName();
  const closed = ended.getDelayedQueue(name);
  await ended.close();
  const reliable = line.getReliableQueue(uniqueName());
  await reliable.offer("x", 0);
  return {
    line,
    name,
    delayed: line.getDelayedQueue(name),
    blocking: line.getBlockingQueue(name),
    reliable,
    delivery: await reliable.take(),
    accepted: line.getDelayedQueue(uniqueName()),
    ended,
    closed,
  };
}

/** Calls once; returns the message of the error, and whether it is one of those that report mistakes. */
async function refusalOf(call: (its: Bench) => unknown, bench: Bench) {
  const timely = AbortSignal.timeout(5_000);
  const error = await new Promise<unknown>((resolve) => {
    timely.addEventListener("abort", () => resolve("it was accepted, or waits"));
    void (async () => await call(bench))().then(() => resolve("it was accepted"), resolve);
  });
  const isOurs =
    error instanceof TypeError || error instanceof RangeError || error instanceof DelaylineError;
  return { isOurs, message: error instanceof Error ? error.message : String(error) };
}

describe("refused", () => {
  test("every call, and nothing is stored or taken", async () => {
    const bench = await newBench();
    const wrong: string[] = [];
    for (const [mistake, call, says] of REFUSED) {
      if (typeof call === "string") continue;
      const { isOurs, message } = await refusalOf(call, bench);
      const missing = says.filter((part = "") => !message.includes(part));
      if (!isOurs || missing.length > 0)
        wrong.push(`${mistake}: ${message} lacks ${missing.join(" | ")}`);
    }
    expect(wrong).toEqual([]);
    expect(await bench.delayed.size()).toBe(0);
    expect(await bench.reliable.size()).toBe(0);
    expect(await bench.delivery.ack()).toBe(true);
  });

  test("every command line", async () => {
    const wrong: string[] = [];
    for (const [mistake, words, says] of REFUSED) {
      if (typeof words !== "string") continue;
      // No server is asked.
      const { code, stderr } = await cli(words.split(" "), { url: "redis://127.0.0.1:1" });
      const missing = says.filter((part = "") => !stderr.includes(part));
      if (code !== 2 || missing.length > 0)
        wrong.push(`${mistake}: ${stderr} lacks ${missing.join(" | ")}`);
    }
    expect(wrong).toEqual([]);
  });
});

describe("accepted", () => {
  test.each(ACCEPTED)("%s", async (_, call, reason) => {
    expect(reason).not.toBe("");
    await call(await newBench());
  });
});

test("the table has at least 150 mistakes, each once, and says the rule and the value of each", () => {
  const names = [...REFUSED, ...ACCEPTED].map(([mistake]) => mistake);
  expect(names.length).toBeGreaterThanOrEqual(150);
  expect(new Set(names).size).toBe(names.length);
  for (const [mistake, , [what, rule, value, wayOut]] of REFUSED) {
    expect(what, mistake).not.toBe("");
    // Where there is no value to show (nothing was given, or it may be a password), the rule says what to do.
    expect([rule, value, wayOut].filter(Boolean).length, mistake).toBeGreaterThanOrEqual(1);
  }
});
