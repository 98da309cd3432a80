import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { Delayline } from "../../../src/index.ts";

/** Constructs a client, and closes it. Nothing is connected. */
async function construct(options: object): Promise<void> {
  await new Delayline(options).close();
}

const refuse = (options: object, message: string | RegExp) => {
  expect(() => new Delayline(options)).toThrow(TypeError);
  expect(() => new Delayline(options)).toThrow(message);
};

describe("refused in the constructor", () => {
  const unset = /an environment variable that is not set/;
  test.each<readonly [name: string, redis: unknown, message: string | RegExp]>([
    ["undefined", undefined, unset],
    ["undefined in a list", ["redis://localhost", undefined], unset],
    ["null", null, "got null"],
    ["a number", 6379, "got number"],
    ["a function", () => "redis://localhost", "got function"],
    ["an empty text", "", "redis must be a URL that begins with redis://"],
    ["another protocol", "http://localhost", "redis must be a URL that begins with redis://"],
    ["a database that is no number", "redis://localhost/abc", "name a database by a whole number"],
    ["an unset database", "redis://localhost/undefined", "name a database by a whole number"],
    ["a database with letters behind", "redis://localhost/3abc", "name a database by a whole"],
    ["a database in the query", "redis://localhost?db=abc", "name a database by a whole number"],
    [
      "db: NaN",
      { db: Number.NaN },
      /db of redis must be a whole number .* got NaN: an environment/,
    ],
    ["db: -1", { db: -1 }, "db of redis must be a whole number between 0 and 2147483647, got -1"],
    ["db: 1.5", { db: 1.5 }, "got 1.5"],
    ["db: abc", { db: "abc" }, "db of redis must be a whole number"],
    ["port: NaN", { port: Number.NaN }, /port of redis must be a whole number between 1 and 65535/],
    ["port: 70000", { port: 70_000 }, "got 70000"],
    [
      "url: undefined",
      { url: undefined },
      /url of redis must not be empty: an environment variable/,
    ],
    ["host: undefined", { host: undefined, port: 1 }, /host of redis must not be empty/],
    ["host: empty", { host: "" }, /host of redis must not be empty/],
    [
      "a misspelt option",
      { hots: "localhost" },
      /ioredis does not know: "hots"; did you mean host\?/,
    ],
    ["a name of another client", { user: "app" }, /"user"; did you mean username\?/],
    ["a Map", new Map([["host", "redis.example"]]), "got a Map: give a plain object"],
    ["a URL object", new URL("redis://redis.example"), "got a URL: give its href"],
    ["a promise", Promise.resolve("redis://localhost"), "got a Promise"],
  ])("%s", (_, redis, message) => refuse({ redis }, message));

  test("a lent client whose database is not a number", () => {
    const redis = new Redis({ lazyConnect: true, db: Number.NaN });
    onTestFinished(() => redis.disconnect());
    refuse({ redis }, "the lent client's option db must be a whole number, got NaN");
  });

  test("no error shows a password", () => {
    for (const redis of ["redis://:secret@localhost/abc", "redis://pa/secret@localhost"]) {
      expect(() => new Delayline({ redis })).toThrow(/^(?!.*secret)/s);
    }
    refuse({ redis: { password: "secret", hots: "secret" } }, /^(?!.*secret)/s);
  });
});

describe("accepted", () => {
  test.each<readonly [name: string, redis: unknown]>([
    ["a database in a URL", "redis://localhost/3"],
    ["a slash behind it", "redis://localhost/3/"],
    ["no database", "redis://localhost/"],
    ["a text of digits, as ioredis accepts it", { db: "3", port: "6379" }],
    ["options that may be unset", { db: undefined, password: undefined, username: undefined }],
    [
      "an object of another realm",
      createRequire(import.meta.url)("node:vm").runInNewContext("({ port: 1 })"),
    ],
    [
      "an instance of a class with options",
      new (class {
        readonly port = 1;
      })(),
    ],
    [
      "options of TLS and Sentinels",
      { tls: {}, sentinels: [{ port: 1 }], name: "m", sentinelTLS: {} },
    ],
  ])("%s", async (_, redis) => construct({ redis }));

  test("no redis at all: the default", async () => construct({}));
});
