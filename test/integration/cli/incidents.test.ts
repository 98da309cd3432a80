import { expect, it, onTestFinished } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

// Five incidents, as somebody meets them who knows no more than is said: one command leads to the cause, or names the one
// that does.

const server = useSoundServer();

/**
 * Runs commands one after another, and expects that the last one tells the cause, and that there are two at most. The second
 * is one that the first has printed.
 */
async function leadsTo(
  cause: RegExp,
  commands: readonly string[],
  url = server.url,
): Promise<void> {
  expect(commands.length).toBeLessThanOrEqual(2);
  let said = "";
  for (const [i, command] of commands.entries()) {
    if (i > 0) expect(said).toContain(`npx delayline ${command}`);
    const { stdout, stderr } = await cli(command.split(" "), { url });
    // Prose is wrapped.
    said = `${stdout}${stderr}`.replaceAll(/\s+/g, " ");
  }
  expect(said).toMatch(cause);
}

/** Resolves when the test ends. */
function untilTheEnd(): Promise<void> {
  return new Promise((resolve) => onTestFinished(() => resolve()));
}

it("nothing is delivered: the workers have another database", async () => {
  newLine({ redis: `${server.url}/1` })
    .getBlockingQueue("orders")
    .subscribe(() => {});
  await eventually(async () =>
    /:blocking:orders .* db=1/.test(String(await server.admin.client("LIST"))),
  );
  const producer = newLine({ redis: server.url, transfer: false });
  await producer.getDelayedQueue("orders").offerAt("a", Date.now() - 60_000);
  await leadsTo(/1 connection of this library serves a queue of this name in database 1/, [
    "doctor",
  ]);
});

it("nothing is delivered: somebody has paused the queue", async () => {
  const line = newLine({ redis: server.url });
  const orders = line.getReliableQueue("orders");
  orders.subscribe(() => {});
  await orders.pause({ reason: "the bank is down" });
  await orders.offer("a", 0);
  await leadsTo(/the queue is paused \(the bank is down\)/, ["doctor"]);
  // And who it was.
  await leadsTo(new RegExp(`/${process.pid} paused: the bank is down`), ["doctor", "log orders"]);
});

it("nothing is delivered: no worker runs", async () => {
  const producer = newLine({ redis: server.url, transfer: false });
  await producer.getDelayedQueue("orders").offerAt("a", Date.now() - 60_000);
  await leadsTo(/no process listens to the queue/, ["doctor"]);
  await leadsTo(/overdue by .*no process moves it/, ["stats"]);
});

it("nothing is delivered: the handlers hang", async () => {
  const orders = newLineThatMayFail({ redis: server.url }).getReliableQueue("orders");
  const hung = untilTheEnd();
  orders.subscribe(() => hung, { concurrency: 3 });
  // As if they had become ready a minute ago, and the handlers had begun half a minute later.
  const { stream } = queueKeys("orders");
  const since = Date.now() - 60_000;
  for (let i = 0; i < 20; i++)
    await server.admin.xadd(stream, `${since}-${i}`, "a", Buffer.alloc(24, i), "p", "1");
  await eventually(async () => (await orders.stats()).inFlight === 3);
  const held = await server.admin.xpending(stream, "default", "-", "+", 10);
  for (const [entry, consumer] of held as [string, string][]) {
    const words = [stream, "default", consumer, 0, entry, "IDLE", 30_000, "JUSTID"] as const;
    await server.admin.call("XCLAIM", ...words);
  }
  await leadsTo(/17 messages are ready, and its consumers have taken none for 30 s/, ["doctor"]);
  // And where they hang.
  const where = new RegExp(` 30 s ago .* ${process.pid} `);
  await leadsTo(where, ["doctor", "list orders --state in-flight"]);
});

it("a customer asks for one message", async () => {
  const line = newLineThatMayFail({ redis: server.url });
  const orders = line.getReliableQueue<string>("orders", { retry: [3_600_000] });
  const hung = untilTheEnd();
  orders.subscribe(
    async (verb, delivery) => {
      if (verb === "reject") await delivery.reject("the card was refused");
      if (verb === "fail") throw new Error("the bank does not answer");
      if (verb === "hang") await hung;
    },
    { concurrency: 2, onError: () => {} },
  );
  for (const verb of ["reject", "fail", "hang"]) await orders.offer(verb, 0, { key: verb });
  await orders.offer("paid", 0, { key: "paid", onlyIf: { key: "status", is: "open" } });
  await orders.offer("later", 3_600_000, { key: "later" });
  await eventually(async () => {
    const { dead, retries, inFlight, dropped } = await orders.stats();
    expect([dead, retries, inFlight, dropped]).toEqual([1, 1, 1, 1]);
  });
  await leadsTo(/is dead in queue "orders".*reason the card was refused/, ["get reject"]);
  await leadsTo(/is retrying .*next attempt .* the bank does not answer/, ["get fail"]);
  await leadsTo(new RegExp(`is in flight .*pid ${process.pid}`), ["get hang"]);
  await leadsTo(/was dropped .*: the condition of onlyIf did not hold/, ["get orders paid"]);
  await leadsTo(/is delayed .*due 20.* \(in 59 min/, ["get later"]);
});

it("there are too many dead letters", async () => {
  const orders = newLineThatMayFail({ redis: server.url }).getReliableQueue<number>("orders");
  orders.subscribe(
    async (n, delivery) => {
      await delivery.reject(n % 3 === 0 ? `SMTP 550 no user ${n}` : `answered 503 after ${n} ms`);
    },
    { concurrency: 10, onError: () => {} },
  );
  for (let i = 0; i < 30; i++) await orders.offer(i, 0);
  await eventually(async () => (await orders.stats()).dead === 30);
  const cause = /20 .*answered 503 after # ms.*10 .*SMTP 550 no user #/;
  await leadsTo(cause, ["doctor", "dead reasons orders"]);
  await leadsTo(cause, ["dead reasons orders"]);
});

it("Redis is full", async () => {
  const own = await startOwnServer({ appendOnly: true });
  await newLine({ redis: own.url, transfer: false }).getDelayedQueue("orders").offer(1, 3_600_000);
  await newRedis(own.url).config("SET", "maxmemory", "1");
  await leadsTo(/Redis has used all its memory.*nothing is offered/, ["stats"], own.url);
  await leadsTo(
    /uses .* MB of maxmemory 0\.0 MB.*refuses every offer \(OOM\)/,
    ["doctor"],
    own.url,
  );
});

it("a schedule did not run", async () => {
  const line = newLineThatMayFail({ redis: server.url });
  const orders = line.getReliableQueue<string>("orders");
  const hung = untilTheEnd();
  orders.subscribe(() => hung);
  await orders.schedules.upsert("nightly", { every: 86_400_000, payload: "x" });
  await orders.schedules.upsert("often", { every: 500, payload: "x", overlap: "skip" });
  await orders.schedules.pause("nightly");
  await leadsTo(/schedule "nightly" is paused/, ["doctor"]);
  await leadsTo(new RegExp(`/${process.pid} paused schedule nightly`), ["doctor", "log orders"]);
  await leadsTo(/nightly .*paused/, ["schedules"]);
  await eventually(async () => (await orders.stats()).droppedOverlap > 0);
  await leadsTo(
    /of schedule "often" (was|were) dropped, ever, while another one was ready or in flight/,
    ["doctor"],
  );
});
