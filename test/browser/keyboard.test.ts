import type { Page } from "playwright-core";
import { expect } from "vitest";
import { audit } from "./audit.ts";
import { inBrowser, openBoard, shoot, visit } from "./board.ts";

/** The text of the focused element. Reports an element whose focus is not visible. */
async function focused(page: Page): Promise<string> {
  return await page.evaluate(`(() => {
    const e = document.activeElement;
    if (e !== document.body && e.matches(":focus-visible")) {
      const { outlineStyle } = getComputedStyle(e.matches(".choice input") ? e.nextElementSibling : e);
      if (outlineStyle === "none" && !e.matches("h1, main")) return "no visible focus: " + e.outerHTML;
    }
    return (e.labels?.[0] ?? e).innerText.trim() || e.tagName;
  })()`);
}

/** Presses a key until the element with this text has the focus. */
async function goTo(page: Page, text: string, key = "Tab"): Promise<void> {
  const passed: string[] = [];
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press(key);
    const now = await focused(page);
    expect(now).not.toContain("no visible focus");
    if (now === text) return;
    passed.push(now);
  }
  throw new Error(`did not reach ${text}; passed ${passed.join(", ")}`);
}

inBrowser(
  "with the keyboard alone: open a queue, pause it, find a message, cancel it",
  async () => {
    const { url, line } = await openBoard(async (seed) => {
      await seed.getDelayedQueue("orders").offer("x", 3_600_000, { key: "order:42" });
    });
    const orders = line.getDelayedQueue("orders");
    const page = await visit(url);
    await page.getByRole("rowheader").waitFor();
    await goTo(page, "Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await goTo(page, "orders");
    // The keys are listed, and the focus returns.
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog", { name: "Keys" });
    await keys.getByText("Find a message by key or id").waitFor();
    expect(await audit(page)).toEqual([]);
    await shoot(page, "keys", false);
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "hidden" });
    expect(await focused(page)).toBe("orders");
    await page.keyboard.press("Enter");
    // A new page focuses its heading.
    await page
      .getByRole("heading", { level: 1, name: "orders" })
      .and(page.locator(":focus"))
      .waitFor();
    await page.getByRole("button", { name: "Pause" }).waitFor();

    await goTo(page, "Pause");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    expect(await focused(page)).toBe("Go back");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await focused(page)).toBe("Pause");
    await page.keyboard.press("Enter");
    await goTo(page, "Pause");
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("orders was paused.").waitFor();
    expect(await orders.isPaused()).toBe(true);
    expect(await focused(page)).toMatch(/^(Pause|Resume)$/);

    await goTo(page, "Delayed 1");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Delayed messages" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("order:42");
    await page.keyboard.press("Enter");
    await page.getByText("Waiting for its deadline").waitFor();
    await goTo(page, "Cancel message");
    await page.keyboard.press("Space");
    await goTo(page, "Cancel message");
    await page.keyboard.press("Enter");
    await page.getByText("It was handled, cancelled, dropped or removed").waitFor();
    expect(await orders.get("order:42")).toBeUndefined();
    // The button is gone, so the heading has the focus.
    expect(await focused(page)).toBe("order:42");
  },
);
