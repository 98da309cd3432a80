import { digestOf } from "../../../lua/script.ts";
import { virtualLua } from "./virtual-lua.ts";

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

/**
 * Returns the virtual form of a script: it takes the time from its last two arguments, which follow its own, and never
 * from the server's clock:
 *
 * - the steps of the clock, newest first, as `real:virtual,...`: from the real instant `real` on (epoch ms on the
 *   server's clock), the virtual clock showed `virtual` (epoch ms);
 * - the virtual instant now, in microseconds.
 *
 * The idle times of entries in flight and of consumers are real in Redis: the steps turn them into virtual ones, and
 * back where the script sets one.
 */
export function virtualScript(script: { readonly lua: string }): VirtualScript {
  let virtual = known.get(script);
  if (virtual === undefined) {
    const lua = virtualLua(script.lua, BY_STEPS);
    virtual = {
      lua,
      sha: digestOf(lua),
      usesIdle: /"(?:XPENDING|CONSUMERS|IDLE)"/.test(script.lua),
      touchesIdle: /"X(?:CLAIM|AUTOCLAIM|READGROUP|GROUP)"/.test(script.lua),
      expires: /"EX"|"P?EXPIRE"/.test(script.lua),
    };
    known.set(script, virtual);
  }
  return virtual;
}

const known = new WeakMap<object, VirtualScript>();

const BY_STEPS = /* lua */ `
local steps = table.remove(ARGV)
local function realNow()
  local time = real.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- Before the first step, virtual time passed as real time does.
local function virtualAt(instant)
  local first, shown
  for step, virtual in steps:gmatch("(%d+):(%d+)") do
    first, shown = tonumber(step), tonumber(virtual)
    if first <= instant then return shown end
  end
  return shown - (first - instant)
end
local function virtualIdle(idle)
  return math.max(0, now - virtualAt(realNow() - idle))
end
idle.ofEntry, idle.ofConsumer = virtualIdle, virtualIdle
function idle.toClaim(idle)
  local target, first = now - idle, nil
  for step, virtual in steps:gmatch("(%d+):(%d+)") do
    first = tonumber(step)
    if tonumber(virtual) <= target then break end
  end
  return math.max(0, realNow() - first)
end
`.trim();
