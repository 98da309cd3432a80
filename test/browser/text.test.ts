import type { Page } from "playwright-core";
import { expect } from "vitest";
import { inBrowser, openBoard, visit } from "./board.ts";

// Pure modules of the page, run in the browser.

/** Calls a function that a module of the page exports. */
async function call<T>(page: Page, module: string, name: string, ...args: unknown[]): Promise<T> {
  const source = `import("./page/${module}.js").then((m) => m.${name}(...${JSON.stringify(args)}))`;
  return await page.evaluate<T>(source);
}

inBrowser("formats texts and numbers, and parses routes", async () => {
  const { url } = await openBoard(async () => {});
  const page = await visit(url);
  const visible = (text: string) => call(page, "parts/text", "visible", text);
  expect(await visible("plain – žluťoučký 漢字 🙂")).toBe("plain – žluťoučký 漢字 🙂");
  expect(await visible("a\u202Eb\u0000c\nd\u200B\u2028")).toBe(
    "a⟨U+202E⟩b⟨U+0000⟩c⟨U+000A⟩d⟨U+200B⟩⟨U+2028⟩",
  );
  // Joiners are part of emoji and of Persian words, and a trick elsewhere.
  const honest = ["صف سفارش\u200cها", "👨\u200d👩\u200d👧\u200d👦", "👩🏽\u200d💻", "तक्\u200dष"];
  for (const text of honest) expect(await visible(text)).toBe(text);
  expect(await visible("ad\u200cmin\u200d")).toBe("ad⟨U+200C⟩min⟨U+200D⟩");
  expect(await visible("👨\u200d")).toBe("👨⟨U+200D⟩");
  expect(await call(page, "parts/raw-form", "rawForm", "a\\👨\u200d👩")).toBe(
    "a\\u{5c}\\u{1f468}\\u{200d}\\u{1f469}",
  );
  expect(await call(page, "parts/text", "shortened", "🙂".repeat(10), 4)).toBe("🙂🙂🙂…");

  const durations = [0, 999, 1_250, 61_000, 3_600_000, 90_061_000, 40 * 86_400_000];
  const texts = await Promise.all(durations.map((ms) => call(page, "data/format", "duration", ms)));
  expect(texts).toEqual(["0 ms", "999 ms", "1.2 s", "1 min 1 s", "1 h", "1 d 1 h", "40 d"]);
  expect(await call(page, "data/format", "instantText", 1e300)).toBe("–");

  const address = await call<string>(page, "data/route", "addressOf", "a/b?#%", "messages", {
    prefix: "x&y",
    after: "",
  });
  expect(await call(page, "data/route", "parseRoute", address)).toEqual({
    page: "messages",
    queue: "a/b?#%",
    params: { prefix: "x&y" },
  });
  for (const bad of ["#/queue", "#/queue/%ff", "#/queue/a/b", "#/else", "#/queue/a/dead/b"]) {
    expect(await call(page, "data/route", "parseRoute", bad), bad).toMatchObject({
      page: "missing",
    });
  }
});
