import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

/** A reliable queue with two delayed messages and one dead letter. */
async function newQueue(name = uniqueName()) {
  const queue = newLine().getReliableQueue(name, { codec: "string" });
  await queue.offer("dead", 0, { key: "order:dead" });
  const delivery = await queue.take();
  await delivery.reject("why");
  const first = await queue.offer("1", HOUR, { key: "order:1" });
  await queue.offer("2", HOUR, { key: "order:2" });
  return { name, queue, id: first.id, deadId: delivery.id };
}

test("--dry-run changes nothing, and neither does a run without a terminal and --yes", async () => {
  const { name, queue, id, deadId } = await newQueue();
  const before = await queue.stats();
  const changes = [
    ["cancel", name, id],
    ["cancel", name, "--prefix", "order:"],
    ["reschedule", name, "order:1", "--in", "1m"],
    ["deliver-now", name, "order:1"],
    ["pause", name],
    ["dead", "redrive", name],
    ["dead", "remove", name, deadId],
  ];
  for (const argv of changes) {
    const dry = await cli([...argv, "--dry-run"]);
    expect(dry.code, argv.join(" ")).toBe(0);
    expect(dry.stderr).toMatch(/^Would .*\. Nothing was changed\.\n$/);
    const unasked = await cli(argv);
    expect(unasked.code, argv.join(" ")).toBe(2);
    expect(unasked.stderr).toMatch(/give --yes to/);
  }
  const { serverTime: _, ...after } = await queue.stats();
  expect(before).toMatchObject(after);
  expect((await queue.get("order:1"))?.id).toBe(id);
});

test("on a terminal it asks for confirmation, and no means no", async () => {
  const { name, queue } = await newQueue();
  const no = await cli(["cancel", name, "order:1"], { isTty: true, input: "n\n" });
  expect(no.code).toBe(4);
  expect(no.stderr).toContain(`Really cancel 1 message of queue "${name}"? [y/N]`);
  expect(await queue.has("order:1")).toBe(true);
  const ctrlD = await cli(["cancel", name, "order:1"], { isTty: true, input: "" });
  expect(ctrlD.code).toBe(4);
  expect(await queue.has("order:1")).toBe(true);
  const yes = await cli(["cancel", name, "order:1"], { isTty: true, input: "y\n" });
  expect(yes.code).toBe(0);
  expect(await queue.has("order:1")).toBe(false);
});

async function run(...argv: string[]) {
  return await cli([...argv, "--yes"]);
}

test("with --yes: cancel, reschedule, deliver now, pause, resume", async () => {
  const { name, queue } = await newQueue();
  expect((await run("pause", name)).stdout).toBe(`Paused queue "${name}".\n`);
  expect(await queue.isPaused()).toBe(true);
  const past = ["reschedule", name, "order:1", "--at", "2020-01-01T00:00Z", "--dry-run"];
  expect((await cli(past)).stderr).toMatch(/ ago: due at once\)/);
  const at = "2100-01-02T03:04:05Z";
  expect((await run("reschedule", name, "order:1", "--at", at)).code).toBe(0);
  expect((await queue.get("order:1"))?.deadline).toBe(Date.parse(at));
  expect((await run("deliver-now", name, "order:1", "order:none")).stderr).toContain("order:none");
  expect((await queue.get("order:1"))?.deadline).toBeLessThan(Date.now() + 10_000);
  expect((await run("cancel", name, "--prefix", "order:", "--json")).json).toEqual([
    { queue: name, cancelled: 2 },
  ]);
  expect((await run("cancel", name, "order:1")).code).toBe(1);
  await run("resume", name);
  expect(await queue.isPaused()).toBe(false);
});

