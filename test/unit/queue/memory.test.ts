import { expect, test, vi } from "vitest";
import type { TransferReply } from "../../../src/lua/delayed/transfer.ts";
import type { Past } from "../../../src/lua/queue/look-back.ts";
import { Memory } from "../../../src/queue/memory.ts";
import { BOUND } from "../../../src/redis/fuse.ts";
import { networkTime } from "../../../src/time/runtime.ts";
import { transferReply } from "../../helpers/transfer-task.ts";

const NOTHING: Past = {
  isClaimed: false,
  claimedAt: undefined,
  deadline: undefined,
  offeredAt: undefined,
};

/** What a process that was shown `replies` finds when Redis shows `past`, if it was last heard so much later. */
async function find(
  replies: readonly Partial<TransferReply>[],
  past: Partial<Past>,
  heardAfter = BOUND + 1,
) {
  const memory = new Memory("orders", async () => ({ ...NOTHING, ...past }));
  for (const reply of replies) memory.note(transferReply(reply));
  return (await memory.examine(networkTime.now() + heardAfter)).sign;
}

const claim = (claimedAt: number) => ({ isClaimed: true, claimedAt });

test("an earlier claim than Redis had shown for long shows an older copy", async () => {
  const sign = await find([{ claimedAt: 5000 }], claim(4000));
  expect(sign).toEqual({ queue: "orders", knownAt: 5000, foundAt: 4000 });
});

test.each([
  { what: "the same claim", past: claim(5000) },
  { what: "a later one", past: claim(6000) },
  { what: "none", past: {} },
  { what: "one of an older release", past: { isClaimed: true } },
])("$what shows none", async ({ past }) => {
  expect(await find([{ claimedAt: 5000 }], past)).toBeUndefined();
});

test("what Redis had shown lately may be lost in a failover", async () => {
  expect(await find([{ claimedAt: 5000 }], claim(4000), BOUND - 1000)).toBeUndefined();
});

test("what a burst has shown last counts from then on, however long nothing follows", async () => {
  const memory = new Memory("orders", async () => ({ ...NOTHING, ...claim(2000) }));
  const now = vi.spyOn(networkTime, "now");
  for (const [at, claimedAt] of [
    [0, 1000],
    [1000, 1000],
    [1100, 2000],
    [1200, 3000],
    [10_000, undefined],
  ] as const) {
    now.mockReturnValue(at);
    memory.note(transferReply({ claimedAt }));
  }
  expect((await memory.examine(1200 + BOUND)).sign).toMatchObject({ knownAt: 3000, foundAt: 2000 });
  now.mockRestore();
});

test("without a claim, a message that was due before all were done shows an older copy", async () => {
  const done = { serverTime: 100_000, next: 200_000 };
  const again = { deadline: 90_000, offeredAt: 80_000 };
  expect(await find([done], again)).toMatchObject({ knownAt: 100_000, foundAt: undefined });
  for (const past of [
    { ...again, deadline: 150_000 },
    { ...again, offeredAt: 150_000 },
    { ...again, offeredAt: undefined },
    { ...again, isClaimed: true },
  ])
    expect(await find([done], past), JSON.stringify(past)).toBeUndefined();
  // Nothing was done while the queue was paused, or a message was due.
  expect(await find([{ ...done, isPaused: true }], again)).toBeUndefined();
  expect(await find([{ ...done, next: 90_000 }], again)).toBeUndefined();
});

test("what was accepted counts from then on", async () => {
  const memory = new Memory("orders", async () => ({ ...NOTHING, ...claim(4000) }));
  expect(memory.isEmpty).toBe(true);
  memory.note(transferReply({ claimedAt: 5000 }));
  expect(memory.claimedAt).toBe(5_000_000);
  const first = await memory.examine(networkTime.now() + 2 * BOUND);
  expect(first.sign).toBeDefined();
  first.accept();
  expect(memory.claimedAt).toBe(4_000_000);
  expect((await memory.examine(networkTime.now() + 2 * BOUND)).sign).toBeUndefined();
});

test("whoever may not look goes on", async () => {
  const refused = Object.assign(new Error("NOPERM no"), { name: "ReplyError" });
  const memory = new Memory("orders", () => Promise.reject(refused));
  memory.note(transferReply({ claimedAt: 5000 }));
  expect((await memory.examine(Infinity)).sign).toBeUndefined();
  const lost = new Memory("orders", () => Promise.reject(new Error("Connection is closed.")));
  lost.note(transferReply({ claimedAt: 5000 }));
  await expect(lost.examine(Infinity)).rejects.toThrow("Connection is closed.");
});
