import { clock } from "../fragments/clock.ts";
import { turnBytes } from "../places/room.ts";
import { asArray, asBuffer, asNumber, asRow, asRows, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A lane in which somebody waits. */
export interface WaitingLane {
  readonly lane: string;
  /** How many messages and retries wait in it. */
  readonly waiting: number;
  /** Until when none of them becomes ready, if the lane rests (epoch ms). */
  readonly restsUntil: number | undefined;
}

/**
 * Returns up to `step` lanes in which somebody waits, in the order of their turns, and the turn with which the next page begins;
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
