import { describe, expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { cli } from "../../helpers/cli.ts";
import { uniqueName } from "../../helpers/redis.ts";

/*
 * A time of the wrong kind is refused: an instant where a delay belongs, a delay or seconds where an instant belongs.
 * It would make the message due at once, or in decades.
 */

const MINUTE = 60_000;
const IN_AN_HOUR = Date.now() + 60 * MINUTE;
const ANY = "; if it is meant, set anyTime";

const tooLong = (value: number, wayOut: string) =>
  new RangeError(`must be between 0 and 946728000000 ms (30 years), got ${value}; ${wayOut}`);

const noInstant = (value: number, wayOut: string) =>
  new RangeError(
    `at must be between 100000000000 and 253402300799999 epoch milliseconds (1973 to 9999), got ${value}${wayOut}; epoch is in milliseconds${ANY}`,
  );

describe.each(["getDelayedQueue", "getReliableQueue"] as const)("a queue of %s", (get) => {
  const open = (options?: { readonly anyTime: boolean }) => {
    const line = newLine({ transfer: false });
    return get === "getDelayedQueue"
      ? line.getDelayedQueue(uniqueName(), options)
      : line.getReliableQueue(uniqueName(), options);
  };

  test("refuses an instant as a delay", async () => {
    const queue = open();
    const rule = tooLong(IN_AN_HOUR, `an instant? use offerAt${ANY}`).message;
    await expect(queue.offer("x", IN_AN_HOUR)).rejects.toThrow(new RangeError(`delay ${rule}`));
    const many = queue.offerMany([{ payload: "x", delay: IN_AN_HOUR }]);
    await expect(many).rejects.toThrow(
      new RangeError(`messages[0].delay ${rule.replace("offerAt", "at")}`),
    );
    await queue.offer("x", MINUTE, { key: "k" });
    await expect(queue.reschedule("k", IN_AN_HOUR)).rejects.toThrow(
      new RangeError(`delay ${rule.replace("offerAt", "rescheduleAt")}`),
    );
    expect(await queue.get("k")).toMatchObject({ payload: "x" });
    expect(await queue.size()).toBe(1);
  });

  test("refuses a date as a delay", async () => {
    const queue = open();
    const date = new Date(IN_AN_HOUR) as never;
    const rule = "delay must be a number of milliseconds, got a Date; an instant? use";
    await expect(queue.offer("x", date)).rejects.toThrow(new TypeError(`${rule} offerAt`));
    await expect(queue.reschedule("k", date)).rejects.toThrow(
      new TypeError(`${rule} rescheduleAt`),
    );
    const many = queue.offerMany([{ payload: "x", delay: date }]);
    await expect(many).rejects.toThrow(new TypeError(`messages[0].${rule} at`));
  });

  test.each([0, MINUTE, 1_900_000_000])("refuses %d as an instant", async (at) => {
    const queue = open();
    const offer = queue.offerAt("x", at);
    await expect(offer).rejects.toThrow(noInstant(at, "; a delay? use offer"));
    const change = queue.rescheduleAt("k", at);
    await expect(change).rejects.toThrow(noInstant(at, "; a delay? use reschedule"));
    expect(await queue.size()).toBe(0);
  });

  test("refuses microseconds as an instant, and a date made from seconds", async () => {
    const queue = open();
    const at = IN_AN_HOUR * 1000;
    await expect(queue.offerAt("x", at)).rejects.toThrow(noInstant(at, ""));
    await expect(queue.offerAt("x", new Date(1_900_000_000))).rejects.toThrow(
      `at must be a plausible date, got 1970-01-22T23:46:40.000Z; made from seconds? a Date takes milliseconds${ANY}`,
    );
    expect(await queue.size()).toBe(0);
  });

  test("takes a delay of 30 years, and an instant of 2083 or 1973", async () => {
    const queue = open();
    await queue.offer("x", 946_728_000_000);
    expect(await queue.offerAt("x", 1e11)).toMatchObject({ deadline: 1e11 });
    const far = Date.parse("2083-01-01");
    expect(await queue.offerAt("x", far)).toMatchObject({ deadline: far });
  });

  test("takes all of them with anyTime", async () => {
    const queue = open({ anyTime: true });
    await queue.offer("x", IN_AN_HOUR, { key: "k" });
    await queue.offerMany([{ payload: "x", delay: IN_AN_HOUR }]);
    await queue.reschedule("k", IN_AN_HOUR);
    for (const at of [0, MINUTE, 1_900_000_000, IN_AN_HOUR * 1000]) {
      expect(await queue.offerAt("x", at)).toMatchObject({ deadline: at });
      expect(await queue.rescheduleAt("k", new Date(at))).toMatchObject({ deadline: at });
    }
  });
});

test("anyTime of a client holds for its queues", async () => {
  const line = newLine({ transfer: false, anyTime: true });
  const name = uniqueName();
  expect(await line.getDelayedQueue(name).offerAt("x", 7)).toMatchObject({ deadline: 7 });
  const strict = line.getDelayedQueue(name, { anyTime: false });
  await expect(strict.offerAt("x", 7)).rejects.toThrow(RangeError);
});

test("a wait, a pause and a lease are no instants either", async () => {
  const queue = newLine().getReliableQueue(uniqueName());
  await queue.offer("x", 0);
  const delivery = await queue.take();
  const calls: readonly [string, () => Promise<unknown>][] = [
    ["delay", () => delivery.nack({ delay: IN_AN_HOUR })],
    ["duration", () => delivery.extend(IN_AN_HOUR)],
    ["delay", () => queue.deadLetters.redrive("all", { delay: IN_AN_HOUR })],
    ["timeout", () => queue.poll(IN_AN_HOUR)],
    ["timeout", () => queue.takeMany({ limit: 1, timeout: IN_AN_HOUR })],
  ];
  for (const [name, call] of calls) {
    await expect(call()).rejects.toThrow(
      `${name} ${tooLong(IN_AN_HOUR, "an instant? subtract Date.now()").message}`,
    );
  }
  await delivery.ack();
});

test("the command line refuses them before it connects, and imports what an export holds", async () => {
  const name = uniqueName();
  const queue = newLine({ transfer: false, anyTime: true }).getDelayedQueue(name);
  await queue.offerAt("x", 7, { key: "k" });
  const url = "redis://127.0.0.1:1";
  const run = async (...argv: string[]) => await cli([...argv, "--timeout", "1s"], { url });
  const instant = await run("reschedule", name, "k", "--in", `${IN_AN_HOUR}ms`, "--yes");
  expect(instant).toMatchObject({ code: 2 });
  expect(instant.stderr).toContain("--in must be between 0 and 946728000000 ms (30 years), got");
  expect(instant.stderr).toContain("an instant? use --at");
  const microseconds = await run("reschedule", name, "k", "--at", `${IN_AN_HOUR}000`, "--yes");
  expect(microseconds).toMatchObject({ code: 2 });
  expect(microseconds.stderr).toContain("years 1970 and 9999");
  const redrive = await run("dead", "redrive", name, "--delay", `${IN_AN_HOUR}ms`, "--yes");
  expect(redrive).toMatchObject({ code: 2 });
  expect(redrive.stderr).toContain("30 years");

  const other = uniqueName();
  const { stdout } = await cli(["export", name]);
  const imported = await cli(["import", "--queue", other, "--yes"], { input: stdout });
  expect(imported).toMatchObject({ code: 0 });
  const copy = newLine({ transfer: false }).getDelayedQueue(other);
  expect(await copy.get("k")).toMatchObject({ deadline: 7 });
});
