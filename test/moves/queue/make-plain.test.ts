import { describe, expect, test } from "vitest";
import type { Elements } from "../../../src/lua/family.ts";
import { makePlain, type MakePlainReply } from "../../../src/lua/queue/make-plain.ts";
import { run } from "../../../src/lua/script.ts";
import { packTrailer } from "../../../src/queue/message/trailer.ts";
import { eventually } from "../../helpers/eventually.ts";
import {
  asAddress,
  asMember,
  asText,
  message,
  newMoves,
  retryFor,
  waitingFor,
  type Fields,
  type Moves,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";

const FAR = 5_000_000_000_000;
const [a, b, c] = [message("a", 1000), message("b", 2000), message("c", 3000)];
const entry = (payload: string): Fields => ({ a: message(payload, 1000).address, p: payload });

async function make(
  { redis, keys }: Moves,
  elementsAre: Elements = "addresses",
  limit = 2,
): Promise<MakePlainReply> {
  const args = { channel: keys.channel, limit, timeout: 60_000, elementsAre };
  return await run(redis, makePlain, keys, args);
}

const forms = [
  { order: "addresses", element: asAddress },
  { order: "members", element: asMember },
] as const;

describe.each(forms)("a LIST of $order", ({ order, element }) => {
  test("retries become delayed messages, a step at a time, then the stream is deleted", async () => {
    const queue = await newMoves();
    // Failures in one group do not concern the other.
    const failures = [{ attempt: 1, at: 1, reason: "busy" }];
    const failed = asText(packTrailer({ failures }));
    const [retryA, retryB] = [retryFor(a, "g", 3, failed), retryFor(b, "g", 1)];
    const again = retryFor(a, "h", 1);
    await queue.seed({ groups: ["g", "h"] });
    await queue.seed({
      stream: [entry("x"), { ...entry("y"), n: "2", g: "g" }],
      retries: [
        [retryA.name, FAR],
        [again.name, FAR + 1],
        [retryB.name, FAR + 2],
      ],
      retrying: {
        [retryA.name]: retryA.value,
        [again.name]: again.value,
        [retryB.name]: retryB.value,
      },
    });
    const left = { isPlain: false, consumers: 0, ready: 2 };
    expect(await make(queue, order)).toEqual({ ...left, retrying: 1, moved: 2 });
    expect(await make(queue, order)).toEqual({ ...left, retrying: 0, moved: 1 });
    expect(await make(queue, order)).toEqual({
      isPlain: true,
      consumers: 0,
      ready: 0,
      retrying: 0,
      moved: 2,
    });
    // The message that was retrying in two groups is one message, due at the earlier time.
    const delayedA = message("a", FAR);
    const delayedB = message("b", FAR + 2);
    expect(await queue.snapshot()).toEqual({
      ready: ["x", "y"],
      timeouts: [
        [a.member, FAR],
        [b.member, FAR + 2],
      ],
      order: [delayedA, delayedB].map(element),
      channel: ["0"],
    });
  });
});

test.each(forms)(
  "a message that is held back is delayed for the rest of its pause; a LIST of $order",
  async ({ order, element }) => {
    const queue = await newMoves();
    await queue.seed({ groups: ["g"] });
    const failed = { ...entry("x"), n: "2", g: "g" };
    await queue.seed({
      stream: [
        { ...failed, ...entry("a"), u: String(FAR) },
        { ...failed, u: "1000" },
      ],
    });
    expect(await make(queue, order)).toMatchObject({ isPlain: true, moved: 2 });
    expect(await queue.snapshot()).toEqual({
      ready: ["x"],
      timeouts: [[a.member, FAR]],
      order: [element(message("a", FAR))],
      channel: ["0"],
    });
  },
);

test("a retry that waits for its turn becomes due when it was, and messages go on waiting", async () => {
  const queue = await newMoves();
  const [retryA, retryC] = [retryFor(a, "g", 1), retryFor(c, "h", 1)];
  const [waitingB, waitingC] = [waitingFor(b, ""), waitingFor(c, "")];
  const room = { [waitingB.id]: waitingB.kept, [waitingC.id]: waitingC.kept };
  await queue.seed({ groups: ["g", "h"] });
  await queue.seed({
    stream: [entry("x")],
    retries: [
      // What it was for another group waits as a message already.
      [retryC.name, 9e15 + 7000],
      [retryA.name, 9e15 + 5000],
    ],
    retrying: { [retryA.name]: retryA.value, [retryC.name]: retryC.value },
    room,
    flow: { kind: "lanes" },
  });
  expect(await make(queue)).toMatchObject({ isPlain: false, retrying: 0, moved: 2 });
  expect(await make(queue)).toMatchObject({ isPlain: true });
  const snapshot = await queue.snapshot();
  expect(snapshot).toMatchObject({ ready: ["x"], timeouts: [[a.member, 5000]], room });
  expect(snapshot.retries).toBeUndefined();
});

test("what messages have collected becomes elements of the LIST, in order, however much it is", async () => {
  const queue = await newMoves();
  const many = Array.from({ length: 4000 }, (_, i) => `payload ${i}`);
  const collected = many.map((payload) => Buffer.from(payload));
  const failures = [{ attempt: 1, at: 1, reason: "busy" }];
  const trailer = asText(packTrailer({ key: "k", collected, failures }));
  await queue.seed({
    stream: [entry("w"), { ...entry("x"), t: trailer }, { ...entry("y"), t: trailer }],
  });
  expect(await make(queue, "addresses", 3)).toMatchObject({ isPlain: true, moved: 3 });
  expect(await queue.snapshot()).toEqual({
    ready: ["w", ...many, "x", ...many, "y"],
    channel: ["0"],
  });
});

test("a field that is none of collected payloads is nothing", async () => {
  const queue = await newMoves();
  const trailer = asText(packTrailer({ key: "k", collected: [Buffer.from("payload")] }));
  // The length of the field, and that of the payload, which does not fill it.
  const broken = [trailer.slice(0, -1), trailer.replace("\x07\0\0\0payload", "\x06\0\0\0payload")];
  await queue.seed({ stream: broken.map((t) => ({ ...entry("x"), t })) });
  expect(await make(queue)).toMatchObject({ isPlain: true, moved: 2 });
  expect(await queue.snapshot()).toMatchObject({ ready: ["x", "x"] });
});

test("nothing is done while a live consumer has messages in flight", async () => {
  const queue = await newMoves();
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entry("x"), entry("y")] });
  const { redis, keys } = queue;
  await redis.xreadgroup("GROUP", "g", "me", "COUNT", 1, "STREAMS", keys.stream, ">");
  const before = await queue.snapshot();
  const alive = { isPlain: false, consumers: 1, ready: 2, retrying: 0, moved: 0 };
  expect(await make(queue)).toEqual(alive);
  expect(await queue.snapshot()).toEqual(before);
});

