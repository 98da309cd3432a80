import { clock } from "../fragments/clock.ts";
import { asDeadline } from "../fragments/deadline.ts";
import { goneHands } from "../places/hands.ts";
import { turnBytes } from "../places/room.ts";
import { paceOf } from "../places/turns.ts";
import {
  asArray,
  asBuffer,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
  type RawReply,
} from "../reply.ts";
import { defineScript } from "../script.ts";

/** A lane with waiting messages. */
export interface WaitingLane {
  readonly lane: string;
  /** How many messages and retries wait in it. */
  readonly waiting: number;
  /** Until when none of them becomes ready, if the lane rests (epoch ms). */
  readonly restsUntil: number | undefined;
}

/**
 * Returns up to `step` lanes with waiting messages, in the order of their turns, and the turn with which the next page begins;
 * `from`: that turn, empty at first. Reads only.
 *
 * The turns of a lane are one range, so that the ranks of two lanes' first turns tell how many wait in the first. O(log N) for
 * each lane, some 9 us.
 */
export const lanePage = defineScript({
  name: "lane-page",
  keys: ["turns", "resting"],
  args: ["from", "step"],
  needs: [clock, turnBytes],
  lua: /* lua */ `
local now, found = math.floor(clock() / 1000), {}
local function firstFrom(start)
  local turn = redis.call("ZRANGE", turns, start, "+", "BYLEX", "LIMIT", 0, 1)[1]
  return turn, turn and redis.call("ZRANK", turns, turn) or redis.call("ZCARD", turns)
end
local turn, rank = firstFrom(from == "" and "-" or "[" .. from)
while turn and #found < 3 * step do
  local lane = turn:sub(2, 1 + (turn:byte(1) or 0))
  local next, last = firstFrom("(" .. lanePrefix(lane) .. "\\255")
  -- Bytes that are no turn.
  if last <= rank then next, last = redis.call("ZRANGE", turns, rank + 1, rank + 1)[1], rank + 1 end
  local rest = tonumber(redis.call("ZSCORE", resting, lane) or nil)
  found[#found + 1], found[#found + 2], found[#found + 3] = lane, last - rank, rest and rest > now and rest or false
  turn, rank = next, last
end
return { found, turn or false }
`,
  reply: (raw): { lanes: readonly WaitingLane[]; next: Buffer | undefined } => {
    const { rows, next } = asRow(raw, { rows: asArray, next: orNothing(asBuffer) });
    const columns = { lane: asText, waiting: asNumber, restsUntil: orNothing(asNumber) };
    return { lanes: asRows(rows, columns), next };
  },
});

/** A lane of which messages are in hand. */
export interface RunningLane {
  readonly lane: string;
  /** How many messages are in hand: ready or in flight. */
  readonly running: number;
}

/** Members of `hands` that one page looks at, before it ends early. */
const MOST_HANDS = 500;

/**
 * Returns how many messages of up to `step` lanes are in hand, where that is limited; and with which member of `hands` the next
 * page begins; `from`: that member, empty at first. Asks of each entry whether it still is. Reads only.
 */
export const handPage = defineScript({
  name: "hand-page",
  keys: ["hands"],
  args: ["from", "step"],
  needs: [goneHands],
  lua: /* lua */ `
local found, looked, start = {}, 0, from == "" and "-" or "[" .. from
local next = nil
while true do
  next = redis.call("ZRANGE", hands, start, "+", "BYLEX", "LIMIT", 0, 1)[1]
  if not next or #found >= 2 * step or looked >= ${MOST_HANDS} then break end
  local prefix = next:sub(1, 1 + (next:byte(1) or 0))
  local own = prefix == "" and {} or redis.call("ZRANGE", hands, "[" .. prefix, "(" .. prefix .. "\\255", "BYLEX")
  local count = #own - #goneHands(own)
  if count > 0 then found[#found + 1], found[#found + 2] = prefix:sub(2), count end
  looked, start = looked + #own, prefix == "" and "(" or "(" .. prefix .. "\\255"
end
return { found, next or false }
`,
  reply: (raw): { lanes: readonly RunningLane[]; next: Buffer | undefined } => {
    const { rows, next } = asRow(raw, { rows: asArray, next: orNothing(asBuffer) });
    return { lanes: asRows(rows, { lane: asText, running: asNumber }), next };
  },
});

