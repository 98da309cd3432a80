import { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import type { TestLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { audit, auditColours } from "./audit.ts";
import { seedPast } from "../helpers/past.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// Every page with all of its contents, in light and dark, on wide and narrow screens.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** What a database says, in more words than a column is wide. */
const LONG_REASON = `insert or update on table "payments" violates foreign key constraint: ${"Key (order_id) is not present in table orders. ".repeat(4)}`;

/** `orders` with messages in every state, `reminders` plain with a quarantine, `events` partitioned. */
async function seed(line: TestLine, redisUrl: string): Promise<void> {
  const orders = line.getReliableQueue("orders", { retry: [HOUR], maxAttempts: 2 });
  const offers = Array.from({ length: 120 }, (_, i) => ({
    payload: { order: i },
    delay: 10 * MINUTE + i * i * 400,
    key: `order:${i}`,
  }));
  await orders.offerMany(offers);
  const bad = ["reject", "retry", "hold", "long"].map((verb) => ({
    payload: verb,
    delay: 0,
    key: verb,
  }));
  await orders.offerMany(bad);
  // Closing waits for handlers.
  const held = new Promise<void>((resolve) => onTestFinished(() => resolve()));
  orders.subscribe(
    async (verb, delivery) => {
      if (verb === "retry") throw new Error("the bank does not answer");
      const reason = "the bank does not know the card yet";
      if (verb === "reject" && delivery.attempt === 1) await delivery.nack({ delay: 0, reason });
      else if (verb === "reject") await delivery.reject("the card was refused");
      else if (verb === "long") await delivery.reject(LONG_REASON);
      else await held;
    },
    { concurrency: 2, onError: () => {} },
  );
  await eventually(async () => {
    const { dead, retries, inFlight } = await orders.stats();
    expect({ dead, retries, inFlight }).toEqual({ dead: 2, retries: 1, inFlight: 1 });
  });
  await line.getDelayedQueue("reminders").offer("call back", 40 * 86_400_000, { key: "same" });
  await orders.offer("call back", 40 * 86_400_000, { key: "same" });
  const redis = new Redis(redisUrl);
  await redis.rpush(queueKeys("reminders").quarantine, "\u0000\u0001unreadable", "{");
  await redis.rpush(
    "reminders",
    ...Array.from({ length: 8 }, (_, i) => JSON.stringify({ call: i })),
  );
  for (const name of ["orders", "reminders", "events"]) await seedPast(redis, name, pastAt);
  redis.disconnect();
  const events = line.getReliableQueue<number>("events", { partitions: 4 });
  const nightly = { cron: "30 2 * * *", timeZone: "Asia/Tokyo", payload: 1 };
  await events.schedules.upsert("reports nightly", {
    ...nightly,
    overlap: "skip",
    lane: "reports",
    priority: 5,
  });
  await events.schedules.upsert("often", { every: 20 * 60_000, payload: ({ at }) => at.getTime() });
  const invoices = { every: HOUR, payload: 1, misfire: "skip" } as const;
  await events.schedules.declare("billing", { invoices }, { revision: 42 });
  await events.schedules.upsert("stopped", { every: HOUR, payload: 1 });
  await events.schedules.pause("stopped");
  await events.offerMany(
    Array.from({ length: 40 }, (_, i) => ({ payload: i, delay: HOUR, key: `e${i}` })),
  );
}

/** The same, and `notices` with lanes in which messages wait. */
async function seedWithFlow(line: TestLine, redisUrl: string): Promise<void> {
  await seed(line, redisUrl);
  const redis = new Redis(redisUrl);
  await seedPast(redis, "notices", pastAt);
  redis.disconnect();
  const notices = line.getDelayedQueue<number>("notices");
  const rate = { limit: 1, per: HOUR, burst: 1 };
  await notices.flow.set({ lane: { rate }, ahead: 2 });
  await notices.offerMany(
    Array.from({ length: 50 }, (_, i) => ({
      payload: i,
      delay: 0,
      lane: `tenant ${Math.floor(Math.sqrt(i))}`,
    })),
  );
  await eventually(async () => (await notices.flow.state()).waiting === 48);
}

/** What a dashboard would have noted: waves, and some dead letters of late. */
const pastAt = (age: number) => ({
  delayed: Math.round(120 + 60 * Math.sin(age * 20)),
  ready: Math.round(4 + 4 * Math.sin(age * 50)),
  inFlight: Math.round(2 + 2 * Math.cos(age * 50)),
  retries: age < 0.3 ? 1 : 0,
  dead: Math.max(0, Math.round(8 - 20 * age)),
  finished: Math.round(20 + 15 * Math.sin(age * 20)),
  late: Math.round(60_000 + 50_000 * Math.sin(age * 70)),
});

const PAGES = [
  ["queues", "", "orders"],
  ["queue", "queue/orders", "Forecast"],
  ["queue-plain", "queue/reminders", "History"],
  ["queue-partitions", "queue/events", "Partitions"],
  [
    "queue-flow",
    "queue/notices",
    "lanes in turns, each 1 message in 1 h, 1 at once, 2 ready ahead",
  ],
  ["delayed", "queue/orders/delayed", "order:30"],
  ["ready", "queue/orders/ready", "Nothing is ready"],
  ["in-flight", "queue/orders/in-flight", "hold"],
  ["retrying", "queue/orders/retrying", "the bank does not answer"],
  ["search", "queue/orders/messages?prefix=order:11", "order:119"],
  ["message", "queue/orders/message?key=order:60", "Waiting for its deadline"],
  ["message-dead", "queue/orders/message?key=reject", "Became a dead letter"],
  ["find", "find?q=hold", "Taken by"],
  ["find-many", "find?q=same", "2 messages in 4 queues"],
  ["find-nothing", "find?q=nobody", /for its time\. These queues remember nothing: /],
  ["dead", "queue/orders/dead", "the card was refused"],
  ["ready-plain", "queue/reminders/ready", "Bare payloads, the oldest first"],
  ["quarantined", "queue/reminders/quarantined", "Payloads that no consumer could decode"],
  ["consumers", "queue/orders/consumers", "Last heard of"],
  ["schedules", "queue/events/schedules", /^set billing, revision 42$/],
  ["log", "queue/events/log", "paused schedule stopped"],
  ["busy", "busy", "which process holds what"],
  ["redis", "redis", /^Snapshot\s*off$/],
  ["month", "month", "messages in the coming 31 days"],
  ["doctor", "doctor", "keeps nothing on disk"],
  ["missing", "queue/orders/nothing", "Page not found"],
] as const;

/** The names and instants in tables that are broken over several lines. */
const BROKEN = `[...document.querySelectorAll(".table td:not(.words) .text, .table td time")]
  .filter((one) => one.offsetHeight > 1.8 * parseFloat(getComputedStyle(one).lineHeight))
  .map((one) => one.innerText)`;

/** How many columns and rows the plots of the past are in. */
const SQUARE = `["left", "top"].map((side) =>
  new Set([...document.querySelectorAll(".plots figure")].map((one) => one.getBoundingClientRect()[side])).size)`;

/** How many plots have something at their left or right edge, such as a label that is cut. */
const CUT = `[...document.querySelectorAll("canvas")].filter((one) => {
  const copy = new OffscreenCanvas(one.width, one.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(one, 0, 0);
  return [0, one.width - 1].some((x) => copy.getImageData(x, 0, 1, one.height).data.some(Boolean));
}).length`;

/** How much narrower than the strip of numbers its last row is. */
const ORPHANED = `Math.round(document.querySelector(".tiles").getBoundingClientRect().right
  - document.querySelector(".tiles > :last-child").getBoundingClientRect().right)`;

/** A time zone in which it is noon, so that the next hours are of the same day. */
function zoneAtNoon(): string {
  const ahead = 12 - new Date().getUTCHours();
  return `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
}

inBrowser("every page passes the audit, in light and dark", { timeout: 300_000 }, async () => {
  const { url, line, redisUrl } = await openBoard(seedWithFlow);
  const page = await visit(url, {
    viewport: { width: 1440, height: 900 },
    timezoneId: zoneAtNoon(),
  });
  const groups = page.getByRole("columnheader", { name: "Group" });
  const traffic = page.getByRole("figure", { name: /^Messages of all queues, per minute/ });
  const latest = /^The latest minute: \d+ became ready, \d+ finished, \d+ failed\.$/;
  // What a plot says of the place of a pointer that is not there.
  const untold = page.locator(".u-series:first-child, .u-value").filter({ visible: true });
  const titles = new Set<string>();
  for (const [name, route, text] of PAGES) {
    await page.goto(`${url}#/${route}`);
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    if (/^queue\b/.test(name)) await page.locator("canvas").nth(4).waitFor();
    if (name === "queues") await traffic.getByText(latest).waitFor();
    if (name === "queue") expect(await page.evaluate(SQUARE)).toEqual([2, 2]);
    if (name === "schedules") await page.getByText(/^lane reports, priority 5$/).waitFor();
    expect(await page.evaluate(CUT), name).toBe(0);
    expect(await untold.count(), name).toBe(0);
    titles.add(await page.title());
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await auditColours(page), `${name}, dark`).toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
    expect(await audit(page), `${name}, light`).toEqual([]);
    expect(await page.evaluate(BROKEN), name).toEqual([]);
    expect(await groups.count(), name).toBe(0);
    await shoot(page, name);
  }
  expect(titles.size).toBe(PAGES.length);
  expect([...titles]).toContain("order:60 · orders · Delayline");
  const bar = page.getByRole("banner");
  await bar.getByText(`${new URL(redisUrl).host}, database 0`).waitFor();

  // A pointer over a plot tells the time and the values there.
  await page.goto(`${url}#/`);
  await traffic.locator(".u-over").hover();
  await traffic.getByText("Time").filter({ visible: true }).waitFor();

  // An instant of today has no day.
  await page.goto(`${url}#/queue/orders/delayed?sort=-deadline`);
  const due = page.getByRole("row").locator("td:nth-of-type(2) time");
  await due.getByText(/^\s*\d{4}-\d\d-\d\d \d\d:\d\d in (40 d|39 d 23 h)\s*$/).waitFor();
  expect((await due.nth(1).innerText()).trim()).toMatch(/^\d\d:\d\d in 1 h \d+ min$/);

  // A second group is told apart.
  line.getReliableQueue("orders", { group: "audit" }).subscribe(() => {});
  await page.goto(`${url}#/queue/orders/in-flight`);
  await groups.waitFor();
});

