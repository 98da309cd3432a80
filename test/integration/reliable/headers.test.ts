import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import { Delay } from "../../../src/time/delay.ts";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { packMember } from "../../../src/queue/message/message.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { newReliableParts } from "../../helpers/reliable.ts";

const due = { delay: new Delay(60_000) };
const payload = Buffer.from("payload");
const headers = { traceparent: "00-1", ünï: "" };

test("headers are stored with a message, with or without a key, and delivered with it", async () => {
  const { delayed } = newReliableParts(uniqueName());
  const plain = await delayed.offer({ payload, due, headers });
  const keyed = await delayed.offer({ payload, due, headers, key: "k", rule: "ignore" });
  const bare = await delayed.offer({ payload, due });
  expect(await delayed.get(plain.id)).toMatchObject({ payload, headers, key: undefined });
  expect(await delayed.get("k")).toMatchObject({ id: keyed.id, payload, headers, key: "k" });
  expect(await delayed.get(bare.id)).toMatchObject({ payload, headers: undefined });
  const all = await collect(delayed.inOrder());
  expect(all.map((message) => message.headers)).toEqual([headers, headers, undefined]);
});

test("offers of one turn keep their own headers, with and without keys among them", async () => {
  const { delayed } = newReliableParts(uniqueName());
  const offers = [{ headers: { a: "1" } }, {}, { key: "k", rule: "ignore" as const, headers }];
  const offerings = offers.map((more) => ({ payload, due, ...more }));
  const results = await delayed.offerMany(offerings);
  const found = await Promise.all(results.map(({ id }) => delayed.get(id)));
  expect(found.map((message) => message?.headers)).toEqual([{ a: "1" }, undefined, headers]);
});

test("replacing a message replaces its headers", async () => {
  const { delayed } = newReliableParts(uniqueName());
  await delayed.offer({ payload, due, headers: { a: "1" }, key: "k", rule: "replace" });
  await delayed.offer({ payload, due, headers: { b: "2" }, key: "k", rule: "replace" });
  expect((await delayed.get("k"))?.headers).toEqual({ b: "2" });
  expect(await delayed.size()).toBe(1);
});

test("large headers count towards the megabyte that a batch of offers may have", async () => {
  const { delayed } = newReliableParts(uniqueName());
  const rows: number[] = [];
  const onRun = (run: unknown) => {
    const { script, rows: count } = run as ScriptEvent;
    if (script === "offer") rows.push(count);
  };
  subscribe("delayline:script", onRun);
  onTestFinished(() => void unsubscribe("delayline:script", onRun));
  const offering = { payload: Buffer.alloc(5_000), due, headers: { a: "x".repeat(8_000) } };
  await delayed.offerMany(Array.from({ length: 200 }, () => offering));
  expect(await delayed.size()).toBe(200);
  // 80 offers of 13,001 bytes fit into a megabyte.
  expect(rows).toEqual([80, 80, 40]);
});

test("without headers the trailer of an offer is empty, or the bare key", async () => {
  const name = uniqueName();
  const { queue, delayed } = newReliableParts(name);
  await delayed.offer({ payload, due });
  await delayed.offer({ payload, due, key: "k", rule: "ignore" });
  const members = await newRedis().zrangeBuffer(queue.keys.timeouts, "0", "-1");
  const id = Buffer.alloc(16);
  const lengths = members.map((member) => member.length);
  expect(lengths).toEqual([packMember(id, payload).length, packMember(id, payload, "k").length]);
});

test("a plain queue refuses headers", async () => {
  const queue = newLine({ transfer: false }).getDelayedQueue(uniqueName());
  const options = { headers } as object;
  await expect(queue.offer("a", 5000, options)).rejects.toThrow(/offer option must be one of/);
  await expect(queue.offerAt("a", Date.now(), options)).rejects.toThrow(/offer option must be/);
  const message = { payload: "a", delay: 5000, ...options };
  await expect(queue.offerMany([message])).rejects.toThrow(/property of messages\[0\] must be/);
  await expect(queue.offer("a", 5000, null as never)).rejects.toThrow(TypeError);
  expect(await queue.size()).toBe(0);
});
