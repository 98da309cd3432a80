import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { cli as cliOn, type CliOptions } from "../../helpers/cli.ts";
import { newLine as newLineOn } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { OwnServer, startOwnServer } from "../../helpers/own-server.ts";
import { newRedis as newRedisOn, uniqueName } from "../../helpers/redis.ts";
import { formatInstant } from "../../../src/tools/view/instants.ts";

// Commands that read all queues need a server of their own: other tests break queues on purpose.

const HOUR = 3_600_000;

let server: OwnServer;
beforeAll(async () => {
  server = await OwnServer.start();
});
afterAll(() => server.stop());

const cli = (argv: readonly string[], options?: CliOptions) =>
  cliOn(argv, { url: server.url, ...options });
const newLine = () => newLineOn({ redis: server.url });
const newRedis = () => newRedisOn(server.url);

test("get finds a message by its key in all queues", async () => {
  const name = uniqueName();
  const key = uniqueName("order");
  const { id } = await newLine()
    .getDelayedQueue(name, { codec: "json" })
    .offer({ to: "ann" }, HOUR, { key });
  const found = await cli(["get", key]);
  expect(found.code).toBe(0);
  expect(found.stdout).toContain(`"${key}" is delayed in queue "${name}".`);
  expect(found.stdout).toMatch(/due {6}.* \(in 59 min/);
  expect(found.stdout).toContain(id);
  expect(found.stdout).not.toContain("ann");
  const { stdout } = await cli(["get", name, id, "--payload"]);
  expect(stdout).toContain('12 bytes of json: {"to":"ann"}');
  expect((await cli(["get", name, key, "--json"])).json).toMatchObject([
    { state: "delayed", id, key },
  ]);
});

test("get shows what is asked when the message is due", async () => {
  const [name, key] = [uniqueName(), uniqueName("order")];
  const conditions = {
    onlyIf: { key: "status\u001b[2J", field: "42", isNot: "paid" },
    deliverWithin: 2 * HOUR,
  };
  await newLine()
    .getDelayedQueue(name)
    .offer("x", HOUR, { key, ...conditions });
  for (const words of [[key], [name, key]]) {
    const { stdout } = await cli(["get", ...words]);
    expect(stdout).toContain('only if        status\\u{1b}[2J, field 42 is not "paid"');
    expect(stdout).toMatch(/at the latest {2}.* \(in 2 h 59 min/);
    expect((await cli(["get", ...words, "--json"])).json).toMatchObject([conditions]);
  }
});

test("get of a message that is not found names the queues in which it may be ready", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  await queue.offer("x", 0, { key: "gone" });
  await eventually(async () => (await queue.stats()).ready === 1);
  const { code, stderr } = await cli(["get", name, "gone"]);
  expect((await cli(["get", "gone"])).stderr).toContain("delayline get <queue> <key>");
  expect(code).toBe(1);
  expect(stderr).toContain(`"gone" is not in queue "${name}"`);
  expect(stderr).toContain(`It may be ready in "${name}"`);
});

test("get tells who has handled a message, if its queue remembers that, and otherwise that nobody knows", async () => {
  const [name, key] = [uniqueName(), uniqueName("order")];
  const line = newLine();
  const queue = line.getReliableQueue(name, { keepHandled: HOUR, retry: () => 0 });
  const { id } = await queue.offer("x", 0, { key });
  await (await queue.take()).nack();
  await (await queue.take()).ack();
  for (const words of [[key], [name, key], [name, id]]) {
    const { code, stdout } = await cli(["get", ...words]);
    expect(code).toBe(0);
    expect(stdout).toContain(`was handled in queue "${name}".`);
    expect(stdout).toMatch(/handled {2,}.*\)\n {2}attempt {2,}2\n/);
    expect(stdout).toMatch(new RegExp(`pid {2,}${process.pid}\n`));
  }
  const json = [{ state: "handled", queue: name, id, key, attempt: 2, pid: process.pid }];
  expect((await cli(["get", name, key, "--json"])).json).toMatchObject(json);
  expect((await cli(["get", name, key, "--wait", "gone", "--json"])).json).toMatchObject(json);
  const never = await cli(["get", name, "order:never"]);
  expect(never.code).toBe(1);
  expect(never.stderr).toContain("It was not handled there since ");

  const forgetful = uniqueName();
  await line.getReliableQueue(forgetful).offer("x", HOUR);
  const { code, stderr } = await cli(["get", forgetful, "order:never"]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    `Queue "${forgetful}" has no record of what was handled (keepHandled), so nobody can know whether it was.`,
  );
});