inBrowser.each([
  ["phone", 360],
  ["tablet", 820],
])(
  "every page fits a %s: nothing scrolls sideways",
  { timeout: 150_000 },
  async (device, width) => {
    const { url } = await openBoard(seedWithFlow);
    const page = await visit(url, { viewport: { width, height: 740 } });
    for (const [name, route, text] of PAGES) {
      await page.goto(`${url}#/${route}`);
      await page.getByText(text).filter({ visible: true }).first().waitFor();
      expect(await page.evaluate("document.documentElement.scrollWidth"), name).toBe(width);
      if (/^queues?$|redis/.test(name)) {
        expect(await page.evaluate(ORPHANED), name).toBeLessThan(2);
      }
      await shoot(page, `${name}-${device}`);
    }
  },
);

inBrowser("an empty Redis, and a broken one, pass the audit", async () => {
  const { url: emptyUrl } = await openBoard(async () => {});
  const page = await visit(emptyUrl, { expected: /ERR_|503/ });
  const check = async (name: string) => {
    expect(await audit(page), name).toEqual([]);
    await shoot(page, name);
  };
  await page.getByText("This Redis has no queues").waitFor();
  await check("empty");
  await page.goto(`${emptyUrl}#/queue/orders/delayed`);
  await page.getByText("Nothing is delayed.").waitFor();
  await check("empty-list");
  await page.getByRole("link", { name: "Log" }).click();
  await page.getByText("Nothing is noted: nobody has paused this queue").waitFor();

  const { url } = await openBoard(async (line, redisUrl) => {
    await line.getDelayedQueue("orders").offer("x", HOUR);
    const redis = new Redis(redisUrl);
    await redis.set(queueKeys("broken").timeouts, "no zset");
    await redis.config("SET", "min-replicas-to-write", "1");
    redis.disconnect();
  });
  await page.goto(url);
  await page.getByRole("alert").getByText("Redis").waitFor();
  await page.getByText("Could not be read").first().waitFor();
  await check("broken");
  await page.goto(`${url}#/queue/broken`);
  await page.getByRole("alert").first().waitFor();
  await check("broken-queue");
});

