import { virtualLua } from "../../../src/adapters/testing/clock/virtual-lua.ts";
import { digestOf } from "../../../src/lua/script.ts";

/** A script as the machine sends it. */
export interface VirtualForm {
  /** The name that the script's first line says. */
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
}

/**
 * Returns the form of a script that lives in virtual time: its last argument, which follows its own, is the instant in
 * microseconds.
 *
 * No time in it is real, so a run depends on its seed alone: idle times and keys that expire go by what is remembered in
 * keys that begin with `sim:`, by commands that the library does not use. So none of them fails when a right of the
 * library is taken away.
 */
export function virtualForm(text: string): VirtualForm {
  let form = forms.get(text);
  if (form === undefined) {
    const name = /^-- delayline: (\S+)/.exec(text)?.[1] ?? "script";
    const lua = `${LOUDNESS}\n${virtualLua(withLoudness(text), BY_MEMORY)}`;
    form = { name, lua, sha: digestOf(lua) };
    forms.set(text, form);
  }
  return form;
}

/** The key that remembers when an entry was delivered last (epoch ms). */
export function deliveredKey(stream: string, group: string, id: string): string {
  return `sim:d|${stream}|${group}|${id}`;
}

/** The key that remembers when a consumer was seen last (epoch ms). */
export function seenKey(stream: string, group: string, consumer: string): string {
  return `sim:s|${stream}|${group}|${consumer}`;
}

/** Commands because of which Redis sends something only to the connection that they come from. */
export const QUIET: ReadonlySet<string> = new Set(
  (
    "EXISTS TYPE TIME GET SET MGET MSET STRLEN EXPIRE PEXPIREAT HGET HSET HDEL HMGET HLEN HEXISTS HGETALL HSCAN HKEYS " +
    "ZADD ZREM ZRANGE ZRANGEBYSCORE ZRANGEBYLEX ZCARD ZCOUNT ZSCORE ZMSCORE ZRANK ZREMRANGEBYRANK ZREMRANGEBYSCORE " +
    "ZREMRANGEBYLEX ZSCAN LLEN LRANGE LINDEX LREM LTRIM LPOP XLEN XRANGE XREVRANGE XINFO XPENDING XACK XCLAIM XDEL " +
    "XTRIM XREADGROUP"
  ).split(" "),
);

const forms = new Map<string, VirtualForm>();

/**
 * Makes a script reply with a list: what it replied, and whether Redis may send something to other connections because of
 * it (1 or 0). A script that raises an error replies with that alone. `Link.unwrap` reads it.
 */
function withLoudness(text: string): string {
  return `local reply = (function()\n${text}\nend)()\nif reply == nil then reply = false end\nreturn { reply, loudness[1] }`;
}

const LOUDNESS = "local loudness = { 0 }";

const BY_MEMORY = /* lua */ `
real = (function(actual)
  local isQuiet = {}
  for name in ("${[...QUIET].join(" ")}"):gmatch("%S+") do isQuiet[name] = true end
  local function noting(call)
    return function(command, ...)
      if not isQuiet[command] then loudness[1] = 1 end
      return call(command, ...)
    end
  end
  return setmetatable({ call = noting(actual.call), pcall = noting(actual.pcall) }, { __index = actual })
end)(real)
local function deliveredKey(...) return table.concat({ "sim:d", ... }, "|") end
local function seenKey(...) return table.concat({ "sim:s", ... }, "|") end
local function endKey(key) return "sim:e|" .. key end
local function forget(key) real.call("PEXPIREAT", key, 1) end
local function remember(key, instant) real.call("MSET", key, fixed(instant)) end
local function since(key)
  local instant = real.call("MGET", key)[1]
  return instant and math.max(0, now - tonumber(instant)) or 0
end

if #KEYS > 0 then
  local ends = {}
  for i = 1, #KEYS do ends[i] = endKey(KEYS[i]) end
  local deadlines = real.call("MGET", unpack(ends))
  for i = 1, #KEYS do
    if deadlines[i] and tonumber(deadlines[i]) <= now then
      forget(KEYS[i])
      forget(ends[i])
    end
  end
end

function idle.ofEntry(_, ...) return since(deliveredKey(...)) end
function idle.ofConsumer(_, ...) return since(seenKey(...)) end
function idle.toClaim(idle) return idle end

function commands.SET(call, key, value, ...)
  local more, duration = { ... }, nil
  for i = 1, #more - 1 do
    if more[i] == "EX" or more[i] == "PX" then
      duration = tonumber(more[i + 1]) * (more[i] == "EX" and 1000 or 1)
      more[i], more[i + 1] = "EX", "1000000"
    end
  end
  local reply = call("SET", key, value, unpack(more))
  if type(reply) == "table" and reply.ok then
    if duration then remember(endKey(key), now + duration) else forget(endKey(key)) end
  end
  return reply
end
function commands.EXPIRE(call, key, seconds)
  local reply = call("EXPIRE", key, "1000000")
  if reply == 1 then remember(endKey(key), now + tonumber(seconds) * 1000) end
  return reply
end
local claim = commands.XCLAIM
function commands.XCLAIM(call, key, group, consumer, ...)
  local reply, more, deliveredAt = claim(call, key, group, consumer, ...), { ... }, now
  if reply.err then return reply end
  for i = 1, #more - 1 do
    if more[i] == "IDLE" then deliveredAt = now - tonumber(more[i + 1]) end
  end
  for _, entry in ipairs(reply) do
    local id = type(entry) == "table" and entry[1] or entry
    remember(deliveredKey(key, group, id), deliveredAt)
  end
  if reply[1] then remember(seenKey(key, group, consumer), now) end
  return reply
end
function commands.XGROUP(call, what, key, group, ...)
  local reply = call("XGROUP", what, key, group, ...)
  local isRefused = type(reply) == "table" and reply.err
  if what == "DELCONSUMER" and not isRefused then forget(seenKey(key, group, (...))) end
  return reply
end
`.trim();
