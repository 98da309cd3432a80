import { defineFragment } from "../fragment.ts";
import { fieldsOf } from "../fragments/stream-info.ts";

/** A dead letter: an entry of the stream of dead letters. */
export interface Letter {
  /** Its entry in the stream of dead letters. A letter that is redriven and dies again has another one. */
  readonly entryId: string;
  /** When the message died (epoch ms): the first part of the entry's id. */
  readonly diedAt: number;
  /** The message's address; for an unreadable letter made from the id of its entry. */
  readonly address: Buffer;
  /** The payload; for an unreadable letter without one everything in its entry. */
  readonly payload: Buffer;
  /** The key, headers and failures; see `trailer.ts`. */
  readonly trailer: Buffer;
  /** How many deliveries were made. */
  readonly attempts: number;
  /** The group that failed to handle it. */
  readonly group: string;
  readonly reason: string;
}

/**
 * Dead letters. Their entries have the fields that `appendEntry` writes, where `n` is the number of all deliveries and
 * `g` the group that failed to handle the message, and `r`, the reason. A letter without an address, payload or group
 * was written by a foreign program, and is *unreadable*: it is listed and can be removed, and is otherwise left
 * alone.
 *
 * `letterOf(entryId, fields)`: a table whose keys are the names of the fields. For an unreadable letter it has only
 * `a`, an address whose deadline is the first part of the entry's id, and whose message id is the second part.
 */
export const letter = defineFragment({
  needs: [fieldsOf],
  lua: /* lua */ `
local function eightBytes(digits)
  -- Digit by digit, since a Lua number holds 53 bits.
  local high, low = 0, 0
  for digit in digits:gmatch("%d") do
    low = low * 10 + digit
    high, low = high * 10 + math.floor(low / 4294967296), low % 4294967296
  end
  return struct.pack(">I4I4", high, low)
end
local function letterOf(entryId, fields)
  local letter = fieldsOf(fields)
  local length = #(letter.a or "")
  if (length == 16 or length == 24) and letter.p and (letter.g or "") ~= "" then return letter end
  local time, count = entryId:match("^(%d+)-(%d+)$")
  return { a = eightBytes(time) .. eightBytes(count) }
end
`,
});

/** Reads any entry as a letter. It must judge what is unreadable in the same way as `letterOf`. */
export function unpackLetter(entryId: string, fields: readonly Buffer[]): Letter {
  const found = new Map<string, Buffer>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    found.set(String(fields[i]), fields[i + 1] as Buffer);
  }
  const [time = "", count = ""] = entryId.split("-");
  const attempts = Number(found.get("n") ?? 0);
  const common = {
    entryId,
    diedAt: Number(time),
    trailer: found.get("t") ?? NOTHING,
    attempts: Number.isSafeInteger(attempts) && attempts > 0 ? attempts : 0,
  };
  const address = found.get("a");
  const payload = found.get("p");
  const group = found.get("g")?.toString() ?? "";
  const length = address?.length;
  if (address && (length === 16 || length === 24) && payload && group !== "") {
    return { ...common, address, payload, group, reason: found.get("r")?.toString() ?? "" };
  }
  const made = Buffer.alloc(16);
  made.writeBigUInt64BE(BigInt(time), 0);
  made.writeBigUInt64BE(BigInt(count), 8);
  const bytes = payload ?? Buffer.concat(fields);
  return { ...common, address: made, payload: bytes, group, reason: "unreadable" };
}

/** Returns the fields and values of a letter's entry: the inverse of {@link unpackLetter}. */
export function packLetter({
  address,
  payload,
  attempts,
  group,
  reason,
  trailer,
}: Omit<Letter, "entryId" | "diedAt">): Buffer[] {
  const fields = ["a", address, "p", payload, "n", String(attempts), "g", group, "r", reason];
  return [...fields, ...(trailer.length > 0 ? ["t", trailer] : [])].map((one) => Buffer.from(one));
}

const NOTHING = Buffer.alloc(0);

/**
 * `appendDead(entry, group, reason)`: appends a dead letter for the group; returns the reply of `XADD`, or a table
 * with its error. `entry.n` must be the number of deliveries, including the last one.
 * `deadFields(entry, group, reason)`: the fields of this dead letter and their values, in one list.
 *
 * A dead letter has the fields of an entry, and `r`, the reason. The first part of its id is the time of its death.
 */
export const deadLetter = defineFragment({
  keys: ["dead"],
  lua: /* lua */ `
local function deadFields(entry, group, reason)
  local fields = { "a", entry.a, "p", entry.p, "n", tostring(entry.n), "g", group, "r", reason }
  if entry.t and entry.t ~= "" then
    fields[#fields + 1] = "t"
    fields[#fields + 1] = entry.t
  end
  return fields
end
local function appendDead(entry, group, reason)
  return redis.pcall("XADD", dead, "*", unpack(deadFields(entry, group, reason)))
end
`,
});
