import { types } from "node:util";
import type { Codec } from "../codecs/codec.ts";
import { findCycle } from "../codecs/cycle.ts";
import { DecodeError, EncodeError, PayloadTooLargeError } from "../errors.ts";
import type { QueueSettings } from "./options.ts";
import type { Queue } from "./queue.ts";

/** What {@link Payloads} uses of a queue. */
type PayloadsQueue = Pick<Queue, "name" | "report" | "quarantine">;

interface EncodedMessage {
  readonly payload: Buffer;
  readonly collected?: readonly Buffer[] | undefined;
}

interface DecodedMessage<T> {
  readonly payload: T;
  readonly payloads?: readonly T[];
}

/** Turns one handle's payloads into bytes and back. */
export class Payloads<T> {
  readonly #queue: PayloadsQueue;
  readonly #codec: Codec<T>;
  readonly #maxBytes: number;

  constructor(queue: PayloadsQueue, { codec, maxPayloadBytes }: QueueSettings<T>) {
    this.#queue = queue;
    this.#codec = codec;
    this.#maxBytes = maxPayloadBytes;
  }

  /**
   * @throws {EncodeError} if the codec cannot encode the payload.
   * @throws {PayloadTooLargeError} if the result is larger than `maxPayloadBytes`.
   */
  encode(payload: T): Buffer {
    let encoded: Uint8Array;
    try {
      encoded = this.#codec.encode(payload);
      if (!types.isUint8Array(encoded)) throw new TypeError("encode gave no Uint8Array");
    } catch (error) {
      throw new EncodeError(this.#queue.name, this.#codec.name, error, findCycle(payload));
    }
    if (encoded.length > this.#maxBytes) {
      throw new PayloadTooLargeError(this.#queue.name, encoded.length, this.#maxBytes);
    }
    return Buffer.isBuffer(encoded)
      ? encoded
      : Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  }

  /** @throws {DecodeError} if the codec cannot read the bytes. Nothing happens to them in Redis. */
  decode(bytes: Buffer): T {
    try {
      return this.#codec.decode(bytes);
    } catch (error) {
      throw new DecodeError(this.#queue.name, this.#codec.name, bytes, error);
    }
  }

  /**
   * Decodes the payload of a message; if it has collected others, also all of them, its own last.
   *
   * @throws {DecodeError} if the codec cannot read one of them. Nothing happens to them in Redis.
   */
  decodeMessage<Message extends EncodedMessage>({
    payload: own,
    collected,
    ...message
  }: Message): Omit<Message, "payload" | "collected"> & DecodedMessage<T> {
    const payload = this.decode(own);
    if (collected === undefined) return { ...message, payload };
    return {
      ...message,
      payload,
      payloads: [...collected.map((bytes) => this.decode(bytes)), payload],
    };
  }

  /**
   * Decodes a payload that has left Redis.
   *
   * @throws {DecodeError} if the codec cannot read it, after the bytes are in the quarantine. If they could not be put
   * there, the error says so.
   */
  async decodeTaken(bytes: Buffer): Promise<T> {
    try {
      return this.#codec.decode(bytes);
    } catch (error) {
      throw await this.#quarantine(bytes, error);
    }
  }

  /** Returns what this decodes. What the codec cannot read is reported, and nothing is returned. */
  readable<Decoded>(decode: () => Decoded): Decoded | undefined {
    try {
      return decode();
    } catch (error) {
      this.#queue.report(error as DecodeError);
      return undefined;
    }
  }

  /** Decodes many payloads. Those that the codec cannot read are left out and reported. */
  decodeAll(many: readonly Buffer[]): T[] {
    return many.flatMap((bytes) => this.readable(() => [this.decode(bytes)]) ?? []);
  }

  /**
   * Decodes many payloads that have left Redis. Those that the codec cannot read go to the quarantine and are
   * reported.
   */
  async decodeAllTaken(many: readonly Buffer[]): Promise<T[]> {
    const payloads: T[] = [];
    for (const bytes of many) {
      try {
        payloads.push(this.#codec.decode(bytes));
      } catch (error) {
        this.#queue.report(await this.#quarantine(bytes, error));
      }
    }
    return payloads;
  }

  /** Puts a payload that the codec refused into the quarantine; returns the error to reject with or to report. */
  async #quarantine(bytes: Buffer, why: unknown): Promise<DecodeError> {
    // A payload whose quarantining fails does not go back to the ready LIST: every consumer would meet it again at once.
    const isKept = await this.#queue.quarantine(bytes);
    return new DecodeError(this.#queue.name, this.#codec.name, bytes, why, isKept);
  }
}
