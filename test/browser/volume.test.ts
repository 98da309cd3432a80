import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Redis } from "ioredis";
import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { ScriptEvent } from "../../src/lua/script.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import type { TestLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// 200 queues with a million messages: every list, action and search works, and none holds Redis up.

const HOUR = 3_600_000;
const PER_QUEUE = 5_000;

/** Writes delayed messages with keys, and for ARGV[4] and ARGV[5] as many ready messages and dead letters. */
const FILL = `
local timeouts, stream, dead = KEYS[1], KEYS[2], KEYS[3]
local name, count, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function idOf(i)
  return struct.pack(">I4I4I4I4", math.floor(now * 1000 / 4294967296), (now * 1000 + i) % 4294967296, i, i)
end
local function addressOf(i, deadline)
  return struct.pack(">I4I4", math.floor(deadline / 4294967296), deadline % 4294967296) .. idOf(i)
end
local batch = {}
for i = 1, count do
  local payload = '{"order":' .. i .. "}"
  batch[#batch + 1] = now + 3600000 + (i * 7919) % 2500000000
  batch[#batch + 1] = string.char(16) .. idOf(i) .. struct.pack("<I4I4", #payload, 0) .. payload .. name .. ":" .. i
  if #batch == 200 or i == count then redis.call("ZADD", timeouts, unpack(batch)) batch = {} end
end
for i = 1, tonumber(ARGV[4]) do
  redis.call("XADD", stream, "*", "a", addressOf(i, now - 1000), "p", i, "t", "ready:" .. i)
end
for i = 1, tonumber(ARGV[5]) do
  redis.call("XADD", dead, "*", "a", addressOf(i + 1000000, now - 1000), "p", i, "t", "dead:" .. i, "n", 3, "g", "default",
    "r", i % 3 == 0 and "the card was refused" or "timeout after " .. i .. " ms")
end
`;

async function fill(line: TestLine, redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl);
  const now = Date.now();
  const write = async (name: string, count: number, ready = 0, dead = 0) => {
    const keys = queueKeys(name);
    await redis.eval(FILL, 3, keys.timeouts, keys.stream, keys.dead, name, count, now, ready, dead);
  };
  const orders = line.getReliableQueue("orders", { retry: [HOUR], maxAttempts: 3 });
  await orders.offer("x", HOUR, { key: "order:42" });
  await orders.offerMany(
    ["held", "held", "fails"].map((verb, i) => ({ payload: verb, delay: 0, key: `${verb}:${i}` })),
  );
  const held = new Promise<void>((resolve) => onTestFinished(() => resolve()));
  const work = orders.subscribe(
    async (verb) => {
      if (verb === "fails") throw new Error("the bank does not answer");
      await held;
    },
    { concurrency: 3, onError: () => {} },
  );
  await eventually(async () =>
    expect(await orders.stats()).toMatchObject({ inFlight: 2, retries: 1 }),
  );
  void work;
  await line.getDelayedQueue("orders").pause();
  await write("orders", 0, 20_000, 5_000);
  for (let i = 1; i < 200; i++) {
    await write(`team-${i % 10}.queue-${i}`, PER_QUEUE);
  }
  await line.getDelayedQueue("reminders").offer("call", HOUR, { key: "reminder:1" });
  for (const list of ["reminders", queueKeys("reminders").quarantine]) {
    for (let at = 0; at < 12_000; at += 1000) {
      await redis.rpush(list, ...Array.from({ length: 1000 }, (_, i) => `payload ${at + i}`));
    }
  }
  redis.disconnect();
}

