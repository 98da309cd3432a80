import { expect, test } from "vitest";
import { renewHold } from "../../../src/lua/partitions/hold.ts";
import { DURATION, Lease } from "../../../src/partitions/exclusive/lease.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { redisUrl } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { closeWithin, newOpen } from "../lifecycle/running.ts";

test("a lease that is never renewed ends by itself, although Redis does not reply", async () => {
  const server = await startOwnServer();
  const { shared, open } = newOpen(server.url);
  const work = shared.troubles.work();
  const lease = await Lease.take({ part: open, process: "me", knownFact: () => undefined, work });
  server.pause();
  if (!(lease instanceof Lease)) throw new Error("another process has the lease");
  expect(lease.signal.aborted).toBe(false);
  await eventually(() => lease.signal.aborted, { what: "the lease is over" });
  expect(String(lease.signal.reason)).toContain("it was not renewed in time");
  expect(lease.isOurs).toBe(false);
  server.resume();
  await closeWithin(shared, () => lease.release());
});

test("a lease lasts from when its renewal was sent, however long the reply took", async () => {
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const { shared, open } = newOpen(proxy.url);
  const args = { process: "nobody", fence: 0, duration: DURATION };
  // Redis knows the script then, and a renewal is one command.
  await open.queue.run(shared.connections.commands, renewHold, args);
  const work = shared.troubles.work();
  const lease = await Lease.take({ part: open, process: "me", knownFact: () => undefined, work });
  if (!(lease instanceof Lease)) throw new Error("another process has the lease");
  const [background] = roles.all("background");
  if (background !== undefined) background.delay.reply = 1400;
  let sentAt = Infinity;
  roles.onRequest = (chunk, connection) => {
    if (connection !== background || !chunk.includes("delayline_holder")) return "forward";
    if (sentAt !== Infinity) return "drop";
    sentAt = performance.now();
    return "forward";
  };
  let endedAt = Infinity;
  lease.signal.addEventListener("abort", () => (endedAt = performance.now()));
  await eventually(() => endedAt < Infinity);
  expect(endedAt - sentAt).toBeGreaterThan(1400);
  expect(endedAt - sentAt).toBeLessThan(DURATION);
  proxy.cut();
  await closeWithin(shared, () => lease.release());
});
