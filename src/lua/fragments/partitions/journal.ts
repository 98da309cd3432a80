import { defineFragment } from "../../fragment.ts";
import { asBuffer, asFlag, asNumber, type RawReply } from "../../reply.ts";
import { clock } from "../clock.ts";

/**
 * What travels from one partition to another:
 *
 * - `message`: a delayed message. `name` is its member, `score` its deadline; `value` is what the index of business keys
 *   has behind the address, if it leads to this message.
 * - `retry`: what waits for a retry. `name` and `value` as in the fragment `retry`, `score` is when it is due.
 * - `entry`: an entry of the stream for one group, or for all if the group is empty. `name` and `value` as those of a
 *   retry; `score` is "1" if the consumer that had it has died, else empty.
 * - `ready`, `quarantine`, `unreadable`: `value` is an element of that LIST.
 * - `dead`: `value` is a dead letter, its fields and their values in one array of MessagePack.
 */
export const KINDS = [
  "message",
  "retry",
  "entry",
  "ready",
  "quarantine",
  "unreadable",
  "dead",
] as const;
export type Kind = (typeof KINDS)[number];

/** One thing that travels. What its kind does not need is empty. */
export interface Traveller {
  /** The partition that it goes to. */
  readonly to: number;
  readonly kind: Kind;
  readonly score: string;
  readonly name: Buffer;
  readonly value: Buffer;
}

/** What has left a partition, and has to arrive in others before it may be dropped. */
export interface Batch {
  /** 0 if nothing had to go. Of two batches of a partition the later one has the greater number. */
  readonly number: number;
  readonly rows: readonly Traveller[];
  /** Whether it was under way already. Then nothing else has been taken out. */
  readonly isOld: boolean;
}

/**
 * The journal of a partition: a HASH of `last`, the number of the last batch, which stays for ever, and `rows`, what
 * that batch holds, as long as it is open. A row is
 * `to(1) | kind(1) | length of the score(1) | of the name(4, little-endian) | of the value(4) | score | name | value`.
 *
 * A number is the server's time in microseconds, or one more than the last. So numbers grow even where
 * the last one has been lost, as in a failover or a restart from an old copy: a batch whose number had been given before
 * would be taken for one that has arrived, and its messages would be lost.
 *
 * `openBatch()`: the number and the rows of the open batch, or 0.
 * `packRow(to, kind, score, name, value)`: the bytes of a row.
 * `mayJournal()`: raises Redis's error if it refuses to write the journal, as with a full memory. It must be the
 * first write of the script: behind another one Redis does not look at the memory any more. Behind `openBatch`.
 * `writeBatch(rows)`: opens a batch of these rows; returns its number and its rows in one string.
 */
export const journal = defineFragment({
  keys: ["journal"],
  needs: [clock],
  lua: /* lua */ `
local kinds = { ${KINDS.map((kind, i) => `["${kind}"] = ${i}`).join(", ")} }
local lastNumber = 0
local function nextNumber()
  lastNumber = math.max(lastNumber + 1, clock())
  return lastNumber
end
local function openBatch()
  local found = redis.call("HMGET", journal, "last", "rows")
  local last = tonumber(found[1] or 0) or 0
  if last % 1 == 0 and last > 0 and last < 9e15 then lastNumber = last end
  if not found[2] then return 0, "" end
  -- Somebody else has spoiled the number. The batch needs one to be dropped by.
  if lastNumber == 0 then redis.call("HSET", journal, "last", nextNumber()) end
  return lastNumber, found[2]
end
local function packRow(to, kind, score, name, value)
  return struct.pack("<BBBI4I4", to, kinds[kind], #score, #name, #value) .. score .. name .. value
end
local function mayJournal()
  redis.call("HSET", journal, "last", lastNumber)
end
local function writeBatch(rows)
  local number, all = nextNumber(), table.concat(rows)
  redis.call("HSET", journal, "last", number, "rows", all)
  return number, all
end
`,
});

/** The columns of a reply that begins with what `openBatch` or `writeBatch` returned, and whether the batch is old. */
export const BATCH = {
  number: asNumber,
  rows: (bytes: RawReply | undefined) => unpackRows(asBuffer(bytes)),
  isOld: asFlag,
};

/** What nobody can read goes to partition 0, which is always there. */
function unpackRows(bytes: Buffer): Traveller[] {
  const rows: Traveller[] = [];
  for (let at = 0; at < bytes.length;) {
    const head = bytes.subarray(at, at + HEAD_BYTES);
    const kind = KINDS[head[1] ?? KINDS.length];
    const nameAt = at + HEAD_BYTES + (head[2] ?? 0);
    const valueAt = nameAt + (head.length < HEAD_BYTES ? 0 : head.readUInt32LE(3));
    const end = valueAt + (head.length < HEAD_BYTES ? 0 : head.readUInt32LE(7));
    if (kind === undefined || end > bytes.length) {
      return [...rows, { ...NOTHING, to: 0, kind: "unreadable", value: bytes.subarray(at) }];
    }
    rows.push({
      to: head[0] as number,
      kind,
      score: bytes.toString("latin1", at + HEAD_BYTES, nameAt),
      name: bytes.subarray(nameAt, valueAt),
      value: bytes.subarray(valueAt, end),
    });
    at = end;
  }
  return rows;
}

const HEAD_BYTES = 11;
const NOTHING = { score: "", name: Buffer.alloc(0) } as const;
