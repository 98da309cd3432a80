import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { RejectError } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

// Whatever a handler throws, its message is retried like others, and the next ones are handled.

const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

function trap(name: string): Error {
  return Object.defineProperty(new Error("x"), name, {
    get() {
      throw new Error(`no ${name}`);
    },
  });
}

const THROWN: readonly (readonly [what: string, thrown: unknown, reason: string])[] = [
  ["a revoked proxy", revoked, "the handler threw object"],
  ["an error whose message throws", trap("message"), "Error"],
  ["an error whose cause throws", trap("cause"), "x"],
  ["an error whose stack throws", trap("stack"), "x"],
  ["an error of another realm", runInNewContext("new TypeError('declined')"), "declined"],
];

test.each(THROWN)(
  "%s: retried, then dead, and the next message is handled",
  async (_, thrown, reason) => {
    const line = newLine();
    const queue = line.getReliableQueue<string>(uniqueName(), { retry: [0], maxAttempts: 2 });
    let [attempts, handled] = [0, 0];
    const handler = (payload: string) => {
      if (payload === "next") return void handled++;
      attempts++;
      throw thrown;
    };
    const subscription = queue.subscribe(handler, { concurrency: 1 });
    await queue.offerMany([
      { payload: "bad", delay: 0 },
      { payload: "next", delay: 50 },
    ]);
    await eventually(async () => {
      expect(handled).toBe(1);
      expect(await queue.deadLetters.size()).toBe(1);
    });
    expect(attempts).toBe(2);
    for await (const letter of queue.deadLetters) expect(letter.reason).toBe(reason);
    expect(line.errors.splice(0).map(({ code }) => code)).toEqual(["HANDLER", "HANDLER"]);
    await subscription.close();
  },
);

test("a plain queue goes on after what its handler has thrown", async () => {
  const name = uniqueName();
  const line = newLine();
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe((payload) => {
    seen.push(payload);
    throw revoked;
  });
  for (const payload of ["a", "b"]) await line.getDelayedQueue<string>(name).offer(payload, 0);
  await eventually(() => expect(seen).toEqual(["a", "b"]));
  expect(line.errors.splice(0)).toHaveLength(2);
});

test("a RejectError of another copy of the library makes a dead letter at once", async () => {
  const there = "../../../src/reliable/consuming/handling.ts?copy";
  const { RejectError: Other } = (await import(there)) as { RejectError: typeof RejectError };
  const queue = newLine().getReliableQueue<string>(uniqueName(), { retry: [0] });
  let attempts = 0;
  queue.subscribe(() => {
    attempts++;
    throw new Other("never");
  });
  await queue.offer("x", 0);
  await eventually(async () => expect(await queue.deadLetters.size()).toBe(1));
  expect(new Other("x")).not.toBeInstanceOf(RejectError);
  expect(attempts).toBe(1);
});
