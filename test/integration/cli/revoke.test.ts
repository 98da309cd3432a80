import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("running lists what consumers have; revoke says what it will stop, and what it has stopped", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name, { codec: "string" });
  await queue.offer("1", 0, { key: "order:1" });
  const { id, signal } = await queue.take();
  await queue.offer("2", 60_000, { key: "order:2" });

  const listed = await cli(["running", name]);
  expect(listed.code).toBe(0);
  expect(listed.stdout).toContain(id);
  expect(listed.stdout).toMatch(new RegExp(`order:1 +default +\\S+/${process.pid} .* 1\n$`));
  expect((await cli(["running", name, "--json"])).json).toMatchObject([
    { queue: name, id, key: "order:1", pid: process.pid, attempt: 1 },
  ]);

  const dry = await cli(["revoke", name, "order:1", "order:2", "order:3", "--dry-run"]);
  expect(dry.code).toBe(5);
  expect(dry.stderr).toBe(
    `"order:3" is gone.\nWould revoke 2 messages of queue "${name}" (1 running, 1 delayed). Nothing was changed.\n`,
  );
  expect(signal.aborted).toBe(false);

  const argv = ["revoke", name, "order:1", "order:2", "--reason", "paid", "--yes"];
  const revoked = await cli([...argv, "--wait", "20ms"]);
  expect(revoked.code).toBe(0);
  expect(revoked.stdout).toBe(
    '"order:1" was running; its handler may still run.\n"order:2" was delayed.\n',
  );
  await eventually(() => signal.aborted);
  expect(signal.reason).toMatchObject({ code: "REVOKED", reason: "paid" });
  expect((await cli(["running", name])).code).toBe(1);
  expect((await cli(argv)).code).toBe(1);
  await queue.offer("4", 60_000, { key: "order:4" });
  expect((await cli(["revoke", name, "order:4", "--yes", "--json"])).json).toMatchObject([
    { queue: name, revoked: "order:4", stage: "delayed", hasEnded: true },
  ]);
});

test("get tells the stage of a message, as the queue does, and how to stop it", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name, { codec: "string" });
  await queue.offer("1", 0, { key: "running" });
  await queue.take();
  await queue.flow.set({ rate: { limit: 1, per: 3_600_000 }, lane: {} });
  await queue.offer("2", 0, { key: "passed", lane: "a" });
  await queue.offer("3", 0, { key: "waiting", lane: "a" });
  await eventually(async () => (await queue.stats()).waiting === 1);
  const look = async (key: string) => {
    const { json, code } = await cli(["get", name, key, "--json"]);
    expect(code).toBe(0);
    const [{ stage }] = json as [{ stage: string }];
    expect((await queue.stage(key)).stage).toBe(stage);
    const { stdout, stderr } = await cli(["get", name, key]);
    return { stage, stdout, next: stderr };
  };
  const running = await look("running");
  expect(running.stage).toBe("running");
  expect(running.stdout).toMatch(/"running" is in flight .*\n(?:.*\n)*? +stage +running\n/);
  expect(running.next).toContain(`To stop it: npx delayline revoke ${name}`);
  const waiting = await look("waiting");
  expect(waiting.stage).toBe("waiting");
  expect(waiting.stdout).toMatch(/"waiting" is delayed .*\n(?:.*\n)*? +stage +waiting\n/);
  expect(waiting.next).toContain(`flow ${name}`);
  const ready = await look("passed");
  expect(ready.stage).toBe("ready");
  expect(ready.stdout).not.toContain("stage");
  expect(ready.next).toContain(`To stop it: npx delayline revoke ${name}`);
});

test("what a strict queue holds back is retrying", async () => {
  const name = uniqueName();
  const settings = {
    codec: "string",
    partitions: 2,
    exclusive: true,
    strict: true,
    retry: () => 3_600_000,
  } as const;
  const queue = newLineThatMayFail().getReliableQueue<string>(name, settings);
  await queue.offer("1", 0, { key: "failed" });
  queue.subscribe(() => Promise.reject(new Error("enough")));
  await eventually(async () => (await queue.stage("failed")).stage === "retrying");
  expect((await cli(["get", name, "failed", "--json"])).json).toMatchObject([
    { state: "in flight", stage: "retrying", attempts: 1 },
  ]);
});

test("a plain queue is refused, with the reason", async () => {
  const name = uniqueName();
  await newLine({ transfer: false }).getDelayedQueue(name).offer(1, 60_000, { key: "order:1" });
  for (const argv of [
    ["revoke", name, "order:1"],
    ["running", name],
  ]) {
    const refused = await cli(argv);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("is plain: its ready messages have no ids");
  }
});