inBrowser("200 queues: sorted, filtered, and the same again from the address", async () => {
  const { url } = await openBoard(async (line) => {
    const names = Array.from({ length: 200 }, (_, i) => `team-${i % 10}.queue-${i}`);
    await Promise.all(
      names.map((name, i) =>
        line
          .getDelayedQueue(name)
          .offerMany(Array.from({ length: i + 1 }, () => ({ payload: "x", delay: HOUR }))),
      ),
    );
    await line.getDelayedQueue("team-3.queue-13").pause();
  });
  const page = await visit(url);
  const table = page.getByRole("table", { name: "200 queues" });
  const rows = page.getByRole("rowheader");
  await table.waitFor();
  expect(await rows.first().innerText()).toContain("team-3.queue-13");
  await page.getByRole("columnheader", { name: "Delayed" }).getByRole("button").click();
  expect(await rows.first().innerText()).toContain("queue-199");
  await page.getByRole("searchbox", { name: "Filter by name" }).fill("TEAM-3");
  await page.getByRole("table", { name: "20 queues" }).waitFor();
  await page.reload();
  await page.getByRole("table", { name: "20 queues" }).waitFor();
  expect(await rows.first().innerText()).toContain("queue-193");
  await page.getByRole("radio", { name: /^Paused/ }).check({ force: true });
  await page.getByRole("table", { name: "1 queue", exact: true }).waitFor();
  await page.goto(`${url}#/`);
  await table.waitFor();
  await shoot(page, "queues-many", false);
});

