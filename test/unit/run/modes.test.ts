import { expect, test } from "vitest";
import { checkFollows } from "../../../src/run/modes.ts";

test("a mode may be followed by those that its row names, and by no other", () => {
  const next = { open: ["closed"], closed: [] } as const;
  expect(() => checkFollows<"open" | "closed">(next, "open", "closed")).not.toThrow();
  expect(() => checkFollows<"open" | "closed">(next, "closed", "open")).toThrow(
    "closed must not be followed by open",
  );
  expect(() => checkFollows<"open" | "closed">(next, "open", "open")).toThrow(Error);
});
