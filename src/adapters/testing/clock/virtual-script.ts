import type { Fragment } from "../../../lua/fragment.ts";
import { clock } from "../../../lua/fragments/clock.ts";
import { inFlight } from "../../../lua/fragments/in-flight.ts";
import { consumersOf } from "../../../lua/fragments/stream.ts";
import { digestOf, luaOf, type Script } from "../../../lua/script.ts";

/** A script as it is sent while a test turns the clock. */
export interface VirtualScript {
  readonly lua: string;
  readonly sha: string;
  /** Whether it uses the steps: it reads or sets idle times. */
  readonly usesIdle: boolean;
  /** Whether it changes idle times: of entries, or of the consumers that it names. */
  readonly touchesIdle: boolean;
  /** Whether it gives keys a time to live. */
  readonly expires: boolean;
}

type AnyScript = Pick<
  Script<string, string, unknown, string>,
  "name" | "keys" | "args" | "each" | "areRowsKeys" | "source"
>;

/**
 * Returns the virtual form of a script: it takes the time from its last two arguments, which follow its own, and never
 * from the server's clock:
 *
 * - the steps of the clock, newest first, as `real:virtual,...`: from the real instant `real` on (epoch ms on the
 *   server's clock), the virtual clock showed `virtual` (epoch ms);
 * - the virtual instant now, in microseconds.
 *
 * Besides `clock()` three things in Redis have a time. Entries of streams get ids of the virtual instant. The idle times
 * of entries in flight and of consumers are real in Redis: the steps turn them into virtual ones, and back where the
 * script sets one.
 */
export function virtualScript(script: AnyScript): VirtualScript {
  let virtual = known.get(script);
  if (virtual === undefined) {
    const own = withoutRealTimes(luaOf(script, virtualFragment));
    const lua = `${PROLOGUE}\n${own}`;
    virtual = {
      lua,
      sha: digestOf(lua),
      usesIdle: /virtualIdle|realIdle/.test(own),
      touchesIdle: /"X(?:CLAIM|AUTOCLAIM|READGROUP|GROUP)"/.test(own),
      expires: /"EX"|"P?EXPIRE"/.test(own),
    };
    known.set(script, virtual);
  }
  return virtual;
}

const known = new WeakMap<AnyScript, VirtualScript>();

/**
 * The fragments that read a clock, or an idle time. They are known by their text: the script may be another copy of the
 * package's.
 */
function virtualFragment({ lua }: Fragment): string {
  if (lua === clock.lua) return "local function clock() return virtualNow end";
  if (lua === inFlight.lua) return `${lua}\n${VIRTUAL_IN_FLIGHT}`;
  if (lua === consumersOf.lua) return `${lua}\n${VIRTUAL_CONSUMERS}`;
  return lua;
}

/** Replaces what Redis itself would take from its clock. */
function withoutRealTimes(lua: string): string {
  return lua
    .replaceAll(/"XADD", (\w+), "\*"/g, '"XADD", $1, virtualId($1)')
    .replaceAll(/"IDLE", ([\w[\]]+)/g, '"IDLE", realIdle($1)');
}

const PROLOGUE = /* lua */ `
local virtualNow = tonumber(table.remove(ARGV))
local virtualSteps = table.remove(ARGV)
local function realNow()
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- Before the first step, virtual time passed as real time does.
local function virtualAt(real)
  local first, instant
  for step, virtual in virtualSteps:gmatch("(%d+):(%d+)") do
    first, instant = tonumber(step), tonumber(virtual)
    if first <= real then return instant end
  end
  return instant - (first - real)
end
local function virtualIdle(idle)
  return math.max(0, math.floor(virtualNow / 1000) - virtualAt(realNow() - idle))
end
local function realIdle(idle)
  local target, first = math.floor(virtualNow / 1000) - idle, nil
  for step, virtual in virtualSteps:gmatch("(%d+):(%d+)") do
    first = tonumber(step)
    if tonumber(virtual) <= target then break end
  end
  return math.max(0, realNow() - first)
end
-- The next id of a stream: of the virtual instant, or behind the last one if that is later.
local function virtualId(key)
  local now, ms, seq = math.floor(virtualNow / 1000), nil, nil
  local found = redis.pcall("XINFO", "STREAM", key)
  for i = 1, #found, 2 do
    if found[i] == "last-generated-id" then ms, seq = found[i + 1]:match("^(%d+)%-(%d+)$") end
  end
  if not ms or tonumber(ms) < now then return string.format("%.0f-1", now) end
  return ms .. string.format("-%.0f", tonumber(seq) + 1)
end
`.trim();

const VIRTUAL_IN_FLIGHT = /* lua */ `
local realInFlight = inFlight
local function inFlight(...)
  local rows = realInFlight(...)
  for i = 1, #rows do rows[i][3] = virtualIdle(rows[i][3]) end
  return rows
end
`.trim();

const VIRTUAL_CONSUMERS = /* lua */ `
local realConsumersOf = consumersOf
local function consumersOf(group)
  local consumers = realConsumersOf(group)
  for i = 1, #consumers do consumers[i].idle = virtualIdle(consumers[i].idle) end
  return consumers
end
`.trim();
