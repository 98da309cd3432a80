import { packLetter } from "../lua/places/dead.ts";
import { packRetry, packRetryName } from "../lua/places/retries.ts";
import { lastArrived, pushIn } from "../lua/partitions/push-in.ts";
import type { Call } from "./call.ts";
import { packMember } from "./message/message.ts";
import type { Queue } from "./queue.ts";

/** The payload of a message, and its trailer. */
interface Bytes {
  readonly payload: Buffer;
  /** See `trailer.ts`. */
  readonly trailer: Buffer;
}

/** A message of a reliable queue, as bytes. */
interface Delivered extends Bytes {
  readonly address: Buffer;
  /** How many times it was delivered. */
  readonly attempts: number;
}

/** A row of the script `push-in`: something to put into a queue in the state that it had elsewhere. */
export interface Arrival {
  readonly kind: string;
  readonly score: string;
  readonly name: Buffer | "";
  readonly value: Buffer | "";
}

/** A delayed message. With `hasKey`, its business key will point to it, unless the key points to another message. */
export function delayedArrival(
  { payload, trailer }: Bytes,
  { id, deadline, hasKey }: { readonly id: Buffer; deadline: number; hasKey: boolean },
): Arrival {
  const name = Buffer.concat([packMember(id, payload), trailer]);
  // The outcome that the index stores after the address: the offer has added the message.
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

/** A dead letter of a group. Its time of death becomes the time at which it arrives. */
export function deadArrival(message: Delivered, group: string, reason: string): Arrival {
  const fields = packLetter({ ...message, group, reason });
  const words = fields.flatMap((field) => [headOf(STRING, field.length), field]);
  const value = Buffer.concat([headOf(ARRAY, fields.length), ...words]);
  return { kind: "dead", score: "", name: "", value };
}

/** A payload without an id, or a whole member of an unknown layout. */
export function listArrival(kind: "ready" | "quarantine" | "unreadable", payload: Buffer): Arrival {
  return { kind, score: "", name: "", value: payload };
}

/** Where messages go: an ordinary queue; or a partition, and the fact by which it was chosen, see {@link Queue.run}. */
export interface Destination {
  readonly queue: Queue;
  readonly knownFact: string | undefined;
}

/**
 * Puts batches of messages into one queue or partition, each batch once.
 *
 * The numbers of a source's batches must grow. The destination stores the last number in the HASH of arrivals. So a
 * batch that is sent again changes nothing, even if its messages have left in the meantime.
 */
export class Arrivals {
  readonly #destination: Destination;
  readonly #source: string;

  /** `source` is a unique name for the origin of the batches. */
  constructor(destination: Destination, source: string) {
    this.#destination = destination;
    this.#source = source;
  }

  /** Returns the number of the last batch that has arrived; 0 if none has. */
  async last(call?: Call): Promise<number> {
    const { queue } = this.#destination;
    return await queue.read("look into", lastArrived, { source: this.#source }, call);
  }

  /**
   * Puts a batch in; returns false if it has arrived before. A delayed message or a retry that exists already does not
   * change.
   *
   * @throws {RedisError} if Redis refuses the batch, and nothing is put in; or if its reply is lost.
   */
  async put(rows: readonly Arrival[], number: number, call?: Call): Promise<boolean> {
    const { queue, knownFact } = this.#destination;
    const args = { channel: queue.keys.channel, source: this.#source, number };
    return await queue.read("put messages into", pushIn, args, { ...call, rows, knownFact });
  }
}

const ADDED = Buffer.from([0]);

/** The first bytes of a string and of an array in MessagePack, each followed by a length of 32 bits. */
const STRING = 0xdb;
const ARRAY = 0xdd;

function headOf(type: number, length: number): Buffer {
  const head = Buffer.alloc(5);
  head[0] = type;
  head.writeUInt32BE(length, 1);
  return head;
}
