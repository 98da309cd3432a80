import { expect, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

/** A queue whose messages died for these reasons, one after another. */
async function newQueue(...reasons: readonly string[]) {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { codec: "string" });
  for (const reason of reasons) {
    await queue.offer(reason, 0);
    await (await queue.take()).reject(reason);
  }
  return { name, queue };
}

async function reasonsOf(queue: ReliableQueue<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const { reason } of queue.deadLetters) found.push(reason);
  return found;
}

test("dead reasons counts letters by reason, and its next step redrives one of them", async () => {
  const { name, queue } = await newQueue("timeout after 12ms", "timeout after 7ms", "no address");
  const { code, stdout, stderr } = await cli(["dead", "reasons", name]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^LETTERS +LAST +GROUP +REASON\n +2 +\S.* default +timeout after #ms\n +1 +\S.* default +no address\n$/,
  );
  expect(stderr).toContain(`npx delayline dead redrive ${name} --reason 'timeout after #ms'`);
  const dry = await cli(["dead", "redrive", name, "--reason", "timeout after #ms", "--dry-run"]);
  expect(dry.stderr).toBe(
    `Would redrive 2 dead letters of queue "${name}". Nothing was changed.\n`,
  );
  expect(await queue.deadLetters.size()).toBe(3);
  const done = await cli(["dead", "redrive", name, "--reason", "timeout after #ms", "--yes"]);
  expect(done).toMatchObject({ code: 0, stdout: `Redrove 2 dead letters of queue "${name}".\n` });
  expect(await reasonsOf(queue)).toEqual(["no address"]);
});

test("dead remove takes a whole reason, and an age", async () => {
  const { name, queue } = await newQueue("timeout after 12ms", "timeout after 7ms");
  const one = await cli(["dead", "remove", name, "--reason", "timeout after 7ms", "--yes"]);
  expect(one.stdout).toBe(`Removed 1 dead letter of queue "${name}".\n`);
  const young = await cli(["dead", "remove", name, "--older-than", "1h", "--yes"]);
  expect(young.code).toBe(1);
  expect(young.stderr).toContain(`npx delayline dead reasons ${name}`);
  expect(await reasonsOf(queue)).toEqual(["timeout after 12ms"]);
  const [letter] = (await cli(["dead", "list", name, "--json"])).json;
  const diedAt = Number(letter?.["diedAt"]);
  await eventually(async () => (await queue.stats()).serverTime > diedAt + 50);
  const old = await cli(["dead", "remove", name, "--older-than", "50ms", "--yes", "--json"]);
  expect(old.json).toEqual([{ queue: name, remove: 1 }]);
  expect(await queue.deadLetters.size()).toBe(0);
});

test.each([
  ["redrive", "--reason", "x", "--all"],
  ["list", "--reason", "x"],
  ["remove", "--older-than", "yesterday"],
  ["remove"],
])("dead %s %s %s is refused", async (word, ...rest) => {
  const { name } = await newQueue("x");
  const { code, stdout } = await cli(["dead", word, name, ...rest]);
  expect([code, stdout]).toEqual([2, ""]);
});

test("a reason opens into what its letters say in full, and its next step redrives one of these", async () => {
  const whole = "timeout of ann after 12ms";
  const { name, queue } = await newQueue(whole, "answered 503", whole, "timeout of ann after 7ms");
  const folded = "timeout of ann after #ms";
  const { code, stdout, stderr } = await cli(["dead", "reasons", name, "--reason", folded]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^LETTERS +SINCE +LAST +GROUP +WHOLE REASON\n +2 .* "timeout of ann after 12ms"\n +1 .* "timeout of ann after 7ms"\n$/,
  );
  expect(stderr).toContain(`dead redrive ${name} --reason '${whole}'`);
  const none = await cli(["dead", "reasons", name, "--reason", "answered 500"]);
  expect(none).toMatchObject({ code: 1, stdout: "" });
  await cli(["dead", "redrive", name, "--reason", whole, "--yes"]);
  expect(await reasonsOf(queue)).toEqual(["answered 503", "timeout of ann after 7ms"]);
  expect((await cli(["log", name])).stdout).toContain(`redrove 2 dead letters: reason ${whole}`);
});
