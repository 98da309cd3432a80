import type { DelayedBytes, DelayedMessages } from "../../delayed/delayed-messages.ts";
import type { Call } from "../../queue/call.ts";
import { parseMessageId } from "../../queue/message/message.ts";
import type { Migration } from "./migration.ts";
import { sidesOf } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { isRefusedByFact } from "../parts/refusal.ts";

/** Opens the delayed messages of a partition for one kind of handle, plain or reliable. */
export type MessagesOf = (part: Part) => DelayedMessages;

/**
 * Reads the delayed messages of all parts, each once.
 *
 * While the number of partitions changes, unordered reads visit the partitions that messages leave before those where
 * messages arrive, so they miss none. Ordered reads visit all partitions at once and may miss messages that are
 * migrating.
 */
export class Reading {
  readonly #parts: Parts;
  readonly #messagesOf: MessagesOf;
  readonly #migration: Migration;

  constructor(parts: Parts, messagesOf: MessagesOf, migration: Migration) {
    this.#parts = parts;
    this.#migration = migration;
    this.#messagesOf = messagesOf;
  }

  /** The business keys with this prefix, a page at a time. */
  async *keysWith(prefix: string, call?: Call): AsyncGenerator<string[], void, void> {
    const found = this.#oneByOne((messages) => messages.keysWith(prefix, call), call);
    const seen = new Set<string>();
    for await (const page of found) {
      const fresh = page.filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      yield fresh;
    }
  }

  /** The messages whose business keys have this prefix. */
  async *withPrefix(prefix: string, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    yield* once(this.#oneByOne((messages) => messages.withPrefix(prefix, call), call));
  }

  /** The messages in the order of their deadlines. */
  async *inDeadlineOrder(step?: number, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    const all = await this.#merged(
      (messages) => messages.inDeadlineOrder(step, call),
      (a, b) => a.deadline - b.deadline || compareIds(a, b),
      call,
    );
    yield* all;
  }

  /** The messages in insertion order within each partition; partitions are merged by the stamps of the ids. */
  async *inOrder(maxBytes?: number, call?: Call): AsyncGenerator<DelayedBytes, void, void> {
    yield* await this.#merged((messages) => messages.inOrder(maxBytes, call), compareIds, call);
  }

  /**
   * Finds the partition whose first inserted message is the oldest, and counts how many of its messages are older than
   * those of all other partitions, `limit` at most; undefined if there is no message.
   */
  async oldest(
    limit: number,
    call?: Call,
  ): Promise<{ readonly messages: DelayedMessages; readonly count: number } | undefined> {
    const parts = await this.#parts.all(call);
    const heads = await Promise.all(
      parts.map(async (part) => {
        const messages = this.#messagesOf(part);
        for await (const head of messages.inOrder(1, call)) return { messages, head };
        return undefined;
      }),
    );
    const found = heads.filter((head) => head !== undefined);
    const [first, second] = found.toSorted((a, b) => compareIds(a.head, b.head));
    if (first === undefined) return undefined;
    let count = 1;
    if (limit === 1) return { messages: first.messages, count };
    for await (const message of first.messages.inOrder(undefined, call)) {
      if (count === limit || (second && compareIds(message, second.head) > 0)) break;
      if (compareIds(message, first.head) > 0) count++;
    }
    return { messages: first.messages, count };
  }

  /** Reads one partition after another, and all of them again if the fact has changed by then. */
  async *#oneByOne<Item>(
    read: (messages: DelayedMessages) => AsyncGenerator<Item, void, void>,
    call?: Call,
  ): AsyncGenerator<Item, void, void> {
    let isChanged = true;
    let fact = await this.#parts.following.fresh(call);
    while (isChanged) {
      const { leaving, arriving } = sidesOf(fact);
      for (const partition of leaving) yield* read(this.#messagesOf(this.#parts.at(partition)));
      // A message that left a partition before we read that may still be in its journal: finish those batches before
      // reading where messages arrive.
      if (fact.state !== "stable") {
        const finishing = leaving.map((source) => this.#migration.finish(fact, source, call));
        await ignoreOld(Promise.all(finishing));
      }
      for (const partition of arriving) yield* read(this.#messagesOf(this.#parts.at(partition)));
      const now = await this.#parts.following.fresh(call);
      isChanged = now.epoch !== fact.epoch;
      fact = now;
    }
  }

  /** Reads all parts at once, each in order, and merges what they yield. */
  async #merged(
    read: (messages: DelayedMessages) => AsyncGenerator<DelayedBytes, void, void>,
    compare: (a: DelayedBytes, b: DelayedBytes) => number,
    call?: Call,
  ): Promise<AsyncGenerator<DelayedBytes, void, void>> {
    const parts = await this.#parts.all(call);
    const all = parts.map((part) => read(this.#messagesOf(part)));
    return once(merge(all, compare));
  }
}

/** Ignores refusals of an old fact: the caller notices the newer fact, and reads again. */
async function ignoreOld(doing: Promise<unknown>): Promise<void> {
  try {
    await doing;
  } catch (error) {
    if (!isRefusedByFact(error)) throw error;
  }
}

/** Merges ordered generators into one. */
async function* merge<Item>(
  generators: readonly AsyncGenerator<Item, void, void>[],
  compare: (a: Item, b: Item) => number,
): AsyncGenerator<Item, void, void> {
  try {
    const heads = await Promise.all(generators.map((generator) => generator.next()));
    for (;;) {
      let first: number | undefined;
      for (const [i, head] of heads.entries()) {
        if (head.done) continue;
        const least = first === undefined ? undefined : (heads[first]?.value as Item);
        if (least === undefined || compare(head.value, least) < 0) first = i;
      }
      if (first === undefined) return;
      yield heads[first]?.value as Item;
      heads[first] = await (generators[first] as AsyncGenerator<Item, void, void>).next();
    }
  } finally {
    await Promise.all(generators.map((generator) => generator.return()));
  }
}

/** Skips messages that were yielded before: one that migrated during the read is found twice, for example. */
async function* once(
  messages: AsyncIterable<DelayedBytes>,
): AsyncGenerator<DelayedBytes, void, void> {
  const seen = new Set<string>();
  for await (const message of messages) {
    const id = message.id.slice(message.id.lastIndexOf("-"));
    if (seen.has(id)) continue;
    seen.add(id);
    yield message;
  }
}

function compareIds(a: DelayedBytes, b: DelayedBytes): number {
  return parseMessageId(a.id).compare(parseMessageId(b.id), 8, undefined, 8);
}
