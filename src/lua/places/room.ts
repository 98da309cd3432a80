import { defineFragment } from "../fragment.ts";
import { deadlineOf } from "../fragments/address.ts";
import { may } from "../fragments/may.ts";
import { unpackMember } from "../fragments/member.ts";
import { fieldAt } from "../fragments/trailer.ts";

/*
 * The waiting room: where messages and retries of a queue with lanes wait for their turn once they are due.
 *
 * `room` holds the messages: id -> `deadline(8), as in the address | member`. A retry stays among the retries, with a score
 * that is never due (`WAITS` and when it was due). Each of both has a *turn* in the ZSET `turns`, whose scores are all 0:
 *
 * `length(1) | lane | priority(1) | length(1) | address | group`
 *
 * So the turns of a lane are one range, in their order: priority, first deadline, id. The group of a message is empty.
 * A turn whose message is gone, or no longer waits, means nothing, and goes when it comes up.
 *
 * `lanes` has the lanes with waiting messages, by virtual time: start-time fair queueing. A turn costs its lane 1 / weight. A new
 * lane begins at the time of the turn that was dealt last (`turn` in `flow`). A lane without tokens rests: it is in `resting`, by
 * until when, and in `lanes` behind all others, by 1e12 and its virtual time.
 *
 * What waits may go back among the delayed messages at any time: its place in the order is made of what it is.
 */

/** Bytes of a lane's name: 100, and more for those of schedules. */
const LONGEST_LANE = 109;

/** A message without a priority. */
const NO_PRIORITY = 128;

/**
 * `laneIn(trailer)`: the lane of a message with this trailer, which may be nil, "" without one; and its priority, as a byte of
 * which a lower one is sooner.
 * `turnOf(trailer, address, group)`: the turn of a message.
 * `lanePrefix(lane)`: how the turns of a lane begin.
 * `turnParts(turn)`: the address and the group in a turn; nil for a malformed one.
 */
export const turnBytes = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function laneIn(trailer)
  local lane, priority, at = nil, nil, 3
  while trailer and trailer:byte(1) == 255 and trailer:byte(2) == 1 do
    local tag, last = fieldAt(trailer, at)
    if tag == 5 and not lane and last - at - 4 <= ${LONGEST_LANE} then lane = trailer:sub(at + 5, last)
    elseif tag == 6 and last == at + 5 then priority = priority or trailer:byte(last)
    elseif not tag or tag < 9 then break end
    at = last + 1
  end
  return lane or "", priority or ${NO_PRIORITY}
end
local function lanePrefix(lane)
  return string.char(#lane) .. lane
end
local function turnOf(trailer, address, group)
  local lane, priority = laneIn(trailer)
  return lanePrefix(lane) .. string.char(priority, #address) .. address .. group
end
local function turnParts(turn)
  local at = 3 + turn:byte(1)
  local length = turn:byte(at)
  if not length or #turn < at + length then return nil end
  return turn:sub(at + 1, at + length), turn:sub(at + length + 1)
end
`,
});

/** The address of a message, and the group of a retry, in a turn; undefined if it is malformed. */
export function unpackTurn(turn: Buffer): { address: Buffer; group: string } | undefined {
  const at = 2 + (turn[0] ?? 0);
  const end = at + 1 + (turn[at] ?? 0);
  if (turn.length < Math.max(at + 1, end)) return undefined;
  return { address: turn.subarray(at + 1, end), group: turn.toString("utf8", end) };
}

/** `waitingAt(address)`: the member and the deadline of the message with this address that waits for its turn, or nil. */
export const waitingAt = defineFragment({
  keys: ["room"],
  needs: [deadlineOf],
  lua: /* lua */ `
local function waitingAt(address)
  local kept = redis.call("HGET", room, address:sub(9))
  if kept and kept:sub(1, 8) == address:sub(1, 8) then return kept:sub(9), deadlineOf(address) end
end
`,
});

/** `closeRoom()`: drops the keys of lanes if no message waits any more; returns whether one waits. */
export const closeRoom = defineFragment({
  keys: ["flow", "room", "turns", "lanes", "resting"],
  lua: /* lua */ `
local function closeRoom()
  if redis.call("EXISTS", turns, room) > 0 then return true end
  -- Its callers have done what they had to: what stays does no harm.
  redis.pcall("UNLINK", lanes, resting)
  redis.pcall("HDEL", flow, "look", "turn", "pause")
  return false
end
`,
});

/**
 * `mayLeaveRoom()`: raises Redis's error if removing from the waiting room is not permitted.
 * `leaveRoom(members)`: removes these messages from it.
 */
export const leaveRoom = defineFragment({
  keys: ["room", "turns"],
  needs: [closeRoom, may, turnBytes, unpackMember],
  lua: /* lua */ `
local function mayLeaveRoom()
  may("ZREM", turns)
  may("HDEL", room)
end
local function leaveRoom(members)
  local ids, theirs, trailers = {}, {}, {}
  for i, member in ipairs(members) do
    local id, _, _, trailer = unpackMember(member)
    ids[i], trailers[i] = id, trailer or ""
  end
  for i, kept in ipairs(redis.call("HMGET", room, unpack(ids))) do
    if kept then theirs[#theirs + 1] = turnOf(trailers[i], kept:sub(1, 8) .. ids[i], "") end
  end
  if #theirs > 0 then redis.call("ZREM", turns, unpack(theirs)) end
  redis.call("HDEL", room, unpack(ids))
  closeRoom()
end
`,
});

/** `noteHand(trailer, id)`: notes the entry of a message that is in hand, see `hands.ts`. If Redis refuses, the lane may get one more. */
export const noteHand = defineFragment({
  keys: ["flow", "hands"],
  needs: [turnBytes],
  lua: /* lua */ `
local function noteHand(trailer, id)
  -- The flow may have lost its limit since.
  if not redis.pcall("HGET", flow, "slots") then return end
  redis.pcall("ZADD", hands, 0, lanePrefix((laneIn(trailer))) .. id)
end
`,
});
