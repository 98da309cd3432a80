import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Delayline } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { cli, CliProcess } from "../../helpers/cli.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { OwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

/** The Redis into which queues are imported. */
let target: OwnServer;
beforeAll(async () => {
  target = await OwnServer.start();
});
afterAll(() => target.stop());

interface Kind {
  readonly isReliable: boolean;
  readonly partitions?: number;
}

/** Fills a queue with `count` delayed messages, and some in every other state. */
async function fill(
  line: Delayline,
  name: string,
  { isReliable, partitions }: Kind,
  count: number,
) {
  const options = { codec: "bytes", ...(partitions !== undefined && { partitions }) } as const;
  const delayed = Array.from({ length: count }, (_, i) => ({
    payload: payloadOf(`delayed ${i}`),
    delay: HOUR + (i % 7) * 1000,
    ...(i % 2 === 0 && { key: `order:${i}` }),
  }));
  if (!isReliable) {
    const queue = line.getDelayedQueue(name, options);
    for (let i = 0; i < 25; i++) await queue.offer(payloadOf(`ready ${i}`), 0);
    await eventually(async () => (await queue.stats()).ready === 25);
    await queue.pause();
    await queue.offerMany(delayed);
    return;
  }
  const queue = line.getReliableQueue(name, { ...options, retry: () => HOUR, maxAttempts: 5 });
  const offer = async (text: string) =>
    await queue.offer(payloadOf(text), 0, { key: text, headers: { trace: `of ${text}` } });
  for (let i = 0; i < 10; i++) {
    await offer(`dead ${i}`);
    await (await queue.take()).reject(`because of ${i}`);
    await offer(`retrying ${i}`);
    await (await queue.take()).nack({ reason: `busy ${i}` });
  }
  for (let i = 0; i < 10; i++) await offer(`ready ${i}`);
  await eventually(async () => (await queue.stats()).ready === 10);
  await queue.offerMany(
    delayed.map((message, i) => ({
      ...message,
      ...(i % 3 === 0 && { headers: { n: String(i) } }),
    })),
  );
}

function payloadOf(text: string): Buffer {
  return Buffer.concat([Buffer.from([0, 255, 10]), Buffer.from(text)]);
}

/** The lines of an export without the first and the last one, sorted. */
async function linesOf(name: string, url: string): Promise<string[]> {
  const { code, stdout } = await cli(["export", name], { url });
  expect(code).toBe(0);
  return stdout.trim().split("\n").slice(1, -1).toSorted();
}