inBrowser("problems come first, folded by kind, with links to the lists behind them", async () => {
  const { url } = await openBoard(seed);
  const page = await visit(url);
  const health = page.getByRole("region", { name: "Health" });
  await health
    .getByRole("listitem")
    .filter({ hasText: "Dead letters" })
    .getByText("orders")
    .waitFor();
  await health.getByText("2 of 3 queues have problems").first().waitFor();
  const rows = page.getByRole("rowheader");
  expect(await rows.allInnerTexts()).toEqual([
    expect.stringContaining("orders"),
    expect.stringContaining("reminders"),
    expect.stringContaining("events"),
  ]);
  await health.getByRole("link", { name: "reminders" }).click();
  await page.getByRole("heading", { name: "Quarantine" }).waitFor();
  await page.waitForFunction("document.title === 'Quarantined · reminders · Delayline'");
});

inBrowser("the worst that the doctor found leads the first screen, and opens it", async () => {
  const { url } = await openBoard(async (line) => {
    await line.getReliableQueue("orders").offer("later", HOUR);
  });
  const page = await visit(url);
  const health = page.getByRole("region", { name: "Health" });
  await health.getByText("The doctor found 1 error").first().waitFor();
  await health.getByRole("listitem").filter({ hasText: "1 error" }).waitFor();
  await shoot(page, "queues-doctor");
  await health.getByRole("link", { name: /keeps nothing on disk/ }).click();
  await page.getByRole("article", { name: "error: persistence" }).waitFor();
  await page.getByRole("button", { name: "Examine again" }).click();
  await page.getByRole("link", { name: "Redis" }).click();
  await page.locator(".pairs .problem").getByText("off", { exact: true }).waitFor();
});

