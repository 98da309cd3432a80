import { expect, inject, onTestFinished } from "vitest";
import { serveDashboard } from "../../src/tools/dashboard/index.ts";
import { freePort } from "../../src/adapters/testing/server-process.ts";
import { newLine } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { inBrowser, visit } from "./board.ts";

inBrowser("shows a lost connection, and recovers when the server is back", async () => {
  expect(inject("whyNoBrowser")).toBe("");
  const { url: redis } = await startOwnServer();
  const line = newLine({ redis });
  const orders = line.getDelayedQueue("orders");
  await orders.offer("x", 3_600_000);
  // Not a port that an outgoing connection could take while the server is down.
  const port = await freePort();
  const first = await serveDashboard({ redis, port });
  onTestFinished(() => first.close());
  const page = await visit(first.url, { expected: /ERR_|503/ });
  const status = page.getByRole("banner").getByRole("status");
  const row = page.getByRole("row", { name: "orders" });
  await status.getByText("Live").waitFor();
  await row.getByRole("cell", { name: "1", exact: true }).first().waitFor();

  await first.close();
  await status.getByText(/^Connection lost\. Last update at \d\d:\d\d:\d\d\. Retrying…$/).waitFor();
  await orders.offer("y", 3_600_000);
  const second = await serveDashboard({ redis, port });
  onTestFinished(() => second.close());
  await status.getByText("Live").waitFor();
  await row.getByRole("cell", { name: "2", exact: true }).waitFor();
});
