import type { Entry } from "../../../src/lua/places/stream.ts";
import { unpackEntry } from "../../../src/lua/places/stream.ts";
import {
  hold,
  noteHold,
  releaseHold,
  renewHold,
  type Hold,
} from "../../../src/lua/partitions/hold.ts";
import { inherit } from "../../../src/lua/partitions/inherit.ts";
import { ack, again, handOut } from "../../../src/lua/reliable/deliveries.ts";
import { asArray, asBuffer } from "../../../src/lua/reply.ts";
import { defineScript } from "../../../src/lua/script.ts";
import { channel, keys, unlessLost } from "./clients.ts";
import { GROUP } from "./deliveries.ts";
import { call, command, LostError, timed, type Flow, type Program } from "./program.ts";

// What a process sends that consumes a partition exclusively: `lease.ts` and `group-tenure.ts`.

/** A read on a connection that others may have killed. */
const readUnlessKilled = defineScript({
  name: "reads",
  keys: ["stream", "killed"],
  args: ["group", "consumer"],
  lua: /* lua */ `
if redis.call("EXISTS", killed) == 1 then return redis.error_reply("KILLED") end
local found = redis.call("XREADGROUP", "GROUP", group, consumer, "COUNT", 1, "STREAMS", stream, ">")
return found and found[1][2][1] or false
`,
  reply: (raw): Entry | undefined => {
    if (raw === null) return undefined;
    const [id, fields] = asArray(raw);
    return unpackEntry(String(id), asArray(fields).map(asBuffer));
  },
});

/** The key that stands for a connection that was killed. */
const killed = (connection: string) => `killed:${connection.split(" ")[0]}`;

export interface Tenancy {
  /** What becomes of each delivery, in turn. */
  readonly endings: readonly ("ack" | "fail")[];
  /** How many times the stream is read. */
  readonly reads: number;
  /** A failed message stays in flight for so long (ms). Without, all are acknowledged. */
  readonly pause?: number;
  readonly tenures?: number;
}

/** Milliseconds that a lease lasts in Redis, and by which it is over earlier in the process. */
const DURATION = 2500;
const MARGIN = 100;

/**
 * A process that takes the lease, inherits, handles what it inherits and what it reads, and releases the lease. Whenever
 * it has a reply it looks at its own clock, and stops when its lease is over.
 */
export const holds = (process: string, tenancy: Tenancy): Program =>
  function* (log) {
    const endings = [...tenancy.endings];
    for (let i = 1; i <= (tenancy.tenures ?? 1); i++) {
      const connection = `${process}${i} name`;
      if (yield* tenure(process, `${process}-${i}`, connection, tenancy, endings, log)) return;
    }
  };

type Log = Parameters<Program>[0];

/** Returns whether the process stops for good. */
function* tenure(
  process: string,
  consumer: string,
  connection: string,
  { reads, pause = 1000 }: Tenancy,
  endings: ("ack" | "fail")[],
  log: Log,
): Flow<boolean> {
  const lease = yield* takes(process);
  const { fence } = lease;
  let endsAt = lease.at + DURATION - MARGIN;
  log("holds", fence, endsAt);
  const member = { group: GROUP, consumer };
  const own = { process, fence };
  const over = () => log("over", fence);
  /** Entries in flight for this consumer that have to be handled, in their order. */
  const aside: { entry: Entry; until: number }[] = [];
  try {
    for (const stale of lease.stale)
      yield* command("SET", killed(stale), ["1"], { label: `kills ${stale}` });
    if (!(yield* call(noteHold, keys, { ...own, connection }))) return (over(), true);
    const rows = lease.orphans.map((orphan) => ({
      orphan: orphan.replace(/^=/, ""),
      counted: orphan.startsWith("=") ? 0 : 1,
    }));
    const inheriting = { ...own, ...member, maxAttempts: 9, limit: 10 };
    const inherited = yield* call(inherit, keys, inheriting, rows);
    if (!inherited.isOurs) return (over(), true);
    for (const entry of inherited.entries) aside.push({ entry, until: entry.heldBackUntil ?? 0 });

    for (let left = reads; aside.length > 0 || left > 0;) {
      const [next] = aside;
      if (next !== undefined) {
        const { entry, until } = next;
        const args = { ...member, entry: entry.entryId, heldBackUntil: until };
        // While the pause is not over it asks again later, and remembers nothing.
        const { reply: rest, at } = yield* timed(
          call(handOut, keys, args, [], { isInVain: isHeldBack }),
        );
        aside.shift();
        if (rest === undefined) continue;
        if (at >= endsAt) return (over(), true);
        const kept = yield* handles(entry, at);
        if (kept !== undefined) aside.unshift({ entry: kept, until: kept.heldBackUntil ?? 0 });
        continue;
      }
      left--;
      const all = { ...keys, killed: killed(connection) };
      const { reply: entry, at } = yield* timed(call(readUnlessKilled, all, member));
      if (entry === undefined) {
        // It renews while nothing comes.
        const renewed = yield* timed(call(renewHold, keys, { ...own, duration: DURATION }));
        if (!renewed.reply || renewed.at >= endsAt) return (over(), true);
        endsAt = renewed.at + DURATION - MARGIN;
        log("holds", fence, endsAt);
        continue;
      }
      if (at >= endsAt) return (over(), true);
      const kept = yield* handles(entry, at);
      if (kept !== undefined) aside.push({ entry: kept, until: kept.heldBackUntil ?? 0 });
    }
  } catch (error) {
    // A tenure whose connection was lost, or that cannot know what Redis has done, ends: the next one inherits.
    const isKilled = error instanceof Error && error.message.includes("KILLED");
    if (!isKilled) {
      unlessLost(error);
      log("lost a reply");
    }
    over();
    yield* releases(own);
    return isKilled;
  }
  over();
  yield* releases(own);
  return true;

  function* handles(entry: Entry, at: number): Flow<Entry | undefined> {
    const payload = entry.payload.toString();
    log("handles", GROUP, payload, entry.attempts + 1, at);
    const row = { entry: entry.entryId, own: entry.group === undefined ? 0 : 1 };
    const args = { channel, ...member, heldCount: 1 };
    if (endings.shift() === "fail") {
      const failing = { ...args, ...row, delay: pause, reason: "failed" };
      const { reply, at: failedAt } = yield* timed(call(again, keys, failing));
      log(
        "settled",
        GROUP,
        payload,
        "fail",
        reply !== undefined,
        failedAt + pause,
        entry.attempts + 1,
      );
      return reply;
    }
    for (;;) {
      try {
        const [flag = false] = yield* call(ack, keys, args, [row]);
        log("settled", GROUP, payload, "ack", flag);
        return undefined;
      } catch (error) {
        unlessLost(error);
        log("asks again", GROUP, payload);
      }
    }
  }
}

const isHeldBack = ({ reply: rest }: { readonly reply: number | undefined }) => (rest ?? 0) > 0;
const isOthers = ({ reply }: { readonly reply: Hold }) => !reply.isOurs;

/** Tries until the lease is free. */
function* takes(process: string): Flow<Hold & { readonly at: number }> {
  for (;;) {
    try {
      const args = { process, duration: DURATION, group: GROUP, past: Number.MAX_SAFE_INTEGER };
      const { reply, at } = yield* timed(call(hold, keys, args, [], { isInVain: isOthers }));
      return { ...reply, at };
    } catch (error) {
      unlessLost(error);
    }
  }
}

function* releases(own: { readonly process: string; readonly fence: number }): Flow<void> {
  try {
    yield* call(releaseHold, keys, own);
  } catch (error) {
    if (!(error instanceof LostError)) throw error;
  }
}
