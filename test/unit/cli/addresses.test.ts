import { expect, test } from "vitest";
import { parseAddresses, secretsIn } from "../../../src/tools/cli/session/addresses.ts";
import { UsageError } from "../../../src/tools/cli/session/arguments.ts";

const ALONE = { isCluster: false, sentinel: undefined };

test.each(["/abc", "/-1", "/1.5", "/1/2", "?db=x", "/%zz"])("%s names no database", (path) => {
  for (const topology of [ALONE, { ...ALONE, isCluster: true }, { ...ALONE, sentinel: "main" }]) {
    expect(() => parseAddresses([`redis://host${path}`], topology)).toThrow(UsageError);
  }
});

test("the passwords in addresses are found, and are not shown", () => {
  const url = "redis://me:p%40ss:w@redis.internal:6380/2";
  expect(secretsIn([url])).toEqual(["p%40ss:w", "p@ss:w"]);
  expect(secretsIn(["redis://host/0?db=1&password=s%20t"])).toEqual(["s%20t", "s t"]);
  expect(parseAddresses([url], ALONE).shown).toBe("redis.internal:6380");
});

test("with the name of a master the URLs are Sentinels, and the first has the login of Redis", () => {
  const sentinel = { isCluster: false, sentinel: "main" };
  const url = "rediss://me:p%40ss@a:26380/2?keyPrefix=app:&sentinelPassword=s3";
  const { redis, shown } = parseAddresses([url, "redis://b"], sentinel);
  expect(redis).toEqual({
    sentinels: [
      { host: "a", port: 26_380 },
      { host: "b", port: 26_379 },
    ],
    name: "main",
    username: "me",
    password: "p@ss",
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
    sentinelPassword: "s3",
    db: 2,
    keyPrefix: "app:",
  });
  expect(shown).toBe('the master "main" of the Sentinels at a:26380, b');
  expect(secretsIn([url])).toContain("s3");
  for (const wrong of [
    { isCluster: true, sentinel: "main" },
    { isCluster: false, sentinel: "" },
  ]) {
    expect(() => parseAddresses([url], wrong)).toThrow(UsageError);
  }
});