test("a message under a key prefix is found with the prefix in the URL", async () => {
  const [name, key] = [uniqueName(), uniqueName("order")];
  const redis = newRedisOn(server.url, { keyPrefix: "app:" });
  await newLineOn({ redis }).getReliableQueue(name).offer("x", HOUR, { key });
  const without = await cli(["get", name, key]);
  expect(without).toMatchObject({ code: 2 });
  const elsewhere = await cli(["get", key], { url: (await startOwnServer()).url });
  expect(elsewhere.stderr).toContain(
    "it was handled, cancelled or never offered, or is in another database or under another key prefix.",
  );
  const url = `${server.url}?keyPrefix=app:`;
  const found = await cli(["get", key, "--redis", url]);
  expect(found).toMatchObject({ code: 0 });
  expect(found.stderr).toContain(` --redis '${url}'`);
  expect((await cli(["queues"], { url })).stdout).toBe(`${name}\n`);
});

test("queues, stats, list, search and due agree about a queue", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name, { codec: "string" });
  await queue.offer("late", 2 * HOUR, { key: "order:2" });
  await queue.offer("early", HOUR, { key: "order:1" });
  await queue.offer("other", 3 * HOUR, { key: "user:1" });
  expect((await cli(["queues"])).stdout.split("\n")).toContain(name);
  const [numbers] = (await cli(["stats", name, "--json"])).json;
  expect(numbers).toMatchObject({ queue: name, delayed: 3, ready: 0 });
  expect((await cli(["stats", name])).stdout).toMatch(/delayed +3\n/);
  const listed = await cli(["list", name, "--limit", "2"]);
  expect(listed.stdout).toMatch(
    /^DUE +ID +KEY\nin 59 min \d+ s +\S+ +order:1\nin 1 h 59 min +\S+ +order:2\n$/,
  );
  const found = (await cli(["search", name, "--prefix", "order:", "--json"])).json;
  expect(found.map(({ key }) => String(key)).toSorted((a, b) => a.localeCompare(b))).toEqual([
    "order:1",
    "order:2",
  ]);
  expect((await cli(["search", name, "--prefix", "nobody"])).code).toBe(1);
  const due = await cli(["due", name, "--at", "now", "--count", "4", "--json"]);
  expect(due.json).toMatchObject([{ counts: [1, 1, 1, 0], total: 3 }]);
  const { stdout, stderr } = await cli(["due", name, "--step", "1h", "--count", "4"]);
  expect(stdout.match(/#/g)?.length).toBe(3 * 36);
  expect(stderr).toMatch(/in spans of 1 h: 3\.\n/);
});

test.each<[step: string, length: number]>([
  ["1h", HOUR],
  ["15m", HOUR / 4],
  ["1d", 24 * HOUR],
  ["7m", (7 * HOUR) / 60],
])(
  "without --at, due starts at the current span of %s, aligned to local midnight",
  async (step, length) => {
    const name = uniqueName();
    await newLine()
      .getDelayedQueue(name)
      .offer("x", 24 * HOUR);
    const before = Date.now();
    const [json] = (await cli(["due", name, "--step", step, "--json"])).json;
    const from = Number(json?.["from"]);
    expect(from).toBeLessThanOrEqual(Date.now());
    expect(from).toBeGreaterThan(before - length);
    expect((from - new Date(from).setHours(0, 0, 0, 0)) % length).toBe(0);
  },
);

