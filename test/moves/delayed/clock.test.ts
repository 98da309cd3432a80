import { describe, expect, test } from "vitest";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import { packAddress } from "../../../src/queue/message/message.ts";
import { bytes, message, newMoves, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const a = message("a", NOW);

function transferAt({ redis, keys }: Moves, instant: number, grace = 0) {
  const args = { limit: 100, grace, claim: 0, task: "task", known: 0, makes: 0, mark: 0 };
  return run(redis, scriptAt(instant, transfer.list), keys, args);
}

describe("transfer at an exact instant", () => {
  test.each([
    { what: "a microsecond early moves nothing", instant: NOW - 0.001, moved: 0 },
    { what: "at its deadline a message is due", instant: NOW, moved: 1 },
    { what: "within the grace nothing is overdue", instant: NOW + 49.999, grace: 50, moved: 0 },
    { what: "at the end of the grace it is", instant: NOW + 50, grace: 50, moved: 1 },
  ])("$what", async ({ instant, grace, moved }) => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [a.delayed] });
    const reply = await transferAt(queue, instant, grace);
    expect(reply).toMatchObject({ moved, serverTime: instant, next: moved === 0 ? NOW : Infinity });
  });

  test("a deadline with a fraction, which a foreign writer wrote, waits for the next whole millisecond", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [[a.member, NOW + 0.25]] });
    expect(await transferAt(queue, NOW + 0.999)).toMatchObject({ moved: 0, next: NOW + 0.25 });
    expect(await transferAt(queue, NOW + 1)).toMatchObject({ moved: 1 });
  });
});

test.each([
  { delay: 0, deadline: NOW },
  // Over already: before the one of 0.
  { delay: -1, deadline: NOW - 1 },
  { delay: -2, deadline: NOW - 2 },
  { delay: 1, deadline: NOW + 2 },
  { delay: 0.5, deadline: NOW + 1 },
  { delay: 0.75, deadline: NOW + 1 },
  { delay: 0.751, deadline: NOW + 2 },
])(
  "$delay ms from a quarter past a millisecond: rounded up, but 0 is due at once, and less than 0 before",
  async (offered) => {
    const { delay, deadline } = offered;
    const { redis, keys } = await newMoves();
    const rows = [{ member: bytes(a.member), delay, deadline: "" }];
    const script = scriptAt(NOW + 0.25, offer);
    const reply = await run(redis, script, keys, { channel: keys.channel }, rows);
    expect(reply).toEqual({ serverTime: NOW + 0.25, deadlines: [deadline] });
  },
);

test.each([
  { what: "one that is due keeps its deadline", now: NOW, deadline: NOW },
  { what: "one that is not gets the current millisecond", now: NOW - 0.5, deadline: NOW - 1 },
])("promoted, $what", async ({ now, deadline }) => {
  const queue = await newMoves();
  await queue.seed({ timeouts: [a.delayed] });
  const { redis, keys } = queue;
  const address = packAddress(NOW, bytes(a.member).subarray(1, 17));
  const args = { channel: keys.channel, id: address, key: "", delay: "", deadline: "" };
  const reply = await run(redis, scriptAt(now, reschedule), keys, args);
  expect(reply).toMatchObject({ deadline });
});
