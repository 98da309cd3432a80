import { describe, expect, test } from "vitest";
import { IN_PART } from "../../../src/failure.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { run } from "../../../src/lua/script.ts";
import {
  asAddress,
  bytes,
  indexEntry,
  asMember,
  message,
  newMoves,
  STAMP,
} from "../../helpers/moves.ts";
import { newAclUser } from "../../helpers/acl-user.ts";
import type { Message, Moves } from "../../helpers/moves.ts";
import { newRedis } from "../../helpers/redis.ts";

const KEY = "order 7";
const [old, late] = [message("o", 2000, KEY), message("z", 9000)];
// A message that is offered later has a greater id.
const [sooner, later] = [message("p", 1000, KEY), message("p", 3000, KEY)];
// When the key was first offered, in milliseconds, from the first message's stamp.
const SINCE = STAMP / 1000;

/** Only the first replacement here has no `maxWait`. */
const capOf = (i: number, due: number) => (i === 0 ? [] : [due]);

describe.each([
  { order: "addresses", element: asAddress, isExact: false },
  { order: "members", element: asMember, isExact: true },
] as const)("offer-keyed, a LIST of $order", ({ order, element, isExact }) => {
  async function offerOne({ redis, keys }: Moves, one: Message, rule: string) {
    const [name = "", maxWait = ""] = rule.split(":");
    const { deadline, key } = one;
    const row = { member: bytes(one.member), delay: "", deadline, key, rule: name, maxWait };
    const { results } = await run(
      redis,
      offerKeyed,
      keys,
      { channel: keys.channel, elementsAre: order },
      [row],
    );
    return results[0];
  }
  const before = {
    timeouts: [old.delayed, late.delayed],
    order: [element(old), element(late)],
    businessKeys: { [KEY]: indexEntry(old) },
  };
  /** In a LIST of addresses, the replaced message's element stays behind. */
  const orderWith = (...added: readonly Message[]) =>
    [...(isExact ? [] : [old]), late, ...added].map(element);

  test("a free key: the message is added, and indexed", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [late.delayed], order: [element(late)] });
    expect(await offerOne(queue, later, "ignore")).toEqual({ deadline: 3000, outcome: "added" });
    expect(await queue.snapshot()).toEqual({
      timeouts: [later.delayed, late.delayed],
      order: [element(late), element(later)],
      businessKeys: { [KEY]: indexEntry(later) },
      channel: ["3000"],
    });
  });

  test("without a key: the message is added, and not indexed", async () => {
    const queue = await newMoves();
    const plain = message("p", 3000);
    await queue.seed(before);
    expect(await offerOne(queue, plain, "ignore")).toEqual({ deadline: 3000, outcome: "added" });
    expect(await queue.snapshot()).toEqual({
      timeouts: [old.delayed, plain.delayed, late.delayed],
      order: [...before.order, element(plain)],
      businessKeys: before.businessKeys,
    });
  });

  test("reject: nothing changes", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const holder = bytes(old.address);
    expect(await offerOne(queue, sooner, "ignore")).toEqual({
      deadline: 2000,
      outcome: "existing",
      holder,
    });
    expect(await queue.snapshot()).toEqual(before);
  });

  test.each([
    { what: "replace by a sooner one, which is published", one: sooner, heard: ["1000"] },
    { what: "replace by a later one", one: later, heard: [] },
  ])("$what", async ({ one, heard }) => {
    const queue = await newMoves();
    await queue.seed(before);
    expect(await offerOne(queue, one, "replace")).toEqual({
      deadline: one.deadline,
      outcome: "replaced",
    });
    expect(await queue.snapshot()).toEqual({
      timeouts: [one.delayed, late.delayed],
      order: orderWith(one),
      businessKeys: { [KEY]: indexEntry(one, 2, SINCE) },
      ...(heard.length > 0 && { channel: heard }),
    });
  });

  test("keep: the new payload at the old deadline", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    expect(await offerOne(queue, later, "update")).toEqual({ deadline: 2000, outcome: "updated" });
    const kept = message("p", 2000, KEY);
    expect(await queue.snapshot()).toEqual({
      timeouts: [kept.delayed, late.delayed],
      order: orderWith(kept),
      businessKeys: { [KEY]: indexEntry(kept, 3, SINCE) },
    });
  });

  test("maxWait stays with the key: neither an offer without one nor a longer one lifts it", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const [far, limit] = [9e12, SINCE + 1000];
    for (const [i, [rule, due]] of [
      ["replace", far],
      ["replace:1000", limit],
      ["replace", limit],
      ["replace:5000", limit],
      ["update", limit],
      ["replace:400", limit - 600],
      ["replace", limit - 600],
      ["replace:1000", limit - 600],
    ].entries()) {
      const one = message(`${i}`, far, KEY);
      expect(await offerOne(queue, one, String(rule)), `${rule}, ${i}`).toMatchObject({
        deadline: due,
      });
      const stored = message(`${i}`, Number(due), KEY);
      const entry = indexEntry(stored, rule === "update" ? 3 : 2, SINCE, ...capOf(i, Number(due)));
      expect((await queue.snapshot())["businessKeys"]).toEqual({ [KEY]: entry });
    }
  });

  test("a message may be moved behind its maxWait, and the next one that replaces it may not", async () => {
    const queue = await newMoves();
    await queue.seed(before);
    const { redis, keys } = queue;
    await offerOne(queue, message("a", 9e12, KEY), "replace:1000");
    const to = { id: "", key: KEY, delay: "", deadline: 8e12 };
    const moved = await run(redis, reschedule, keys, { channel: keys.channel, ...to });
    expect(moved).toMatchObject({ deadline: 8e12 });
    expect(await offerOne(queue, message("b", 9e12, KEY), "replace")).toMatchObject({
      deadline: SINCE + 1000,
    });
  });

  test("sent twice: nothing changes, and the reply is the first one", async () => {
    const queue = await newMoves();
    const replaced = { ...before, businessKeys: { [KEY]: indexEntry(old, 2, SINCE) } };
    await queue.seed(replaced);
    expect(await offerOne(queue, message("o", 1000, KEY), "replace")).toEqual({
      deadline: 2000,
      outcome: "replaced",
    });
    expect(await queue.snapshot()).toEqual(replaced);
  });
});

test("what may not replace says that a part may be done, if an earlier copy has stored another message", async () => {
  const queue = await newMoves();
  const sent = message("s", 5000);
  await queue.seed({
    timeouts: [old.delayed, sent.delayed],
    order: [asAddress(old), asAddress(sent)],
    businessKeys: { [KEY]: indexEntry(old) },
  });
  const { url } = await newAclUser(queue.redis, ["+@all", "-zrem", "~*", "&*"]);
  const rows = [sent, later].map(({ member, deadline, key }) => ({
    member: bytes(member),
    delay: "",
    deadline,
    key,
    rule: "replace",
    maxWait: "",
  }));
  const args = { channel: queue.keys.channel };
  const offered = run(newRedis(url.href), offerKeyed, queue.keys, args, rows);
  await expect(offered).rejects.toThrow(IN_PART);
  const alone = run(newRedis(url.href), offerKeyed, queue.keys, args, rows.slice(1));
  await expect(alone).rejects.toThrow(/^(?!.*a part)/);
});
