import { Redis } from "ioredis";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { eventually } from "../helpers/eventually.ts";
import { audit } from "./audit.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// Every button asks for confirmation, makes its change, and reports the result.

const HOUR = 3_600_000;

/** Chooses an item of a menu. */
async function choose(page: Page, menu: string, item: string): Promise<void> {
  await page.getByRole("main").getByRole("button", { name: menu, exact: true }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Presses a button, or chooses an item of a menu, and then presses a button of the dialog that opens. */
async function change(page: Page, button: string, verb = button, menu?: string): Promise<void> {
  if (menu !== undefined) await choose(page, menu, button);
  else await page.getByRole("main").getByRole("button", { name: button, exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: verb, exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
}

const says = (page: Page, text: string | RegExp) =>
  page.getByRole("main").getByRole("status").getByText(text).waitFor();

inBrowser("a delayed message can be rescheduled, delivered now, and cancelled", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const offers = ["a", "b"].map((key) => ({ payload: key, delay: HOUR, key }));
    await seed.getDelayedQueue("orders").offerMany(offers);
  });
  const orders = line.getDelayedQueue("orders");
  const page = await visit(`${url}#/queue/orders/delayed`);
  await page.getByRole("row", { name: /\ba\b/ }).getByRole("link").click();
  await page.getByRole("button", { name: "Reschedule" }).click();
  const dialog = page.getByRole("dialog", { name: "Reschedule this message?" });
  await dialog.getByRole("spinbutton", { name: "Amount" }).fill("3");
  await dialog.getByRole("combobox", { name: "Unit" }).selectOption("hours");
  await shoot(page, "dialog");
  await dialog.getByRole("button", { name: "Reschedule" }).click();
  await says(page, /^The message is due at /);
  await page.getByText("in 2 h 59 min").waitFor();
  expect((await orders.get("a"))?.deadline).toBeGreaterThan(Date.now() + 2.5 * HOUR);

  await change(page, "Deliver now");
  await says(page, "The message is due now.");
  await eventually(async () => (await orders.get("a")) === undefined);

  await page.goto(`${url}#/queue/orders/message?key=b`);
  await page.getByRole("button", { name: "Cancel message" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Go back" }).click();
  expect(await orders.get("b")).toBeDefined();
  await change(page, "Cancel message");
  await says(page, "The message was cancelled.");
  await page.getByText("It was handled, cancelled, dropped or removed").waitFor();
  expect(await orders.get("b")).toBeUndefined();
});

inBrowser("a running message can be revoked, and ready ones in a list", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders");
    await queue.offerMany("abc".split("").map((key) => ({ payload: key, delay: 0, key })));
  });
  const queue = line.getReliableQueue<string>("orders");
  const delivery = await queue.take();
  const page = await visit(`${url}#/queue/orders/message?key=${delivery.key}`);
  await page.getByRole("button", { name: "Revoke message" }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke this message?" });
  await dialog.getByText(new RegExp(`^It is running in .*/${process.pid} since `)).waitFor();
  await dialog.getByRole("textbox", { name: "Reason" }).fill("paid");
  await shoot(page, "revoke");
  await dialog.getByRole("button", { name: "Revoke message" }).click();
  await says(page, /^The message was running, and is revoked\./);
  await eventually(() => delivery.signal.aborted);
  expect(delivery.signal.reason).toMatchObject({ code: "REVOKED", reason: "paid" });
  expect(await delivery.ack()).toBe(false);

  await page.goto(`${url}#/queue/orders/ready`);
  await page.getByRole("row", { name: /\bc\b/ }).waitFor();
  expect(await page.getByRole("button", { name: "Change all" }).count()).toBe(0);
  await page.getByRole("checkbox", { name: "Select c", exact: true }).check();
  await change(page, "Revoke");
  await says(page, "1 message was revoked.");
  expect((await queue.stage("c")).stage).toBe("gone");
  await page.goto(`${url}#/queue/orders/log`);
  await page.getByText("revoked 1 message: chosen in a list").waitFor();
});

inBrowser("dead letters can be redriven and removed, one by one and all at once", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders");
    await queue.offerMany("abcdef".split("").map((key) => ({ payload: key, delay: 0, key })));
    const work = queue.subscribe((_, delivery) => delivery.reject("no"));
    await eventually(async () => (await queue.deadLetters.size()) === 6);
    await work.close();
  });
  const { deadLetters } = line.getReliableQueue("orders");
  const page = await visit(`${url}#/queue/orders/dead`);
  const press = async (row: string, button: string) => {
    await page.getByRole("checkbox", { name: `Select ${row}`, exact: true }).check();
    await page.getByText("1 selected").waitFor();
    await page.getByRole("main").getByRole("button", { name: button, exact: true }).click();
    const dialog = page.getByRole("dialog", { name: `${button} 1 message?` });
    await dialog.getByText("1 message, still dead.").waitFor();
    await dialog.getByRole("button", { name: button }).click();
    await page
      .getByRole("row", { name: new RegExp(`\\b${row} no\\b`) })
      .waitFor({ state: "detached" });
  };
  await press("a", "Redrive");
  await says(page, "1 message was redriven.");
  expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
  await press("b", "Remove");
  await says(page, "1 message was removed.");
  expect(await deadLetters.size()).toBe(4);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByRole("region", { name: "Payload" }).first().waitFor();

  // Whoever types 5 means seconds, not days.
  await choose(page, "Change all", "Redrive all");
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByRole("combobox", { name: "Unit" }).inputValue()).toBe("seconds");
  await dialog.getByRole("spinbutton", { name: "Amount" }).fill("0.001");
  await dialog.getByText("4 dead letters now.").waitFor();
  await dialog.getByRole("button", { name: "Redrive" }).click();
  await says(page, "4 dead letters were redriven.");
  await page.getByText("Nothing is dead.").waitFor();
  await page.getByText("No dead letters.").waitFor();
  const queue = line.getReliableQueue<string>("orders");
  const work = queue.subscribe((_, delivery) => delivery.reject("again"));
  // The list also shows changes made elsewhere.
  await page.getByRole("row", { name: /\bf again\b/ }).waitFor();
  await work.close();
  await change(page, "Remove all", "Remove", "Change all");
  await says(page, "5 dead letters were removed.");
  expect(await deadLetters.size()).toBe(0);
});

