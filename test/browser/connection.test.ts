import { expect, inject, onTestFinished } from "vitest";
import { serveDashboard } from "../../src/tools/dashboard/index.ts";
import { freePort } from "../../src/adapters/testing/server-process.ts";
import { newLine } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis } from "../helpers/redis.ts";
import { inBrowser, shoot, visit } from "./board.ts";

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

inBrowser("while Redis hangs, the last numbers stay grey, and one cause is said once", async () => {
  expect(inject("whyNoBrowser")).toBe("");
  const server = await startOwnServer();
  const line = newLine({ redis: server.url });
  for (const name of ["orders", "mails"]) await line.getDelayedQueue(name).offer("x", 3_600_000);
  const board = await serveDashboard({ redis: server.url, callTimeout: 500 });
  onTestFinished(() => board.close());
  const page = await visit(board.url, { expected: /ERR_|503/ });
  const status = page.getByRole("banner").getByRole("status");
  const cell = page.getByRole("row", { name: "orders" }).getByRole("cell", { name: "1" });
  await status.getByText("Live").waitFor();
  await cell.first().waitFor();
  server.pause();
  try {
    await status.getByText("Redis does not answer").waitFor();
    const since = page.getByText(/^Redis has not answered since \d\d:\d\d:\d\d$/);
    await since.first().waitFor();
    await page.getByText(/The numbers below are .* old\./).waitFor();
    await cell.first().waitFor();
    expect(await page.locator(".stale table").count()).toBe(1);
    expect(await page.getByText("All well").count()).toBe(0);
    expect(await page.getByText(/[Cc]ould not be read|cannot ask/).count()).toBe(0);
    await shoot(page, "redis-hangs");
  } finally {
    server.resume();
  }
  await status.getByText("Live").waitFor();
  await page.locator(".stale").waitFor({ state: "detached" });
});

inBrowser("a Redis that refuses every write is not called well", async () => {
  expect(inject("whyNoBrowser")).toBe("");
  const { url: redis } = await startOwnServer();
  await newLine({ redis }).getDelayedQueue("orders").offer("x", 3_600_000);
  await newRedis(redis).config("SET", "maxmemory", "1");
  const board = await serveDashboard({ redis });
  onTestFinished(() => board.close());
  const page = await visit(board.url);
  const health = page.getByRole("region", { name: "Health" });
  await health.getByText("Redis refuses every write").first().waitFor();
  await health.getByText(/nothing is offered, and what is due still becomes ready/).waitFor();
  expect(await page.getByText("All well").count()).toBe(0);
  await shoot(page, "redis-refuses");
});