test("due counts the messages due at nine tomorrow, by queue, and the overdue ones", async () => {
  const names = ["a", "b", "c", "d", "e"].map((letter) => uniqueName(letter));
  const [a = "", b = ""] = names;
  const line = newLineOn({ redis: server.url, transfer: false });
  await newRedis().flushall();
  const nine = new Date();
  nine.setDate(nine.getDate() + 1);
  nine.setHours(9, 0, 0, 0);
  for (const [i, name] of names.entries()) {
    const queue = line.getDelayedQueue(name);
    for (let n = i; n < names.length; n++) await queue.offerAt(`${n}`, nine.getTime());
  }
  await line.getReliableQueue(b).offerAt("later", nine.getTime() + 2 * HOUR);
  await line.getDelayedQueue(a).offerAt("late", Date.now() - HOUR);
  const asked = ["due", "--at", "tomorrow", "09:00", "--count", "4"];

  const { code, stdout, stderr } = await cli(asked);
  expect(code).toBe(0);
  const nineText = formatInstant(nine.getTime());
  const [, overdue = "", first = "", second = "", ...others] = stdout.split("\n");
  expect(overdue).toMatch(new RegExp(`^overdue now +1 +# +${a} 1$`));
  expect(first.startsWith(nineText)).toBe(true);
  expect(first).toMatch(new RegExp(` 15 +#{12} +${a} 5, ${b} 4, ${names[2]} 3, 2 more 3$`));
  expect(second).toMatch(new RegExp(` 1 +# +${b} 1$`));
  expect(others[1]).toMatch(/^QUEUE +OVERDUE +DUE$/);
  expect(others[2]).toMatch(new RegExp(`^${a} +1 +5$`));
  expect(others.at(-2)).toMatch(/^\(total\) +1 +16$/);
  expect(stderr).toContain(`From ${nineText} until`);
  expect(stderr).toMatch(/: 16\.\nOverdue now: 1\. To find out why: npx delayline doctor\n$/);

  const [json] = (await cli([...asked, "--json"])).json;
  expect(json).toMatchObject({ from: nine.getTime(), overdue: 1, counts: [15, 0, 1, 0] });
  const queues = json?.["queues"] as { queue: string }[];
  expect(queues).toHaveLength(5);
  expect(queues[0]).toEqual({ queue: a, overdue: 1, counts: [5, 0, 0, 0], total: 5 });
  // The span at --at is printed although it is empty.
  const one = await cli(["due", a, "--at=tomorrow", "8:00", "--count", "1"]);
  expect(one.stdout).toMatch(/^FROM .*\noverdue now +1 +#{36}\n\S+ 08:00:00 \S+ +0\n$/);
  // Overdue messages are counted in no span, and a question about another time leaves them out.
  const past = await cli(["due", a, "--at", "2000-01-01", "--json"]);
  expect([past.code, past.json]).toMatchObject([1, [{ overdue: 1, total: 0 }]]);
  const before = `--at=${Date.now() - 1.5 * HOUR}`;
  const since = await cli(["due", a, before, "--count", "100", "--json"]);
  expect([since.code, since.json]).toMatchObject([0, [{ overdue: 1, total: 5 }]]);
  expect((await cli(["due", a, "--count", "1"])).code).toBe(0);
  const wrong = await cli(["due", "--at", "soon"], { url: "redis://localhost:1" });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"tomorrow 09:00"')]);
});

test.each([
  ["spring", 2],
  ["autumn", 9],
] as const)("due counts calendar days where clocks change in %s", async (_, month) => {
  vi.stubEnv("TZ", "Europe/Berlin");
  onTestFinished(() => void vi.unstubAllEnvs());
  // Clocks change on the last Sunday of the month.
  const year = new Date().getFullYear() + 1;
  const sunday = new Date(year, month + 1, 0);
  sunday.setDate(sunday.getDate() - sunday.getDay());
  const at = (days: number, hours = 0, minutes = 0) =>
    new Date(year, month, sunday.getDate() + days, hours, minutes).getTime();
  expect(at(1) - at(0)).toBe((month === 2 ? 23 : 25) * HOUR);
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  for (const days of [-1, 0, 1, 2]) {
    for (const time of [at(days), at(days, 23, 59)]) await queue.offerAt("x", time);
  }
  const asked = (time: string) => ["due", name, "--step", "1d", "--count", "4", `--at=${time}`];
  const midnights = await cli([...asked(formatInstant(at(-1))), "--json"]);
  expect(midnights.json).toMatchObject([
    { starts: [-1, 0, 1, 2].map((days) => at(days)), counts: [2, 2, 2, 2] },
  ]);
  const { stdout, stderr } = await cli(asked(formatInstant(at(-1, 9))));
  expect(stdout.match(/ 09:00:00 /g)).toHaveLength(4);
  expect(stderr).toContain(`until ${formatInstant(at(3, 9))}, in spans of 1 d: 7.`);
});

test("search finds keys in every state and partition", async () => {
  const [name, plain] = [uniqueName(), uniqueName()];
  const line = newLine();
  const options = { codec: "string", partitions: 2, retry: [HOUR] } as const;
  const queue = line.getReliableQueue(name, options);
  await queue.offer("x", HOUR, { key: "order:delayed" });
  await queue.offer("x", HOUR, { key: "user:2" });
  for (const key of ["order:dead", "order:retrying", "order:held", "user:1"]) {
    await queue.offer("x", 0, { key });
    const delivery = await queue.take();
    if (key === "order:dead") await delivery.reject("no");
    if (key === "order:retrying") await delivery.nack();
    if (key === "user:1") await delivery.ack();
  }
  await queue.offer("x", 0, { key: "order:ready" });
  await eventually(async () => (await queue.stats()).delayed === 2);
  const found = await cli(["search", name, "--prefix", "order:", "--json"]);
  const states = found.json.map(({ key, state }) => `${String(key)} ${String(state)}`);
  expect(states.toSorted()).toEqual([
    "order:dead dead",
    "order:delayed delayed",
    "order:held in flight",
    "order:ready ready",
    "order:retrying retrying",
  ]);
  const { stdout } = await cli(["search", "--prefix", "order:retry"]);
  expect(stdout).toMatch(/^STATE +DUE +ID +KEY\nretrying +in 59 min \d+ s +\S+ +order:retrying\n/);

  await line.getDelayedQueue(plain, { codec: "string" }).offer("x", 0, { key: "order:gone" });
  await eventually(async () => (await line.stats(plain)).ready === 1);
  expect(await cli(["search", plain, "--prefix", "order:"])).toMatchObject({
    code: 1,
    stderr:
      'No message has a key that begins with "order:".\n' +
      "Not searched: 1 ready message of plain queues, which have no keys.\n",
  });
});

test("list and dead list say what they leave out", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { codec: "string" });
  for (let i = 0; i < 3; i++) {
    await queue.offer("x", HOUR);
    await queue.offer("x", 0);
    await (await queue.take()).reject("no");
  }
  const listed = await cli(["list", name, "--limit", "2"]);
  expect(listed.stderr).toBe(
    `Listed 2 of 3. To list all: npx delayline list ${name} --state delayed --limit 3\n` +
      `Also in this queue: 3 dead. To list them: npx delayline list ${name} --state dead\n`,
  );
  expect((await cli(["list", name, "--state", "delayed"])).stderr).toBe("");
  const dead = await cli(["dead", "list", name, "--limit", "2"]);
  expect(dead.stdout.match(/"no"/g)).toHaveLength(2);
  expect(dead.stderr).toContain(
    `Listed 2 of 3. To list all: npx delayline dead list ${name} --limit 3\n`,
  );
  const plain = uniqueName();
  const redis = newRedis();
  await redis.rpush(plain, "1", "2");
  const ready = await cli(["list", plain, "--state", "ready"]);
  expect(ready).toMatchObject({
    code: 1,
    stderr: "Not listed: 2 ready messages. In a plain queue they have neither id nor key.\n",
  });
  await redis.zadd(queueKeys(plain).timeouts, Date.now() + HOUR, "?");
  expect((await cli(["list", plain])).stderr).toContain(
    `Not listed: 1 more, moved meanwhile or of unknown layout. To find out: npx delayline doctor ${plain}\n`,
  );
});

