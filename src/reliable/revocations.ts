import { groups } from "../lua/reliable/groups.ts";
import { runningPage, type RunningEntry } from "../lua/reliable/in-flight-page.ts";
import {
  areRunning,
  revoke,
  seekDead,
  seekStream,
  stage,
  type FoundPlace,
  type LookArgs,
  type SeekPage,
} from "../lua/reliable/revoke.ts";
import { onceHeld } from "../lua/queue/once.ts";
import type { Call } from "../queue/call.ts";
import { isMessageId, whichOf } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";
import { startOf } from "./contents.ts";

/** A message that was looked for in every place, and perhaps removed from them. */
export interface FoundMessage {
  readonly places: readonly FoundPlace[];
  /** If it is in none, and Redis remembers that it was handled: when (epoch ms). */
  readonly handledAt: number | undefined;
  /** Whether any of its handlers may still run. */
  readonly isRunning: (call?: Call) => Promise<boolean>;
}

/** Revokes messages, in one part of a queue or in several. */
export type Revoking = Pick<Revocations, "revoke" | "stage">;

/** A message to look for. */
interface Wanted {
  readonly idOrKey: string;
  readonly reason: string;
  /** A script takes one, so only those with the same one share a script. */
  readonly knownFact: string | undefined;
}

/** What is known of it: the columns of its row. */
interface Sought {
  readonly id: Buffer | "";
  readonly key: string;
  readonly reason: string;
  /** Ids of entries, parted by spaces. */
  entries: string;
  letters: string;
}

/**
 * Finds messages of one part of a reliable queue wherever they are, and revokes them: they never begin again, in any group.
 *
 * Those of one turn of the event loop share the scripts, and the pass over the stream and the dead letters that they may
 * need; see `lua/reliable/revoke.ts`.
 */