inBrowser("the histogram and the plots have summaries and tables", async () => {
  const { url } = await openBoard(seed);
  const page = await visit(`${url}#/queue/orders`);
  const due = page.getByRole("figure", { name: /^Due in the/ });
  await due
    .getByText(/^\d+ messages due in the next hour; the peak is \d+, from \d\d:\d\d\.$/)
    .waitFor();
  await page.getByRole("radio", { name: "Month" }).check({ force: true });
  await due.getByText("121 messages due in the next 30 days").waitFor();
  await due.getByText("Due in the next 30 days (UTC) as a table").click();
  await due.getByRole("cell", { name: "121" }).or(due.getByRole("row").nth(1)).first().waitFor();
  const lateness = page.getByRole("figure", { name: /^Lateness/ });
  await lateness.getByText("Lateness as a table").click();
  await lateness.getByRole("columnheader", { name: "Longest wait since due" }).waitFor();
  await page.getByRole("group", { name: "How far back" }).getByText("90 days").click();
  await page
    .getByRole("figure", { name: /^Throughput, per day/ })
    .getByText(/^At most: finished/)
    .waitFor();
});

inBrowser("a rate that is typed in is drawn beside what falls due, and sets nothing", async () => {
  const { url, line } = await openBoard(seedWithFlow);
  const page = await visit(`${url}#/queue/notices`);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const present = page.getByRole("figure", { name: /^With lanes in turns, each 1 message in 1 h/ });
  await present.getByText(/^48 due, \d+ ready, \d+ messages waiting at the end\.$/).waitFor();
  await page.getByLabel("Messages that may become ready").fill("50");
  await page.getByLabel("In each").selectOption("minute");
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const tried = page.getByRole("figure", { name: /together 50 messages in 1 min/ });
  await tried.locator("canvas").waitFor();
  expect(await line.getDelayedQueue("notices").flow.get()).not.toHaveProperty("rate");
});

inBrowser("the forecast of a month names UTC days in every time zone", async () => {
  const day = new Date(Date.now() + 5 * 24 * 60 * MINUTE).toISOString().slice(0, 10);
  const { url } = await openBoard(async (line) => {
    await line.getDelayedQueue("orders").offerAt("x", new Date(`${day}T12:00:00Z`));
  });
  const page = await visit(`${url}#/queue/orders`, { timezoneId: "America/New_York" });
  const due = page.getByRole("figure", { name: /^Due in the/ });
  await page.getByRole("radio", { name: "Month" }).check({ force: true });
  await due
    .getByText(`1 message due in the next 30 days (UTC); the peak is 1, from ${day}.`)
    .waitFor();
  await due.getByText("Due in the next 30 days (UTC) as a table").click();
  await due.getByRole("rowheader", { name: day }).waitFor();
});

inBrowser("read-only: there are no buttons for changes, and a line says why", async () => {
  const { url } = await openBoard(seed, { readOnly: true, payloads: false });
  const page = await visit(url);
  const changes = /Change|Pause|Resume|Redrive|Remove|Requeue|Cancel|Reschedule|Deliver/;
  for (const [name, route, text] of PAGES) {
    if (!["queue", "message", "dead", "delayed", "quarantined"].includes(name)) continue;
    await page.goto(`${url}#/${route}`);
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    await page.getByText("Read-only: this dashboard does not allow changes").waitFor();
    expect(await page.getByRole("button", { name: changes }).count(), route).toBe(0);
  }
  await page.goto(`${url}#/queue/orders/message?key=order:60`);
  await page.getByText("Payloads are hidden").waitFor();
});