test("stats points out a queue whose due messages nobody moves", async () => {
  const name = uniqueName();
  await newRedis().zadd(queueKeys(name).timeouts, Date.now() - HOUR, "?");
  const { stdout, stderr } = await cli(["stats"]);
  expect(stdout).toMatch(new RegExp(`^${name} .* overdue by 1 h, no process moves it$`, "m"));
  expect(stderr).toMatch(/^Needs attention: \d+ of \d+ queues\. .*: npx delayline doctor$/m);
  const one = await cli(["stats", name]);
  expect(one.stderr).toContain(
    `Needs attention: 1 message overdue, the oldest by 1 h: no process transfers them. To find out why: npx delayline doctor ${name}`,
  );
});

test("a key of another type hides only its own queue, and ends in exit code 3", async () => {
  const [name, broken, key] = [uniqueName(), uniqueName(), uniqueName("order")];
  const redis = newRedis();
  await redis.hset(queueKeys(broken).timeouts, "x", "y");
  onTestFinished(async () => void (await redis.del(queueKeys(broken).timeouts)));
  await newLine().getDelayedQueue(name).offer("x", HOUR, { key });
  const table = await cli(["stats"]);
  expect(table.code).toBe(3);
  expect(table.stdout).toContain(`${name} `);
  expect(table.stdout).toMatch(new RegExp(`^${broken} .*WRONGTYPE$`, "m"));
  expect(table.stderr).toContain(`Cannot read queue "${broken}"`);
  const found = await cli(["search", "--prefix", key]);
  expect([found.code, found.stdout.includes(key)]).toEqual([3, true]);
  expect((await cli(["due", "--step", "1h"])).code).toBe(3);
  expect((await cli(["get", key])).code).toBe(0);
  expect((await cli(["get", `${key}none`])).code).toBe(3);
});