inBrowser("dead letters are grouped by reason; one reason or one text is redriven", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders");
    const late = ["timeout after 31 ms", "timeout after 2 ms", "timeout after 2 ms"];
    for (const [i, reason] of [...late, "refused"].entries()) {
      await queue.offer("x", 0, { key: `${i}` });
      await (await queue.take()).reject(reason);
    }
  });
  const page = await visit(`${url}#/queue/orders/dead`);
  const groups = page.getByRole("table", { name: "Dead letters by reason" });
  await groups
    .getByRole("row", { name: /^timeout after # ms 2 texts: timeout after # ms 3 / })
    .waitFor();
  expect(await groups.getByRole("button", { name: "text: refused" }).count()).toBe(0);
  // A search that takes longer than a reply says how far it is, and goes on by itself.
  const told: { goOn?: () => void } = {};
  const isTold = new Promise<void>((resolve) => void (told.goOn = resolve));
  await page.route("**/messages?*reason=*", async (route) => {
    const from = new URL(route.request().url());
    if (!from.searchParams.has("after")) {
      await route.fulfill({ json: { messages: [], next: "further", looked: 12_000 } });
      return;
    }
    await isTold;
    from.searchParams.delete("after");
    await route.fulfill({ response: await route.fetch({ url: from.href }) });
  });
  await groups.getByRole("link", { name: "timeout after # ms" }).click();
  await page.getByText("No match among the first 12,000. Searching on …").waitFor();
  told.goOn?.();
  const list = page.getByRole("table", { name: "Dead messages" });
  await page.getByText("Reason: timeout after # ms").waitFor();
  await list.getByRole("rowheader").nth(2).waitFor();
  expect(await list.getByRole("rowheader").count()).toBe(3);
  await page.unroute("**/messages?*reason=*");
  await page.getByRole("link", { name: "Show all" }).click();
  await list.getByRole("rowheader").nth(3).waitFor();

  // It opens into what its letters say in full: each text can be listed, redriven and removed alone.
  await groups.getByRole("button", { name: "2 texts: timeout after # ms" }).click();
  await groups
    .getByRole("row", { name: /^timeout after 2 ms 2 \d\d:\d\d.* ago \d\d:\d\d.* ago/ })
    .waitFor();
  expect(await audit(page)).toEqual([]);
  await shoot(page, "reason-open");
  await choose(page, "Change: timeout after 31 ms", "Redrive");
  const one = page.getByRole("dialog", { name: "Redrive the dead letters of this reason?" });
  await one.getByText("timeout after 31 ms").waitFor();
  await one.getByText("1 dead letter now.").waitFor();
  await one.getByRole("spinbutton", { name: "Amount" }).fill("5");
  await one.getByRole("combobox", { name: "Unit" }).selectOption("hours");
  await one.getByRole("button", { name: "Redrive" }).click();
  await says(page, "1 dead letter was redriven.");
  await groups.getByText("timeout after 31 ms").waitFor({ state: "detached" });

  await choose(page, "Change: timeout after # ms", "Redrive");
  const dialog = page.getByRole("dialog", { name: "Redrive the dead letters of this reason?" });
  await dialog.getByText("timeout after # ms").waitFor();
  await dialog.getByText("2 dead letters now.", { exact: true }).waitFor();
  expect(await dialog.getByText(/\b0 so far|\b3\b/).count()).toBe(0);
  await dialog.getByRole("spinbutton", { name: "Amount" }).fill("5");
  await dialog.getByRole("combobox", { name: "Unit" }).selectOption("hours");
  await dialog.getByRole("button", { name: "Redrive" }).click();
  await says(page, "2 dead letters were redriven.");
  await groups.getByText("timeout after # ms").waitFor({ state: "detached" });
  const { dead, retries } = await line.stats("orders");
  expect({ dead, retries }).toEqual({ dead: 1, retries: 3 });
});

