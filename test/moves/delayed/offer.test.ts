import { describe, expect, test } from "vitest";
import { IN_PART } from "../../../src/failure.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { run } from "../../../src/lua/script.ts";
import { asAddress, bytes, asMember, message, newMoves } from "../../helpers/moves.ts";
import type { Message, Moves } from "../../helpers/moves.ts";

const [a, b, c] = [message("a", 1000), message("b", 2000), message("c", 3000)];

describe.each([
  { order: "addresses", element: asAddress },
  { order: "members", element: asMember },
] as const)("offer, a LIST of $order", ({ order, element }) => {
  async function offerAll({ redis, keys }: Moves, messages: readonly Message[]) {
    const rows = messages.map(({ member, deadline }) => ({
      member: bytes(member),
      delay: "",
      deadline,
    }));
    return (await run(redis, offer, keys, { channel: keys.channel, elementsAre: order }, rows))
      .deadlines;
  }

  test.each([
    { what: "a first message is published", there: [], offered: [b], heard: ["2000"] },
    { what: "one before the head is published", there: [b], offered: [a], heard: ["1000"] },
    { what: "one behind the head is not", there: [a], offered: [b], heard: [] },
    { what: "of several the first deadline is", there: [c], offered: [b, a], heard: ["1000"] },
  ])("$what", async ({ there, offered, heard }) => {
    const queue = await newMoves();
    await queue.seed({ timeouts: there.map((one) => one.delayed), order: there.map(element) });
    expect(await offerAll(queue, offered)).toEqual(offered.map(({ deadline }) => deadline));
    const all = [...there, ...offered];
    expect(await queue.snapshot()).toEqual({
      timeouts: [a, b, c].filter((one) => all.includes(one)).map((one) => one.delayed),
      order: all.map(element),
      ...(heard.length > 0 && { channel: heard }),
    });
  });

  test("sent twice: nothing changes, and the reply is the first deadline", async () => {
    const queue = await newMoves();
    const before = { timeouts: [a.delayed], order: [element(a)] };
    await queue.seed(before);
    expect(await offerAll(queue, [message("a", 500)])).toEqual([1000]);
    expect(await queue.snapshot()).toEqual(before);
  });

  test("refused: the error says that a part may be done if an earlier copy is stored", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [a.delayed] });
    await queue.redis.set(queue.keys.order, "no list");
    const refusals = await Promise.allSettled(
      [[a], [b], [b, a]].map((all) => offerAll(queue, all)),
    );
    const told = refusals.map((refusal) => String((refusal as PromiseRejectedResult).reason));
    expect(told.map((text) => text.includes("WRONGTYPE"))).toEqual([true, true, true]);
    expect(told.map((text) => text.includes(IN_PART))).toEqual([true, false, true]);
    await queue.redis.del(queue.keys.order);
    expect(await queue.snapshot()).toEqual({ timeouts: [a.delayed] });
  });
});
