import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { serverOf } from "../../../src/redis/cluster-node.ts";

test("a connection that is still looking for its server has no server", () => {
  expect(serverOf(new Redis({ lazyConnect: true }))).not.toMatch(/\d/);
});
