import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Entry } from "../../../src/lua/places/stream.ts";
import { Held, HeldDeliveries, type Origin } from "../../../src/reliable/group/held.ts";
import { Suspects } from "../../../src/reliable/group/suspects.ts";

function entry(more: Partial<Entry> = {}): Entry {
  return {
    entryId: "1-1",
    address: Buffer.alloc(24),
    payload: Buffer.from("p"),
    trailer: Buffer.alloc(0),
    attempts: 0,
    group: undefined,
    isOrphan: false,
    heldBackUntil: undefined,
    hasSlot: false,
    ...more,
  };
}

/** A group that its deliveries ask for nothing but its settings. */
function newGroup(maxAttempts = 10): Origin {
  return { settings: { maxAttempts } } as Origin;
}

/** A delivery, and how often it has left. */
function newHeld(more: Partial<Entry> = {}, group = newGroup()) {
  const left: Held[] = [];
  return { held: new Held(entry(more), group, (gone) => left.push(gone)), left };
}

const lost = () => Promise.resolve(false);
const never = () => Promise.reject(new Error("was sent"));
const settled = () => Promise.resolve(true);
const fails = (): Promise<boolean> => Promise.reject(new Error("no reply"));

test("the attempt is one more than the deliveries before", () => {
  expect(newHeld().held.attempt).toBe(1);
  expect(newHeld({ attempts: 7 }).held.attempt).toBe(8);
});

test("became ready when its entry was added, or when it is no longer held back", () => {
  expect(newHeld({ entryId: "50-1" }).held.readyAt).toBe(50);
  expect(newHeld({ entryId: "50-1", heldBackUntil: 70 }).held.readyAt).toBe(70);
  expect(newHeld({ entryId: "50-1", heldBackUntil: 30 }).held.readyAt).toBe(50);
});

test("leaves once, when it is settled", async () => {
  const { held, left } = newHeld();
  const { signal } = held;
  expect(await held.settle(settled)).toBe(true);
  expect([held.isHeld, left, signal.aborted]).toEqual([false, [held], false]);
  expect(await held.settle(never)).toBe(false);
  expect(await held.extend(never)).toBe(false);
  held.lose();
  expect(left).toEqual([held]);
  expect(signal.aborted).toBe(false);
});

test.each([
  ["a settlement", (held: Held) => held.settle(lost)],
  ["an extension", (held: Held) => held.extend(lost)],
])("is found to be lost by %s", async (_, learn) => {
  const { held, left } = newHeld();
  const { signal } = held;
  expect(await learn(held)).toBe(false);
  expect([held.isHeld, left, signal.aborted]).toEqual([false, [held], true]);
  expect(String(signal.reason)).toBe("Error: the lease of the delivery was lost");
});

test("what was asked for and failed is tried again before anything else, until it is carried out", async () => {
  const { held, left } = newHeld();
  const sent: string[] = [];
  const send = (name: string, outcome: () => Promise<boolean>) => () => {
    sent.push(name);
    return outcome();
  };
  // Not asked for: it is forgotten.
  await expect(held.settle(send("release", fails))).rejects.toThrow("no reply");
  expect(held.isAsked).toBe(false);
  let outcome: () => Promise<boolean> = fails;
  await expect(
    held.settle(
      send("ack", () => outcome()),
      true,
    ),
  ).rejects.toThrow("no reply");
  expect(held.isAsked).toBe(true);
  await expect(held.settleAsAsked(send("bury", settled))).rejects.toThrow("no reply");
  expect([held.isHeld, held.isAsked]).toEqual([true, true]);
  outcome = settled;
  expect(await held.settleAsAsked(send("bury", settled))).toBe(true);
  expect(await held.settleAsAsked(send("bury", settled))).toBe(false);
  expect(sent).toEqual(["release", "ack", "ack", "ack"]);
  expect(left).toEqual([held]);
});

test("without anything asked for, the given settlement is sent; the last one asked for counts", async () => {
  const { held } = newHeld();
  expect(await held.settleAsAsked(settled)).toBe(true);
  const other = newHeld().held;
  let isRepeated = false;
  await expect(other.settle(fails, true)).rejects.toThrow("no reply");
  const second = () => {
    if (isRepeated) return settled();
    isRepeated = true;
    return fails();
  };
  await expect(other.settle(second, true)).rejects.toThrow("no reply");
  expect(await other.settleAsAsked(never)).toBe(true);
});