test("hostile names, keys and payloads cannot act on a terminal", async () => {
  const evil = "\u001b]0;x\u0007\u202eevil\u009b";
  const name = `${uniqueName()}${evil}`;
  const line = newLine();
  const queue = line.getReliableQueue(name, { codec: "string" });
  await queue.offer(evil, HOUR, { key: `k${evil}`, headers: { [`h${evil}`]: evil } });
  const group = line.getReliableQueue(name, { codec: "string", group: `g${evil}` });
  await group.offer(evil, 0, { key: `dead${evil}` });
  await (await group.take()).nack({ delay: 0, reason: evil });
  await (await group.take()).reject(evil);
  const runs = [
    ["queues"],
    ["stats"],
    ["stats", name],
    ["list", name, "--payload"],
    ["get", name, `k${evil}`, "--payload"],
    ["get", name, `none${evil}`],
    ["search", name, "--prefix", "k", "--payload"],
    ["dead", "list", name, "--payload"],
    ["get", name, `dead${evil}`],
    ["stats", `${name}x`],
    [evil],
    ["due", `--${evil}`],
  ];
  for (const argv of runs) {
    for (const more of [[], ["--json"]]) {
      const { stdout, stderr } = await cli([...argv, ...more]);
      expect(stdout + stderr, argv.join(" ")).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    }
  }
  // The JSON parses to the written values.
  const [{ key }] = (await cli(["list", name, "--json"])).json as [{ key: string }];
  expect(key).toBe(`k${evil}`);
});

test("for an unreadable dead letter removal is suggested, and redriving is not", async () => {
  const name = uniqueName("it's ");
  const redis = newRedis();
  await newLine().getReliableQueue(name).stats();
  const id = await redis.xadd(queueKeys(name).dead, "*", "what", "is this");
  const asked = ["--redis", server.url];
  const { stderr } = await cli(["dead", "list", name, ...asked]);
  expect(stderr).not.toContain("dead redrive");
  const [, quoted = "", letter = ""] =
    /: npx delayline dead remove '(.*)' (\S+) --redis \S+\n$/.exec(stderr) ?? [];
  expect([quoted.replace(String.raw`'\''`, "'"), letter]).toEqual([
    name,
    expect.stringMatching(/^\d+-/),
  ]);
  expect((await cli(["get", name, letter])).stderr).toContain("dead remove '");
  expect((await cli(["dead", "remove", name, letter, "--yes"])).code).toBe(0);
  expect(await redis.xrange(queueKeys(name).dead, String(id), String(id))).toEqual([]);
});