test("messages in flight for a dead consumer go to the LIST, too", async () => {
  const queue = await newMoves();
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entry("x"), entry("y")] });
  const { redis, keys } = queue;
  const name = "delayline:1:00000000-0000-4000-8000-000000000000";
  await redis.xreadgroup("GROUP", "g", name, "COUNT", 1, "STREAMS", keys.stream, ">");
  // Its name says that a millisecond of silence is enough.
  await eventually(async () => (await make(queue)).isPlain);
  expect(await queue.snapshot()).toEqual({ ready: ["x", "y"], channel: ["0"] });
});

test("messages that every group has acknowledged are dropped", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  await queue.seed({ groups: ["g"] });
  await queue.seed({ stream: [entry("x"), entry("y"), entry("z")] });
  const name = "delayline:1:00000000-0000-4000-8000-000000000000";
  await redis.xreadgroup("GROUP", "g", name, "COUNT", 2, "STREAMS", keys.stream, ">");
  // A group that was destroyed since then had not acknowledged it.
  const [[first] = []] = await redis.xrange(keys.stream, "-", "+");
  await redis.xack(keys.stream, "g", first ?? "");
  await eventually(async () => (await make(queue, "addresses", 3)).isPlain);
  expect(await queue.snapshot()).toEqual({ ready: ["y", "z"], channel: ["0"] });
});

test("messages in the stream stay if one step may not move them all", async () => {
  const queue = await newMoves();
  await queue.seed({ stream: [entry("x"), entry("y"), entry("z")] });
  const before = await queue.snapshot();
  expect(await make(queue)).toMatchObject({ isPlain: false, consumers: 0, ready: 3, moved: 0 });
  expect(await queue.snapshot()).toEqual(before);
});

test("foreign bytes are kept", async () => {
  const queue = await newMoves();
  await queue.seed({
    stream: [{ what: "is this" }, entry("x")],
    retries: [["broken", FAR]],
    retrying: { broken: "bytes" },
  });
  await make(queue);
  expect(await make(queue)).toMatchObject({ isPlain: true, moved: 1 });
  expect(await queue.snapshot()).toEqual({
    ready: ["x"],
    unreadable: ["bytes", "whatis this"],
    channel: ["0"],
  });
});

test("changes nothing in a plain queue", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: ["x"], timeouts: [c.delayed], order: [c.address] });
  expect(await make(queue)).toMatchObject({ isPlain: true, moved: 0 });
  const { channel, ...rest } = await queue.snapshot();
  expect(rest).toEqual({ ready: ["x"], timeouts: [c.delayed], order: [c.address] });
  expect(channel).toEqual(["0"]);
});

test("changes nothing if the key of the LIST has another type", async () => {
  const queue = await newMoves();
  await queue.seed({ stream: [entry("x")] });
  await queue.redis.set(queue.keys.ready, "no list");
  await expect(make(queue)).rejects.toThrow("WRONGTYPE");
  expect(await queue.redis.xlen(queue.keys.stream)).toBe(1);
});

test("moves the stream to the LIST even if memory is full", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  await queue.seed({ stream: [entry("x")] });
  await queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  expect(await make(queue)).toMatchObject({ isPlain: true, moved: 1 });
  await queue.redis.config("SET", "maxmemory", "0");
  expect(await queue.snapshot()).toMatchObject({ ready: ["x"] });
});