export class Revocations {
  readonly #queue: Queue;
  readonly #revokes = this.#batch((...look) => this.#revoke(...look));
  readonly #looks = this.#batch((rows, args) =>
    this.#queue.read("look into", stage, args, { rows }),
  );

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Revokes a message; returns where it was. */
  async revoke(idOrKey: string, reason: string, call?: Call): Promise<FoundMessage> {
    this.#queue.checkOpen();
    const wanted = { idOrKey, reason, knownFact: call?.knownFact };
    return await this.#found(idOrKey, await this.#revokes.add(wanted, call), call);
  }

  /** Returns where a message is. */
  async stage(idOrKey: string, call?: Call): Promise<FoundMessage> {
    this.#queue.checkOpen();
    const wanted = { idOrKey, reason: "", knownFact: call?.knownFact };
    return await this.#found(idOrKey, await this.#looks.add(wanted, call), call);
  }

  /** The messages that consumers were handed, those of each group in the order of the stream. */
  async *running(call?: Call): AsyncGenerator<RunningEntry & { group: string }, void, void> {
    for (const group of await this.#queue.read("look at", groups, {}, call)) {
      let after: string | undefined = "";
      while (after !== undefined) {
        const args = { group, after, limit: RUNNING_STEP };
        const page: ReturnType<typeof runningPage.reply> = await this.#queue.read(
          "look into",
          runningPage,
          args,
          call,
        );
        for (const one of page.found) yield { ...one, group };
        after = page.next;
      }
    }
  }

  /** Resolves once every revocation made so far is done. */
  async done(): Promise<void> {
    await Promise.all([this.#revokes.done(), this.#looks.done()]);
  }

  async #found(
    idOrKey: string,
    places: readonly FoundPlace[],
    call: Call | undefined,
  ): Promise<FoundMessage> {
    const isGone = places.length === 0 && !isMessageId(idOrKey);
    const handledAt = isGone ? await this.#handledAt(idOrKey, call) : undefined;
    const rows = places.flatMap(({ stage: where, entryId, group }) =>
      where === "running" && entryId !== undefined && group !== undefined
        ? [{ entry: entryId, group }]
        : [],
    );
    const isRunning = async (asking?: Call) => {
      if (rows.length === 0) return false;
      const args = { leaseTimeout: FOREIGN_LEASE };
      const flags = await this.#queue.read("look into", areRunning, args, { ...asking, rows });
      return flags.includes(true);
    };
    return { places, handledAt, isRunning };
  }

  /** When the last message with this key was handled that was offered with `once`, as long as that is remembered. */
  async #handledAt(key: string, call: Call | undefined): Promise<number | undefined> {
    const rows = [{ key }];
    const [found] = await this.#queue.read("look at", onceHeld, {}, { ...call, rows });
    return found?.handledAt;
  }

  async #revoke(
    rows: readonly Sought[],
    args: LookArgs,
    knownFact: string | undefined,
  ): Promise<Places> {
    const { channel, notices } = this.#queue.keys;
    const all = { ...args, channel, notices };
    const places = await this.#queue.change("revoke in", revoke, all, { rows, knownFact });
    for (const one of places)
      if (one !== undefined && one.length > 0) this.#queue.counters.revoked++;
    return places;
  }

  #batch(look: Look): TurnBatch<Wanted, readonly FoundPlace[]> {
    return new TurnBatch({
      send: (batch) => this.#seek(batch.seal(), look),
      // A pass for a key reads everything.
      kindOf: ({ idOrKey, knownFact = "" }) =>
        `${isMessageId(idOrKey) ? "id" : "key"} ${knownFact}`,
      most: BATCH,
      sizeOf: ({ idOrKey, reason }) => idOrKey.length + reason.length,
      giveUp: ({ cause }) => cause,
    });
  }

  /** Looks until each message was found, or is known to be nowhere. */
  async #seek(wanted: readonly Wanted[], look: Look): Promise<(readonly FoundPlace[])[]> {
    const found: (readonly FoundPlace[])[] = wanted.map(() => []);
    let open = wanted.map(({ idOrKey, reason }, at) => {
      return { at, idOrKey, ...whichOf(idOrKey), reason, entries: "", letters: "" };
    });
    const knownFact = wanted[0]?.knownFact;
    let cursor = startFor(open);
    for (let isFirst = 1; ; isFirst = 0) {
      const places = await look(open, { ...cursor, isFirst }, knownFact);
      for (const [i, { at }] of open.entries()) found[at] = places[i] ?? [];
      open = open.filter((_, i) => places[i] === undefined);
      if (open.length === 0) return found;
      if (isFirst === 1) cursor = startFor(open);
      cursor = {
        after: await this.#pass(seekStream, cursor.after, open, "entries"),
        afterDead: await this.#pass(seekDead, cursor.afterDead, open, "letters"),
      };
    }
  }

  /** Reads on behind `after` to the end, and notes what it finds; returns the id that was read last. */
  async #pass(
    script: typeof seekStream,
    after: string,
    sought: readonly Sought[],
    into: "entries" | "letters",
  ): Promise<string> {
    const rows = sought.map(({ id, key }) => ({ id, key }));
    for (;;) {
      const args = { after, limit: SEEK_STEP, maxBytes: SEEK_BYTES };
      const page: SeekPage = await this.#queue.read("look into", script, args, { rows });
      for (const { row, entryId } of page.found) {
        const one = sought[row] as Sought;
        one[into] += ` ${entryId}`;
      }
      after = page.after;
      if (!page.isMore) return after;
    }
  }
}

/** For each row its places; undefined if a pass has to see the rest first. */
type Places = readonly (readonly FoundPlace[] | undefined)[];

/** One of the scripts that look. */
type Look = (
  rows: readonly Sought[],
  args: LookArgs,
  knownFact: string | undefined,
) => Promise<Places>;

/** Where a pass for these begins: an hour before the earliest deadline; with a key among them, at the beginning. */
function startFor(
  wanted: readonly Pick<Wanted, "idOrKey">[],
): Pick<LookArgs, "after" | "afterDead"> {
  const starts = wanted.map(({ idOrKey }) => startOf(idOrKey));
  const after = starts.includes("")
    ? ""
    : `${Math.min(...starts.map((start) => Number.parseInt(start, 10)))}-0`;
  return { after, afterDead: after };
}

/** Messages per script: a few hundred microseconds of Redis's time, up to a few milliseconds if they lie among many others. */
const BATCH = 25;

/** Entries that one script of a pass reads, and bytes after which it stops. */
const SEEK_STEP = 200;
const SEEK_BYTES = 131_072;

/** Entries in flight that one script looks at. */
const RUNNING_STEP = 12;

/** Milliseconds after which a consumer with a foreign name counts as dead that gives no sign of life. */
const FOREIGN_LEASE = 30_000;
