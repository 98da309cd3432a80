import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
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
