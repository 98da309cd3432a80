import { expect, test } from "vitest";
import { parseAddresses, secretsIn } from "../../../src/tools/cli/session/addresses.ts";
import { UsageError } from "../../../src/tools/cli/session/arguments.ts";

test.each(["/abc", "/-1", "/1.5", "/1/2", "?db=x", "/%zz"])("%s names no database", (path) => {
  for (const isCluster of [false, true]) {
    expect(() => parseAddresses([`redis://host${path}`], isCluster)).toThrow(UsageError);
  }
});

test("the passwords in addresses are found, and are not shown", () => {
  const url = "redis://me:p%40ss:w@redis.internal:6380/2";
  expect(secretsIn([url])).toEqual(["p%40ss:w", "p@ss:w"]);
  expect(secretsIn(["redis://host/0?db=1&password=s%20t"])).toEqual(["s%20t", "s t"]);
  expect(parseAddresses([url], false).shown).toBe("redis.internal:6380");
});
