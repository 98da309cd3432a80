import { expect, test } from "vitest";
import { Lease } from "../../../src/partitions/exclusive/lease.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
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
