import { describe, onTestFinished, test } from "vitest";
import { Delayline } from "../../../src/client/delayline.ts";
import { OpenQueue } from "../../../src/client/open-queue.ts";
import type { OpenServer } from "../../../src/client/open-server.ts";
import { Tidier } from "../../../src/delayed/transfer/tidier.ts";
import { TransferTask } from "../../../src/delayed/transfer/transfer-task.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { Subscription } from "../../../src/queue/consuming/subscription.ts";
import { ReadyList } from "../../../src/ready/ready-list.ts";
import { Connections } from "../../../src/redis/connections.ts";
import { ListWatch } from "../../../src/reliable/list-watch.ts";
import { Heartbeat } from "../../../src/redis/heartbeat.ts";
import { Subscriber } from "../../../src/redis/subscriber.ts";
import { Troubles } from "../../../src/redis/troubles.ts";
import { Expiries } from "../../../src/time/expiries.ts";
import { ServerClock } from "../../../src/time/server-clock.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

/*
 * One contract for everything that runs: `close` ends it, whether it is called once, twice, at once,
 * before anything has begun, or while Redis is away; and it resolves when nothing is under way any more.
 */

/** A part of a client that runs. */
interface Running {
  /** Gives it work. The promise may reject once the part is closed. */
  start(): unknown;
  close(): unknown;
}

const CLOSE_TIMEOUT = 500;

const LAYOUT = { elements: "addresses", into: "list" } as const;

/** This contract does not cover reported errors. */
function report(): void {}

function newTroubles(): Troubles {
  return new Troubles({ report, onRecovered: () => {} });
}

/** Takes nothing until it is aborted. */
function takeNothing({ signal }: { signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

function share(url: string): OpenServer {
  const clock = new ServerClock();
  const troubles = newTroubles();
  const connections = new Connections(url, {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    troubles,
  });
  const subscriber = new Subscriber(connections, troubles);
  onTestFinished(() => {
    subscriber.close();
    connections.close();
  });
  const offerBatches = new Set<never>();
  return {
    connections,
    subscriber,
    clock,
    offerBatches,
    expiries: new Expiries(5000),
    closeTimeout: CLOSE_TIMEOUT,
    report,
    troubles,
  };
}

/** Closes a part as a client does: ends its connections when the time is over. */
async function closeWithin(
  { connections }: OpenServer,
  close: () => Promise<unknown>,
): Promise<void> {
  const abandoning = setTimeout(() => connections.abandon(), CLOSE_TIMEOUT);
  await close();
  clearTimeout(abandoning);
}

const kinds: Record<string, (url: string) => Running> = {
  "a client": (url) => {
    const line = new Delayline({ redis: url, closeTimeout: CLOSE_TIMEOUT });
    line.on("error", () => {});
    const name = uniqueName();
    return {
      start: () => [
        line.getDelayedQueue(name).offer("a", 60_000),
        line.getBlockingQueue(name).take(),
      ],
      close: () => line.close(),
    };
  },
  "an open queue": (url) => {
    const shared = share(url);
    const open = new OpenQueue(uniqueName(), "addresses", shared);
    return {
      start: () => {
        open.startTransfer();
        return open.ready.take(1, { timeout: Infinity });
      },
      close: async () => {
        await closeWithin(shared, () => open.stopTaking());
        await open.close();
      },
    };
  },
  "a transfer task": (url) => {
    const shared = share(url);
    const name = uniqueName();
    const { queue, pauses } = new OpenQueue(name, "addresses", shared);
    const task = new TransferTask(queue, { ...shared, pauses });
    return {
      start: () => task.onSubscribed(),
      close: () => closeWithin(shared, () => task.close()),
    };
  },
  "a list watch": (url) => {
    const shared = share(url);
    const { queue } = new OpenQueue(uniqueName(), "addresses", shared);
    const watch = new ListWatch(queue, { ...shared, onPlain: () => {} });
    return {
      start: () => watch.switch(true),
      close: () => closeWithin(shared, () => watch.close()),
    };
  },
  "a tidier": (url) => {
    const shared = share(url);
    const name = uniqueName();
    const tidier = new Tidier(name, queueKeys(name), LAYOUT, shared);
    return {
      start: () => tidier.note(1000, { order: true, businessKeys: true }),
      close: () => closeWithin(shared, () => tidier.close()),
    };
  },
  "a ready list": (url) => {
    const shared = share(url);
    const name = uniqueName();
    const { queue, pauses } = new OpenQueue(name, "addresses", shared);
    const list = new ReadyList(queue, { ...shared, pauses });
    return {
      start: () => list.take(1, { timeout: Infinity }),
      close: () => closeWithin(shared, () => list.close()),
    };
  },
  "a subscription": () => {
    const subscription = new Subscription({
      queue: "orders",
      take: takeNothing,
      takes: newTroubles().work(),
      handle: async () => {},
      concurrency: 3,
      report,
    });
    return { start: () => {}, close: () => subscription.close() };
  },
  "a subscriber": (url) => {
    const { connections } = share(url);
    const subscriber = new Subscriber(connections, newTroubles());
    return {
      start: () => subscriber.listen("channel", { onSubscribed: () => {}, onMessage: () => {} }),
      close: () => subscriber.close(),
    };
  },
  "the connections": (url) => {
    const { connections } = share(url);
    return {
      start: () => [connections.commands.ping(), connections.background.ping()],
      close: () => connections.close(),
    };
  },
  "a heartbeat": (url) => {
    const redis = newRedis(url);
    const heartbeat = new Heartbeat(
      redis,
      () => redis.ping(),
      () => {},
    );
    return { start: () => {}, close: () => heartbeat.close() };
  },
};

/** Gives it work, which may last until it is closed, and may be rejected then. */
function begin(running: Running): void {
  for (const work of [running.start()].flat()) if (work instanceof Promise) work.catch(() => {});
}

describe.each(Object.keys(kinds))("%s", (kind) => {
  const make = (url: string) => (kinds[kind] as (typeof kinds)[string])(url);

  test("ends early, before it was given any work", async () => {
    await make(redisUrl()).close();
  });

  test("ends while it works", async () => {
    const running = make(redisUrl());
    begin(running);
    await running.close();
  });

  test("ends once, even if it is closed twice and at once", async () => {
    const running = make(redisUrl());
    begin(running);
    await Promise.all([running.close(), running.close()]);
    await running.close();
  });

  test("ends in trouble: while Redis is frozen, and when it is gone", async () => {
    const server = await startOwnServer();
    const [frozen, gone] = [make(server.url), make(server.url)];
    begin(frozen);
    begin(gone);
    server.pause();
    await frozen.close();
    server.resume();
    await server.kill();
    await gone.close();
  });
});
