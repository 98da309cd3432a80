import type { DelayedMember } from "../lua/delayed/get.ts";
import { deadlineIn, unpackMember } from "../queue/message/message.ts";
import { unpackTurn } from "../lua/places/room.ts";
import { FIRST, soonest, type DeadlineCursor } from "../lua/delayed/soonest.ts";
import { run } from "../lua/script.ts";
import type { Call } from "../queue/call.ts";
import type { Queue } from "../queue/queue.ts";
import { PAGE_BYTES, STEP } from "./order-reader.ts";

/** Reads the messages of a place in the order of their deadlines, a page at a time: of the delayed ones, by default. */
export class DeadlineOrder {
  readonly #queue: Queue;
  readonly #zset: string;

  /** `zset`: the key of the place, which holds members by deadline. */
  constructor(queue: Queue, zset = queue.keys.timeouts) {
    this.#queue = queue;
    this.#zset = zset;
  }

  /**
   * The messages, each once, in pages of at most `step`. A message that is rescheduled during the iteration is
   * recognised by the 16 bytes of its id, which stay. Members of an unknown layout are left out; each calls
   * `onUnknown`.
   */
  async *members(
    step = STEP,
    call?: Call,
    onUnknown: () => void = () => {},
  ): AsyncGenerator<DelayedMember, void, void> {
    const seen = new Set<string>();
    if (this.#zset === this.#queue.keys.timeouts) {
      for await (const found of this.#waiting(call)) {
        seen.add(unpackMember(found.member)?.id.toString("latin1") ?? "");
        yield found;
      }
    }
    let cursor: DeadlineCursor | undefined = FIRST;
    while (cursor !== undefined) {
      const args = { ...cursor, step: Math.min(step, STEP), maxBytes: PAGE_BYTES };
      const page: ReturnType<typeof soonest.reply> = await this.#queue.call(
        "read",
        (redis) => run(redis, soonest, { zset: this.#zset }, args),
        call,
      );
      for (const found of page.messages) {
        const id = unpackMember(found.member)?.id.toString("latin1");
        if (id === undefined) onUnknown();
        if (id === undefined || seen.has(id)) continue;
        seen.add(id);
        yield found;
      }
      cursor = page.next;
    }
  }

  /** The messages that wait for their turn in lanes: they are due, and so before all others. */
  async *#waiting(call?: Call): AsyncGenerator<DelayedMember, void, void> {
    const addresses: Buffer[] = [];
    let last: Buffer | undefined;
    do {
      const from = last === undefined ? "-" : Buffer.concat([Buffer.from("("), last]);
      const page: Buffer[] = await this.#queue.call(
        "read",
        (redis, { turns }) => redis.zrangeBuffer(turns, from, "+", "BYLEX", "LIMIT", 0, TURNS),
        call,
      );
      for (const turn of page) {
        const { address, group } = unpackTurn(turn) ?? {};
        if (address !== undefined && group === "") addresses.push(address);
      }
      last = page.length < TURNS ? undefined : page.at(-1);
    } while (last !== undefined);
    addresses.sort((a, b) => Buffer.compare(a, b));
    for (let i = 0; i < addresses.length; i += WAITING_STEP) {
      const some = addresses.slice(i, i + WAITING_STEP);
      const kept = await this.#queue.call(
        "read",
        (redis, { room }) => redis.hmgetBuffer(room, ...some.map((one) => one.subarray(8))),
        call,
      );
      for (const [k, address] of some.entries()) {
        const found = kept[k] ?? NOTHING;
        if (!found.subarray(0, 8).equals(address.subarray(0, 8))) continue;
        yield { deadline: deadlineIn(address), member: found.subarray(8) };
      }
    }
  }
}

/** Turns per command, of some 50 bytes. */
const TURNS = 1000;

/** Messages per command. */
const WAITING_STEP = 20;

const NOTHING = Buffer.alloc(0);
