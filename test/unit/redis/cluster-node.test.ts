import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { serverOf } from "../../../src/redis/cluster-node.ts";

test("a connection that still looks for its server is at none", () => {
  expect(serverOf(new Redis({ lazyConnect: true }))).not.toMatch(/\d/);
});
