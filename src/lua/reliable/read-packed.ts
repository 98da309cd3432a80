import { asReadEntry, type ReadEntry } from "../fragments/entry.ts";
import { asBuffer } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Reads up to `count` entries that are new to the group, as XREADGROUP without a block does, and replies with a single
 * string, which spares ioredis from decoding seven values for each entry: some 5 us, for 3 us more of Redis's time. The entries
 * share the bytes of that string.
 *
 * No message is lost with the reply: what was read is in flight, and the consumer gives it back as a stranger; see
 * `LeaseKeeper`. Sent a second time, it reads other entries.
 */
export const readPacked = defineScript({
  name: "read-packed",
  keys: ["stream"],
  args: ["group", "consumer", "count"],
  lua: /* lua */ `
local found = redis.pcall("XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", stream, ">")
if not found or found.err then return found end
return cmsgpack.pack(found[1][2])
`,
  reply: (raw) => (raw === null ? [] : entriesIn(new PackedStrings(asBuffer(raw)))),
});

/** Reads a list of entries, each of them a list of its id and a list of its fields and values. */
function entriesIn(packed: PackedStrings): ReadEntry[] {
  const entries: ReadEntry[] = [];
  for (let left = packed.listLength(); left > 0; left--) {
    packed.listLength();
    const entryId = packed.text();
    const fields: Buffer[] = [];
    for (let i = packed.listLength(); i > 0; i -= 2) fields.push(packed.name(), packed.bytes());
    entries.push(asReadEntry(entryId, fields));
  }
  return entries;
}

/** Reads lists and strings that Redis has packed as MessagePack. */
class PackedStrings {
  readonly #packed: Buffer;
  #at = 0;

  constructor(packed: Buffer) {
    this.#packed = packed;
  }

  /** The head of a list: how many values follow. */
  listLength(): number {
    const head = this.#number(1);
    if (head >> 4 === 0x9) return head & 0xf;
    if (head === 0xdc) return this.#number(2);
    if (head === 0xdd) return this.#number(4);
    throw new TypeError("unexpected reply of a script: no packed list");
  }

  bytes(): Buffer {
    const start = this.#pass();
    return this.#packed.subarray(start, this.#at);
  }

  /** The name of a field. Nobody may change its bytes: most have one byte, and share them with all of that name. */
  name(): Buffer {
    const start = this.#pass();
    if (this.#at - start === 1) return NAMES[this.#packed[start] as number] as Buffer;
    return this.#packed.subarray(start, this.#at);
  }

  text(): string {
    const start = this.#pass();
    return this.#packed.toString("latin1", start, this.#at);
  }

  /** Passes a string by; returns where its bytes start. */
  #pass(): number {
    const length = this.#stringLength();
    const start = this.#at;
    this.#at += length;
    return start;
  }

  #stringLength(): number {
    const head = this.#number(1);
    if (head >> 5 === 0b101) return head & 0x1f;
    if (head === 0xd9) return this.#number(1);
    if (head === 0xda) return this.#number(2);
    if (head === 0xdb) return this.#number(4);
    throw new TypeError("unexpected reply of a script: no packed string");
  }

  // Without readUIntBE, which costs twice as much.
  #number(bytes: number): number {
    let number = 0;
    for (let i = 0; i < bytes; i++) number = number * 256 + (this.#packed[this.#at++] as number);
    return number;
  }
}

/** A field's name of one byte, for each byte. */
const NAMES = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte));
