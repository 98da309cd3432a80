import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// The README's picture, docs/images/order-42.png: the light one that this test saves.

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
