import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, visit } from "./board.ts";

inBrowser("shows that a payload is cut off or left out", async () => {
  const { url } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders", { codec: "string" });
    await queue.offer("x".repeat(10_000), 0, { key: "long" });
    await queue.offer("y".repeat(70_000), 0, { key: "huge" });
    const work = queue.subscribe((_, delivery) => delivery.reject("no"));
    await eventually(async () => (await queue.deadLetters.size()) === 2);
    await work.close();
  });
  const page = await visit(`${url}#/queue/orders/dead`);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  const long = page.getByRole("row", { name: /\blong\b/ });
  await long.getByText("The first 4,000 of more than 4,096 characters.").waitFor();
  await long.getByRole("button", { name: "Show more" }).click();
  await long.getByText("Cut off after 4,096 characters.").waitFor();
  const huge = page.getByRole("row", { name: /\bhuge\b/ });
  await huge.getByText("Too large to show in a list.").waitFor();

  await page.goto(`${url}#/queue/orders/message?key=long`);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByText("The first 4,000 of 10,000 characters.").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
  expect(await page.getByText("Cut off").count()).toBe(0);
});
