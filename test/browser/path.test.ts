import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, visit } from "./board.ts";

const HOUR = 3_600_000;

inBrowser("follows a message through all states without a reload", async () => {
  const options = { retry: [HOUR], maxAttempts: 2 };
  const { url, line } = await openBoard(async (seed) => {
    await seed.getReliableQueue("orders", options).offer("another", 30 * HOUR);
  });
  const orders = line.getReliableQueue<string>("orders", options);
  const page = await visit(url);
  await page.evaluate("window.isTheSame = true");
  const row = page.getByRole("row", { name: "orders" });
  const state = (name: string) => page.locator(".place strong", { hasText: name }).waitFor();
  const change = async (button: string) => {
    await page.getByRole("main").getByRole("button", { name: button }).click();
    await page.getByRole("dialog").getByRole("button", { name: button }).click();
  };

  // Offered.
  await row.getByRole("cell", { name: "1", exact: true }).first().waitFor();
  await orders.offer("pay", 2 * HOUR, { key: "order:42" });
  await row.getByRole("cell", { name: "2", exact: true }).waitFor();
  await page.getByRole("link", { name: "orders" }).click();
  await page.getByRole("link", { name: /^Delayed/ }).click();
  await page.getByRole("row", { name: "order:42" }).getByRole("link").click();
  await state("delayed");

  // Rescheduled.
  await change("Reschedule");
  await page.getByText("in 9 min").waitFor();
  await change("Deliver now");
  await state("ready");

  // Fails twice.
  let fails = true;
  let proceed: (() => void) | undefined;
  const handled: string[] = [];
  orders.subscribe(
    async (payload) => {
      if (fails) throw new Error("the bank does not answer");
      await new Promise<void>((resolve) => (proceed = resolve));
      handled.push(payload);
    },
    { onError: () => {} },
  );
  await state("retrying");
  await page
    .locator(".pairs div", { hasText: "Attempts" })
    .getByText("1", { exact: true })
    .waitFor();
  await change("Deliver now");

  // Dies.
  await state("dead");
  await page.locator(".life li", { hasText: "Became a dead letter" }).waitFor();
  const failed = page.locator(".life li", { hasText: "failed" });
  expect(await failed.allInnerTexts()).toEqual([
    expect.stringMatching(/^Attempt 1 failed\s.*\sthe bank does not answer$/s),
    expect.stringMatching(/^Attempt 2 failed\s.*\sthe bank does not answer$/s),
  ]);
  await page.getByRole("link", { name: "Dead 1" }).click();
  await page.getByText("1 earlier failure").click();
  await page.getByText(/^Attempt 1, /).waitFor();
  await page.getByRole("link", { name: "order:42" }).click();

  // Redriven and handled.
  fails = false;
  await change("Redrive");
  await state("in flight");
  expect(await failed.allInnerTexts()).toEqual([
    expect.stringMatching(/^Attempt 1 failed\s.*\sbefore the redrive\s*the bank does not answer$/s),
    expect.stringMatching(/^Attempt 2 failed\s.*\sbefore the redrive\s*the bank does not answer$/s),
  ]);
  proceed?.();
  await state("not found");
  await eventually(() => expect(handled).toEqual(["pay"]));
  expect(await page.evaluate("window.isTheSame")).toBe(true);
});