test("an aborted call is withdrawn, and so is what was asked for before", async () => {
  const { held } = newHeld();
  const signal = AbortSignal.abort();
  await expect(held.settle(fails, true)).rejects.toThrow("no reply");
  await expect(held.settle(fails, true, { signal })).rejects.toThrow("no reply");
  expect(held.isAsked).toBe(false);
  expect(await held.settleAsAsked(lost)).toBe(false);
});

test("a settlement that is under way is awaited before it is decided what was asked for", async () => {
  const { held } = newHeld();
  let sent = 0;
  const first = held.settle(async () => {
    if (sent++ > 0) return true;
    await turn();
    throw new Error("no reply");
  }, true);
  const second = held.settleAsAsked(never);
  await expect(first).rejects.toThrow("no reply");
  expect(await second).toBe(true);
});

test("the last delivery is number maxAttempts, or a later one", () => {
  expect([2, 3, 4].map((most) => newHeld({ attempts: 2 }, newGroup(most)).held.isLast)).toEqual([
    true,
    true,
    false,
  ]);
});

test("a granted extension keeps the delivery in hand", async () => {
  const { held, left } = newHeld();
  expect(await held.extend(settled)).toBe(true);
  expect([held.isHeld, left]).toEqual([true, []]);
});

test("a settlement whose reply is lost leaves the delivery held, to be settled again", async () => {
  const { held, left } = newHeld();
  const failure = new Error("no reply");
  await expect(held.settle(() => Promise.reject(failure))).rejects.toBe(failure);
  expect([held.isHeld, held.isSettling, left]).toEqual([true, false, []]);
  expect(await held.settle(settled)).toBe(true);
});

test("of several settlements one is under way; the next is sent only if that fails", async () => {
  const { held } = newHeld();
  const sent: string[] = [];
  const answers: ((isSettled: boolean | Error) => void)[] = [];
  const send = (name: string) => () => {
    sent.push(name);
    return new Promise<boolean>((resolve, reject) => {
      answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer)));
    });
  };
  const all = ["a", "b", "c"].map((name) => held.settle(send(name)));
  const outcomes = Promise.allSettled(all);
  await turn();
  expect([sent, held.isSettling]).toEqual([["a"], true]);
  answers[0]?.(new Error("no reply"));
  await turn();
  expect(sent.length).toBe(2);
  answers[1]?.(true);
  const values = (await outcomes).map((outcome) =>
    outcome.status === "fulfilled" ? outcome.value : "failed",
  );
  expect(values).toEqual(["failed", true, false]);
  expect(sent).toEqual(["a", "b"]);
});

test("the signal is aborted with the first reason, whether it is read before or after", () => {
  const { held: before } = newHeld();
  const { signal } = before;
  before.abort("first");
  before.abort("second");
  expect([signal.aborted, signal.reason]).toEqual([true, "first"]);
  expect(before.signal).toBe(signal);
  const { held: after } = newHeld();
  after.abort(undefined);
  after.lose();
  expect(after.signal.aborted).toBe(true);
  expect((after.signal.reason as Error).name).toBe("AbortError");
});

const isSuspect = (attempts: number, isOrphan: boolean) =>
  newHeld({ attempts, isOrphan }).held.isSuspect;

test("is a suspect if a consumer died of it and it was delivered twice", () => {
  expect([1, 2, 3].map((attempts) => isSuspect(attempts, true))).toEqual([false, true, true]);
  expect(isSuspect(5, false)).toBe(false);
});

test("a delivery is held from when it is added until it leaves", async () => {
  const left: string[] = [];
  const deliveries = new HeldDeliveries(newGroup(), (held) =>
    left.push(`${held.entry.entryId} of ${deliveries.size}`),
  );
  const [a, b] = ["1-1", "1-2"].map((entryId) => deliveries.add(entry({ entryId }))) as [
    Held,
    Held,
  ];
  expect([deliveries.size, deliveries.all()]).toEqual([2, [a, b]]);
  expect([deliveries.get("1-1"), deliveries.get("1-3")]).toEqual([a, undefined]);
  const before = deliveries.all();
  await a.settle(settled);
  b.lose();
  // The callback comes after it has left.
  expect(left).toEqual(["1-1 of 1", "1-2 of 0"]);
  expect([deliveries.size, deliveries.get("1-1"), before.length]).toEqual([0, undefined, 2]);
});

