import { expect, test } from "vitest";
import { newDashboard } from "../../helpers/dashboard.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

test("schedules are listed with their state, the next one first, and changed", async () => {
  const name = uniqueName();
  const { schedules } = newLine({ transfer: false }).getReliableQueue<string>(name);
  await schedules.upsert("later", { every: 1000 * HOUR, payload: "x" });
  const { next } = await schedules.upsert("soon", { every: HOUR, payload: "x" });
  await schedules.upsert("code", { every: 2000 * HOUR, payload: ({ at }) => at.toISOString() });
  const { get, post } = newDashboard();
  const path = `api/queues/${name}/schedules`;
  const list = async () => (await get(path)).body;
  expect(await list()).toMatchObject({
    isMore: false,
    schedules: [{ name: "soon", state: "active", next, needs: "nothing" }, {}, {}],
  });
  expect(JSON.stringify(await list())).not.toContain("payload");
  const change = (verb: string, one: string) => post(`${path}/change`, { verb, name: one });
  expect((await change("pause", "soon")).body).toEqual({ done: true });
  const paused = (await list()).schedules.find((one: { name: string }) => one.name === "soon");
  expect(paused).toMatchObject({ state: "paused", next: [] });
  expect((await change("resume", "soon")).body).toEqual({ done: true });
  expect((await change("run", "soon")).body).toEqual({ done: true });
  expect((await change("remove", "soon")).body).toEqual({ done: true });
  expect((await change("remove", "soon")).body).toEqual({ done: false });
  const refused = await change("run", "code");
  expect([refused.status, refused.body.error]).toEqual([
    409,
    expect.stringContaining("which only a process has that has declared it"),
  ]);
  expect((await change("drop", "code")).status).toBe(400);
  expect((await post(`${path}/change`, { verb: "run", name: 5 })).status).toBe(400);
});

test("a schedule is shown with its set, the revision declared last, and the payload of its next run", async () => {
  const name = uniqueName("dashboard");
  const { schedules } = newLine().getReliableQueue<object>(name);
  const invoices = { every: HOUR, payload: { kind: "invoice" }, misfire: "skip" } as const;
  await schedules.declare("billing", { invoices }, { revision: 42 });
  await schedules.upsert("code", { every: 2 * HOUR, payload: ({ at }) => ({ at: at.getTime() }) });
  await schedules.upsert("paused", { every: 3 * HOUR, payload: {} });
  await schedules.pause("paused");
  const list = async (payloads: boolean) => {
    const { get } = newDashboard({ payloads });
    return await get(`api/queues/${name}/schedules?payload=1`);
  };
  expect((await list(false)).status).toBe(403);
  const all = (await list(true)).body.schedules;
  const [billed, code, paused] = ["invoices", "code", "paused"].map((wanted) =>
    all.find((one: { name: string }) => one.name === wanted),
  );
  const payload = { format: "msgpack", text: '{"kind":"invoice"}' };
  expect(billed).toMatchObject({ set: "billing", revision: 42, misfire: "skip", payload });
  expect(code.payload.text).toBe(`{"at":${code.next[0]}}`);
  expect(code.revision).toBeNull();
  expect(paused).not.toHaveProperty("payload");
});

test("a read-only dashboard shows schedules, and changes none", async () => {
  const name = uniqueName();
  const { schedules } = newLine({ transfer: false }).getReliableQueue(name);
  await schedules.upsert("soon", { every: HOUR, payload: "x" });
  const { get, post } = newDashboard({ readOnly: true });
  const path = `api/queues/${name}/schedules`;
  expect((await get(path)).body.schedules).toHaveLength(1);
  expect((await post(`${path}/change`, { verb: "remove", name: "soon" })).status).toBe(403);
  expect(await schedules.get("soon")).toBeDefined();
});
