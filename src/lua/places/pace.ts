import { defineFragment } from "../fragment.ts";
import { allDue, firstDue } from "./due.ts";

/**
 * `nextTokens(used, step, burst)`: the instant (epoch ms) at which the next one may go, or as many as fall to 10 ms, if the rate
 * is used up until `used`.
 * `tokensAt(arrival, at, step, burst)`: how many may go at this instant (all in microseconds), if the rate is used up until
 * `arrival`.
 */
export const tokensAt = defineFragment({
  lua: /* lua */ `
local function nextTokens(used, step, burst)
  local together = math.max(1, math.min(burst, math.floor(10000 / step)))
  return math.ceil((used - (burst - together) * step) / 1000)
end
local function tokensAt(arrival, at, step, burst)
  -- A rounding error of the division must not cost a message its turn.
  return math.max(0, math.min(burst, math.floor(burst - (arrival - at) / step + 1e-6)))
end
`,
});

/*
 * The rate of a paced queue (GCRA, the leaky bucket as a meter). The HASH `flow` holds it: `step`, how many microseconds
 * each message takes of the rate; `burst`, how many messages may go at once after a while without any; and `arrival`, the
 * instant (epoch microseconds) up to which the rate is used up. A message may go while `arrival` is at most `burst - 1` steps
 * ahead, and moves it on by one step. `kind` is "paced", and `declared` what the user has set, in JSON.
 *
 * The ZSETs of delayed messages and retries are where they wait: what is due and may not go yet stays where it is. In a queue
 * with lanes (`kind` "lanes") it waits in `room`, and a rate of the whole queue is the same.
 */

/**
 * `paceAt(now, ago, shares)`: the rate as it was at `ago` microseconds before `now` (epoch microseconds), or nil if there is
 * none; the `kind` of the flow; and `only`, see `own-lanes.ts`. The part has one of `shares` equal shares of it. A table: `step`; `arrival`; `wasTurned`, whether that has
 * to be stored anew; `since`, when the first message could go; `tokens`, how many may go now; `next`,
 * the instant (epoch ms) at which to look again once these are used up: when the next one may go, or as many as fall to 10 ms.
 */
export const paceAt = defineFragment({
  keys: ["flow"],
  needs: [tokensAt],
  lua: /* lua */ `
local function paceAt(now, ago, shares)
  local found = redis.pcall("HMGET", flow, "kind", "step", "burst", "arrival", "only")
  local kind, step, burst = found[1], tonumber(found[2] or nil), tonumber(found[3] or nil)
  if kind ~= "paced" and kind ~= "lanes" or not step or not burst then return nil, kind, found[5] end
  step, burst = step * shares, math.max(1, math.floor(burst / shares))
  local stored = tonumber(found[4] or nil) or 0
  -- No more than the burst is ever used up. A later arrival means that the server's clock was set back.
  local at, arrival = now - ago, math.min(stored, now + burst * step)
  local pace = { step = step, arrival = arrival, wasTurned = arrival < stored, since = arrival - (burst - 1) * step }
  pace.tokens = tokensAt(arrival, at, step, burst)
  function pace.next(moved)
    local used = math.max(arrival, at) + moved * step
    return nextTokens(used, step, burst)
  end
  return pace, kind, found[5]
end
`,
});

/**
 * `pacedDue(zsets, latest, most)`: the first `most` members of these ZSETs that are due, in one order. Returns a table that
 * has for each ZSET what `firstDue` returns; and how many they are.
 */
export const pacedDue = defineFragment({
  needs: [allDue, firstDue],
  lua: /* lua */ `
local function pacedDue(zsets, latest, most)
  local due, counts, total = {}, {}, 0
  for _, zset in ipairs(zsets) do
    local members, scores, head, isMore = {}, {}, false, true
    -- With a limit of 0 the look would find all.
    if most > 0 then members, scores, head, isMore = firstDue(zset, latest, most) end
    if isMore and most > #members then members, scores = allDue(zset, latest, most) end
    if isMore then
      head = tonumber(redis.call("ZRANGE", zset, #members, #members, "WITHSCORES")[2]) or false
    end
    due[zset], counts[zset] = { members, scores, head, false }, 0
  end
  for _ = 1, most do
    local first, earliest
    for _, zset in ipairs(zsets) do
      local score = due[zset][2][counts[zset] + 1]
      if score and (not earliest or score < earliest) then first, earliest = zset, score end
    end
    if not first then break end
    counts[first], total = counts[first] + 1, total + 1
  end
  for zset, count in pairs(counts) do
    local members, scores = unpack(due[zset], 1, 2)
    for i = #members, count + 1, -1 do
      due[zset][3] = scores[i]
      members[i], scores[i] = nil, nil
    end
  end
  return due, total
end
`,
});
