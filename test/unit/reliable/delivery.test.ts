import { expect, test } from "vitest";
import type { NextStep } from "../../../src/queue/landing.ts";
import { Delivery, type DeliveryHost } from "../../../src/reliable/consuming/delivery.ts";
import { Held, type Origin } from "../../../src/reliable/group/held.ts";

/** A delivery, and the calls that it has made to its host. */
function newDelivery() {
  const asked: unknown[][] = [];
  const note =
    (name: string) =>
    (held: Held, ...args: readonly unknown[]) => {
      asked.push([name, ...args]);
      return Promise.resolve(held === own);
    };
  const host = {
    queue: "q",
    group: "g",
    ack: note("ack"),
    nack: note("nack"),
    reject: note("reject"),
    extend: note("extend"),
    ackAndOffer: async (held: Held, step: NextStep, ...args: readonly unknown[]) => {
      return (await note("ackAndOffer")(held, step, ...args)) ? [] : false;
    },
    follow: (options, id, offer) => {
      asked.push(["follow", options, id]);
      return offer({ landings: [], to: undefined });
    },
    hold: () => Promise.resolve(),
  } satisfies DeliveryHost;
  const entry = {
    entryId: "1-1",
    address: Buffer.alloc(24),
    payload: Buffer.from("p"),
    trailer: Buffer.alloc(0),
    attempts: 2,
    group: undefined,
    isOrphan: false,
    heldBackUntil: undefined,
    hasSlot: false,
  };
  const group = { leaseEndOf: (held) => (held === own ? 42 : NaN) } as Pick<Origin, "leaseEndOf">;
  const own: Held = new Held(entry, group as Origin, () => {});
  const content = { payload: { a: 1 }, key: "k", headers: { h: "v" } };
  return { delivery: new Delivery(content.payload, content, own, host), held: own, content, asked };
}

test("has what it was made of", () => {
  const { delivery, held, content } = newDelivery();
  expect(delivery).toMatchObject({ ...content, attempt: 3, leaseEndsAt: 42 });
  expect(delivery.id).toBe(`0-${"00".repeat(16)}`);
  expect(delivery.signal).toBe(held.signal);
});

test("calls its host, with the defaults and with all options", async () => {
  const { delivery, asked } = newDelivery();
  const { signal } = new AbortController();
  expect([
    await delivery.ack(),
    await delivery.ack({ signal }),
    await delivery.nack(),
    await delivery.nack({ delay: 0, reason: "why", signal }),
    await delivery.reject(),
    await delivery.reject("", { signal }),
    await delivery.extend(0),
    await delivery.extend(5, { signal }),
  ]).toEqual(Array.from({ length: 8 }, () => true));
  expect(asked).toEqual([
    ["ack", undefined],
    ["ack", { signal }],
    ["nack", { delay: undefined, reason: "nack", error: new Error("nack") }, undefined],
    ["nack", { delay: 0, reason: "why", error: new Error("why") }, { signal }],
    ["reject", "rejected", undefined],
    ["reject", "", { signal }],
    ["extend", 0, undefined],
    ["extend", 5, { signal }],
  ]);
});

test("takes an Error for a reason, and keeps its message", async () => {
  const { delivery, asked } = newDelivery();
  const error = new TypeError("no stock");
  await delivery.nack({ reason: error });
  await delivery.reject(error);
  await delivery.reject(new TypeError());
  expect(asked).toEqual([
    ["nack", { delay: undefined, reason: "no stock", error }, undefined],
    ["reject", "no stock", undefined],
    ["reject", "TypeError", undefined],
  ]);
});

type Call = (delivery: Delivery) => Promise<unknown>;
const bad: [what: string, call: Call, message: RegExp][] = [
  ["ack(null)", (it) => it.ack(null as never), /call options must be an object/],
  ["ack with a delay", (it) => it.ack({ delay: 5 } as never), /call option must be one of signal/],
  ["a negative delay", (it) => it.nack({ delay: -1 }), /delay must be between 0 and/],
  ["a text for a delay", (it) => it.nack({ delay: "5" as never }), /delay must be a number/],
  ["a number for a reason", (it) => it.nack({ reason: 5 as never }), /reason must be a string/],
  ["an object for a reason", (it) => it.reject({} as never), /must be a string or an Error, got/],
  ["an unknown option", (it) => it.nack({ dealy: 5 } as never), /nack option must be one of/],
  ["no signal", (it) => it.nack({ signal: {} as never }), /signal must be an AbortSignal/],
  ["no duration", (it) => it.extend(undefined as never), /duration must be a number/],
  ["a duration without end", (it) => it.extend(Infinity), /duration must be between 0 and/],
];
test.each(bad)("%s is refused, and the host is not called", async (_, call, message) => {
  const { delivery, asked } = newDelivery();
  await expect(call(delivery)).rejects.toThrow(message);
  expect(asked).toEqual([]);
});