inBrowser("delayed messages are selected, counted and cancelled together", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const offers = ["a", "b", "c"].map((key) => ({ payload: key, delay: HOUR, key }));
    await seed.getDelayedQueue("orders").offerMany(offers);
  });
  const orders = line.getDelayedQueue("orders");
  // The list may load again while its requests are stopped.
  const page = await visit(`${url}#/queue/orders/delayed`, { expected: /ERR_FAILED/ });
  await page.getByRole("checkbox", { name: "Select all on this page" }).check();
  await page.getByText("3 selected").waitFor();
  await page.getByRole("checkbox", { name: "Select c" }).uncheck();
  await page.route("**/messages?*", (route) => route.abort());
  await orders.cancel("b");
  await page.getByRole("button", { name: "Cancel messages" }).click();
  const dialog = page.getByRole("dialog", { name: "Cancel 2 messages?" });
  await dialog.getByText("1 of 2 messages is still delayed; the rest is left alone.").waitFor();
  await page.unroute("**/messages?*");
  await dialog.getByRole("button", { name: "Cancel messages" }).click();
  await says(page, "1 message was cancelled.");
  await page.getByRole("rowheader", { name: "a" }).waitFor({ state: "detached" });
  expect(await orders.size()).toBe(1);
  expect((await orders.get("c"))?.key).toBe("c");

  // What a filter lets through is counted, and changed as a whole.
  await orders.offerMany(["d:1", "d:2"].map((key) => ({ payload: key, delay: HOUR, key })));
  await page.goto(`${url}#/queue/orders/delayed?prefix=d`);
  // The menu works with the keyboard alone, and closes without a change.
  const menu = page.getByRole("button", { name: "Change all that match" });
  const items = page.getByRole("menuitem");
  await menu.press("ArrowDown");
  await items.nth(2).waitFor();
  expect(await items.allInnerTexts()).toEqual(
    ["Deliver", "Reschedule", "Cancel"].map((verb) => `${verb} all that match`),
  );
  expect(await audit(page)).toEqual([]);
  await shoot(page, "menu", false);
  await page.keyboard.press("Escape");
  expect(await items.count()).toBe(0);
  await page.locator("button:focus").and(menu).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowUp");
  await page.locator("[role=menuitem]:focus", { hasText: "Cancel all that match" }).waitFor();
  await page.keyboard.press("Enter");
  const all = page.getByRole("dialog", { name: "Cancel all delayed messages that match?" });
  await all.getByText("2 messages now.").waitFor();
  await all.getByRole("button", { name: "Cancel messages" }).click();
  await says(page, "2 messages were cancelled.");
  expect(await orders.size()).toBe(1);
});

inBrowser("an unreadable letter has no Redrive button, but can be removed", async () => {
  const { url, line, redisUrl } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders");
    await queue.offer("x", 0, { key: "a" });
    const work = queue.subscribe((_, delivery) => delivery.reject("no"));
    await eventually(async () => (await queue.deadLetters.size()) === 1);
    await work.close();
  });
  const redis = new Redis(redisUrl);
  await redis.xadd(queueKeys("orders").dead, "*", "what", "is this?");
  redis.disconnect();
  const why = "This letter cannot be redriven: its address, payload or group is missing.";
  const page = await visit(`${url}#/queue/orders/dead`);
  const list = page.getByRole("table", { name: "Dead messages" });
  const row = list.getByRole("row", { name: "unreadable" });
  await row.getByText(why).waitFor();

  await change(page, "Redrive all", "Redrive", "Change all");
  await says(page, "1 dead letter was redriven.");
  await page.getByRole("row", { name: /\ba no\b/ }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Change all" }).click();
  expect(await page.getByRole("menuitem").allInnerTexts()).toEqual(["Remove all"]);
  await page.keyboard.press("Escape");

  await row.getByRole("link").click();
  await page.getByText(why).waitFor();
  expect(await page.getByRole("button", { name: "Redrive" }).count()).toBe(0);
  await change(page, "Remove");
  await says(page, "The message was removed.");
  expect(await line.getReliableQueue("orders").deadLetters.size()).toBe(0);
});

