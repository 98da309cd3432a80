import { expect, test } from "vitest";
import { lookBack } from "../../../src/lua/queue/look-back.ts";
import { run } from "../../../src/lua/script.ts";
import { createId, packMember } from "../../../src/queue/message/message.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";

const look = ({ redis, keys }: Moves) => run(redis, lookBack, keys, {});

const NOTHING = {
  isClaimed: false,
  claimedAt: undefined,
  deadline: undefined,
  offeredAt: undefined,
};

test("look-back: the last claim, and the first delayed message", async () => {
  const queue = await newMoves();
  expect(await look(queue)).toEqual(NOTHING);
  const member = packMember(createId(1_700_000_000_123_000), Buffer.from("x"));
  await queue.redis.zadd(queue.keys.timeouts, 2_000_000_000_000, member);
  await queue.redis.zadd(queue.keys.timeouts, 2_000_000_000_001, "later");
  await queue.redis.set(queue.keys.mover, "asks:me@1700000000456789");
  expect(await look(queue)).toEqual({
    isClaimed: true,
    claimedAt: 1_700_000_000_456.789,
    deadline: 2_000_000_000_000,
    offeredAt: 1_700_000_000_123,
  });
});

test.each(["asks:me", "", "me@", "me@1.5", `me@${"9".repeat(40)}`])(
  "look-back: the claim %j tells no instant",
  async (mover) => {
    const queue = await newMoves();
    await queue.redis.set(queue.keys.mover, mover);
    expect(await look(queue)).toEqual({ ...NOTHING, isClaimed: true });
  },
);

test.each([
  { what: "no id", member: Buffer.from("garbage") },
  { what: "an id of another length", member: packMember(Buffer.alloc(8, 1), Buffer.from("x")) },
  { what: "an id of Java", member: packMember(Buffer.alloc(16, 0xff), Buffer.from("x")) },
])("look-back: $what tells no instant", async ({ member }) => {
  const queue = await newMoves();
  await queue.redis.zadd(queue.keys.timeouts, 5, member);
  expect(await look(queue)).toEqual({ ...NOTHING, deadline: 5 });
});

test("look-back: a claim of another type is none", async () => {
  const queue = await newMoves();
  await queue.redis.rpush(queue.keys.mover, "a list");
  expect(await look(queue)).toEqual(NOTHING);
});
