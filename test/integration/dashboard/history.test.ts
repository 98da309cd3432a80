import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newDashboard } from "../../helpers/dashboard.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

/** A Redis with a queue of three messages. */
async function seeded() {
  const { url } = await startOwnServer();
  const orders = newLine({ redis: url, transfer: false }).getDelayedQueue("orders");
  await orders.offerMany(Array.from({ length: 3 }, () => ({ payload: "x", delay: HOUR })));
  const redis = newRedis(url);
  const { history } = queueKeys("orders");
  const isKept = () => eventually(async () => expect(await redis.exists(history)).toBe(1));
  return { url, redis, history, isKept };
}

/** Counts the runs of the script that notes. */
function countNotes(): () => number {
  let notes = 0;
  const listener = (message: unknown) => {
    if ((message as ScriptEvent).script === "note-history") notes++;
  };
  subscribe("delayline:script", listener);
  onTestFinished(() => void unsubscribe("delayline:script", listener));
  return () => notes;
}

test("the past is noted while no page is open, and is there at once in the next process", async () => {
  const { url, isKept } = await seeded();
  const first = newDashboard({ redis: url, keepHistory: true });
  await isKept();
  await first.board.close();
  // This one only looks, and has read nothing itself yet.
  const { get } = newDashboard({ redis: url, readOnly: true });
  const { body } = await get("api/lines?span=day");
  expect(body).toMatchObject({ isKept: true, whyNot: expect.stringContaining("keeps no history") });
  expect(body.totals.delayed).toHaveLength(96);
  expect(body.totals.delayed.at(-1)).toBe(3);
  expect(body.queues.orders.ready.at(-1)).toBe(0);
  const month = await get("api/queues/orders/history?span=quarter");
  expect(month.body.isKept).toBe(true);
  expect(month.body.points).toMatchObject([{ delayed: 3, dead: 0, late: 0 }]);
  expect((await get("api/lines?span=year")).status).toBe(400);
});

test("an hour is what Redis has, and then what this process reads", async () => {
  const { url, isKept, redis, history } = await seeded();
  const { get } = newDashboard({ redis: url, keepHistory: true });
  await isKept();
  // As if the only note were ten minutes old.
  const minute = Math.floor(Date.now() / 60_000);
  const slots = Buffer.alloc(4 + 60 * 7);
  slots.writeUInt32BE(Math.floor((minute - 10) / 60));
  slots[4 + 7 * ((minute - 10) % 60)] = 9;
  await redis.hset(history, `h${Math.floor((minute - 10) / 60) % 25}`, slots);
  const { points } = (await get("api/queues/orders/history")).body;
  expect(points[0]).toMatchObject({ at: (minute - 10) * 60_000, delayed: 8 });
  expect(points.at(-1)).toMatchObject({ delayed: 3, overdue: 0 });
});

test("several dashboards note each minute once", async () => {
  const { url, redis, history, isKept } = await seeded();
  const notes = countNotes();
  newDashboard({ redis: url, keepHistory: true });
  await isKept();
  const before = await redis.hget(history, "last");
  const others = [1, 2, 3].map(() => newDashboard({ redis: url, keepHistory: true }));
  for (const { get } of others) await get("api/queues");
  // Those that have not noticed it ask the script, which has it already.
  await eventually(() => expect(notes()).toBeGreaterThan(1));
  expect((await redis.hget(history, "last"))?.split(" ")[0]).toBe(before?.split(" ")[0]);
});

test("a dashboard that only reads writes nothing, and says that it knows only its own past", async () => {
  const { url, redis } = await seeded();
  const notes = countNotes();
  const { get } = newDashboard({ redis: url, readOnly: true });
  const keys = await redis.keys("*");
  await get("api/queues");
  const { body } = await get("api/lines");
  expect(body).toMatchObject({ isKept: false, whyNot: "this dashboard keeps no history in Redis" });
  expect(body.totals.delayed.at(-1)).toBe(3);
  expect((await get("api/lines?span=quarter")).body.totals.delayed).toEqual(
    Array.from({ length: 90 }, () => null),
  );
  expect(notes()).toBe(0);
  expect(await redis.keys("*")).toEqual(keys);
});

test("a user who may not write sees why", async () => {
  const { url, redis, history } = await seeded();
  const rules = ["on", ">secret", "~*", "&*", "+@all", "-hset"];
  await redis.acl("SETUSER", "looker", ...rules);
  const limited = url.replace("redis://", "redis://looker:secret@");
  const { get } = newDashboard({ redis: limited, keepHistory: true });
  await eventually(async () => {
    const { body } = await get("api/lines");
    expect(body.isKept).toBe(false);
    expect(body.whyNot).toContain("does not allow its user a command");
  });
  expect(await redis.exists(history)).toBe(0);
  const { points } = (await get("api/queues/orders/history")).body;
  expect(points.at(-1)).toMatchObject({ delayed: 3 });
});
