import { defineFragment } from "../../fragment.ts";
import { asBuffers, asRow, asText, type RawReply } from "../../reply.ts";

/** An address has 24 bytes. The name of a retry has one byte for the length of it. */
const MAX_ADDRESS = 255;

/** The deadline alone. */
const MIN_ADDRESS = 8;

/** An entry of a reliable queue's stream: a message that is ready, or in flight. */
export interface Entry {
  /** Its id in the stream. A message that is delivered again has another. */
  readonly entryId: string;
  /** The message's address, which its id for users is made of. */
  readonly address: Buffer;
  readonly payload: Buffer;
  /** What else the message carries; see `trailer.ts`. Empty where there is nothing. */
  readonly trailer: Buffer;
  /** How many deliveries were made before this one. */
  readonly attempts: number;
  /** The group it is for, if it is for one only. */
  readonly group: string | undefined;
  /** Whether the consumer that had it before has died. */
  readonly isOrphan: boolean;
}

/**
 * `appendEntry(entry)`: adds an entry to the stream; returns what `XADD` does, or a table with the error.
 * `readEntry(id)`: the entry with this id, or nil if it is gone or is none of ours.
 *
 * An entry is a table: `a` is the address, `p` the payload, and where there is one `t` the trailer, `n` the
 * deliveries made before (in decimal), `g` the only group that it is for, and `d` (any text) if the consumer that had
 * it has died. In the stream these are the names of the fields. Redis stores the names that all entries
 * share once.
 */
export const entry = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local others = { "t", "n", "g", "d" }
local function appendEntry(entry)
  local fields = { "a", entry.a, "p", entry.p }
  for _, name in ipairs(others) do
    local value = entry[name]
    if value and value ~= "" and value ~= 0 then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  return redis.pcall("XADD", stream, "*", unpack(fields))
end
local function entryOf(fields)
  local entry = {}
  for i = 1, #fields, 2 do entry[fields[i]] = fields[i + 1] end
  if not entry.a or not entry.p then return nil end
  if #entry.a < ${MIN_ADDRESS} or #entry.a > ${MAX_ADDRESS} then return nil end
  local n = tonumber(entry.n) or 0
  entry.n = n > 0 and n < 4294967295 and n % 1 == 0 and n or 0
  return entry
end
local function readEntry(id)
  local found = redis.call("XRANGE", stream, id, id)[1]
  return found and entryOf(found[2])
end
`,
});

/** Reads an entry; undefined if it is none of ours. */
export function unpackEntry(entryId: string, fields: readonly Buffer[]): Entry | undefined {
  const address = valueOf("a", fields);
  const payload = valueOf("p", fields);
  if (address === undefined || payload === undefined) return undefined;
  if (address.length < MIN_ADDRESS || address.length > MAX_ADDRESS) return undefined;
  // Most have no others.
  if (fields.length === 4) {
    return { entryId, address, payload, ...WITHOUT_OTHERS };
  }
  const attempts = Number(valueOf("n", fields) ?? 0);
  return {
    entryId,
    address,
    payload,
    trailer: valueOf("t", fields) ?? NOTHING,
    attempts: Number.isInteger(attempts) && attempts > 0 && attempts < 2 ** 32 - 1 ? attempts : 0,
    group: valueOf("g", fields)?.toString(),
    isOrphan: valueOf("d", fields) !== undefined,
  };
}

/** An entry that we have written. */
export function asEntry(raw: RawReply | undefined): Entry {
  const { id, fields } = asRow(raw, { id: asText, fields: asBuffers });
  const found = unpackEntry(id, fields);
  if (found === undefined) throw new TypeError("unexpected reply of a script: no entry");
  return found;
}

/** The last value of a field whose name is one letter. */
function valueOf(name: string, fields: readonly Buffer[]): Buffer | undefined {
  const code = name.codePointAt(0);
  for (let i = fields.length - 2; i >= 0; i -= 2) {
    const found = fields[i] as Buffer;
    if (found.length === 1 && found[0] === code) return fields[i + 1];
  }
  return undefined;
}

const NOTHING = Buffer.alloc(0);
const WITHOUT_OTHERS = {
  trailer: NOTHING,
  attempts: 0,
  group: undefined,
  isOrphan: false,
} as const;
