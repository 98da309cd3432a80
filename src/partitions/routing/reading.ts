import type { DelayedBytes, DelayedMessages } from "../../delayed/delayed-messages.ts";
import { parseMessageId } from "../../queue/message/message.ts";
import type { BringOver } from "./bring-over.ts";
import type { Fact } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import { activeOf, type Parts } from "../parts/parts.ts";
import { isRefusedAsOld } from "./routing.ts";

/** The delayed messages of a partition, as one kind of handle sees them. */
export type MessagesOf = (part: Part) => DelayedMessages;

/**
 * Reads the delayed messages of all partitions, each once.
 *
 * While the number of partitions changes, what is read in no order is read first where messages leave, and then
 * where they arrive, so that none is missed. What is read in an order may miss those that are on their way.
 */
export class Reading {
  readonly #parts: Parts;
  readonly #messagesOf: MessagesOf;
  readonly #bringOver: BringOver;

  constructor(parts: Parts, messagesOf: MessagesOf, bringOver: BringOver) {
    this.#parts = parts;
    this.#bringOver = bringOver;
    this.#messagesOf = messagesOf;
  }

  /** The business keys with this prefix, a page at a time. */
  async *keysWith(prefix: string, signal?: AbortSignal): AsyncGenerator<string[], void, void> {
    const seen = new Set<string>();
    for await (const page of this.#oneByOne(
      (messages) => messages.keysWith(prefix, signal),
      signal,
    )) {
      const found = page.filter((key) => !seen.has(key));
      for (const key of found) seen.add(key);
      yield found;
    }
  }

  /** The messages whose business keys have this prefix. */
  async *withPrefix(
    prefix: string,
    signal?: AbortSignal,
  ): AsyncGenerator<DelayedBytes, void, void> {
    yield* once(this.#oneByOne((messages) => messages.withPrefix(prefix, signal), signal));
  }

  /** The messages in the order of their deadlines. */
  async *inDeadlineOrder(
    step?: number,
    signal?: AbortSignal,
  ): AsyncGenerator<DelayedBytes, void, void> {
    const all = await this.#merged(
      (messages) => messages.inDeadlineOrder(step, signal),
      (a, b) => a.deadline - b.deadline || compareIds(a, b),
      signal,
    );
    yield* once(all);
  }

  /** The messages in the order in which they were inserted, within a partition; over all by the stamps of their ids. */
  async *inOrder(
    maxBytes?: number,
    signal?: AbortSignal,
  ): AsyncGenerator<DelayedBytes, void, void> {
    yield* once(
      await this.#merged((messages) => messages.inOrder(maxBytes, signal), compareIds, signal),
    );
  }

  /**
   * The partition whose first inserted message is the oldest, and how many of its messages are older than all others,
   * `limit` at most; undefined if there is none.
   */
  async oldest(
    limit: number,
    signal?: AbortSignal,
  ): Promise<{ readonly messages: DelayedMessages; readonly count: number } | undefined> {
    const parts = await this.#parts.all(signal);
    const heads = await Promise.all(
      parts.map(async (part) => {
        const messages = this.#messagesOf(part);
        for await (const head of messages.inOrder(1, signal)) return { messages, head };
        return undefined;
      }),
    );
    const found = heads.filter((one) => one !== undefined);
    const [first, second] = found.toSorted((a, b) => compareIds(a.head, b.head));
    if (first === undefined) return undefined;
    let count = 1;
    if (limit === 1) return { messages: first.messages, count };
    for await (const message of first.messages.inOrder(undefined, signal)) {
      if (count === limit || (second && compareIds(message, second.head) > 0)) break;
      if (compareIds(message, first.head) > 0) count++;
    }
    return { messages: first.messages, count };
  }

  /** Partition by partition, and once more if their number was changed meanwhile. */
  async *#oneByOne<Item>(
    read: (messages: DelayedMessages) => AsyncGenerator<Item, void, void>,
    signal?: AbortSignal,
  ): AsyncGenerator<Item, void, void> {
    let isChanged = true;
    let fact = await this.#parts.fresh(signal);
    while (isChanged) {
      const { leaving, arriving } = sidesOf(fact);
      for (const partition of leaving) yield* read(this.#messagesOf(this.#parts.at(partition)));
      // What had left before it was read there is no more on its way then.
      if (fact.state !== "stable") {
        const finishing = leaving.map((source) => this.#bringOver.finish(fact, source, signal));
        await ignoreOld(Promise.all(finishing));
      }
      for (const partition of arriving) yield* read(this.#messagesOf(this.#parts.at(partition)));
      const now = await this.#parts.fresh(signal);
      isChanged = now.epoch !== fact.epoch;
      fact = now;
    }
  }

  async #merged<Item>(
    read: (messages: DelayedMessages) => AsyncGenerator<Item, void, void>,
    compare: (a: Item, b: Item) => number,
    signal?: AbortSignal,
  ): Promise<AsyncGenerator<Item, void, void>> {
    const parts = await this.#parts.all(signal);
    return merge(
      parts.map((part) => read(this.#messagesOf(part))),
      compare,
    );
  }
}

/** The partitions that messages leave, and the others. A growing number gives to the new ones only. */
function sidesOf(fact: Fact): { readonly leaving: number[]; readonly arriving: number[] } {
  const { to, from } = fact;
  const isArriving = (partition: number) => (to > from ? partition >= from : partition < to);
  const active = activeOf(fact);
  return {
    leaving: active.filter((partition) => !isArriving(partition)),
    arriving: active.filter(isArriving),
  };
}

/** Where Redis knows more, the number has changed: then it is read once more. */
async function ignoreOld(doing: Promise<unknown>): Promise<void> {
  try {
    await doing;
  } catch (error) {
    if (!isRefusedAsOld(error)) throw error;
  }
}

/** Several ordered sequences in one order. */
async function* merge<Item>(
  sequences: readonly AsyncGenerator<Item, void, void>[],
  compare: (a: Item, b: Item) => number,
): AsyncGenerator<Item, void, void> {
  try {
    const heads = await Promise.all(sequences.map((sequence) => sequence.next()));
    for (;;) {
      let first: number | undefined;
      for (const [i, head] of heads.entries()) {
        if (head.done) continue;
        const least = first === undefined ? undefined : (heads[first]?.value as Item);
        if (least === undefined || compare(head.value, least) < 0) first = i;
      }
      if (first === undefined) return;
      yield heads[first]?.value as Item;
      heads[first] = await (sequences[first] as AsyncGenerator<Item, void, void>).next();
    }
  } finally {
    await Promise.all(sequences.map((sequence) => sequence.return()));
  }
}

/** Drops what has been seen: a message that was brought over meanwhile, or one that has come back. */
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
