import { expect, test } from "vitest";

interface Page {
  readonly wordsOf: (text: string) => readonly { readonly text: string; readonly kind?: string }[];
}

// The page has no types.
const module = new URL("../../../src/tools/dashboard/page/parts/json.js", import.meta.url).href;
const { wordsOf } = (await import(module)) as Page;

test("JSON is cut into keys, strings, numbers and words, and nothing of it is lost", () => {
  const text = String.raw`{ "a \" b" : "c:", "n":[-1.5e3, true, null] }`;
  const pieces = wordsOf(text);
  expect(pieces.map((piece) => piece.text).join("")).toBe(text);
  const coloured = pieces.filter(({ kind }) => kind !== undefined);
  expect(coloured.map((piece) => [piece.kind, piece.text])).toEqual([
    ["key", String.raw`"a \" b"`],
    ["string", '"c:"'],
    ["key", '"n"'],
    ["number", "-1.5e3"],
    ["word", "true"],
    ["word", "null"],
  ]);
});

test("a text that is cut off anywhere is shown as it is", () => {
  const text = String.raw`{"key":"some \"text\"","n":12}`;
  for (let end = 0; end <= text.length; end++) {
    const cut = text.slice(0, end);
    expect(
      wordsOf(cut)
        .map((piece) => piece.text)
        .join(""),
    ).toBe(cut);
  }
});
