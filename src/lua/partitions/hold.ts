import { clock } from "../fragments/clock.ts";
import { inFlight } from "../fragments/stream/in-flight.ts";
import { holds } from "../fragments/partitions/holds.ts";
import { asFlag, asNumber, asRow, asText, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/*
 * The lease on a partition that is consumed exclusively, in the HASH `holder`:
 *
 * - `holder`: the process that has it. Nobody has if it is missing.
 * - `fence`: grows by one each time another process takes it. It stays for ever.
 * - `until`: the server's time (epoch ms) when the lease is over.
 * - `connection`: the id and the name of the connection on which the holder takes, with a space between.
 * - `stale`: the same of predecessors that did not release it, a line each. They have to be ended before anything is
 *   taken.
 * - `idle`: the epoch of the fact for which the holder has said that it has nothing in hand.
 * - `group`, `consumer`: of a reliable queue, the group, and the holder's consumer in it.
 * - `orphans`: consumers of predecessors that may have entries in flight, a line each: of one that did not release it, or
 *   behind a "=" of one that did, and has left them to the next holder. See `inherit`.
 */

/** What came of an attempt to take the lease. */
export interface Hold {
  /** Whether it is the caller's now. */
  readonly isOurs: boolean;
  readonly fence: number;
  /** After so many milliseconds the lease that somebody else has is over, unless it is renewed. */
  readonly wait: number;
  /** The connections of predecessors that did not release it, as they were noted. */
  readonly stale: readonly string[];
  /** Consumers of predecessors, as they are noted. */
  readonly orphans: readonly string[];
  /** The group that it is held for. */
  readonly group: string;
}

/**
 * Takes the lease for `duration` milliseconds, if nobody has it, or it is over, or the process has it already. Even then
 * it begins anew, with another connection.
 *
 * A lease that ends more than twice that far in the future counts as over: the clock has been set back since.
 */
export const hold = defineScript({
  name: "hold",
  keys: ["holder"],
  args: ["process", "duration", "group"],
  needs: [clock],
  lua: /* lua */ `
local now = math.floor(clock() / 1000)
local found =
  redis.call("HMGET", holder, "holder", "fence", "until", "connection", "stale", "consumer", "orphans", "group")
local owner, fence, left = found[1], tonumber(found[2]) or 0, (tonumber(found[3]) or 0) - now
local stale, orphans = found[5] or "", found[7] or ""
local isFree = not owner or left <= 0 or left > 2 * duration
if owner ~= process and not isFree then return { 0, fence, left, "", "", found[8] or "" } end
local function push(line, lines) return lines == "" and line or line .. "\\n" .. lines end
if owner ~= process then fence = fence + 1 end
if found[4] then stale = push(found[4], stale) end
if found[6] then orphans = push(found[6], orphans) end
-- At once, so that nothing is done if memory is full.
redis.call("HSET", holder, "holder", process, "fence", string.format("%.0f", fence), "group", group,
  "until", string.format("%.0f", now + duration), "stale", stale, "orphans", orphans)
redis.call("HDEL", holder, "connection", "consumer", "idle")
return { 1, fence, 0, stale, orphans, group }
`,
  reply: (raw): Hold =>
    asRow(raw, {
      isOurs: asFlag,
      fence: asNumber,
      wait: asNumber,
      stale: linesOf,
      orphans: linesOf,
      group: asText,
    }),
});

function linesOf(lines: RawReply | undefined): string[] {
  return asText(lines)
    .split("\n")
    .filter((line) => line !== "");
}

/** Makes the lease last for `duration` milliseconds from now; returns whether it is still the process's. */
export const renewHold = defineScript({
  name: "renew-hold",
  keys: ["holder"],
  args: ["process", "fence", "duration"],
  needs: [clock, holds],
  lua: /* lua */ `
if not holds(process, fence) then return 0 end
redis.call("HSET", holder, "until", string.format("%.0f", math.floor(clock() / 1000) + duration))
return 1
`,
  reply: asFlag,
});

/**
 * Notes the connection on which the process takes. The predecessors' are struck out: the process has ended them
 * before. Returns whether the lease is still the process's.
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
 * Gives the lease up, if it is the process's; returns whether it was. It has ended its own connection before, but
 * perhaps not those of its predecessors. What is in flight for its consumer is left to the next holder.
 */
export const releaseHold = defineScript({
  name: "release-hold",
  keys: ["stream", "holder"],
  args: ["process", "fence"],
  needs: [holds, inFlight],
  lua: /* lua */ `
if not holds(process, fence) then return 0 end
local found = redis.call("HMGET", holder, "consumer", "group", "orphans")
if found[1] and #inFlight(found[2] or "", "-", "+", 1, found[1]) > 0 then
  redis.call("HSET", holder, "orphans", "=" .. found[1] .. "\\n" .. (found[3] or ""))
end
redis.call("HDEL", holder, "holder", "until", "connection", "consumer", "idle")
return 1
`,
  reply: asFlag,
});
