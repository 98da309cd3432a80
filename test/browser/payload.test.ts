import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { audit } from "./audit.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

const SCRIPT = "<script>alert(1)</script>";
const IMAGE = "<img src=x onerror=alert(2)>";
const PACKED = { [IMAGE]: SCRIPT, n: [1, [true, null]] };
const STORED = '{"who: \\"<b>\\"":[1,-2.5,true],"text":"<script>: no"}';

inBrowser("shows that a payload is cut off or left out", async () => {
  const { url } = await openBoard(async (seed) => {
    const queue = seed.getReliableQueue<string>("orders", { codec: "string" });
    await queue.offer("x".repeat(10_000), 0, { key: "long" });
    await queue.offer("y".repeat(70_000), 0, { key: "huge" });
    await queue.offer(STORED, 0, { key: "json" });
    const work = queue.subscribe((_, delivery) => delivery.reject("no"));
    await eventually(async () => (await queue.deadLetters.size()) === 3);
    await work.close();
    await seed.getDelayedQueue("packed").offer(PACKED, 3_600_000, { key: "packed" });
  });
  const page = await visit(`${url}#/queue/orders/dead`);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  const long = page.getByRole("row", { name: /\blong\b/ });
  await long.getByText("The first 4,000 of more than 4,096 characters.").waitFor();
  await long.getByRole("button", { name: "Show more" }).click();
  await long.getByText("Cut off after 4,096 characters.").waitFor();
  const huge = page.getByRole("row", { name: /\bhuge\b/ });
  await huge.getByText("Too large to show in a list.").waitFor();

  const json = page.getByRole("row", { name: /\bjson\b/ }).getByRole("region", { name: "Payload" });
  const kinds = async (kind: string) => await json.locator(`.json-${kind}`).allTextContents();
  expect(await kinds("key")).toEqual(['"who: \\"<b>\\""', '"text"']);
  expect(await kinds("string")).toEqual(['"<script>: no"']);
  expect(await kinds("number")).toEqual(["1", "-2.5"]);
  expect(await kinds("word")).toEqual(["true"]);
  expect(JSON.parse((await json.textContent()) ?? "")).toEqual(JSON.parse(STORED));
  // Each object and array has a fold.
  const fold = json.locator("details details");
  await fold.locator("summary").click();
  await fold.getByText("-2.5").waitFor({ state: "hidden" });
  await json.getByText("<script>: no").waitFor();

  // Other lists than those of bare payloads find a text in them, too.
  await page.getByRole("searchbox", { name: "Payload contains" }).fill("<script>");
  await page.getByRole("search", { name: "Payload contains" }).getByRole("button").click();
  await long.waitFor({ state: "detached" });
  await json.waitFor();

  // What the default codec writes is shown like JSON: coloured, indented, and as text alone.
  await page.goto(`${url}#/queue/packed/message?key=packed`);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  const packed = page.getByRole("region", { name: "Payload" });
  await page.getByText("Shown as msgpack.").waitFor();
  expect(await packed.locator(".json-key").allTextContents()).toEqual([`"${IMAGE}"`, '"n"']);
  expect(await packed.locator(".json-string").allTextContents()).toEqual([`"${SCRIPT}"`]);
  expect(JSON.parse((await packed.textContent()) ?? "")).toEqual(PACKED);
  expect(await packed.locator("img, script").count()).toBe(0);
  expect(await audit(page)).toEqual([]);
  await shoot(page, "payload");

  await page.goto(`${url}#/queue/orders/message?key=long`);
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByText("The first 4,000 of 10,000 characters.").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
  expect(await page.getByText("Cut off").count()).toBe(0);
});
