import ioredis from "ioredis/package.json" with { type: "json" };
import { expect, test } from "vitest";
import { startChild } from "../../helpers/child.ts";

const program = new URL("../../helpers/programs/ioredis-version.ts", import.meta.url);

test("`IOREDIS` chooses the version, here and in the programs that tests start", async () => {
  const wanted = `${process.env["IOREDIS"] ?? "6"}.`;
  expect(ioredis.version.slice(0, 2)).toBe(wanted);
  expect(await startChild<string>(program).next()).toBe(ioredis.version);
});
