import { expect } from "vitest";
import { inBrowser, openBoard, visit } from "./board.ts";

const MANY = 12_000;

inBrowser("many messages are paged, and never one long page", async () => {
  const { url } = await openBoard(async (line) => {
    const queue = line.getDelayedQueue("orders");
    const offers = Array.from({ length: MANY }, (_, i) => ({
      payload: i,
      delay: 3_600_000 + i,
      key: `order:${String(i).padStart(5, "0")}`,
    }));
    for (let at = 0; at < MANY; at += 2_000) await queue.offerMany(offers.slice(at, at + 2_000));
  });
  const page = await visit(url);
  await page.getByRole("cell", { name: "12,000" }).waitFor();
  await page.goto(`${url}#/queue/orders/messages`);
  const cell = (name: string) => page.getByRole("cell", { name, exact: true });
  const rows = page.getByRole("rowheader");
  await cell("order:00000").waitFor();
  expect(await rows.count()).toBe(50);
  for (const next of ["order:00050", "order:00100", "order:00150"]) {
    await page.getByRole("link", { name: "Next page" }).click();
    await cell(next).waitFor();
    expect(await rows.count()).toBe(50);
  }
  await page.getByText("Page 4").waitFor();
  await page.getByRole("link", { name: "Previous page" }).click();
  await cell("order:00100").waitFor();
  await page.goBack();
  await cell("order:00150").waitFor();
  await page.getByRole("link", { name: "First page" }).click();
  await cell("order:00000").waitFor();

  await page.getByRole("searchbox", { name: "Key begins with" }).fill("order:119");
  await page.getByRole("button", { name: "Search" }).click();
  await cell("order:11900").waitFor();
  expect(await rows.count()).toBe(50);
  await page.getByRole("link", { name: "Next page" }).click();
  await cell("order:11999").waitFor();
  expect(await page.getByRole("link", { name: "Next page" }).count()).toBe(0);
});
