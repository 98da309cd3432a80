import { OpenQueue } from "../../../src/partitions/open-queue.ts";
import type { Server } from "../../../src/redis/server.ts";
import { HeldShare } from "../../../src/partitions/exclusive/held-share.ts";
import { Holding, type Tenure } from "../../../src/partitions/exclusive/holding.ts";
import { Lease, type Claim } from "../../../src/partitions/exclusive/lease.ts";
import type { Part } from "../../../src/partitions/parts/part.ts";
import type { Troubles } from "../../../src/redis/troubles.ts";
import { Members } from "../../../src/partitions/parts/members.ts";
import { FactWatch } from "../../../src/partitions/parts/fact-watch.ts";
import { Routing } from "../../../src/partitions/routing/routing.ts";
import { Gathering, type GatheringSource } from "../../../src/partitions/taking/gathering.ts";
import { Taking } from "../../../src/partitions/taking/taking.ts";
import { Gate } from "../../helpers/gate.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { closeWithin, newOpen, newTroubles, share, type Kind, type Running } from "./running.ts";

const GROUP = {
  group: "workers",
  start: "0",
  leaseTimeout: 300,
  maxAttempts: 3,
  keepHandled: 0,
};

function newPartitions(url: string): {
  readonly shared: Server;
  readonly open: OpenQueue;
} {
  const shared = share(url);
  const options = { elements: "addresses", isPartitioned: true, partitions: 2 } as const;
  return { shared, open: new OpenQueue(uniqueName(), [shared], options) };
}

async function closeAll({ shared, open }: ReturnType<typeof newPartitions>): Promise<void> {
  await closeWithin(shared, async () => {
    await open.stopTaking();
    await open.close();
  });
}

/** Something that runs until a signal is aborted. */
function untilAborted(
  run: (signal: AbortSignal) => Promise<unknown>,
  close: () => Promise<unknown>,
): Running {
  const stopping = new AbortController();
  let running: Promise<unknown> | undefined;
  return {
    start: () => (running = run(stopping.signal)),
    close: async () => {
      stopping.abort();
      await Promise.all([running?.catch(() => {}), close()]);
    },
  };
}

/** A tenure that holds no message. */
function idleTenure(): Tenure {
  const ended = new Gate();
  return { done: ended.opened, end: ended.open };
}

/** A claim of this process on a partition. */
function claimOf(part: Part, { troubles }: { readonly troubles: Troubles }): Claim {
  return { part, process: "me", knownFact: () => undefined, work: troubles.work() };
}

/** A source that has no messages. */
function emptySource(): GatheringSource<string> {
  return {
    work: newTroubles().work(),
    putBack: () => {},
    wait: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      }),
  };
}

/** Parts of a queue in partitions. */
export const partitions: Readonly<Record<string, Kind>> = {
  "a queue in partitions": {
    files: [
      "parts.ts",
      "following.ts",
      "duties.ts",
      "reach.ts",
      "ready-messages.ts",
      "consumer-group.ts",
    ],
    make: (url) => {
      const queue = newPartitions(url);
      return {
        start: () => {
          queue.open.startTransfer();
          return [
            queue.open.plain.ready.take(1, { timeout: Infinity }),
            queue.open.openGroup(GROUP).group.take(1, { timeout: Infinity }),
          ];
        },
        close: () => closeAll(queue),
      };
    },
  },
  "a change of the number of partitions": {
    files: [],
    make: (url) => {
      const queue = newPartitions(url);
      const change = (signal: AbortSignal) => queue.open.setPartitions(3, { signal });
      return untilAborted(change, () => closeAll(queue));
    },
  },
  "the calls that look for a message's partition": {
    files: ["routing.ts"],
    make: (url) => {
      const { shared, open } = newPartitions(url);
      const routing = new Routing(open.parts);
      return {
        start: () => routing.during(() => routing.at(0, "key", async () => {})),
        close: () => closeWithin(shared, () => routing.close(), "close"),
      };
    },
  },
  "the members of a queue": {
    files: ["members.ts"],
    make: (url) => {
      const { shared, open } = newOpen(url);
      const creation = { partitions: 2, servers: 1, at: () => open };
      const watch = new FactWatch("orders", open, creation, () => {});
      const members = new Members("orders", open, watch, {
        onChange: () => {},
        onSeen: () => false,
        onUncreated: async () => {},
      });
      return {
        start: () => members.attend({ moves: true }),
        close: () => closeWithin(shared, () => members.close()),
      };
    },
  },
  "what gathers messages from many sources": {
    files: ["gathering.ts"],
    make: () => {
      const gathering = new Gathering<string>("orders");
      return {
        start: () => [
          gathering.setSources([emptySource(), emptySource()]),
          gathering.take(1, { timeout: Infinity }),
        ],
        close: () => gathering.close(),
      };
    },
  },
  "a process that says that it takes": {
    files: ["taking.ts"],
    make: (url) => {
      const { shared, open } = newPartitions(url);
      const taking = new Taking(open.parts);
      return {
        start: () => taking.during(() => Promise.resolve()),
        close: async () => {
          taking.close();
          await closeWithin(shared, () => open.parts.following.stop());
        },
      };
    },
  },
  "a lease on a partition": {
    files: ["lease.ts"],
    make: (url) => {
      const { shared, open } = newOpen(url);
      const claim = claimOf(open, shared);
      let taking: Promise<Lease | number> | undefined;
      return {
        start: () => (taking = Lease.take(claim)),
        close: () =>
          closeWithin(shared, async () => {
            const lease = await taking?.catch(() => undefined);
            if (lease instanceof Lease) await lease.release();
          }),
      };
    },
  },
  "a holding of a partition": {
    files: ["holding.ts"],
    make: (url) => {
      const { shared, open } = newOpen(url);
      const claim = claimOf(open, shared);
      const holding = new Holding(claim, {
        begin: idleTenure,
        onReleased: () => Promise.resolve(),
        takes: shared.troubles.work(),
      });
      return {
        start: () => holding.wake(),
        close: () =>
          closeWithin(shared, async () => {
            holding.end();
            await holding.done;
          }),
      };
    },
  },
  "a share of the partitions": {
    files: ["held-share.ts"],
    make: (url) => {
      const { shared, open } = newPartitions(url);
      const work = { takes: shared.troubles.work(), renewals: shared.troubles.work() };
      const held = new HeldShare(open.parts, { consume: idleTenure, work });
      return {
        start: () => {},
        close: () =>
          closeWithin(shared, async () => {
            await held.end();
            await open.parts.following.stop();
          }),
      };
    },
  },
  "exclusive consumption of streams": {
    files: ["exclusive.ts", "group-tenure.ts"],
    make: (url) => {
      const queue = newPartitions(url);
      const consume = (signal: AbortSignal) =>
        queue.open.exclusive.run(
          { ...GROUP, isStrict: true },
          async (take) => {
            await take({ timeout: Infinity }).catch(() => {});
          },
          signal,
        );
      return untilAborted(consume, () => closeAll(queue));
    },
  },
};
