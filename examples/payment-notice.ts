/**
 * Partners are notified of payments until they answer: again at once, then after two minutes, then every ten minutes.
 * If a partner keeps failing, the notice becomes a dead letter, and is sent again once somebody has solved the problem.
 *
 *   npx tsx examples/payment-notice.ts
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline, RejectError } from "delayline";
import { startRedis } from "delayline/testing";

interface Notice {
  readonly partner: string;
  readonly payment: string;
}

const MINUTE = 100; // ms, so that the example does not take an hour

/** Stands for the partners: how often each fails before it answers, and when it was notified. */
const partners = new Map([
  ["bakery", { failures: 0, toldAt: [] as number[] }],
  ["bookshop", { failures: 5, toldAt: [] as number[] }],
  ["kiosk", { failures: Infinity, toldAt: [] as number[] }],
]);
const answers: string[] = [];

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
line.on("error", ({ message }) => console.log(message));
const notices = line.getReliableQueue<Notice>(`payment-notices-${process.pid}`, {
  retry: [0, 2 * MINUTE, 10 * MINUTE], // The last pause repeats,
  maxAttempts: 8, // so there are seven retries.
});

notices.subscribe(
  async ({ partner, payment }, { attempt }) => {
    const found = partners.get(partner);
    // A retry cannot help, so the notice becomes a dead letter at once.
    if (found === undefined) throw new RejectError(`there is no partner "${partner}"`);

    console.log(`attempt ${attempt}: notifying the ${partner} of ${payment}`);
    found.toldAt.push(performance.now());
    if (found.toldAt.length <= found.failures) throw new Error(`the ${partner} does not answer`);
    answers.push(partner);
  },
  { concurrency: 50 },
);

for (const partner of ["bakery", "bookshop", "kiosk", "casino"]) {
  const payment = `payment-of-the-${partner}`;
  const headers = { "sent-by": "payment-notice.ts" };
  await notices.offer({ partner, payment }, 0, { key: `pay:notice:${payment}`, headers });
}

// A failing partner does not hold up the others; its retries wait in Redis.
while (!answers.includes("bookshop")) await sleep(20);
assert.deepEqual(answers, ["bakery", "bookshop"]);
const toldAt = partners.get("bookshop")?.toldAt ?? [];
const pauses = toldAt.slice(1).map((at, i) => (at - (toldAt[i] ?? 0)) / MINUTE);
console.log(
  `minutes between the notices to the bookshop: ${pauses.map((p) => p.toFixed(1)).join(", ")}`,
);
assert.equal(pauses.length, 5);
for (const [i, least] of [0, 2, 10, 10, 10].entries()) {
  assert.ok((pauses[i] ?? 0) > least - 0.02, "a retry is never early");
}

// After eight deliveries the kiosk's notice is a dead letter, like the one that was rejected.
while ((await notices.deadLetters.size()) < 2) await sleep(20);
const dead = new Map<string, { id: string; attempt: number }>();
for await (const { id, payload, attempt, reason } of notices.deadLetters) {
  console.log(`dead after attempt ${attempt}: the notice for the ${payload?.partner}; ${reason}`);
  dead.set(payload?.partner ?? "", { id, attempt });
}
const [kiosk, casino] = [dead.get("kiosk"), dead.get("casino")];
assert.ok(kiosk && casino);
assert.deepEqual([kiosk.attempt, casino.attempt], [8, 1]);

// Somebody has repaired the kiosk. The casino was a mistake.
partners.set("kiosk", { failures: 0, toldAt: [] });
await notices.deadLetters.redrive(kiosk.id, { delay: MINUTE });
await notices.deadLetters.remove(casino.id);
while (!answers.includes("kiosk")) await sleep(20);
assert.deepEqual(answers, ["bakery", "bookshop", "kiosk"], "each partner has answered once");
assert.equal(await notices.deadLetters.size(), 0);
