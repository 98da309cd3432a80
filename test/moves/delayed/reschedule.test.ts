import { describe, expect, test } from "vitest";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, indexEntry, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

type Due = "delay" | "deadline";

const FAR = 5_000_000_000_000;
const [a, b] = [message("a", FAR, "key of a"), message("b", FAR + 1, "key of b")];
const gone = message("g", FAR, "key of g");

const byId = ({ address }: Message) => ({ id: bytes(address), key: "" });
const byKey = ({ key }: Message) => ({ id: "", key });

describe.each([
  { by: "id", order: "addresses", of: byId, element: asAddress },
  { by: "id", order: "members", of: byId, element: asMember },
  { by: "key", order: "addresses", of: byKey, element: asAddress },
  { by: "key", order: "members", of: byKey, element: asMember },
] as const)("reschedule by $by, a LIST of $order", ({ of, order, element }) => {
  const change = ({ redis, keys }: Moves, target: Message, due: Partial<Record<Due, number>>) =>
    run(redis, reschedule, keys, {
      elementsAre: order,
      channel: keys.channel,
      ...of(target),
      delay: "",
      deadline: "",
      ...due,
    });
  const putOff = (queue: Moves, target: Message, delay: number) => change(queue, target, { delay });
  const before = {
    timeouts: [a.delayed, b.delayed],
    order: [a, b].map(element),
    businessKeys: { "key of a": indexEntry(a), "key of b": indexEntry(b, 2, 1000) },
  };

  test("sooner than all others: goes to the end of the order, and is published", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const { deadline = NaN } = (await putOff(queue, b, 60_000)) ?? {};
    const moved = message("b", deadline, "key of b");
    expect(await queue.snapshot()).toEqual({
      timeouts: [moved.delayed, a.delayed],
      order: (order === "addresses" ? [a, b, moved] : [a, moved]).map(element),
      businessKeys: { "key of a": indexEntry(a), "key of b": indexEntry(moved, 2, 1000) },
      channel: [String(deadline)],
    });
  });

  test("later than all others: publishes nothing", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const { deadline = NaN } = (await putOff(queue, a, FAR)) ?? {};
    const moved = message("a", deadline, "key of a");
    expect(await queue.snapshot()).toEqual({
      timeouts: [b.delayed, moved.delayed],
      order: (order === "addresses" ? [a, b, moved] : [b, moved]).map(element),
      businessKeys: { "key of a": indexEntry(moved), "key of b": indexEntry(b, 2, 1000) },
    });
  });

  test("at an instant, even in the past", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    expect(await change(queue, b, { deadline: 1000 })).toMatchObject({ deadline: 1000 });
    const moved = message("b", 1000, "key of b");
    expect(await queue.snapshot()).toEqual({
      timeouts: [moved.delayed, a.delayed],
      order: (order === "addresses" ? [a, b, moved] : [a, moved]).map(element),
      businessKeys: { "key of a": indexEntry(a), "key of b": indexEntry(moved, 2, 1000) },
      channel: ["1000"],
    });
  });

  test("now: due on the server's clock, and published", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const [earliest] = await queue.redis.time();
    const { deadline = NaN } = (await change(queue, b, {})) ?? {};
    const [seconds, micros] = await queue.redis.time();
    expect(deadline).toBeGreaterThanOrEqual(Number(earliest) * 1000);
    expect(deadline).toBeLessThanOrEqual(Number(seconds) * 1000 + Number(micros) / 1000);
    const moved = message("b", deadline, "key of b");
    expect(await queue.snapshot()).toEqual({
      timeouts: [moved.delayed, a.delayed],
      order: (order === "addresses" ? [a, b, moved] : [a, moved]).map(element),
      businessKeys: { "key of a": indexEntry(a), "key of b": indexEntry(moved, 2, 1000) },
      channel: [String(deadline)],
    });
  });

  test("now, but due already: keeps its place among the due messages", async () => {
    const queue = await newMoves();
    const [c, d] = [message("c", 1000, "key of c"), message("d", 1001, "key of d")];
    const due = {
      timeouts: [c.delayed, d.delayed],
      order: [c, d].map(element),
      businessKeys: { "key of c": indexEntry(c), "key of d": indexEntry(d) },
    };
    await queue.seed(due);
    expect(await change(queue, c, {})).toMatchObject({ deadline: 1000 });
    expect(await queue.snapshot()).toEqual(due);
  });

  test("a message that is gone: nothing changes", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    expect(await putOff(queue, gone, 60_000)).toBeUndefined();
    expect(await queue.snapshot()).toEqual(before);
  });
});
