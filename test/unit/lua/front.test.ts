import { describe, expect, test } from "vitest";
import { functionsOf, HOT_SCRIPTS } from "../../../scripts/fronts/hot-scripts.ts";
import { defineFragment, frontOf } from "../../../src/lua/fragment.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { allScripts } from "../../helpers/scripts.ts";

describe("what stands in front of a body", () => {
  const two = defineFragment({ keys: ["list"], lua: "local function two() return 2 end" });
  const four = defineFragment({ needs: [two], lua: "local function four() return two() * 2 end" });
  const one = defineFragment({
    rarely: [four],
    lua: "local function one(isRare) return isRare and rare().four() or 1 end",
  });

  test("what is needed rarely is made by one function, when it is called for the first time", () => {
    expect(frontOf(["other", "list"], { needs: [one], rarely: [] }, "return one()")).toBe(
      [
        "local rare",
        one.lua,
        "function rare()",
        "local made",
        "do",
        "local list = KEYS[2]",
        two.lua,
        four.lua,
        "made = { four = four }",
        "end",
        "rare = function() return made end",
        "return made",
        "end",
      ].join("\n"),
    );
  });

  test("what a body needs is made at once, though a fragment needs it rarely", () => {
    const front = frontOf(["list"], { needs: [one, four], rarely: [two] }, "return one()");
    expect(front.split("\n").slice(0, 4)).toEqual(["local rare", one.lua, two.lua, four.lua]);
    expect(front).toContain("made = { four = four }");
  });

  test("what is needed rarely by what is needed rarely has a rare() of its own", () => {
    const eight = defineFragment({
      rarely: [one],
      lua: "local function eight() return rare().one() * 8 end",
    });
    const front = frontOf(["list"], { needs: [], rarely: [eight] }, "return rare().eight()");
    expect(front.match(/function (one|two|four|eight|rare)\(/g)).toEqual(
      ["rare", "eight", "rare", "one", "rare", "two", "four"].map((name) => `function ${name}(`),
    );
  });

  test("nothing is called through rare() that no fragment defines", () => {
    expect(() => frontOf([], { needs: [], rarely: [two] }, "return rare().three()")).toThrow(
      new TypeError('a fragment reads the key "list"'),
    );
    expect(() => frontOf(["list"], { needs: [], rarely: [two] }, "return rare().three()")).toThrow(
      new TypeError('no fragment defines "three"'),
    );
  });
});

test.for(HOT_SCRIPTS.map((script) => [script.name, script] as const))(
  "%s: the front makes a dozen functions at most, and each is called",
  ([script, { lua, source }]) => {
    const functions = functionsOf(source.front);
    // One settles, notes a failure, wakes, and puts a retry; one finds who holds a key, wakes, and puts.
    const most = { [retryLater.name]: 19, [offerKeyed.name]: 13 }[script] ?? 12;
    expect(functions.length).toBeLessThanOrEqual(most);
    const uses = (name: string) => lua.match(new RegExp(`\\b${name}\\b`, "g"))?.length ?? 0;
    expect(functions.filter((name) => uses(name) < 2)).toEqual([]);
  },
);

test("a function that is made rarely is called through rare()", async () => {
  const scripts = await allScripts();
  expect(scripts.length).toBeGreaterThan(50);
  const faults = scripts.flatMap(({ name: script, source: { front, body } }) => {
    const [atOnce = "", later = ""] = front.split("\nfunction rare()\n");
    const others = `${atOnce}\n${body}`;
    const own = new Set(namesIn(others));
    return namesIn(later)
      .filter((name) => !own.has(name) && new RegExp(`(?<![\\w.])${name}\\(`).test(others))
      .map((name) => `${script}: ${name}`);
  });
  expect(faults).toEqual([]);
});

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/\blocal function (\w+)/g), ([, name = ""]) => name);
}
