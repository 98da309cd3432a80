import { expect, test } from "vitest";
import { pagesNow, total, wordsOf } from "../../../scripts/docs-words.ts";

/** Words that people may have to read. `npm run docs:words` says where they are. */
const MOST_WORDS = 67_500;

test(`the pages have at most ${MOST_WORDS} words that are written by hand`, () => {
  const { byHand } = total(pagesNow());
  expect(byHand).toBeLessThanOrEqual(MOST_WORDS);
});

test("words are counted as `wc -w` does, those that scripts write apart", () => {
  expect(wordsOf("# One two\n\nthree, four-and `five`\n")).toEqual({ byHand: 6, byScript: 0 });
  expect(wordsOf("<!-- Written by a script. -->\n\none two\n")).toEqual({ byHand: 0, byScript: 8 });
  const table = "one\n\n<!-- keys: written by a script -->\n\n| a | b |\n| - | - |\n\ntwo\n";
  expect(wordsOf(table)).toEqual({ byHand: 9, byScript: 10 });
  const matrix = "one\n<!-- matrix: runs -->\n\na b c\n\n<!-- matrix end -->\ntwo\n";
  expect(wordsOf(matrix)).toEqual({ byHand: 10, byScript: 3 });
});
