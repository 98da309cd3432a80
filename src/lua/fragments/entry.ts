import { defineFragment } from "../fragment.ts";

/** An address has 24 bytes. The name of a retry has one byte for the length of it. */
const MAX_ADDRESS = 255;

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
local function appendEntry(entry)
  local fields = { "a", entry.a, "p", entry.p }
  for _, name in ipairs({ "t", "n", "g", "d" }) do
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
  if not entry.a or #entry.a > ${MAX_ADDRESS} or not entry.p then return nil end
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
  const found = new Map<string, Buffer>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    found.set(String(fields[i]), fields[i + 1] as Buffer);
  }
  const address = found.get("a");
  const payload = found.get("p");
  if (address === undefined || address.length > MAX_ADDRESS) return undefined;
  if (payload === undefined) return undefined;
  const attempts = Number(found.get("n") ?? 0);
  return {
    entryId,
    address,
    payload,
    trailer: found.get("t") ?? NOTHING,
    attempts: Number.isInteger(attempts) && attempts > 0 && attempts < 2 ** 32 - 1 ? attempts : 0,
    group: found.get("g")?.toString(),
    isOrphan: found.has("d"),
  };
}

const NOTHING = Buffer.alloc(0);