test("if some of several messages are not found, the others are changed, and the code is 5", async () => {
  const { name, queue, deadId } = await newQueue();
  const other = deadId.replace(/..$/, "00");
  expect(await run("deliver-now", name, "order:2", "missing")).toMatchObject({ code: 5 });
  const dry = await cli(["cancel", name, "order:1", "missing", "--dry-run"]);
  expect(dry).toMatchObject({ code: 5 });
  const cancelled = await run("cancel", name, "order:1", "missing", "order:1");
  expect(cancelled).toMatchObject({
    code: 5,
    stdout: `Cancelled 1 message of queue "${name}".\n`,
  });
  expect(cancelled.stderr).toContain('"missing" is neither delayed nor retrying');
  expect(await queue.has("order:1")).toBe(false);
  expect((await run("cancel", name, "order:1", "missing")).code).toBe(1);
  const redriven = await run("dead", "redrive", name, deadId, other);
  expect(redriven).toMatchObject({ code: 5, stderr: `There is no dead letter ${other}.\n` });
});

test("with --yes: dead letters are redriven and removed", async () => {
  const { name, queue, deadId } = await newQueue();
  const redriven = await cli(["dead", "redrive", name, deadId, "--yes"]);
  expect(redriven.stdout).toBe(`Redrove 1 dead letter of queue "${name}".\n`);
  const delivery = await queue.take();
  expect(delivery.id).toBe(deadId);
  await delivery.reject("again");
  expect((await cli(["dead", "remove", name, "--all", "--yes"])).code).toBe(0);
  expect(await queue.deadLetters.size()).toBe(0);
  expect((await cli(["dead", "remove", name, "--all", "--yes"])).code).toBe(1);
});

test("a misspelt word suggests the right one", async () => {
  const { name } = await newQueue();
  const rows = [
    [["qeues"], "did you mean queues?"],
    [["cancle", name, "x"], "did you mean cancel?"],
    [["list", name, "--limt", "3"], "did you mean --limit?"],
    [["list", name, "--url", "redis://localhost"], "did you mean --redis?"],
    [["list", name, "--state", "reday"], "did you mean ready?"],
    [["list", name, "--state", "inflight"], "did you mean in-flight?"],
    [["dead", "redirve", name], "did you mean redrive?"],
    [["list", `${name}e`], `did you mean "${name}"?`],
    [["help", "exprt"], "did you mean export?"],
  ] as const;
  for (const [argv, meant] of rows) {
    const { code, stderr } = await cli(argv);
    expect(code, argv.join(" ")).toBe(2);
    expect(stderr).toContain(meant);
  }
});

test.each([
  [["due", "--step", "15"], "--step must be a duration"],
  [["due", "--at", "soon"], "--at must be a time such as"],
  [["due", "--count", "0"], "--count must be a whole number"],
  [["due", "--count"], "--count of due lacks its value"],
  [
    ["reschedule", "q", "k", "--in", "-5m"],
    "--in of reschedule needs a value that does not begin with -",
  ],
  [["pause", "q", "--yes=1"], "--yes of pause takes no value"],
  [["cancel", "x"], "give ids or keys"],
  [["dead", "remove", "x"], "give the ids to remove"],
  [["dead", "remove", "x", "a-key"], "is not a message id"],
  [["list"], "usage: delayline list <queue>"],
  [["queues", "--redis", "localhost:6379"], "--redis must be a URL"],
  [["queues", "--timeout", "soon"], "--timeout must be a duration"],
  [["get", "delayline_stream:x", "k"], "queue name must not begin"],
])("%j is refused, with the reason", async (argv, why) => {
  const { code, stderr } = await cli(argv);
  expect(code).toBe(2);
  expect(stderr).toContain(why);
});

test("an unreachable Redis is exit code 3, and no output holds its password", async () => {
  const password = "s3cret%2Fpass";
  const url = `redis://me:${password}@127.0.0.1:1/0`;
  const rows = [
    await cli(["queues", "--timeout", "200ms"], { url }),
    await cli(["--redis", url, "get", "x", "--timeout", "200ms"]),
  ];
  for (const { code, stdout, stderr } of rows) {
    expect(code).toBe(3);
    expect(stderr).toContain("cannot ask for the server's time");
    expect(stdout + stderr).not.toMatch(/s3cret|pass/);
  }
  for (const wrong of [`redis//me:${password}@x`, `http://me:${password}@x`]) {
    const { code, stdout, stderr } = await cli(["queues", "--redis", wrong]);
    expect(code).toBe(2);
    expect(stdout + stderr).not.toContain("s3cret");
  }
  const { code, stderr } = await cli([url]);
  expect(code).toBe(2);
  expect(stderr).not.toContain("s3cret");
});