/** Where a page of {@link dueLanes} or {@link retryLanes} begins: the score of the last member that was read, and how many with this score were. */
export interface DueCursor {
  readonly score: Buffer | string;
  readonly skip: number;
}

/** A page of what falls due. */
interface DuePage {
  /** The names of lanes, to which the rows refer. */
  readonly names: readonly string[];
  /** When each falls due (epoch ms), and the position of its lane in `names`. */
  readonly rows: readonly { readonly due: number; readonly lane: number }[];
  /** Where the next page begins; undefined after the last. */
  readonly next: DueCursor | undefined;
}

/** Bytes of members that one page reads at most, before it ends early. */
const MOST_BYTES = 262_144;

/**
 * Returns when the members of a ZSET of deadlines fall due, and their lanes, without payloads: up to `step` of them, and 50 more at
 * most, with deadlines up to `latest`; from `score` and `skip` on, see {@link DueCursor}, "" and 0 at first. Reads only. `trailersOf` is
 * the body of a function of the members: their trailers.
 *
 * Members that leave while pages are read may make it miss others with the same deadline.
 */
const lanesOfDue = (name: string, zset: "timeouts" | "retries", trailersOf: string) =>
  defineScript({
    name,
    keys: zset === "timeouts" ? ["timeouts"] : ["retries", "retrying"],
    args: ["score", "skip", "latest", "step"],
    needs: [turnBytes],
    lua: /* lua */ `
local function trailersOf(members)
  local trailers, bytes = {}, 0
  ${trailersOf}
  return trailers, bytes
end
local names, positions, rows, count, bytes = {}, {}, {}, 0, 0
local rank = score == "" and 0 or redis.call("ZCOUNT", ${zset}, "-inf", "(" .. score) + skip
local equal, isMore = tonumber(skip), true
latest = tonumber(latest)
while isMore and count < 2 * step and bytes < ${MOST_BYTES} do
  local page, members, size = redis.call("ZRANGE", ${zset}, rank, rank + 49, "WITHSCORES"), {}, 0
  for i = 1, #page, 2 do
    if tonumber(page[i + 1]) > latest then break end
    size = size + 1
    members[size] = page[i]
  end
  local trailers, read = trailersOf(members)
  for i = 1, size do
    local due, trailer = page[2 * i], trailers[i]
    equal = due == score and equal + 1 or 1
    score = due
    local lane = trailer and laneIn(trailer) or ""
    local position = positions[lane]
    if not position then
      position = #names
      positions[lane], names[position + 1] = position, lane
    end
    rows[count + 1], rows[count + 2] = due, position
    count = count + 2
  end
  rank, bytes, isMore = rank + size, bytes + read, size == 50
end
return { names, rows, isMore and score, equal }
`,
    reply: (raw): DuePage => {
      const columns = { names: asArray, rows: asArray, score: orNothing(asBuffer), skip: asNumber };
      const { names, rows, score, skip } = asRow(raw, columns);
      return {
        names: names.map(asText),
        rows: asRows(rows, { due: asDeadline, lane: asNumber }),
        next: score && { score, skip },
      };
    },
  });

/** Delayed messages; see {@link lanesOfDue}. */
export const dueLanes = lanesOfDue(
  "due-lanes",
  "timeouts",
  /* lua */ `for i, member in ipairs(members) do
    local size = #member
    local head = 9 + (member:byte(1) or 0)
    local last = size >= head and head + struct.unpack("<I8", member, head - 7) or size
    local isOld = size >= 16 and struct.unpack("<I8", member, 9) == size - 16
    if last < size and not isOld then trailers[i] = member:sub(last + 1) end
    bytes = bytes + size
  end`,
);

