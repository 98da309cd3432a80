import { packLetter } from "../lua/fragments/failed/letter.ts";
import { packRetry, packRetryName } from "../lua/fragments/failed/retry.ts";
import { pushIn } from "../lua/partitions/push-in.ts";
import { packMember } from "./message/message.ts";
import type { Place } from "./places.ts";

/** Bytes of a message, and what stands behind them. */
interface Bytes {
  readonly payload: Buffer;
  /** See `trailer.ts`. */
  readonly trailer: Buffer;
}

/** A message of a reliable queue, as bytes. */
interface Delivered extends Bytes {
  readonly address: Buffer;
  /** How many deliveries were made. */
  readonly attempts: number;
}

/** Something that is to be put into a queue, as it was elsewhere. */
export interface Arrival {
  readonly kind: string;
  readonly score: string;
  readonly name: Buffer | "";
  readonly value: Buffer | "";
}

/** A delayed message. Its business key leads to it, unless it leads to another one. */
export function delayedArrival(
  { payload, trailer }: Bytes,
  { id, deadline, hasKey }: { readonly id: Buffer; deadline: number; hasKey: boolean },
): Arrival {
  const name = Buffer.concat([packMember(id, payload), trailer]);
  // What the index has behind the address: that the offer has added the message.
  return { kind: "message", score: String(deadline), name, value: hasKey ? ADDED : "" };
}

/** A message that waits for a retry in a group, until `due` (epoch ms). */
export function retryArrival(message: Delivered, group: string, due: number): Arrival {
  const name = packRetryName(message.address, group);
  return { kind: "retry", score: String(due), name, value: packRetry(message) };
}

/** A message that is ready, for one group or for all. */
export function readyArrival(message: Delivered, group = ""): Arrival {
  const name = packRetryName(message.address, group);
  return { kind: "entry", score: "", name, value: packRetry(message) };
}

/** A dead letter of a group. It dies anew: at the time at which it is put in. */
export function deadArrival(message: Delivered, group: string, reason: string): Arrival {
  const fields = packLetter({ ...message, group, reason });
  const words = fields.flatMap((field) => [headOf(STRING, field.length), field]);
  const value = Buffer.concat([headOf(ARRAY, fields.length), ...words]);
  return { kind: "dead", score: "", name: "", value };
}

/** A payload without an id. */
export function listArrival(kind: "ready" | "quarantine" | "unreadable", payload: Buffer): Arrival {
  return { kind, score: "", name: "", value: payload };
}

/**
 * Puts messages into one place of a queue, batch by batch, each once.
 *
 * The numbers of the batches of one source have to grow. The place remembers the last one, in the HASH that remembers what
 * has come from other partitions: so a batch that is sent again changes nothing, even if its messages have left since.
 */
export class Arrivals {
  readonly #place: Place;
  readonly #source: string;

  /** `source`: a name that nobody else uses. */
  constructor(place: Place, source: string) {
    this.#place = place;
    this.#source = source;
  }

  /** The number of the last batch that has arrived; 0 if none has. */
  async last(signal?: AbortSignal): Promise<number> {
    const found = await this.#place.queue.call(
      "look into",
      (redis, { arrivals }) => redis.hget(arrivals, this.#source),
      signal,
    );
    return Number(found ?? 0);
  }

  /**
   * Puts a batch in; returns false if it has arrived before. A delayed message or a retry that is there stays as it is.
   *
   * @throws {RedisError} if Redis refuses it; then nothing was put in.
   */
  async put(rows: readonly Arrival[], number: number, signal?: AbortSignal): Promise<boolean> {
    const { queue, knownFact } = this.#place;
    const args = { channel: queue.keys.channel, source: this.#source, number };
    return await queue.read("put messages into", pushIn, args, { rows, signal, knownFact });
  }
}

const ADDED = Buffer.from([0]);

/** Heads of MessagePack: a string, and an array, each with its length in 32 bits. */
const STRING = 0xdb;
const ARRAY = 0xdd;

function headOf(type: number, length: number): Buffer {
  const head = Buffer.alloc(5);
  head[0] = type;
  head.writeUInt32BE(length, 1);
  return head;
}
