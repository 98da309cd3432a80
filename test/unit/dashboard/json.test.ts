import { expect, test } from "vitest";

interface Page {
  readonly wordsOf: (text: string) => readonly Piece[];
  readonly outlineOf: (text: string) => Items;
}

interface Piece {
  readonly text: string;
  readonly kind?: string;
}

/** Pieces, objects and arrays. */
type Items = readonly (readonly (Piece | Fold)[])[];

interface Fold {
  readonly open: string;
  readonly close: string;
  readonly items: Items;
}

// The page has no types.
const module = new URL("../../../src/tools/dashboard/page/parts/json.js", import.meta.url).href;
const { wordsOf, outlineOf } = (await import(module)) as Page;

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

const bare = (text: string) => text.replaceAll(/\s/g, "");

const textOf = (items: Items): string =>
  items
    .map((item) =>
      item
        .map((one) => ("items" in one ? `${one.open}${textOf(one.items)}${one.close}` : one.text))
        .join(""),
    )
    .join(",");

test.each([
  ['{"a":[1,{"b":"x, }"},[]],"c":{}}', 1],
  ["[true,null,-2.5]", 1],
  ['"alone"', 0],
])("the outline of %s has its objects and arrays, and loses nothing", (text, folds) => {
  const outline = outlineOf(text);
  expect(JSON.parse(textOf(outline))).toEqual(JSON.parse(text));
  expect(outline.flat().filter((one) => "items" in one)).toHaveLength(folds);
});

test("a text that is cut off, that is no JSON, or that consists of brackets has an outline that loses nothing", () => {
  const whole = String.raw`{"k":[1,{"b":"a \"b\" , 12 true"},"x"],"n":-12}`;
  const texts = Array.from(whole, (_, end) => whole.slice(0, end));
  for (const text of [
    ...texts,
    "}]{,:",
    "[1}2]",
    "{{},{}}x",
    "[".repeat(2000),
    "[[1,2],".repeat(300),
  ]) {
    expect(bare(textOf(outlineOf(text))).replace(/,+$/, "")).toBe(bare(text).replace(/,+$/, ""));
  }
});
