import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { OwnServer, startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { clients } from "./clients.ts";
import { groups } from "./groups.ts";
import { observers } from "./observers.ts";
import { partitions } from "./partitions.ts";
import { CALL_TIMEOUT, type Kind, type Running } from "./running.ts";
import { watchTimers } from "./timers.ts";

/*
 * One contract for everything that runs. `close` ends it: called once, twice, or several times at once; before any work
 * was given; or while Redis is away. It resolves when nothing is running any more.
 */

/** Not the shared one: what looks at all queues takes long where other tests have left hundreds. */
let server: OwnServer;
beforeAll(async () => {
  server = await OwnServer.start();
});
afterAll(() => server.stop());

const kinds: Readonly<Record<string, Kind>> = {
  ...clients,
  ...groups,
  ...partitions,
  ...observers,
};

/** Classes that end in another way, and where that is tested. */
const EXEMPT = [
  // A clock's pause, whose end finishes the current wait: unit tests.
  "pause.ts",
  // A Redis for tests, and its process: test/integration/testing.
  "redis-server.ts",
  "server-process.ts",
  // A clock that tests turn, and what it has of handlers and servers: test/integration/testing.
  "test-clock.ts",
  "cluster-bus.ts",
  "handlers.ts",
  "timed-server.ts",
  "timeline.ts",
  // A line of the command: test/integration/cli.
  "addresses.ts",
];

const src = fileURLToPath(new URL("../../../src", import.meta.url));

/** The files in `src/` that declare a method which ends something. */
function filesThatEnd(): string[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .filter((file) =>
      /^ {2}(async )?(close|stop|end)\(/m.test(readFileSync(`${src}/${file}`, "utf8")),
    )
    .map((file) => basename(file));
}

function begin(running: Running): void {
  for (const work of [running.start()].flat()) if (work instanceof Promise) work.catch(() => {});
}

/** Takes as many round trips as connecting and a few scripts do. */
async function reachRedis(url: string): Promise<void> {
  const redis = newRedis(url);
  for (let i = 0; i < 50; i++) await redis.ping();
}

test("the contract covers every file that can be closed, stopped or ended", () => {
  const covered = Object.values(kinds).flatMap(({ files }) => files);
  expect(filesThatEnd().filter((file) => ![...covered, ...EXEMPT].includes(file))).toEqual([]);
});

describe.each(Object.entries(kinds))("%s", (_, { make }) => {
  test("ends early, before any work", async () => {
    await make(server.url).close();
  });

  test("ends in the middle of its work, and leaves no timer behind", async () => {
    const countTimers = await watchTimers(async () => {
      const running = make(server.url);
      begin(running);
      await reachRedis(server.url);
      await running.close();
    });
    await eventually(() => countTimers() === 0, { within: 2000, what: "no timer is left" });
  });

  test("ends once, although it is closed twice and at once", async () => {
    const running = make(server.url);
    begin(running);
    await Promise.all([running.close(), running.close()]);
    await running.close();
  });

  test("ends in trouble: while Redis is frozen, and when it is gone", async () => {
    const away = await startOwnServer();
    const [busy, gone] = [make(away.url), make(away.url)];
    begin(busy);
    begin(gone);
    await reachRedis(away.url);
    const connecting = make(away.url);
    begin(connecting);
    away.pause();
    const startedAt = performance.now();
    await Promise.all([busy.close(), connecting.close()]);
    away.resume();
    await away.kill();
    await gone.close();
    // Neither waited for a call's full time.
    expect(performance.now() - startedAt).toBeLessThan(CALL_TIMEOUT / 2);
  });
});
