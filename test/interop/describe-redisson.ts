import { afterAll, beforeAll, describe, inject } from "vitest";
import { redisUrl } from "../helpers/redis.ts";
import { NEWEST_REDISSON, REDISSON_VERSIONS, type RedissonVersion } from "./java-build.ts";
import { Redisson, RedissonProcess } from "./redisson.ts";

/** Redisson in a Java process of its own, for the tests of a block. */
export interface RunningRedisson {
  readonly version: RedissonVersion;
  readonly process: RedissonProcess;
  /** A client on the Redis that all tests share. */
  readonly client: Redisson;
}

/**
 * Tests with each version of Redisson. `redisson()` is for use within them.
 *
 * Without Java the tests are skipped, or fail if `CI` is set.
 */
export function describeRedisson(
  name: string,
  tests: (redisson: () => RunningRedisson) => void,
  versions: readonly RedissonVersion[] = REDISSON_VERSIONS,
): void {
  const reason = inject("whyNoRedisson");
  const isSkipped = reason !== "" && !process.env["CI"];
  describe.skipIf(isSkipped).each(versions)(`Redisson %s: ${name}`, (version) => {
    let running: RunningRedisson | undefined;
    beforeAll(async () => {
      if (reason !== "") throw new Error(`Redisson cannot be run: ${reason}`);
      const java = await RedissonProcess.start(version);
      running = { version, process: java, client: await java.connect(redisUrl()) };
    });
    afterAll(() => running?.process.kill());
    tests(() => {
      if (running === undefined) throw new Error("Redisson has not been started");
      return running;
    });
  });
}

/** The newest version alone, for slow tests. */
export const NEWEST = [NEWEST_REDISSON] as const;
