import { defineFragment } from "../fragment.ts";
import { appendAll } from "./entry.ts";
import { groupNames } from "./stream.ts";

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
 * `retryOf(name)`: the address and the group, or nil for a malformed name.
 * `packRetry(entry)`, `unpackRetry(value)`: a value of the HASH from and to a table with `p`, `t` and `n`, as in the
 * fragment `entry`; nil for a malformed value.
 */
export const retry = defineFragment({
  lua: /* lua */ `
local function retryName(address, group)
  return string.char(#address) .. address .. group
end
local function retryOf(name)
  local length = name:byte(1)
  if not length or #name < 1 + length then return nil end
  return name:sub(2, 1 + length), name:sub(2 + length)
end
local function packRetry(entry)
  return struct.pack("<I4I4", entry.n, #entry.p) .. entry.p .. (entry.t or "")
end
local function unpackRetry(value)
  if not value or #value < 8 then return nil end
  local attempts, length = struct.unpack("<I4I4", value)
  if #value < 8 + length then return nil end
  return { n = attempts, p = value:sub(9, 8 + length), t = value:sub(9 + length) }
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

/**
 * `waitingFor(address)`: the retries of the message with this address, one for each group that is to handle it again.
 * Returns three lists: their names, due times and groups. O(log N) for each group of the stream.
 */
export const waitingFor = defineFragment({
  keys: ["stream", "retries"],
  needs: [groupNames, retry],
  lua: /* lua */ `
local groups = nil
local function waitingFor(address)
  groups = groups or groupNames()
  local names, dues, owners = {}, {}, {}
  for _, group in ipairs(groups) do
    local name = retryName(address, group)
    local due = redis.call("ZSCORE", retries, name)
    if due then
      names[#names + 1] = name
      dues[#dues + 1] = tonumber(due)
      owners[#owners + 1] = group
    end
  end
  return names, dues, owners
end
`,
});

/**
 * `tryRetries()`: returns Redis's error if adding a retry is not permitted, else nothing; nothing is left behind. Only
 * writing a field shows whether that is permitted, so removing it is tried first. When memory is full, Redis refuses
 * only the first write of a script, and never a removal.
 * `putRetry(entry, group, deadline)`: makes the message of an entry a retry of the group; returns the reply of `ZADD`, or
 * a table with Redis's error. Behind `tryRetries` Redis refuses nothing of that. A message that is a retry of the group
 * already gets the new due time.
 * `putHeldBack(entry, group, channel)`: the same for a message that is held back (`heldBack`). The first one is tried
 * first, and wakes whoever moves messages, to arm its timer; Redis may refuse that as well.
 */
export const putRetry = defineFragment({
  keys: ["retries", "retrying"],
  needs: [retry],
  lua: /* lua */ `
local function tryRetries()
  local tries = {
    { "HDEL", retrying, "delayline: no such field" },
    { "ZADD", retries, "XX", 0, "delayline: no such member" },
    { "HSET", retrying, "delayline: no such field", "" },
    { "HDEL", retrying, "delayline: no such field" },
  }
  for _, try in ipairs(tries) do
    local done = redis.pcall(unpack(try))
    if type(done) == "table" then return done end
  end
end
local function putRetry(entry, group, deadline)
  local name = retryName(entry.a, group)
  local done = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(done) == "table" then return done end
  return redis.pcall("ZADD", retries, deadline, name)
end
local areOthersAwake = false
local function putHeldBack(entry, group, channel)
  if not areOthersAwake then
    local refusal = tryRetries()
    if refusal then return refusal end
    local done = redis.pcall("PUBLISH", channel, "0")
    if type(done) == "table" then return done end
    areOthersAwake = true
  end
  return putRetry(entry, group, entry.u)
end
`,
});

/**
 * Moves due retries back to the stream, each as an entry for its group alone.
 *
 * `readRetries(names)`: reads retries, before anything is written. Returns a table: `entries` and their `names`;
 * `broken`, the names without a readable entry; and `unreadable`, the bytes found under those names.
 * `mayDropRetries()`: raises Redis's error if removing retries is not permitted.
 * `dropRetries(names, count)`: removes the first `count` of these retries.
 * `bringBack(found)`: appends the entries, and removes them and the broken names from the retries. Returns how many
 * entries were appended, and Redis's error if it refused the next one. Refused entries stay retries.
 *
 * A broken name cannot be delivered: it has no value with a payload, or no address and group to settle it by. If it
 * stayed, it would be due for ever. Its bytes go to the list of unreadable messages, like delayed members that cannot
 * be unpacked.
 */
export const bringBack = defineFragment({
  keys: ["retries", "retrying", "unreadable"],
  needs: [appendAll, retry],
  lua: /* lua */ `
local function readRetries(names)
  local found = { entries = {}, names = {}, broken = {}, unreadable = {} }
  if #names == 0 then return found end
  for i, value in ipairs(redis.call("HMGET", retrying, unpack(names))) do
    local address, group = retryOf(names[i])
    local entry = address and #address >= 8 and unpackRetry(value)
    if entry then
      entry.a, entry.g = address, group
      found.entries[#found.entries + 1] = entry
      found.names[#found.names + 1] = names[i]
    else
      found.broken[#found.broken + 1] = names[i]
      if value then found.unreadable[#found.unreadable + 1] = value end
    end
  end
  return found
end
local function mayDropRetries()
  redis.call("ZREM", retries, "delayline: no such member")
  redis.call("HDEL", retrying, "delayline: no such field")
end
local function dropRetries(names, count)
  if count == 0 then return end
  redis.call("ZREM", retries, unpack(names, 1, count))
  redis.call("HDEL", retrying, unpack(names, 1, count))
end
local function bringBack(found)
  if #found.unreadable > 0 then redis.call("RPUSH", unreadable, unpack(found.unreadable)) end
  dropRetries(found.broken, #found.broken)
  local count, refusal = appendAll(found.entries)
  dropRetries(found.names, count)
  return count, refusal
end
`,
});