test("whichever delivery leaves, the others stay in their order", () => {
  const ids = ["1-1", "1-2", "1-3", "1-4"];
  for (const gone of ids) {
    const deliveries = new HeldDeliveries(newGroup(), () => {});
    for (const entryId of ids) deliveries.add(entry({ entryId }));
    const left = deliveries.get(gone)!;
    left.lose();
    const rest = ids.filter((id) => id !== gone);
    const heldNow = () => deliveries.all().map((held) => held.entry.entryId);
    expect([heldNow(), left.previous, left.next]).toEqual([rest, undefined, undefined]);
    expect(deliveries.unheldOf(["1-0", ...ids])).toEqual(["1-0", gone]);
    deliveries.add(entry({ entryId: "1-5" }));
    expect([heldNow(), deliveries.size]).toEqual([[...rest, "1-5"], 4]);
    for (const held of deliveries.all()) held.lose();
    expect([heldNow(), deliveries.size]).toEqual([[], 0]);
  }
});

test("one suspect waits and the others go back; it is handed out when nothing else is held", async () => {
  const deliveries = new HeldDeliveries(newGroup(), () => {});
  const suspects = new Suspects(deliveries);
  const add = (entryId: string, attempts: number) =>
    deliveries.add(entry({ entryId, attempts, isOrphan: true }));
  const [fresh, first, second] = [add("1-1", 1), add("1-2", 2), add("1-3", 2)];
  expect([suspects.mustRest, suspects.readLimit]).toEqual([false, Infinity]);
  expect(suspects.sift([fresh, first, second])).toEqual({ fresh: [fresh], surplus: [second] });
  expect([suspects.mustRest, suspects.readLimit]).toEqual([true, 1]);
  await fresh.settle(settled);
  expect(suspects.mustRest).toBe(true);
  await second.settle(settled);
  expect(suspects.mustRest).toBe(false);

  expect(suspects.handOut()).toBe(first);
  expect([suspects.mustRest, suspects.handOut()]).toEqual([true, undefined]);
  await first.settle(settled);
  expect(suspects.mustRest).toBe(false);
  // An empty read changes nothing.
  suspects.sift([]);
  expect(suspects.readLimit).toBe(1);
  const last = add("1-4", 0);
  expect(suspects.sift([last])).toEqual({ fresh: [last], surplus: [] });
  expect(suspects.readLimit).toBe(Infinity);
});

test("a suspect that lost its lease while it waited is not handed out", () => {
  const deliveries = new HeldDeliveries(newGroup(), () => {});
  const suspects = new Suspects(deliveries);
  const held = deliveries.add(entry({ attempts: 2, isOrphan: true }));
  suspects.sift([held]);
  held.lose();
  expect([suspects.mustRest, suspects.handOut()]).toEqual([false, undefined]);
});

test("a settlement that was begun holds up others until it has ended; none begins twice, or against what was asked for", async () => {
  const { held, left } = newHeld();
  expect([held.beginSettling(), held.beginSettling(), held.isSettling]).toEqual([
    true,
    false,
    true,
  ]);
  const sent: string[] = [];
  const send = (name: string) => () => {
    sent.push(name);
    return Promise.resolve(true);
  };
  const first = held.settle(send("first"));
  const second = held.settleAsAsked(() => held.settle(send("second")));
  await turn();
  expect(sent).toEqual([]);
  held.endSettling();
  expect([await first, await second, sent, left]).toEqual([true, false, ["first"], [held]]);
  expect(held.beginSettling()).toBe(false);
  const asked = newHeld().held;
  await expect(asked.settle(fails, true)).rejects.toThrow("no reply");
  expect(asked.beginSettling()).toBe(false);
  const other = newHeld();
  other.held.beginSettling();
  other.held.endSettling(false);
  expect([other.held.isSettling, other.held.signal.aborted, other.left]).toEqual([
    false,
    true,
    [other.held],
  ]);
});