test("on a terminal a table has 80 columns, and colours unless NO_COLOR is set", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  await queue.offer("x", HOUR, { key: "a-key-that-is-far-too-long-for-a-line-of-eighty" });
  const run = async (env = {}) => (await cli(["list", name], { isTty: true, env })).stdout;
  expect(await run()).toContain("\u001b[1mDUE");
  const plain = await run({ NO_COLOR: "1" });
  expect(plain).not.toContain("\u001b");
  expect(Math.max(...plain.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(plain).toContain("…");
});

test("dead letters, the quarantine and partitions are listed", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name, { partitions: 2, codec: "string" });
  await queue.offer("x", 0, { key: "sad" });
  await (await queue.take()).reject("no such customer");
  await queue.offer("y", 0, { key: "glum" });
  await (await queue.take()).nack({ delay: 0, reason: "the bank\nsleeps" });
  await (await queue.take()).reject("no money");
  const { stdout } = await cli(["dead", "list", name]);
  expect(stdout).toMatch(
    /^DIED .*\n.* sad\n {4}default: "no such customer"\n\S.* glum\n {4}default: "no money"\n {6}attempt 1, (?:now|\S+ ago): "the bank\\nsleeps"\n$/,
  );
  expect((await cli(["get", name, "glum"])).stdout).toMatch(
    /\n {2}attempt 1 +failed .*(?:now|ago)\): the bank\\nsleeps\n {2}attempt 2 +failed .*(?:now|ago)\): no money\n/,
  );
  expect((await cli(["dead", "list", name, "--json"])).json).toMatchObject([
    { key: "sad", attempts: 1, reason: "no such customer" },
    { key: "glum", failures: [{ attempt: 1, reason: "the bank\nsleeps" }, { attempt: 2 }] },
  ]);
  expect((await cli(["partitions", name, "--json"])).json).toHaveLength(2);
  // A redrive starts counting attempts anew.
  await cli(["dead", "redrive", name, "--yes"]);
  expect((await cli(["get", name, "sad", "--redis", server.url])).stdout).toMatch(
    /\n {2}attempts +0\n {2}attempt 1 +failed .*, before the redrive: no such customer\n/,
  );
  for (let i = 0; i < 2; i++) await (await queue.take()).reject("");
  expect((await cli(["dead", "list", name])).stdout).toMatch(
    /\n {4}default\n {6}attempt 1, .*, before the redrive: "no such customer"\n/,
  );
  expect((await cli(["get", name, "sad"])).stdout).toMatch(
    /\n {2}attempt 1 +failed .*, before the redrive: no such customer\n {2}attempt 1 +failed [^:]*:[^:]*:\d\d \S+ \(\w+(?: ago)?\)\n/,
  );
  expect((await cli(["quarantine", "list", name])).code).toBe(1);
  const plain = uniqueName();
  await newRedis().rpush(`delayline_quarantine:{${plain}}`, "bytes");
  const listed = await cli(["quarantine", "list", plain, "--payload"]);
  expect(listed.stdout).toBe("5 bytes\n    text: bytes\n");
});

test("get tells a dropped message from a handled one, also while it waits for it to be gone", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  await queue.offer("remind", HOUR, { key: "order:5", onlyIf: { key: "status:5", is: "unpaid" } });
  const due = await cli(["deliver-now", name, "order:5", "--yes"]);
  expect(due.stdout).toContain("Made 1 message");
  expect(due.stderr).toContain("1 message may be dropped");
  const gone = await cli(["get", name, "order:5", "--wait", "gone"]);
  const said = `"order:5" was dropped in queue "${name}" when it was due: the condition of onlyIf did not hold.`;
  expect(gone).toMatchObject({ code: 0 });
  expect(gone.stdout).toContain(said);
  expect((await cli(["get", "order:5"])).stdout).toContain(said);
  expect((await cli(["get", name, "order:5", "--json"])).json).toMatchObject([
    { state: "dropped", key: "order:5", reason: "onlyIf" },
  ]);
});

test("log shows what was done to a queue, and by which process", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  await queue.offer("x", HOUR, { key: "order:1" });
  expect(await cli(["log", name])).toMatchObject({ code: 1, stdout: "" });
  await queue.pause({ reason: "deploying\u001b[2J" });
  await queue.cancelWhere({ prefix: "order:" });
  const { stdout, code } = await cli(["log", name]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^AT +BY +WHAT\n.*cancelled 1 message: prefix order:\n.*paused: deploying\\u\{1b\}\[2J\n$/,
  );
  expect(stdout).toContain(`/${process.pid}`);
  expect((await cli(["log", name, "--json", "--limit", "1"])).json).toMatchObject([
    { queue: name, what: "cancelled", count: 1, detail: "order:" },
  ]);
});