/** How long the scripts took Redis since `begin` (us), in ascending order, without those of other programs. */
async function watchScripts(redisUrl: string) {
  const redis = new Redis(redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.config("SET", "slowlog-max-len", "1000000");
  await redis.config("SET", "slowlog-log-slower-than", "0");
  await redis.slowlog("RESET");
  return async () => {
    const entries = (await redis.slowlog("GET", 1_000_000)) as [number, number, number, string[]][];
    return entries
      .filter(([, , , [command = ""]]) => /^eval/i.test(command))
      .map(([, , took]) => took)
      .toSorted((a, b) => a - b);
  };
}

/** Counts the scripts that are run from now on, by name. */
function countRuns(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const note = (message: unknown) => {
    const { script } = message as ScriptEvent;
    counts.set(script, (counts.get(script) ?? 0) + 1);
  };
  subscribe("delayline:script", note);
  onTestFinished(() => void unsubscribe("delayline:script", note));
  return counts;
}

const confirm = async (page: Page, button: string, tells: string | RegExp) => {
  await page.getByRole("main").getByRole("button", { name: button, exact: true }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(tells).waitFor();
  await dialog.getByRole("button", { name: button, exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
};

inBrowser(
  "a million messages: every list, action and search, in short scripts",
  { timeout: 240_000 },
  async () => {
    const { url, redisUrl } = await openBoard(fill);
    const durations = await watchScripts(redisUrl);
    const page = await visit(url);
    const seen = (text: string | RegExp) =>
      page.getByText(text).filter({ visible: true }).first().waitFor();
    const rows = page.getByRole("rowheader");
    const open = async (route: string, text: string | RegExp) => {
      await page.goto(`${url}#/${route}`);
      await seen(text);
    };
    await page.getByRole("table", { name: "201 queues" }).waitFor();
    await seen("995,002");
    await shoot(page, "queues-million", false);

    // Each list, filtered and sorted.
    const delayed = "queue/team-3.queue-13/delayed";
    await open(delayed, /^team-3\.queue-13:\d+$/);
    await page.getByRole("columnheader", { name: "Offered" }).getByRole("button").click();
    await seen("sorted among the first 2,000 by deadline");
    await open("queue/orders/ready", "ready:1");
    await open("queue/orders/ready?sort=-key", "sorted among the first 2,000");
    await open("queue/orders/in-flight", "held:0");
    await open("queue/orders/retrying", "the bank does not answer");
    await open("queue/orders/dead", "timeout after # ms");
    await open("queue/orders/messages?prefix=order:", "order:42");
    await open("queue/reminders/ready", "Bare payloads");
    await seen("Only the first 10,000 of each list are shown.");
    await open("queue/reminders/quarantined?text=payload%207", "Select messages");
    await rows.nth(40).waitFor();
    await open("busy", "held:1");
    await open("month", /messages in the coming 31 days/);

    // Actions on a selection, each with its count.
    await open(delayed, /^team-3\.queue-13:\d+$/);
    await page.getByRole("checkbox", { name: "Select all on this page" }).check();
    await confirm(page, "Cancel messages", "50 messages, still delayed.");
    await seen("50 messages were cancelled.");
    await open("queue/reminders/quarantined", "Select messages");
    await page.getByRole("checkbox", { name: "Select all on this page" }).check();
    await confirm(page, "Requeue", "50 messages, still quarantined.");
    await seen("50 messages were requeued.");
    await open("queue/orders/dead", "timeout after # ms");
    const reasons = page.getByRole("table", { name: "Dead letters by reason" });
    await reasons.getByRole("button", { name: "Change: the card was refused" }).click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    const dialog = page.getByRole("dialog", { name: "Remove the dead letters of this reason?" });
    await dialog.getByText("1,666 dead letters now.").waitFor();
    await dialog.getByRole("button", { name: "Remove" }).click();
    await seen("1,666 dead letters were removed.");

    // The search: by key in one of 200 queues, and for nobody in all of them.
    await open("find?q=order:42", "Waiting for its deadline");
    await open("find?q=dead:4999", "Not delivered again");
    const runs = countRuns();
    await open("find?q=nobody", /^Not found in 201 queues/);
    // A search looks at 5,000 entries of a place, 25 in one script: a fraction of a millisecond of Redis's time.
    expect(runs.get("stream-page")).toBeGreaterThanOrEqual(5_000 / 25);
    expect(runs.get("find-dead")).toBeGreaterThanOrEqual(3_334 / 25);

    const took = await durations();
    const at = (share: number) => took[Math.floor(took.length * share)] ?? 0;
    const told = {
      scripts: took.length,
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      most: at(1 - 1e-9),
    };
    console.log("microseconds of Redis's time per script:", told);
    expect(took.length).toBeGreaterThan(500);
    // A busy machine stops Redis now and then, also within a script: at 99 of 100 that would be what is measured.
    expect(told.p90).toBeLessThan(700);
  },
);
