import { defineFragment } from "../fragment.ts";
import { asBuffers, asRow, asText, type RawReply } from "../reply.ts";
import { remakeStream } from "../fragments/groups.ts";
import { noteOnce } from "../fragments/once-record.ts";
import { noteRun } from "../fragments/run.ts";
import { noteHand } from "./room.ts";
import { may } from "../fragments/may.ts";

/** An address has 24 bytes. A retry's name stores its length in one byte. */
const MAX_ADDRESS = 255;

/** The deadline, without an id. */
const MIN_ADDRESS = 8;

/** No deadline is later (epoch ms). */
const LAST_INSTANT = 9e15;

/** An entry of a reliable queue's stream: a message that is ready or in flight. */
export interface Entry {
  /** The entry's id in the stream. Each delivery of a message has an entry of its own. */
  readonly entryId: string;
  /** The message's address, from which its id for users is made. */
  readonly address: Buffer;
  readonly payload: Buffer;
  /** The key, headers and failures; see `trailer.ts`. Empty without any. */
  readonly trailer: Buffer;
  /** How many deliveries were made before this one. */
  readonly attempts: number;
  /** The only group that it is for; undefined for all groups. */
  readonly group: string | undefined;
  /** Whether a consumer that had the message before has died. */
  readonly isOrphan: boolean;
  /** The earliest instant of this delivery (epoch ms on the server's clock), if it waits after a failure in strict order. */
  readonly heldBackUntil: number | undefined;
  /** Whether another message may become ready when it is settled, since what is in hand is limited. */
  readonly hasSlot: boolean;
}

/**
 * `appendEntry(entry, rank, option)`: appends an entry to the stream; returns the reply of `XADD`, or a table with its
 * error. `option`: one of `XADD`, such as `NOMKSTREAM`.
 *
 * An entry is a table: `a` is the address and `p` the payload. Optional are `t`, the trailer; `n`, the number of
 * deliveries before this one (decimal); `g`, the only group that the entry is for; `d` (any text) if a consumer that had
 * the message before has died; `u`, the instant until which it is held back (epoch ms, decimal; see `heldBack`); and `l`, if
 * what is in hand is limited: 1, or 2 if that of its lane is, see `hands.ts`. The fields in the stream have the same names.
 * Redis stores names that neighbouring entries share only once.
 *
 * With a `rank`, the entry has the field `o`; see {@link rankOf}.
 */
export const appendEntry = defineFragment({
  keys: ["stream", "running"],
  rarely: [noteHand, noteOnce, noteRun],
  lua: /* lua */ `
local function appendEntry(entry, rank, option)
  local fields = { "*", "a", entry.a, "p", entry.p }
  if option then table.insert(fields, 1, option) end
  for _, name in ipairs({ "t", "n", "g", "d", "u", "l" }) do
    local value = entry[name]
    if value and value ~= "" and value ~= 0 then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  if rank then
    fields[#fields + 1] = "o"
    fields[#fields + 1] = rank
  end
  local id, t = redis.pcall("XADD", stream, unpack(fields)), entry.t
  local tag = t and t:byte(3)
  if (tag == 9 or tag == 10) and t:byte(1) == 255 and type(id) == "string" then
    if tag == 9 then rare().noteRun(t, id) else rare().noteOnce(entry, id) end
  end
  if entry.l == "2" and type(id) == "string" then rare().noteHand(t, id) end
  return id
end
`,
});

/**
 * `rankOf(id, entry)`: the id that tells where in the order of its key the message of an entry stands. This is
 * the entry's own id, unless it was appended with a `rank`: in strict order a failed message gets a new entry, behind
 * entries that have to wait for it. The field in the stream is `o`.
 */
export const rankOf = defineFragment({
  lua: /* lua */ `
local function rankOf(id, entry)
  return entry and entry.o and entry.o:match("^%d+%-%d+$") or id
end
`,
});

/** `entryOf(fields)`: the entry with these fields, a table as `appendEntry` takes it; nil for a foreign format. */
export const entryOf = defineFragment({
  lua: /* lua */ `
local function entryOf(fields)
  local entry = {}
  for i = 1, #fields, 2 do entry[fields[i]] = fields[i + 1] end
  if not entry.a or not entry.p then return nil end
  if #entry.a < ${MIN_ADDRESS} or #entry.a > ${MAX_ADDRESS} then return nil end
  local n = tonumber(entry.n) or 0
  entry.n = n > 0 and n < 4294967295 and n % 1 == 0 and n or 0
  local u = tonumber(entry.u) or 0
  entry.u = u > 0 and u <= ${LAST_INSTANT} and u % 1 == 0 and u or nil
  return entry
end
`,
});

/**
 * `readEntry(id)`: the entry with this id, and its fields; no entry if it has a foreign format, nothing if it is gone.
 */