test.each<[string, Kind]>([
  ["a plain", { isReliable: false }],
  ["a reliable", { isReliable: true }],
  ["a plain partitioned", { isReliable: false, partitions: 3 }],
  ["a reliable partitioned", { isReliable: true, partitions: 3 }],
])(
  "%s queue is copied to another Redis byte for byte, and a second import duplicates nothing",
  async (_, kind) => {
    const name = uniqueName();
    await fill(newLine(), name, kind, 999);
    const { stdout: exported } = await cli(["export", name]);
    const before = await linesOf(name, redisUrl());
    expect(before.length).toBe(kind.isReliable ? 1029 : 1024);
    // Failures are exported in readable form, so that they can be edited.
    const failures = exported.match(/"failures":\[\{"attempt":1,"at":\d+,"reason":"b/g) ?? [];
    expect(failures).toHaveLength(kind.isReliable ? 20 : 0);
    expect(exported).not.toContain('"trailer"');

    const options = { url: target.url, input: exported };
    const dry = await cli(["import", "--dry-run", "--json"], options);
    expect(dry.json).toMatchObject([{ put: before.length, isWhole: true, dryRun: true }]);
    expect(await newRedis(target.url).keys(`*${name}*`)).toEqual([]);
    expect((await cli(["import"], options)).code).toBe(2);
    const done = await cli(["import", "--yes", "--json"], options);
    expect(done.json).toMatchObject([{ put: before.length, known: 0, isWhole: true }]);
    expect(await linesOf(name, target.url)).toEqual(before);

    const partitions = kind.partitions === undefined ? {} : { partitions: kind.partitions };
    const messages = { codec: "bytes", ...partitions } as const;
    const line = newLine({ redis: target.url });
    const delayed = line.getDelayedQueue(name, { ...messages, transfer: false });
    const again = await cli(["import", "--yes", "--json"], options);
    expect(again.json).toMatchObject([{ put: 0, known: before.length }]);
    const { delayed: left, ready, retries, dead, kind: found } = await delayed.stats();
    expect(left + ready + retries + dead).toBe(before.length);

    // The copy works: messages are found by their keys, and ready ones are delivered.
    expect((await delayed.get("order:998"))?.key).toBe("order:998");
    expect(await collect(delayed.find({ prefix: "order:" }))).toHaveLength(500);
    expect(found).toBe(kind.isReliable ? "reliable" : "plain");
    if (!kind.isReliable) return;
    const reliable = line.getReliableQueue(name, messages);
    const delivery = await reliable.take();
    expect(delivery.headers).toEqual({ trace: `of ${delivery.key}` });
    await delivery.ack();
  },
);

test.each(["plain", "reliable"] as const)(
  "what waits in the lanes of a %s queue is copied with its lane and priority, and waits there again",
  async (kind) => {
    const name = uniqueName();
    const open = (line: Delayline) =>
      kind === "plain"
        ? line.getDelayedQueue<string>(name)
        : line.getReliableQueue<string>(name, { retry: () => 10, maxAttempts: 5 });
    const flow = { lane: {}, ahead: 1 };
    const queue = open(newLine());
    await queue.flow.set(flow);
    if ("take" in queue) {
      await queue.offer("again", 0, { key: "again", lane: "of the retry", priority: -3 });
      await (await queue.take()).nack({ reason: "busy", delay: 300 });
    }
    await queue.offerMany(
      Array.from({ length: 51 }, (_, i) => ({
        payload: `${i}`,
        delay: 0,
        key: `key ${i}`,
        lane: `lane ${i % 3}`,
        ...(i % 2 === 0 && { priority: i - 19 }),
        ...(i === 40 && { onlyIf: { key: "{any}", exists: false as const } }),
      })),
    );
    const waiting = kind === "plain" ? 50 : 51;
    await eventually(async () => (await queue.flow.state()).waiting === waiting);
    const before = await queue.flow.state();
    await queue.pause();
    const { stdout: exported } = await cli(["export", name]);
    const [head = "", ...lines] = exported.trim().split("\n");
    expect(JSON.parse(head)).toMatchObject({ flow });
    const records = lines.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>);
    const statesOf = (state: string) => records.filter((one) => one["state"] === state);
    expect(statesOf("delayed")).toHaveLength(50);
    for (const one of statesOf("delayed")) {
      const i = Number(String(one["key"]).slice(4));
      expect([one["lane"], one["priority"]]).toEqual([
        `lane ${i % 3}`,
        i % 2 === 0 ? i - 19 : undefined,
      ]);
      expect(one["deadline"]).toBeLessThanOrEqual(Date.now());
      // Only the condition is in none of the readable fields.
      expect("trailer" in one).toBe(i === 40);
    }
    if (kind === "reliable") {
      const [retry] = statesOf("retrying");
      expect(retry).toMatchObject({ key: "again", lane: "of the retry", priority: -3 });
      expect(retry?.["deadline"]).toBeLessThanOrEqual(Date.now());
    }

    const into = async () => await cli(["import", "--yes"], { url: target.url, input: exported });
    const { code, stderr } = await into();
    expect(code).toBe(0);
    expect(stderr).toContain(
      `The exported queue has a flow, which is not imported: {"lane":{},"ahead":1}`,
    );
    expect(await linesOf(name, target.url)).toEqual(lines.slice(0, -1).toSorted());
    const idle = open(newLine({ redis: target.url, transfer: false }));
    expect(await idle.flow.get()).toBeUndefined();
    await idle.flow.set(flow);
    const copy = open(newLine({ redis: target.url }));
    await eventually(async () => (await copy.flow.state()).waiting === waiting);
    const after = await copy.flow.state();
    const byName = ({ lanes }: typeof after) =>
      lanes.map(({ lane, waiting: count }) => `${lane}: ${count}`).toSorted();
    expect(byName(after)).toEqual(byName(before));
    // Imported again while they wait, they stay as they are.
    await cli(["import", "--yes", "--as-new"], { url: target.url, input: exported });
    await eventually(async () => (await copy.stats()).overdue === 0);
    expect((await copy.flow.state()).waiting).toBe(waiting);
    expect(await copy.cancel("key 7")).toBe(true);
    expect(await copy.cancel("key 7")).toBe(false);
  },
);

test("a lane or a priority in a file that no message can have is refused", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue(name, { transfer: false }).offer("x", HOUR, { lane: "a" });
  const { stdout } = await cli(["export", name]);
  const [head = "", message = ""] = stdout.split("\n");
  const refused = async (from: string, to: string) => {
    expect(message).toContain(from);
    return (await importLines(head, message.replace(from, to))).stderr;
  };
  expect(await refused('"lane":"a"', '"lane":5')).toContain("line 2: lane must be a string");
  expect(await refused('"lane":"a"', `"lane":"${"x".repeat(101)}"`)).toContain("at most 100 bytes");
  expect(await refused('"lane":"a"', '"priority":500')).toContain("line 2: priority must be");
});

test("bytes that were set aside are copied, each to its own list", async () => {
  const name = uniqueName();
  const { quarantine, unreadable } = queueKeys(name);
  const redis = newRedis();
  await newLine().getDelayedQueue(name).offer("x", HOUR);
  await redis.rpush(quarantine, "q1", "q2");
  await redis.rpush(unreadable, "u1");
  const { stdout: exported } = await cli(["export", name]);
  expect((await cli(["import", "--yes"], { url: target.url, input: exported })).code).toBe(0);
  const copy = newRedis(target.url);
  expect(await copy.lrange(quarantine, 0, -1)).toEqual(["q1", "q2"]);
  expect(await copy.lrange(unreadable, 0, -1)).toEqual(["u1"]);
});

test("an import that was killed continues, even if messages were handled meanwhile", async () => {
  const name = uniqueName();
  await fill(newLine(), name, { isReliable: false }, 1000);
  const { stdout: exported } = await cli(["export", name]);
  const ready = newLine({ redis: target.url }).getBlockingQueue(name, { codec: "bytes" });
  const importing = new CliProcess(["import", "--yes"], { env: { REDIS_URL: target.url } });
  // It has lines 2 to 601 and waits for more when it is killed.
  importing.type(`${exported.split("\n").slice(0, 601).join("\n")}\n`);
  const redis = newRedis(target.url);
  await eventually(async () => (await redis.zcard(queueKeys(name).timeouts)) >= 500, {
    within: 60_000,
  });
  importing.kill("SIGKILL");
  await importing.ended;
  // Five of the 25 ready messages are handled before it continues.
  const early = await ready.drain(5);
  const { json } = await cli(["import", "--yes", "--json"], { url: target.url, input: exported });
  expect(Number(json[0]?.["known"])).toBeGreaterThanOrEqual(500);
  const [rest, before] = [await linesOf(name, target.url), await linesOf(name, redisUrl())];
  expect(rest.filter((line) => !isReady(line))).toEqual(before.filter((line) => !isReady(line)));
  const late = await ready.drain();
  const texts = [...early, ...late].map((bytes) => Buffer.from(bytes).toString("latin1"));
  expect(new Set(texts).size).toBe(25);
  expect(texts).toHaveLength(25);
}, 90_000);

test("a queue goes to a file and back, and a spoiled file is refused with the line's number", async () => {
  const directory = await mkdtemp(join(tmpdir(), "delayline-cli-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const [path, name] = [join(directory, "queue.jsonl"), uniqueName()];
  await newLine().getDelayedQueue(name).offer("x", HOUR, { key: "order:42" });
  const { code, stderr } = await cli(["export", name, path]);
  expect(code).toBe(0);
  expect(stderr).toBe(`Exported 1 message of queue "${name}".\n`);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const again = await cli(["export", name, path]);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("give --force")]);
  await newRedis().zadd(queueKeys(name).timeouts, Date.now() + HOUR, "?");
  const forced = await cli(["export", name, path, "--force"]);
  expect([forced.code, forced.stderr]).toEqual([0, expect.stringContaining("Left out 1 ")]);
  await newRedis().zrem(queueKeys(name).timeouts, "?");
  expect((await cli(["export", name, join(directory, "none", "x")])).code).toBe(74);
  expect(await readdir(directory)).toEqual(["queue.jsonl"]);
  const other = uniqueName();
  expect((await cli(["import", path, "--queue", other, "--yes"])).stdout).toContain("Imported 1 ");
  expect((await cli(["get", other, "order:42"])).code).toBe(0);
  expect((await cli(["import", join(directory, "none"), "--yes"])).code).toBe(2);

  const { stdout } = await cli(["export", name]);
  const [head = "", message = ""] = stdout.split("\n");
  expect((await importLines(message)).stderr).toContain("line 1: it is not the first line");
  expect((await importLines(head, message.slice(0, 40))).stderr).toContain(
    "line 2: it is not JSON",
  );
  const wrong = message.replace(/"payload":"[^"]*"/, '"payload":"%"');
  expect((await importLines(head, wrong)).stderr).toContain("line 2: payload must be base64");
  expect((await importLines(head, message, wrong)).stderr).toContain(
    "1 message imported before it",
  );
  const end = '{"end":true,"messages":1}';
  expect((await importLines(head, message, end, "")).code).toBe(0);
  expect((await importLines(head, "", end)).code).toBe(0);
  for (const lines of [[message], [end], [message, '{"end":true,"messages":2}']]) {
    const cut = await importLines(head, ...lines);
    expect([cut.code, cut.stderr]).toEqual([1, expect.stringContaining("is incomplete")]);
  }
  const twice = await importLines(head, message, end, head, message, end);
  expect([twice.code, twice.stderr]).toEqual([
    2,
    expect.stringContaining("line 4: the export has ended at line 3; 1 message imported before it"),
  ]);
  const failing = message.replace("{", '{"failures":[{"attempt":1,"at":2}],');
  expect((await importLines(head, failing)).stderr).toContain("line 2: failures must be an array");
  const never = failing.replace('"at":2', '"at":8.7e15,"reason":"late"');
  expect((await importLines(head, never)).stderr).toContain("line 2: failures must be an array");
  const edited = message.replace(/"deadline":\d+/, '"deadline":4102444800000');
  const editedInto = uniqueName();
  await cli(["import", "--queue", editedInto, "--yes"], { input: `${head}\n${edited}\n` });
  expect((await cli(["list", editedInto, "--json"])).json).toMatchObject([
    { deadline: 4102444800000 },
  ]);
});

test("importing a reliable queue into a plain one needs --make-reliable", async () => {
  const [from, to] = [uniqueName(), uniqueName()];
  await newLine().getReliableQueue(from).offer("x", HOUR);
  const plain = newLine().getDelayedQueue(to);
  await plain.offer("y", HOUR);
  const { stdout: input } = await cli(["export", from]);
  for (const how of ["--dry-run", "--yes"]) {
    const { code, stderr } = await cli(["import", "--queue", to, how], { input });
    expect([code, stderr]).toEqual([2, expect.stringContaining("--make-reliable")]);
  }
  expect((await plain.stats()).kind).toBe("plain");
  const said = await cli(["import", "--queue", to, "--make-reliable", "--yes"], { input });
  expect(said.code).toBe(0);
  expect((await plain.stats()).kind).toBe("reliable");
});

test("Ctrl-C ends an import that waits for lines", async () => {
  const interrupt = new AbortController();
  const waiting = cli(["import", "--yes"], {
    input: new PassThrough(),
    signal: interrupt.signal,
  });
  interrupt.abort();
  expect((await waiting).code).toBe(130);
});

async function importLines(...lines: string[]) {
  return await cli(["import", "--queue", uniqueName(), "--yes"], { input: lines.join("\n") });
}

/** Whether a line is about a message in the ready LIST. */
function isReady(line: string): boolean {
  return line.includes('"listed"');
}

test("a dead letter that a handler rejected as unreadable keeps its id and key", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  // It is due long before it dies. An unreadable letter is recognised by equal times for both.
  const { id } = await queue.offerAt("x", Date.now() - 60_000, { key: "k" });
  await (await queue.take()).reject("unreadable");

  const { stdout } = await cli(["export", name]);
  const [, record = "{}"] = stdout.split("\n");
  const letter = { state: "dead", id, key: "k", attempts: 1, reason: "unreadable" };
  expect(JSON.parse(record)).toMatchObject(letter);
});
