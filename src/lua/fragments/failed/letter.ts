import { defineFragment } from "../../fragment.ts";

/** A dead letter: an entry of the STREAM of dead letters. */
export interface Letter {
  /** When the message died (epoch ms): the first part of the entry's id. */
  readonly diedAt: number;
  /** The message's address. That of an unreadable letter is made of its entry's id. */
  readonly address: Buffer;
  /** The payload. Of an unreadable letter that has none, all that is in its entry. */
  readonly payload: Buffer;
  /** What else the message carries; see `trailer.ts`. */
  readonly trailer: Buffer;
  /** How many deliveries were made. */
  readonly attempts: number;
  /** The group that could not handle it. */
  readonly group: string;
  readonly reason: string;
}

/**
 * Dead letters. Their entries have the fields of the fragment `entry`, where `n` counts all deliveries and `g` is
 * the group that could not handle the message; and `r`, the reason. Where the address, the payload or the group is
 * missing, somebody else wrote it: such a letter is listed and can be removed, and is otherwise left alone.
 *
 * `letterOf(entryId, fields)`: a table by the names of the fields. An unreadable letter has an address alone, of
 * which the deadline is the first part of its entry's id, and the id the second.
 */
export const letter = defineFragment({
  lua: /* lua */ `
local function eightBytes(digits)
  -- Digit by digit: a number of Lua's holds 53 bits.
  local high, low = 0, 0
  for digit in digits:gmatch("%d") do
    low = low * 10 + digit
    high, low = high * 10 + math.floor(low / 4294967296), low % 4294967296
  end
  return struct.pack(">I4I4", high, low)
end
local function letterOf(entryId, fields)
  local letter = {}
  for i = 1, #fields, 2 do letter[fields[i]] = fields[i + 1] end
  local length = #(letter.a or "")
  if (length == 16 or length == 24) and letter.p and (letter.g or "") ~= "" then return letter end
  local time, count = entryId:match("^(%d+)-(%d+)$")
  return { a = eightBytes(time) .. eightBytes(count) }
end
`,
});

/** Reads a letter, whatever is in its entry; `letterOf` decides in the same way. */
export function unpackLetter(entryId: string, fields: readonly Buffer[]): Letter {
  const found = new Map<string, Buffer>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    found.set(String(fields[i]), fields[i + 1] as Buffer);
  }
  const [time = "", count = ""] = entryId.split("-");
  const attempts = Number(found.get("n") ?? 0);
  const common = {
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
  const place = Buffer.alloc(16);
  place.writeBigUInt64BE(BigInt(time), 0);
  place.writeBigUInt64BE(BigInt(count), 8);
  const bytes = payload ?? Buffer.concat(fields);
  return { ...common, address: place, payload: bytes, group, reason: "unreadable" };
}

/** The fields of an entry, and their values: {@link unpackLetter} the other way round. */
export function packLetter({
  address,
  payload,
  attempts,
  group,
  reason,
  trailer,
}: Omit<Letter, "diedAt">): Buffer[] {
  const fields = ["a", address, "p", payload, "n", String(attempts), "g", group, "r", reason];
  return [...fields, ...(trailer.length > 0 ? ["t", trailer] : [])].map((one) => Buffer.from(one));
}

const NOTHING = Buffer.alloc(0);
