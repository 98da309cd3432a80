import { expect } from "vitest";
import { inBrowser, openBoard, visit } from "./board.ts";

const MANY = 12_000;

inBrowser("long lists are split into pages", async () => {
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
  await page.goto(`${url}#/queue/orders/delayed`);
  const rows = page.getByRole("rowheader");
  const row = (name: string) => page.getByRole("rowheader", { name, exact: true });
  await row("order:00000").waitFor();
  expect(await rows.count()).toBe(50);
  for (const next of ["order:00050", "order:00100", "order:00150"]) {
    await page.getByRole("link", { name: "Next page" }).click();
    await row(next).waitFor();
    expect(await rows.count()).toBe(50);
  }
  await page.getByText("Page 4").waitFor();
  await page.getByRole("link", { name: "Previous page" }).click();
  await row("order:00100").waitFor();
  await page.goBack();
  await row("order:00150").waitFor();
  await page.getByRole("link", { name: "First page" }).click();
  await row("order:00000").waitFor();

  await page.getByRole("searchbox", { name: "Key begins with" }).fill("order:119");
  await page.getByRole("search", { name: "Key begins with" }).getByRole("button").click();
  const found = page
    .getByRole("table", { name: "Delayed messages with keys that begin with order:119" })
    .getByRole("rowheader");
  await found.first().waitFor();
  const first = await found.allInnerTexts();
  expect(first).toHaveLength(50);
  await page.getByRole("link", { name: "Next page" }).click();
  await found.getByText(first[0] ?? "", { exact: true }).waitFor({ state: "detached" });
  await found.nth(49).waitFor();
  expect(new Set([...first, ...(await found.allInnerTexts())]).size).toBe(100);
  expect(await page.getByRole("link", { name: "Next page" }).count()).toBe(0);
});
