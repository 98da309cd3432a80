import { defineFragment } from "../fragment.ts";
import { groupNames } from "../fragments/stream-info.ts";

/** A retrying message. */
export interface Retry {
  /** How many deliveries were made. */
  readonly attempts: number;
  readonly payload: Buffer;
  /** The key, headers and failures; see `trailer.ts`. */
  readonly trailer: Buffer;
}

/**
 * The format of retries: a ZSET of due times and a HASH of messages. Members and fields are `length of the address(1)
 * | address | group`. A value of the HASH is
 * `attempts(4, little-endian) | length of the payload(4, little-endian) | payload | trailer`.
 *
 * `retryName(address, group)`: the member of the ZSET and field of the HASH.
 * `packRetry(entry)`: a value of the HASH from a table with `p`, `t` and `n`, as in the fragment `appendEntry`.
 */
export const retryBytes = defineFragment({
  lua: /* lua */ `
local function retryName(address, group)
  return string.char(#address) .. address .. group
end
local function packRetry(entry)
  return struct.pack("<I4I4", entry.n, #entry.p) .. entry.p .. (entry.t or "")
end
`,
});

/**
 * The inverse of {@link retryBytes}.
 *
 * `retryOf(name)`: the address and the group, or nil for a malformed name.
 * `unpackRetry(value)`: a table with `p`, `t` and `n`; nil for a malformed value.
 */
export const retryOf = defineFragment({
  lua: /* lua */ `
local function retryOf(name)
  local length = name:byte(1)
  if not length or #name < 1 + length then return nil end
  return name:sub(2, 1 + length), name:sub(2 + length)
end
local function unpackRetry(value)
  if not value or #value < 8 then return nil end
  local attempts, length = struct.unpack("<I4I4", value)
  if #value < 8 + length then return nil end
  return { n = attempts, p = value:sub(9, 8 + length), t = value:sub(9 + length) }
end
`,
});

/**
 * What is added to when a retry was due that waits for its turn, see `room.ts`: no mover finds it due, and everybody who
 * looks for it finds it.
 */
export const WAITS = 9e15;

/** `dueOf(score)`: when a retry with this score is due, or was; and whether it waits for its turn. */
export const waitingRetry = defineFragment({
  lua: /* lua */ `
local function dueOf(score)
  score = tonumber(score)
  if score > ${WAITS} and score < math.huge then return score - ${WAITS}, true end
  return score, false
end
`,
});

/** `waitingRetries()`: how many retries wait for their turn. */
export const waitingRetries = defineFragment({
  keys: ["retries"],
  lua: /* lua */ `
local function waitingRetries()
  return redis.call("ZCOUNT", retries, "(${WAITS}", "(+inf")
end
`,
});

/** Reads a value of the HASH; undefined if it is malformed. */
export function unpackRetry(value: Buffer): Retry | undefined {
  if (value.length < 8) return undefined;
  const end = 8 + value.readUInt32LE(4);
  if (value.length < end) return undefined;
  return {
    attempts: value.readUInt32LE(0),
    payload: value.subarray(8, end),
    trailer: value.subarray(end),
  };
}

/** Reads the name of a retry; undefined if it is malformed. */
export function unpackRetryName(name: Buffer): { address: Buffer; group: string } | undefined {
  const end = 1 + (name[0] ?? 0);
  if (name.length < Math.max(end, 2)) return undefined;
  return { address: name.subarray(1, end), group: name.toString("utf8", end) };
}

/** Returns the bytes of a value of the HASH: the inverse of {@link unpackRetry}. */
export function packRetry({ attempts, payload, trailer }: Retry): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(attempts, 0);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload, trailer]);
}

/** Returns the name of a retry: the inverse of {@link unpackRetryName}. */
export function packRetryName(address: Buffer, group: string): Buffer {
  return Buffer.concat([Buffer.from([address.length]), address, Buffer.from(group)]);
}

/** `groupsRetrying()`: the names of the groups that may have retries: those of the stream. Asked once per script. */
export const groupsRetrying = defineFragment({
  needs: [groupNames],
  lua: /* lua */ `
local groups = nil
local function groupsRetrying()
  groups = groups or groupNames()
  return groups
end
`,
});

/**
 * `retriesOf(address)`: the retries of the message with this address, one for each group that is to handle it again,
 * the earliest first. Each is a table as `unpackRetry` returns it, with the address `a`, the group `g`, its `name`,
 * when it is `due` and whether it `waits` for its turn. A name without a readable value is not a message. O(log N) for each group of the stream.
 */
export const retriesOf = defineFragment({
  keys: ["retries", "retrying"],
  needs: [groupsRetrying, retryBytes, retryOf, waitingRetry],
  lua: /* lua */ `
local function retriesOf(address)
  local found = {}
  for _, group in ipairs(groupsRetrying()) do
    local name = retryName(address, group)
    local due = redis.call("ZSCORE", retries, name)
    local one = due and unpackRetry(redis.call("HGET", retrying, name))
    if one then
      one.a, one.g, one.name = address, group, name
      one.due, one.waits = dueOf(due)
      found[#found + 1] = one
    end
  end
  table.sort(found, function(x, y) return x.due < y.due end)
  return found
end
`,
});