export const readEntry = defineFragment({
  keys: ["stream"],
  needs: [entryOf],
  lua: /* lua */ `
local function readEntry(id)
  local found = redis.call("XRANGE", stream, id, id)[1]
  if not found then return nil end
  return entryOf(found[2]), found[2]
end
`,
});

/** Reads an entry; undefined for a foreign format. */
export function unpackEntry(entryId: string, fields: readonly Buffer[]): Entry | undefined {
  const address = valueOf("a", fields);
  const payload = valueOf("p", fields);
  if (address === undefined || payload === undefined || !isAddress(address)) return undefined;
  // Most entries have no optional fields.
  if (fields.length === 4) return bareEntry(entryId, address, payload);
  const attempts = Number(valueOf("n", fields) ?? 0);
  const until = Number(valueOf("u", fields) ?? 0);
  return {
    entryId,
    address,
    payload,
    trailer: valueOf("t", fields) ?? NOTHING,
    attempts: Number.isInteger(attempts) && attempts > 0 && attempts < 2 ** 32 - 1 ? attempts : 0,
    group: valueOf("g", fields)?.toString(),
    isOrphan: valueOf("d", fields) !== undefined,
    heldBackUntil:
      Number.isInteger(until) && until > 0 && until <= LAST_INSTANT ? until : undefined,
    hasSlot: valueOf("l", fields) !== undefined,
  };
}

/** The entry with this address and payload, and no optional fields; undefined for a foreign format. */
export function bareEntry(entryId: string, address: Buffer, payload: Buffer): Entry | undefined {
  if (!isAddress(address)) return undefined;
  return {
    entryId,
    address,
    payload,
    trailer: NOTHING,
    attempts: 0,
    group: undefined,
    isOrphan: false,
    heldBackUntil: undefined,
    hasSlot: false,
  };
}

function isAddress({ length }: Buffer): boolean {
  return length >= MIN_ADDRESS && length <= MAX_ADDRESS;
}

/** Reads an entry that one of the scripts has written. */
export function asEntry(raw: RawReply | undefined): Entry {
  const { id, fields } = asRow(raw, { id: asText, fields: asBuffers });
  const found = unpackEntry(id, fields);
  if (found === undefined) throw new TypeError("unexpected reply of a script: no entry");
  return found;
}

/** Returns the last value of a field with a name of one letter. */
function valueOf(name: string, fields: readonly Buffer[]): Buffer | undefined {
  const code = name.codePointAt(0);
  for (let i = fields.length - 2; i >= 0; i -= 2) {
    const found = fields[i] as Buffer;
    if (found.length === 1 && found[0] === code) return fields[i + 1];
  }
  return undefined;
}

const NOTHING = Buffer.alloc(0);
/**
 * `appendFirst(entry, added)`: appends an entry after all, if `appendEntry` without making a stream has returned `added`:
 * nothing, since there is none; or an error.
 *
 * When memory is full Redis refuses only the first write of a script, and never a removal. So a refused append is tried
 * again after a removal of nothing.
 */
const appendFirst = defineFragment({
  keys: ["stream"],
  needs: [appendEntry, may, remakeStream],
  lua: /* lua */ `
local function appendFirst(entry, added)
  if not added then added = remakeStream() or appendEntry(entry) end
  if type(added) ~= "table" then return added end
  pcall(may, "XDEL", stream)
  return appendEntry(entry, nil, "NOMKSTREAM") or remakeStream() or appendEntry(entry)
end
`,
});

/**
 * `appendAll(entries)`: appends entries to the stream in order, and creates the stream with the groups that it had if it
 * is missing. Returns how many were appended, and Redis's error if it refused the next one.
 */
export const appendAll = defineFragment({
  needs: [appendEntry],
  rarely: [appendFirst],
  lua: /* lua */ `
local function appendAll(entries)
  for i, entry in ipairs(entries) do
    local added = appendEntry(entry, nil, i == 1 and "NOMKSTREAM")
    if i == 1 and type(added) ~= "string" then added = rare().appendFirst(entry, added) end
    if type(added) == "table" then return i - 1, added end
  end
  return #entries
end
`,
});

/**
 * `isHeldBack(entry, now)`: whether an entry may not be delivered yet. If its time is over, removes `u` from the table.
 * `now` is what `clock()` returned.
 *
 * In strict order a failed message stays in flight during its pause. The pause belongs to the message, not to the
 * process that waits for it: so the entry itself says until when. Whoever moves an entry that is held back has to keep
 * `u`, or make the message a retry that is due then.
 */
export const heldBack = defineFragment({
  lua: /* lua */ `
local function isHeldBack(entry, now)
  if entry.u and entry.u > now / 1000 then return true end
  entry.u = nil
  return false
end
`,
});