inBrowser("the quarantine is filtered, and requeued and removed in part and whole", async () => {
  const { quarantine, unreadable } = queueKeys("orders");
  const { url, redisUrl } = await openBoard(async (seed, at) => {
    await seed.getDelayedQueue("orders").offer("x", HOUR);
    const redis = new Redis(at);
    await redis.rpush(quarantine, "\u0000one", "two", "three");
    await redis.rpush(unreadable, "whole");
    redis.disconnect();
  });
  const redis = new Redis(redisUrl);
  const page = await visit(`${url}#/queue/orders/quarantined`);
  const rows = page.getByRole("rowheader");
  await rows.nth(3).waitFor();
  await page.getByRole("searchbox", { name: "Payload contains" }).fill("tw");
  await page.getByRole("button", { name: "Filter payloads" }).click();
  await rows.nth(1).waitFor({ state: "detached" });
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByRole("region", { name: "Payload" }).getByText("two").waitFor();
  await choose(page, "Change all that match", "Remove all that match");
  const all = page.getByRole("dialog", { name: "Remove all quarantined messages that match?" });
  await all.getByText("1 message now.").waitFor();
  await all.getByRole("button", { name: "Go back" }).click();
  await page.getByRole("checkbox", { name: "Select position 2" }).check();
  await page.getByRole("main").getByRole("button", { name: "Requeue" }).click();
  const dialog = page.getByRole("dialog", { name: "Requeue 1 message?" });
  await dialog.getByText("1 message, still quarantined.").waitFor();
  await dialog.getByRole("button", { name: "Requeue" }).click();
  await says(page, "1 message was requeued.");
  expect(await redis.lrange("orders", 0, -1)).toEqual(["two"]);

  await page.goto(`${url}#/queue/orders/quarantined`);
  await page.getByText("Unknown layout", { exact: true }).click();
  await page.getByRole("checkbox", { name: "Select all on this page" }).check();
  await change(page, "Remove");
  await says(page, "1 message was removed.");
  await page.getByText("All", { exact: true }).click();
  await rows.nth(1).waitFor();
  await change(page, "Requeue all", "Requeue", "Change all");
  await says(page, "2 messages were requeued.");
  await page.getByText("The quarantine is empty.").waitFor();
  expect(await redis.lrange("orders", 0, -1)).toEqual(["two", "\u0000one", "three"]);
  await redis.rpush(quarantine, "four");
  await choose(page, "Change all", "Remove all");
  await page.getByRole("dialog").getByText("1 message now.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await says(page, "1 message was removed.");
  expect(await redis.exists(quarantine, unreadable)).toBe(0);
  redis.disconnect();
});

inBrowser("lists are sorted by their columns, and the address keeps the order", async () => {
  const { url } = await openBoard(async (seed) => {
    const offers = [3, 1, 2].map((size, i) => ({
      payload: "x".repeat(size * 10),
      delay: HOUR + i,
      key: `k${size}`,
    }));
    await seed.getDelayedQueue("orders").offerMany(offers);
  });
  const page = await visit(`${url}#/queue/orders/delayed`);
  const keys = () => page.getByRole("rowheader").allInnerTexts();
  await page.getByRole("rowheader").nth(2).waitFor();
  expect(await keys()).toEqual(["k3", "k1", "k2"]);
  await page.getByRole("columnheader", { name: "Size" }).getByRole("button").click();
  await eventually(async () => expect(await keys()).toEqual(["k3", "k2", "k1"]));
  await page.getByRole("columnheader", { name: "Message" }).getByRole("button").click();
  await eventually(async () => expect(await keys()).toEqual(["k1", "k2", "k3"]));
  await page.reload();
  await eventually(async () => expect(await keys()).toEqual(["k1", "k2", "k3"]));
  await page.getByRole("button", { name: "as in Redis" }).click();
  await eventually(async () => expect(await keys()).toEqual(["k3", "k1", "k2"]));
});

inBrowser("a queue can be paused and resumed; the dialog shows a refusal", async () => {
  const { url, line } = await openBoard(async (seed) => {
    await seed.getDelayedQueue("orders").offer("x", HOUR);
  });
  const orders = line.getDelayedQueue("orders");
  const page = await visit(`${url}#/queue/orders`, { expected: /503|ERR_/ });
  await change(page, "Pause");
  await says(page, "orders was paused.");
  await page.getByText("paused", { exact: true }).waitFor();
  expect(await orders.isPaused()).toBe(true);
  await change(page, "Resume");
  await says(page, "orders was resumed.");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  expect(await orders.isPaused()).toBe(false);

  const refusal = { status: 503, json: { error: "Redis is away" } };
  await page.route("**/pause", (route) => route.fulfill(refusal));
  await page.getByRole("button", { name: "Pause" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await dialog.getByRole("alert").getByText("Redis is away").waitFor();
  await dialog.getByRole("button", { name: "Go back" }).click();
  expect(await orders.isPaused()).toBe(false);
});

inBrowser("a search by the beginning of keys finds messages in every state", async () => {
  const { url } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders");
    await queue.offer("x", HOUR, { key: "order:later" });
    await queue.offer("x", 0, { key: "order:dead" });
    await (await queue.take()).reject("no");
  });
  const page = await visit(`${url}#/queue/orders/messages?prefix=order:`);
  await page.getByRole("row", { name: /^order:later Delayed / }).waitFor();
  await page
    .getByRole("row", { name: /^order:dead Dead / })
    .getByRole("link")
    .click();
  await page.getByText("Not delivered again unless someone redrives it.").waitFor();
});

inBrowser("a schedule can be run, paused, resumed and removed", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const { schedules } = seed.getReliableQueue("reports");
    const daily = { cron: "30 2 * * *", timeZone: "Asia/Tokyo", payload: "x" };
    await schedules.upsert("nightly", daily);
  });
  const { schedules } = line.getReliableQueue("reports");
  const page = await visit(`${url}#/queue/reports`, { timezoneId: "Europe/Berlin" });
  await page.getByRole("link", { name: /^Schedules/ }).click();
  const row = page.getByRole("row", { name: /nightly/ });
  await row
    .getByText(/ 02:30:00 Asia\/Tokyo/)
    .first()
    .waitFor();
  // Half past two in Tokyo is an evening in Berlin.
  await row
    .getByText(/\b1[89]:30 in /)
    .first()
    .waitFor();
  const press = async (verb: string) => {
    await choose(page, "Change: nightly", verb);
    const dialog = page.getByRole("dialog", { name: `${verb} nightly?` });
    await dialog.getByRole("button", { name: verb, exact: true }).click();
    await dialog.waitFor({ state: "hidden" });
  };
  await press("Run");
  await says(page, "nightly is offered now.");
  await press("Pause");
  await says(page, "nightly was paused.");
  await row.getByText("paused").waitFor();
  expect((await schedules.get("nightly"))?.isPaused).toBe(true);
  await press("Resume");
  await says(page, "nightly was resumed.");
  expect((await schedules.get("nightly"))?.isPaused).toBe(false);
  await press("Remove");
  await says(page, "nightly was removed.");
  await page.getByText("No schedules: processes declare them").waitFor();
  expect(await schedules.get("nightly")).toBeUndefined();
});

inBrowser("a lane is paused, and unpinned", async () => {
  const { url, line } = await openBoard(async (seed) => {
    const queue = seed.getDelayedQueue<number>("notices");
    await queue.flow.set({ lane: { rate: { limit: 1, per: HOUR, burst: 1 } } });
    await queue.offerMany(
      Array.from({ length: 5 }, (_, i) => ({ payload: i, delay: 0, lane: "acme" })),
    );
    await eventually(async () => (await queue.flow.state()).waiting === 4);
  });
  const { flow } = line.getDelayedQueue("notices");
  const page = await visit(`${url}#/queue/notices`);
  await change(page, "Pause", "Pause", "Change: acme");
  await says(page, "Lane acme was paused.");
  expect((await flow.state()).lanes).toMatchObject([{ lane: "acme", pinned: { paused: true } }]);
  await page.getByRole("cell", { name: "paused", exact: true }).waitFor();
  expect(await audit(page)).toEqual([]);
  await change(page, "Unpin", "Unpin", "Change: acme");
  await says(page, "Lane acme was unpinned.");
  expect((await flow.state()).lanes[0]?.pinned).toBeUndefined();
});
