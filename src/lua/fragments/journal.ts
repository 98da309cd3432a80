import { defineFragment } from "../fragment.ts";
import { asBuffer, asFlag, asNumber, type RawReply } from "../reply.ts";
import { clock } from "./clock.ts";

/**
 * Decides which partition a message belongs to. The script's argument `buckets` has 1,024 bytes: the number of the
 * partition for each bucket.
 *
 * `destinationOf(id)`: the partition of the message with this id. The bucket is the last 10 bits of an id; see
 * `message.ts`. For ids that other software made, and for any other bytes, the last 10 bits are used in the same way.
 */
export const destination = defineFragment({
  lua: /* lua */ `
local function destinationOf(id)
  local low, high = id:byte(#id) or 0, id:byte(#id - 1) or 0
  return buckets:byte(high % 4 * 256 + low + 1)
end
`,
});

/**
 * The kinds of rows that migrate from one partition to another:
 *
 * - `message`: a delayed message. `name` is its member, `score` its deadline. `value` is what follows the address in
 *   the index of business keys, if the index points to this message.
 * - `retry`: a message that waits for a retry. `name` and `value` as in the fragment `retryBytes`; `score` is when it is
 *   due.
 * - `entry`: an entry of the stream for one group, or for all groups if the group is empty. `name` and `value` as for a
 *   retry; `score` is "1" if the consumer that had the entry has died, then ":" and the instant (epoch ms) if it is held
 *   back, then "/" and its `l` if what is in hand is limited; else empty.
 * - `ready`, `quarantine`, `unreadable`: `value` is an element of that LIST.
 * - `schedule`: `name` is that of a schedule, `value` its record, and `score` when it is to be planned next.
 * - `dead`: `value` is a dead letter, its fields and their values in one MessagePack array.
 * - `once`: `name` is a business key, `value` what is remembered of it, see `once-record.ts`. Never in a batch with others: a
 *   release that does not know a kind cannot read what follows it.
 */
export const KINDS = [
  "message",
  "retry",
  "entry",
  "ready",
  "quarantine",
  "unreadable",
  "dead",
  "schedule",
  "once",
] as const;
export type Kind = (typeof KINDS)[number];

/** One row of a batch. Columns that its kind does not use are empty. */
export interface BatchRow {
  /** The partition that it migrates to. */
  readonly to: number;
  readonly kind: Kind;
  readonly score: string;
  readonly name: Buffer;
  readonly value: Buffer;
}

/** Rows that have left a partition. They have to arrive in others before the batch may be dropped. */
export interface Batch {
  /** Grows from one batch of a partition to the next; 0 if nothing was taken out. */
  readonly number: number;
  readonly rows: readonly BatchRow[];
  /** Whether the batch was open already. In that case the script has taken nothing else out. */
  readonly isOld: boolean;
}

/**
 * The journal of a partition: a HASH with the fields `last`, the number of the last batch, which is never deleted,
 * `rows`, the rows of that batch while it is open, and `bound`, see `drainPage`. A row is
 * `to(1) | kind(1) | score length(1) | name length(4, little-endian) | value length(4) | score | name | value`.
 *
 * A batch number is the server's time in microseconds, or one more than the last number if that is greater. So numbers
 * grow even where the last one was lost, as in a failover or a restart from an old copy. A number given twice would
 * make the second batch look as if it had arrived already, and its messages would be lost.
 *
 * `openBatch()`: returns the number and the rows of the open batch, or 0.
 * `packRow(to, kind, score, name, value)`: returns the bytes of a row.
 * `mayJournal()`: raises Redis's error if Redis refuses to write the journal, as when its memory is full. Must be the
 * first write of the script, since Redis checks the memory only before the first one. Call it after `openBatch`.
 * `writeBatch(rows)`: opens a batch of these rows; returns its number, and its rows in one string.
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
  -- Another application has overwritten the number. The batch still needs a number, by which it is dropped.
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

/** Bytes that are not a row become an `unreadable` row for partition 0, which always exists. */
function unpackRows(bytes: Buffer): BatchRow[] {
  const rows: BatchRow[] = [];
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
