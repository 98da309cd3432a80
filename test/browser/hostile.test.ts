import { expect } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

// Names, keys, headers, reasons and payloads are untrusted.

const SCRIPT = "<script>alert(1)</script>";
const IMAGE = `"><img src=x onerror=alert(2)>`;
const BIDI = "invoice\u202Efdp.exe";
const NAME = `${SCRIPT}/${BIDI} ?#%`;
const LONG = "x".repeat(200);

inBrowser("hostile texts are shown as text, with invisible characters marked", async () => {
  const { url } = await openBoard(async (line) => {
    const queue = line.getReliableQueue(NAME, { codec: "json" });
    const headers = { [IMAGE]: `${SCRIPT}${BIDI}` };
    const payload = { html: `${SCRIPT}${IMAGE}`, bidi: BIDI, lines: "one\ntwo" };
    await queue.offer(payload, 0, { key: `${IMAGE}${BIDI}\u0000`, headers });
    const reason = `${IMAGE} ${BIDI}`;
    const work = queue.subscribe((_, delivery) =>
      delivery.attempt === 1 ? delivery.nack({ delay: 0, reason }) : delivery.reject(reason),
    );
    await eventually(async () => (await queue.deadLetters.size()) === 1);
    await work.close();
    await queue.offer(payload, 3_600_000, { key: `${IMAGE}${BIDI} gone` });
    await queue.cancelWhere({ prefix: `${IMAGE}${BIDI} g` });
    await queue.offer(payload, 3_600_000, { key: LONG, headers });
    await queue.offer(payload, 3_600_000, { key: `${SCRIPT}${BIDI}`, headers });
  });
  const page = await visit(url);
  const safe = async (name: string) => {
    const found = await page.evaluate(`({
      elements: document.querySelectorAll("img, iframe, object, svg:not(.icon, .spark), main script").length,
      bidi: document.body.innerText.includes("\\u202e") || document.title.includes("\\u202e") ||
        [...document.querySelectorAll("[title]")].some(({ title }) => title.includes("\\u202e")),
    })`);
    expect(found, name).toEqual({ elements: 0, bidi: false });
    await shoot(page, `hostile-${name}`);
  };
  await page.getByRole("rowheader").getByText("<script>alert(1)</script>/invoice").waitFor();
  await safe("queues");
  await page.getByRole("rowheader").getByRole("link").click();
  const escape = page.locator(".escape", { hasText: "U+202E" });
  await page.getByRole("heading", { level: 1 }).and(page.locator(":has(.escape)")).waitFor();
  expect(await page.title()).toContain("⟨U+202E⟩");
  await page.locator("canvas").first().waitFor();
  await safe("queue");

  await page.getByRole("link", { name: "Delayed" }).click();
  await page.getByText(SCRIPT).nth(1).waitFor();
  const long = page.getByText(/^x{10,}…$/);
  expect(await long.getAttribute("title")).toBe(LONG);
  await safe("messages");
  await page.getByRole("row", { name: SCRIPT }).getByRole("link").click();
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByRole("region", { name: "Payload" }).getByText("onerror=alert(2)").waitFor();
  await safe("message");

  await page.getByRole("link", { name: /^Dead/ }).click();
  await page.getByRole("rowheader", { name: IMAGE }).first().waitFor();
  await page.getByRole("checkbox", { name: "Show payloads" }).check();
  await page.getByRole("region", { name: "Payload" }).waitFor();
  await page.getByText("1 earlier failure").click();
  await page.locator(".failures li", { hasText: IMAGE }).waitFor();
  expect(await escape.count()).toBeGreaterThan(2);
  await safe("dead");
  await page.getByRole("link", { name: "Log" }).click();
  await page.getByRole("row", { name: `cancelled 1 message: prefix ${IMAGE}` }).waitFor();
  await safe("log");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByText(SCRIPT).waitFor();
  await safe("dialog");
});

inBrowser("a search for a hostile key finds it", async () => {
  const { url } = await openBoard(async (line) => {
    await line.getDelayedQueue("orders").offer("x", 3_600_000, { key: `${IMAGE}&#?=+ %41` });
  });
  const page = await visit(`${url}#/queue/orders/messages`);
  await page.getByRole("searchbox", { name: "Key begins with" }).fill(`${IMAGE}&#?=+ %`);
  await page.getByRole("button", { name: "Filter keys" }).click();
  await page
    .getByRole("table", { name: /^Messages in any state with keys that begin with/ })
    .waitFor();
  await page.getByRole("rowheader", { name: IMAGE }).waitFor();
  await page.getByRole("searchbox", { name: "Find a message" }).fill(`${IMAGE}&#?=+ %41`);
  await page.keyboard.press("Enter");
  await page.getByText("Waiting for its deadline").waitFor();
});
