import type { Page } from "playwright-core";

/** Lists a page's accessibility faults: missing names and captions, disordered headings, contrast below 4.5. */
export async function audit(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(AUDIT);
}

// Runs in the page, whose globals TypeScript does not know here.
const AUDIT = `(() => {
  const found = [];
  const is = (condition, text) => { if (!condition) found.push(text); };
  const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  const outline = (e) => e.outerHTML.slice(0, 80);

  is(document.documentElement.lang, "no language");
  for (const tag of ["h1", "main", "header", "footer"]) is(all(tag).length === 1, "not exactly one " + tag);
  const levels = all("h1, h2, h3").map((e) => Number(e.tagName[1]));
  is(levels.every((level, i) => level <= (levels[i - 1] ?? 0) + 1), "headings skip a level: " + levels);
  const nameOf = (e) => e.getAttribute("aria-label") || e.textContent.trim() ||
    [...(e.labels ?? [])].map((label) => label.textContent.trim()).join("");
  for (const e of all("a[href], button, input, select")) is(nameOf(e), "no name: " + outline(e));
  for (const e of all("table")) is(e.closest("[aria-hidden]") || e.caption?.textContent.trim(), "no caption");
  for (const e of all("th")) is(e.closest("[aria-hidden]") || e.scope, "no scope: " + outline(e));
  const ids = all("[id]").map((e) => e.id);
  is(new Set(ids).size === ids.length, "a duplicate id");

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() === "" || !e.checkVisibility() || e.closest("canvas, noscript")) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    is(contrast >= 4.5, "contrast " + contrast.toFixed(2) + ": " + outline(e));
  }
  return found;
})()`;
