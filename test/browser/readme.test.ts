import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// The README's pictures, docs/images/order-42.png and month.png: the light ones that these tests save.

inBrowser("support types order:42 into the box, and sees where it is and why", async () => {
  const pauses = [300, 600_000];
  const { url } = await openBoard(async (line) => {
    const orders = line.getReliableQueue<{ id: number; total: number }>("orders", {
      retry: pauses,
      maxAttempts: 4,
    });
    for (let id = 1; id <= 40; id++) {
      await orders.offer({ id, total: 20 + id }, 3_600_000 + 60_000 * id, { key: `order:${id}` });
    }
    await line.getDelayedQueue<string>("carts").offer("abandoned", 7_200_000, { key: "cart:42" });
    orders.subscribe(
      () => {
        throw new Error("the bank does not answer: connect ETIMEDOUT");
      },
      { onError: () => {} },
    );
    await orders.offer({ id: 42, total: 99.5 }, 300, { key: "order:42" });
    await eventually(async () => {
      expect((await orders.get("order:42"))?.failures).toHaveLength(2);
    });
  });
  const page = await visit(url, { viewport: { width: 1200, height: 640 } });
  await page.getByRole("link", { name: "orders", exact: true }).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("order:42");
  await page.keyboard.press("Enter");
  await page.locator(".place strong", { hasText: "retrying" }).waitFor();
  const failed = page.locator(".life li", { hasText: "the bank does not answer" });
  await eventually(async () => expect(await failed.count()).toBe(2));
  await shoot(page, "readme-order-42");
});

const HOUR = 3_600_000;

/** How many reminders come in each hour of a day, from midnight on. */
const DAY = [2, 1, 1, 1, 2, 4, 9, 22, 41, 58, 52, 47, 38, 44, 49, 46, 40, 33, 24, 17, 12, 9, 6, 4];

/** How many reminders come from an instant on, within an hour; with coupons that end at noon of the twelfth day. */
function countAt(at: number, first: number): number {
  if (at === first + (11 * 24 + 12) * HOUR) return 198;
  const weekday = new Date(at).getUTCDay();
  const hour = new Date(at).getUTCHours();
  if (weekday === 1 && hour === 9) return 140;
  return Math.ceil((DAY[hour] ?? 0) / (weekday === 0 || weekday === 6 ? 5 : 1));
}

inBrowser("the month shows what comes in each hour, and the herd in it", async () => {
  const midnight = Math.floor(Date.now() / (24 * HOUR) + 1) * 24 * HOUR;
  const { url } = await openBoard(async (line) => {
    const reminders = line.getReliableQueue<number>("reminders");
    for (let at = midnight; at < midnight + 30 * 24 * HOUR; at += HOUR) {
      await reminders.offerMany(
        Array.from({ length: countAt(at, midnight) }, (_, i) => ({
          payload: i,
          at: at + i * 1_000,
        })),
      );
    }
  });
  const page = await visit(`${url}#/month`, {
    viewport: { width: 1200, height: 640 },
    timezoneId: "UTC",
  });
  await page.getByText("messages in the coming 31 days, at most 198 an hour").waitFor();
  await shoot(page, "readme-month", false);
});