/** Retries that do not wait; see {@link lanesOfDue}. */
export const retryLanes = lanesOfDue(
  "retry-lanes",
  "retries",
  /* lua */ `for i, value in ipairs(#members > 0 and redis.call("HMGET", retrying, unpack(members)) or {}) do
    local length = value and #value >= 8 and struct.unpack("<I4", value, 5)
    if length then trailers[i], bytes = value:sub(9 + length), bytes + #value end
  end`,
);

/** How much of its rates a queue has used up. */
export interface UsedRates {
  /** Now (epoch ms). */
  readonly now: number;
  /** How many messages of the queue's rate. */
  readonly queue: number;
  /** How many of each lane's rate; without those that have used nothing. */
  readonly lanes: readonly { readonly lane: string; readonly used: number }[];
}

/**
 * Returns how many messages of its rates a queue has used up that it does not have again yet; of up to `most` lanes. The part has
 * one of `shares` equal shares of the queue's rate.
 */
export const usedRates = defineScript({
  name: "used-rates",
  keys: ["flow", "lanePaces"],
  args: ["shares", "most"],
  needs: [clock, paceOf],
  lua: /* lua */ `
local now, found = clock(), redis.call("HMGET", flow, "step", "arrival", "lane")
local step, arrival, lanes = tonumber(found[1] or nil) or 0, tonumber(found[2] or nil) or 0, {}
local used = step > 0 and math.max(0, arrival - now) / (step * shares) or 0
local paces = redis.call("ZRANGEBYSCORE", lanePaces, string.format("(%.0f", now), "+inf", "WITHSCORES", "LIMIT", 0, most)
for i = 1, #paces, 2 do
  local pace = paceOf(redis.call("HGET", flow, "lane:" .. paces[i]) or found[3] or "")
  if pace.step > 0 then
    lanes[#lanes + 1], lanes[#lanes + 2] = paces[i], string.format("%.17g", (paces[i + 1] - now) / pace.step)
  end
end
return { math.floor(now / 1000), string.format("%.17g", used), lanes }
`,
  reply: (raw): UsedRates => {
    const { lanes, ...own } = asRow(raw, { now: asNumber, queue: asDecimal, lanes: asArray });
    return { ...own, lanes: asRows(lanes, { lane: asText, used: asDecimal }) };
  },
});

const asDecimal = (raw: RawReply | undefined) => Number(asText(raw));

/**
 * Returns the lanes that are held, and until when, and those that are pinned, from some of the fields of the flow; `now` (epoch
 * ms); and the `cursor` of the next call, as HSCAN does: "0" at first, and after the last. Reads only.
 */
export const heldLanes = defineScript({
  name: "held-lanes",
  keys: ["flow"],
  args: ["cursor"],
  needs: [clock],
  lua: /* lua */ `
local now, page, held, pinned = clock() / 1000, redis.call("HSCAN", flow, cursor, "COUNT", 500), {}, {}
for i = 1, #page[2], 2 do
  local name, value = page[2][i], page[2][i + 1]
  local hold = name:sub(1, 5) == "hold:" and tonumber(value)
  if hold and hold > now then held[#held + 1], held[#held + 2] = name:sub(6), hold end
  if name:sub(1, 4) == "pin:" then pinned[#pinned + 1], pinned[#pinned + 2] = name:sub(5), value:match("{.*$") or "" end
end
return { page[1], held, pinned, math.floor(now) }
`,
  reply: (raw) => {
    const { cursor, held, pinned, now } = asRow(raw, {
      cursor: asText,
      held: asArray,
      pinned: asArray,
      now: asNumber,
    });
    return {
      cursor,
      now,
      lanes: asRows(held, { lane: asText, heldUntil: asNumber }),
      pinned: asRows(pinned, { lane: asText, pin: asText }),
    };
  },
});
