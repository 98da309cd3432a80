import { defineFragment } from "../fragment.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { inFlight } from "../places/in-flight.ts";
import { asFlag, asNumber, asRow, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/*
 * The lease on a partition that is consumed exclusively, in the HASH `holder`:
 *
 * - `holder`: the process that has the lease; missing if none has.
 * - `fence`: grows each time another process takes the lease. Never deleted. It is the server's time in microseconds,
 *   or one more than the last fence if that is greater. So it grows even where the last fence was lost, as in a
 *   failover or when the key was deleted. A change of the number of partitions raises it; see `raiseFence`.
 * - `until`: the server's time (epoch ms) when the lease is over.
 * - `connection`: the id and the name of the connection on which the holder takes, separated by a space.
 * - `stale`: the connections of predecessors that did not release the lease, one line each. The holder has to kill them
 *   before it takes anything.
 * - `group`, `consumer`: the group for which the partition is or was last held, and the holder's consumer in it. A change
 *   of the number of partitions takes the lease for no group, and leaves `group` as it is.
 * - `orphans`: consumers of predecessors that may have entries in flight, one line each. A line begins with "=" if that
 *   predecessor released the lease and so left the entries to the next holder on purpose. See `inherit`.
 */

/**
 * `holds(process, fence)`: whether the process has the lease on this partition with this fence. A lease that is over
 * still counts until another process takes it.
 */
export const holds = defineFragment({
  keys: ["holder"],
  lua: /* lua */ `
local function holds(process, fence)
  local found = redis.call("HMGET", holder, "holder", "fence")
  return found[1] == process and found[2] == fence
end
`,
});

/** The outcome of an attempt to take the lease. */
export interface Hold {
  /** Whether the caller has the lease now. */
  readonly isOurs: boolean;
  readonly fence: number;
  /** Milliseconds until another process's lease is over, unless it is renewed; 0 if the caller has the lease. */
  readonly wait: number;
  /** Lines of `stale`. */
  readonly stale: readonly string[];
  /** Lines of `orphans`. */
  readonly orphans: readonly string[];
  /** The group for which the partition is held. */
  readonly group: string;
  /** Epoch ms. */
  readonly serverTime: number;
}

/**
 * Takes the lease for `duration` milliseconds, if no process has it, it is over, or this process has it. In the last
 * case the lease begins anew, with another connection and the same fence.
 *
 * A step of the clock must end no lease, nor make it last. So two clocks decide: the server's, and `past`, which is that
 * clock as it ran one duration ago (`ServerClock.past`), empty if the caller does not know. The lease is over
 *
 * - if it is over by both. If the clock was set in between and the lease not renewed since, `past` is right; if it was renewed, the
 *   server's clock is right. The earlier of the two instants is never too late.
 * - if it ends more than two durations in the future by both. Then the clock was set back, at least one duration ago, and the lease
 *   has not been renewed since.
 *
 * A consumer is refused while the queue has lanes: a strict order and turns contradict each other.
 */
export const hold = defineScript({
  name: "hold",
  keys: ["holder", "flow"],
  args: ["process", "duration", "group", "past"],
  needs: [clock],
  lua: /* lua */ `
local micros = clock()
local now = math.floor(micros / 1000)
local owner, fence, endsAt, connection, stale, consumer, orphans, heldFor = unpack(redis.call("HMGET", holder,
  "holder", "fence", "until", "connection", "stale", "consumer", "orphans", "group"))
past, endsAt = tonumber(past), tonumber(endsAt) or 0
local left = past and endsAt - math.min(now, past) or duration
fence, stale, orphans = tonumber(fence) or 0, stale or "", orphans or ""
local isOver = past and (left <= 0 or endsAt - math.max(now, past) > 2 * duration)
if owner and owner ~= process and not isOver then
  return { 0, fence, math.ceil(left), "", "", heldFor or "", micros }
end
if process:sub(1, 7) ~= "change:" and redis.call("HGET", flow, "kind") == "lanes" then
  return redis.error_reply("LANES the flow of the queue has lanes: it cannot be consumed exclusively")
end
local function push(line, lines) return lines == "" and line or line .. "\\n" .. lines end
if owner ~= process then fence = math.max(fence + 1, micros) end
if connection then stale = push(connection, stale) end
if consumer then orphans = push(consumer, orphans) end
-- One command, so that nothing has changed if memory is full.
local fields = { "holder", process, "fence", string.format("%.0f", fence),
  "until", string.format("%.0f", now + duration), "stale", stale, "orphans", orphans }
if group ~= "" then
  fields[#fields + 1] = "group"
  fields[#fields + 1] = group
end
redis.call("HSET", holder, unpack(fields))
redis.call("HDEL", holder, "connection", "consumer")
return { 1, fence, 0, stale, orphans, group, micros }
`,
  reply: (raw): Hold =>
    asRow(raw, {
      isOurs: asFlag,
      fence: asNumber,
      wait: asNumber,
      stale: linesOf,
      orphans: linesOf,
      group: asText,
      serverTime: asInstant,
    }),
});

function linesOf(lines: RawReply | undefined): string[] {
  return asText(lines)
    .split("\n")
    .filter((line) => line !== "");
}

/**
 * Makes the lease last `duration` milliseconds from now. Returns the server's time (epoch ms); undefined if the process no
 * longer has the lease.
 */
export const renewHold = defineScript({
  name: "renew-hold",
  keys: ["holder"],
  args: ["process", "fence", "duration"],
  needs: [clock, holds],
  lua: /* lua */ `
if not holds(process, fence) then return false end
local micros = clock()
redis.call("HSET", holder, "until", string.format("%.0f", math.floor(micros / 1000) + duration))
return micros
`,
  reply: orNothing(asInstant),
});

/**
 * Notes the connection on which the process takes, and clears `stale`: the process has killed those connections before.
 * Returns whether the process still has the lease.
 */
export const noteHold = defineScript({
  name: "note-hold",
  keys: ["holder"],
  args: ["process", "fence", "connection"],
  needs: [holds],
  lua: /* lua */ `
if not holds(process, fence) then return 0 end
redis.call("HSET", holder, "connection", connection, "stale", "")
return 1
`,
  reply: asFlag,
});

/**
 * Releases the lease. Returns whether the process still had it. The process has closed its own connection before;
 * `stale` stays, since it may not have killed its predecessors'. Entries in flight for its consumer are left to the
 * next holder.
 */
export const releaseHold = defineScript({
  name: "release-hold",
  keys: ["stream", "holder"],
  args: ["process", "fence"],
  needs: [holds, inFlight],
  lua: /* lua */ `
if not holds(process, fence) then return 0 end
local consumer, group, orphans = unpack(redis.call("HMGET", holder, "consumer", "group", "orphans"))
if consumer and #inFlight(group or "", "-", "+", 1, consumer) > 0 then
  redis.call("HSET", holder, "orphans", "=" .. consumer .. "\\n" .. (orphans or ""))
end
redis.call("HDEL", holder, "holder", "until", "connection", "consumer")
return 1
`,
  reply: asFlag,
});

/**
 * Raises the fence to `fence`, if it is lower. A change of the number of partitions carries the greatest fence of the
 * partitions that messages leave to those that they go to, whose server's clock may be behind. So the fences that a key
 * sees only grow.
 */
export const raiseFence = defineScript({
  name: "raise-fence",
  keys: ["holder"],
  args: ["fence"],
  lua: /* lua */ `
local found = tonumber(redis.call("HGET", holder, "fence")) or 0
if found < tonumber(fence) then redis.call("HSET", holder, "fence", fence) end
`,
  reply: () => undefined,
});

/** Replies with the process that has the lease, even if the lease is over. */
export const tellHolder = defineScript({
  name: "tell-holder",
  keys: ["holder"],
  args: [],
  lua: /* lua */ `return redis.call("HGET", holder, "holder")`,
  reply: orNothing(asText),
});

/** Whether a process consumes this partition exclusively now. */
export const isHeld = defineScript({
  name: "is-held",
  keys: ["holder"],
  args: [],
  needs: [clock],
  lua: /* lua */ `
local found = redis.call("HMGET", holder, "holder", "until")
-- A change of the number of partitions is no consumer.
if not found[1] or found[1]:sub(1, 7) == "change:" then return 0 end
return (tonumber(found[2] or nil) or 0) > clock() / 1000 and 1 or 0
`,
  reply: asFlag,
});
