import { defineFragment } from "../fragment.ts";
import { packAddress } from "./address.ts";
import { collectedIn } from "./collected.ts";
import { outcomeIn } from "./key-entry.ts";
import { wakeUp } from "./wake-up.ts";

/*
 * Offers that collect: each merges its payload into the delayed message of its key. The payloads before the last one are in
 * the trailer; `collected.ts` in `queue/message/` documents the bytes.
 *
 * ioredis may send an offer again whose payload was collected, and others behind it. It is known by its id: the message
 * has the id of each payload. The key passes to a newer message where the old one is full, waits for its turn or is
 * retried. Then the entry of the key has *marks* of the payloads that went before, behind its cap:
 * `outcome(1) | bytes 5 to 12 of the id`, the newest message's first.
 */

/** Payloads that went before and are known by their marks: 9 kB in the entry of a key. */
const MOST_MARKS = 1000;

const merging = defineFragment({
  keys: ["timeouts", "order"],
  needs: [collectedIn, outcomeIn, packAddress, wakeUp],
  lua: /* lua */ `
local function endOfPayload(member)
  return 25 + struct.unpack("<I8", member, 18)
end
local function partsOf(old)
  local retry = old.all and old.all[1]
  if retry then return retry.p, retry.t end
  local last = endOfPayload(old.name)
  return old.name:sub(26, last), old.name:sub(last + 1)
end
local function outcomeOfMark(marks, mark)
  local at = 0
  repeat at = marks:find(mark, at + 1, true) until not at or at % 9 == 2
  return at and marks:byte(at - 1)
end
local function marksOf(old, block)
  local marks, at = { string.char(outcomeIn(old.entry)) .. old.id:sub(5, 12) }, 9
  while at + 20 <= #block do
    marks[#marks + 1] = block:sub(at, at) .. block:sub(at + 5, at + 12)
    at = at + 21 + struct.unpack("<I4", block, at + 17)
  end
  return table.concat(marks)
end
local function collectInto(old, member, rule)
  local payload, trailer = partsOf(old)
  local id, block, marks = member:sub(2, 17), collectedIn(trailer), old.entry:sub(42)
  local at = block:find(id, 10, true)
  if at then return block:byte(at - 1), old end
  local known = outcomeOfMark(marks, id:sub(5, 12))
  if known then return known end

  local last = endOfPayload(member)
  local count, size = 0, #payload
  if block ~= "" then
    count, size = struct.unpack("<I4I4", block)
    size = size + #payload
  end
  local most, maxBytes = rule:match("^collect,(%d+),(%d+)$")
  local isFull = count + 2 > tonumber(most) or size + last - 25 > tonumber(maxBytes)
  if isFull or old.place ~= "delayed" then
    return nil, nil, member, (marksOf(old, block) .. marks):sub(1, ${9 * MOST_MARKS})
  end
  block = struct.pack("<I4I4", count + 1, size) .. block:sub(9)
    .. string.char(outcomeIn(old.entry)) .. old.id .. struct.pack("<I4", #payload) .. payload
  trailer = member:sub(last + 1)
  if trailer:byte(1) ~= 255 then trailer = "\\255\\1" .. struct.pack("<BI4", 1, #trailer) .. trailer end
  member = member:sub(1, last) .. trailer .. struct.pack("<BI4", 11, #block) .. block
  return nil, old, member, marks
end
local function hastenAll(fulls, elementsAre)
  local earliest = math.huge
  for _, full in ipairs(fulls) do earliest = math.min(earliest, full.due) end
  local before = redis.pcall("ZCOUNT", timeouts, "-inf", earliest)
  local refusal = type(before) == "table" and before or before == 0 and wakeUp(earliest)
  if refusal then return refusal end
  -- The same commands have put other messages.
  for _, full in ipairs(fulls) do
    if elementsAre ~= "members" then redis.call("RPUSH", order, packAddress(full.due, full.name)) end
    redis.call("ZADD", timeouts, "XX", full.due, full.name)
  end
end
`,
});

/**
 * `collect(old, member, rule)`: merges an offer into the message that holds its key: `old` is a table with its `place`, its
 * `name` there, `all` its retries if it has any, its `id`, and the `entry` of the key. `rule` is
 * `collect,<payloads at most>,<bytes at most>`.
 *
 * Returns nil, `old`, the member to put in its place, and the marks for its entry. If the key passes to a new message, the
 * second is nil, and the third the member as it was. If an earlier copy of the offer is stored, returns its outcome, and `old`
 * if it is there.
 *
 * `hasten(fulls, elementsAre)`: makes delayed messages due at their new `due`, which is earlier. Returns Redis's error if it
 * refuses the wake-up; then nothing has changed. Put others before: then Redis refuses nothing else.
 */
export const collecting = defineFragment({
  rarely: [merging],
  lua: /* lua */ `
local function collect(...)
  return rare().collectInto(...)
end
local function hasten(...)
  return rare().hastenAll(...)
end
`,
});
