import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defineFragment } from "../../../src/lua/fragment.ts";
import { asNumber } from "../../../src/lua/reply.ts";
import { defineScript, run, wordsOf, type Row, type ScriptArg } from "../../../src/lua/script.ts";

const move = defineScript({
  name: "move",
  keys: ["source", "target"],
  args: ["limit", "channel"],
  needs: [
    defineFragment({ lua: "local function one() return 1 end" }),
    defineFragment({ lua: "local function two() return 2 end" }),
  ],
  lua: "return one() + two()",
  reply: asNumber,
});

test("a script reads its keys and arguments by name, in the order in which they are declared", () => {
  expect(move.lua).toBe(
    [
      "-- delayline: move",
      "local source = KEYS[1]",
      "local target = KEYS[2]",
      "local limit = ARGV[1]",
      "local channel = ARGV[2]",
      "local function one() return 1 end",
      "local function two() return 2 end",
      "return one() + two()",
    ].join("\n"),
  );
});

test("a script unpacks the rows behind its arguments by the names of their columns", () => {
  const each = defineScript({
    name: "each",
    keys: [],
    args: ["limit"],
    each: ["member", "due"],
    lua: "for each row do use(member, due) end",
    reply: asNumber,
  });
  expect(each.lua).toBe(
    [
      "-- delayline: each",
      "local limit = ARGV[1]",
      'local packedRows, nextRow = ARGV[2], 1 while nextRow <= #packedRows do local member, due member, due, nextRow = struct.unpack(">I4c0I4c0", packedRows, nextRow) use(member, due) end',
    ].join("\n"),
  );
});

test("rows may be keys, behind the named ones", () => {
  const each = defineScript({
    name: "each",
    keys: ["first"],
    args: ["limit"],
    each: ["list"],
    rowsAs: "keys",
    lua: "for each row do use(row, list) end",
    reply: asNumber,
  });
  expect(each.lua.split("\n").at(-1)).toBe(
    "for row = 2, #KEYS, 1 do local list = KEYS[row] use(row, list) end",
  );
});

test("rows may be columns, each behind the named arguments", () => {
  const each = defineScript({
    name: "each",
    keys: [],
    args: ["limit"],
    each: ["entry", "own"],
    rowsAs: "columns",
    lua: "use(entry, own)",
    reply: asNumber,
  });
  expect(each.lua.split("\n").slice(1)).toEqual([
    "local limit = ARGV[1]",
    "local entry = ARGV[2]",
    "local own = ARGV[3]",
    "use(entry, own)",
  ]);
});

test("the keys that fragments read follow those that are declared; a key that is missing is named", () => {
  const size = defineFragment({
    keys: ["list"],
    lua: `local function size() return redis.call("LLEN", list) end`,
  });
  const outer = defineFragment({
    needs: [size],
    lua: "local function twice() return 2 * size() end",
  });
  const late = defineFragment({ keys: ["rare"], lua: "local function late() return 1 end" });
  const declared = { name: "size", keys: ["other"], args: [], lua: "", reply: asNumber };
  const script = defineScript({ ...declared, needs: [outer], rarely: [late] });
  expect(script.keys).toEqual(["other", "list", "rare"]);
  expect(script.lua).toContain("local list = KEYS[2]");
  expect(script.lua).not.toContain("local rare = KEYS[3]");
  const runWithout = () => run({} as never, script, { other: "a", list: "b" }, {});
  expect(runWithout).toThrow(new TypeError('script "size" needs the key "rare"'));
});

test("the digest covers the whole text", () => {
  expect(move.sha).toBe(createHash("sha1").update(move.lua).digest("hex"));
  const other = defineScript({ ...move, name: "other" });
  expect(other.sha).not.toBe(move.sha);
});

test("the words of a command: the number of keys, the keys and the arguments as declared", () => {
  const keys = { target: "{a}:t", source: "{a}:s" };
  const words = wordsOf(move, keys, { channel: "news", limit: 5 }, []);
  expect(words).toEqual([2, "{a}:s", "{a}:t", 5, "news"]);
});

test("a script that is not told what the insertion order holds gets addresses", () => {
  const script = { ...move, keys: [], args: ["elementsAre"] as const };
  expect(wordsOf(script, {}, {}, [])).toEqual([0, "addresses"]);
  expect(wordsOf(script, {}, { elementsAre: "members" }, [])).toEqual([0, "members"]);
});

describe("rows among the words", () => {
  const rows = [
    { name: "ä", due: 12 },
    { name: Buffer.of(0, 255), due: "" },
  ];
  test("packed, they are the last argument: each value behind its length in bytes", () => {
    const [, , , , , packed, ...others] = wordsWith("packed", rows);
    expect(others).toEqual([]);
    const bytes = [0, 0, 0, 2, ...Buffer.from("ä"), 0, 0, 0, 2, ...Buffer.from("12")];
    expect(packed).toEqual(Buffer.from([...bytes, 0, 0, 0, 2, 0, 255, 0, 0, 0, 0]));
    expect(wordsWith("packed", []).at(-1)).toEqual(Buffer.alloc(0));
  });

  test("as keys, they follow the named ones and count as keys", () => {
    expect(wordsWith("keys", rows)).toEqual([6, "s", "t", "ä", 12, Buffer.of(0, 255), "", 5, "c"]);
  });

  test("as columns, each is an argument with the values of all rows in JSON", () => {
    const texts = [
      { name: "a", due: 1 },
      { name: "b", due: 2 },
    ];
    expect(wordsWith("columns", texts)).toEqual([2, "s", "t", 5, "c", '["a","b"]', "[1,2]"]);
  });
});

function wordsWith(
  rowsAs: "packed" | "keys" | "columns",
  rows: readonly Row<"name" | "due">[],
): readonly ScriptArg[] {
  const script = { ...move, each: ["name", "due"] as const, rowsAs };
  return wordsOf(script, { source: "s", target: "t" }, { limit: 5, channel: "c" }, rows);
}
