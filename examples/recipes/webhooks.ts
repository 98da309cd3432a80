/**
 * Webhooks arrive at each customer in the order of the events. A customer whose endpoint is down holds up nobody else.
 *
 *   npx tsx examples/recipes/webhooks.ts
 *
 * The page: docs/recipes/webhooks.md.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline, RejectError } from "delayline";
import { startRedis } from "delayline/testing";

interface Webhook {
  readonly customer: string;
  readonly event: string;
}

await using server = await startRedis();
await using line = new Delayline({ redis: server.url });

const webhooks = line.getReliableQueue<Webhook>(`webhooks-${process.pid}`, {
  partitions: 8, // at most 8 handlers at once in all processes together
  exclusive: true, // one consumer per partition: the messages of a key are handled one after another
  strict: true, // a failed message comes before the later ones of its key
  retry: [100, 200, 400], // in production [10_000, 60_000, 600_000, 3_600_000]
  maxAttempts: 4,
});

async function send(customer: string, event: string): Promise<void> {
  // The partition key decides the order. The business key of a webhook would be its own, if it has one.
  await webhooks.offer({ customer, event }, 0, { partitionKey: customer });
}

webhooks.subscribe(
  async ({ customer, event }, { id, signal }) => {
    const response = await fetch(urlOf(customer), {
      method: "POST",
      headers: { "idempotency-key": id }, // the same on every attempt
      body: event,
      // A limit of its own: an endpoint that never answers would hold up its partition.
      signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]),
    });
    if (response.status === 410) throw new RejectError("the endpoint is gone"); // no retry
    if (!response.ok) throw new Error(`${customer} answered ${response.status}`);
  },
  { onError: (error) => console.log(String(error)) },
);

// Three endpoints: one is up, one fails three times, one is gone.
const received: Record<string, string[]> = { up: [], flaky: [], gone: [] };
let failures = 3;
const endpoint = createServer((request, response) => {
  void answer(request).then((status) => response.writeHead(status).end());
}).listen(0, "127.0.0.1");
await once(endpoint, "listening");

const EVENTS = ["created", "paid", "shipped", "delivered"];
for (const event of EVENTS) {
  for (const customer of ["flaky", "up", "gone"]) await send(customer, event);
}
while (received["flaky"]?.length !== EVENTS.length) await sleep(20);
while ((await webhooks.deadLetters.size()) < EVENTS.length) await sleep(20);

assert.deepEqual(received, { up: EVENTS, flaky: EVENTS, gone: [] });
const reasons = new Set<string>();
for await (const { payload, reason } of webhooks.deadLetters) {
  assert.equal(payload?.customer, "gone");
  reasons.add(reason);
}
assert.deepEqual([...reasons], ["the endpoint is gone"]);
console.log("both living endpoints got all events, in order");
endpoint.close();
endpoint.closeAllConnections();

function urlOf(customer: string): string {
  return `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/${customer}`;
}

async function answer(request: IncomingMessage): Promise<number> {
  const customer = request.url?.slice(1) ?? "";
  const event = await text(request);
  if (customer === "gone") return 410;
  if (customer === "flaky" && failures-- > 0) return 503;
  received[customer]?.push(event);
  return 200;
}