test("a database that Redis does not have is refused, and so is any but 0 on a Cluster", async () => {
  const [url] = redisUrl().match(/^redis:\/\/[^/]+/) ?? [];
  const missing = await cli(["queues"], { url: `${url}/99` });
  expect(missing.code).toBe(3);
  expect(missing.stderr).toContain("database 99 cannot be selected: ERR DB index is out of range");
  expect((await cli(["cancel", "x", "y", "--yes"], { url: `${url}/99` })).code).toBe(3);
  const diagnosed = await cli(["doctor"], { url: `${url}/99` });
  expect(diagnosed.code).toBe(1);
  expect(diagnosed.stdout).toContain("does not have the database");
  const cluster = await cli(["queues", "--cluster"], { url: `${url}/1` });
  expect(cluster.code).toBe(2);
  expect(cluster.stderr).toContain("a Cluster has only database 0");
});

test("Ctrl-C ends a command with exit code 130", async () => {
  const { name } = await newQueue();
  const interrupt = new AbortController();
  const watching = cli(["stats", name, "--watch", "--interval", "60s"], {
    signal: interrupt.signal,
    // From here it sleeps for a minute.
    onStdout: () => interrupt.abort(),
  });
  const { code, stdout } = await watching;
  expect(code).toBe(130);
  expect(stdout).toContain("delayed");
});

test("stats --watch continues after a failed call", async () => {
  const interrupt = new AbortController();
  let failures = 0;
  const { code } = await cli(["stats", "--watch", "--interval", "100ms", "--timeout", "100ms"], {
    url: "redis://127.0.0.1:1",
    signal: interrupt.signal,
    onStderr: (text) => {
      if (text.includes("trying again") && ++failures === 2) interrupt.abort();
    },
  });
  expect([code, failures]).toEqual([130, 2]);
});

test("help describes every command within 80 columns", async () => {
  const { code, stdout } = await cli(["help"]);
  expect(code).toBe(0);
  expect(widest(stdout)).toBeLessThanOrEqual(80);
  for (const [, name = ""] of stdout.matchAll(/^ {2}([a-z]+(?:-[a-z]+)*) /gm)) {
    const help = await cli(["help", name]);
    expect(help.code, name).toBe(0);
    expect(help.stdout).toContain(`usage: delayline ${name}`);
    expect(widest(help.stdout), name).toBeLessThanOrEqual(80);
    expect((await cli([name, "--help"])).stdout).toBe(help.stdout);
  }
  expect((await cli([])).code).toBe(2);
  expect((await cli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

function widest(text: string): number {
  return Math.max(...text.split("\n").map((line) => line.length));
}

test("partitions --set changes their number, and --finish finds nothing to do in an ordinary queue", async () => {
  const { name, queue } = await newQueue();
  const none = await cli(["partitions", name, "--finish", "--yes"]);
  expect(none).toMatchObject({ code: 1, stderr: `Queue "${name}" has no partitions.\n` });
  expect((await cli(["partitions", name, "--set", "0"])).code).toBe(2);
  expect((await cli(["partitions", name, "--set", "2", "--finish"])).code).toBe(2);
  const dry = await cli(["partitions", name, "--set", "3", "--dry-run"]);
  expect(dry.stderr).toContain(
    `Would change queue "${name}" from an ordinary queue to 3 partitions`,
  );
  const set = await cli(["partitions", name, "--set", "3", "--yes", "--json"]);
  expect(set.json).toEqual([{ queue: name, partitions: 3, migrated: 3 }]);
  expect(await queue.has("order:1")).toBe(true);
  expect((await cli(["partitions", name, "--json"])).json).toHaveLength(3);
});
