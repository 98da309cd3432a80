import { createHash } from "node:crypto";

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
 * The script's text stays as it is, so any version of the library can be simulated. A wrapper around `redis.call` gives
 * it what Redis would take from its own clock: TIME, ids of streams, idle times of entries and consumers (as Redis 7.0
 * counts them), and keys that expire. What has to be remembered for that is kept in keys that begin with `sim:`, by
 * commands that the library does not use: so none of them fails when a right of the library is taken away.
 */
export function virtualForm(text: string): VirtualForm {
  let form = forms.get(text);
  if (form === undefined) {
    const name = /^-- delayline: (\S+)/.exec(text)?.[1] ?? "script";
    const lua = `${WRAPPER}\n${text}`;
    form = { name, lua, sha: digestOf(lua) };
    forms.set(text, form);
  }
  return form;
}

export function digestOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

/** The key that remembers when an entry was delivered last (epoch ms). */
export function deliveredKey(stream: string, group: string, id: string): string {
  return `sim:d|${stream}|${group}|${id}`;
}

/** The key that remembers when a consumer was seen last (epoch ms). */
export function seenKey(stream: string, group: string, consumer: string): string {
  return `sim:s|${stream}|${group}|${consumer}`;
}

const forms = new Map<string, VirtualForm>();

const WRAPPER = /* lua */ `
local virtualMicros = tonumber(table.remove(ARGV))
local redis = (function()
  local real, now = redis, math.floor(virtualMicros / 1000)
  local function forget(key) real.call("PEXPIREAT", key, 1) end
  local function fixed(number) return string.format("%.0f", number) end
  local function at(key) return tonumber(real.call("MGET", key)[1] or nil) end
  local function remember(key, instant) real.call("MSET", key, fixed(instant)) end

  if #KEYS > 0 then
    local ends = {}
    for i = 1, #KEYS do ends[i] = "sim:e|" .. KEYS[i] end
    local deadlines = real.call("MGET", unpack(ends))
    for i = 1, #KEYS do
      if deadlines[i] and tonumber(deadlines[i]) <= now then
        forget(KEYS[i])
        forget(ends[i])
      end
    end
  end

  local special = {}
  function special.TIME(call)
    call("TIME")
    return { fixed(math.floor(virtualMicros / 1000000)), fixed(virtualMicros % 1000000) }
  end
  function special.SET(call, key, value, ...)
    local more, duration = { ... }, nil
    for i = 1, #more - 1 do
      if more[i] == "EX" or more[i] == "PX" then
        duration = tonumber(more[i + 1]) * (more[i] == "EX" and 1000 or 1)
        more[i], more[i + 1] = "EX", "1000000"
      end
    end
    local reply = call("SET", key, value, unpack(more))
    if type(reply) == "table" and reply.ok then
      if duration then remember("sim:e|" .. key, now + duration) else forget("sim:e|" .. key) end
    end
    return reply
  end
  function special.EXPIRE(call, key, seconds)
    local reply = call("EXPIRE", key, "1000000")
    if reply == 1 then remember("sim:e|" .. key, now + tonumber(seconds) * 1000) end
    return reply
  end
  function special.XADD(call, key, ...)
    local more, isOurs = { ... }, false
    local last = real.call("MGET", "sim:x|" .. key)[1]
    for i = 1, 4 do
      if more[i] == "*" then
        local ms, seq = (last or ""):match("^(%d+)%-(%d+)$")
        if not ms or tonumber(ms) < now then more[i] = fixed(now) .. "-1"
        else more[i] = ms .. "-" .. fixed(tonumber(seq) + 1) end
        isOurs = true
        break
      end
    end
    local reply = call("XADD", key, unpack(more))
    if isOurs and type(reply) == "string" then real.call("MSET", "sim:x|" .. key, reply) end
    return reply
  end
  function special.XPENDING(call, key, group, ...)
    local rows = call("XPENDING", key, group, ...)
    if select("#", ...) < 3 or rows.err then return rows end
    for _, row in ipairs(rows) do
      row[3] = math.max(0, now - (at("sim:d|" .. key .. "|" .. group .. "|" .. row[1]) or now))
    end
    return rows
  end
  function special.XINFO(call, about, key, ...)
    local consumers = call("XINFO", about, key, ...)
    if about ~= "CONSUMERS" or consumers.err then return consumers end
    local group = ...
    for _, fields in ipairs(consumers) do
      local name
      for i = 1, #fields, 2 do if fields[i] == "name" then name = fields[i + 1] end end
      local idle = math.max(0, now - (at("sim:s|" .. key .. "|" .. group .. "|" .. name) or now))
      for i = 1, #fields, 2 do
        if fields[i] == "idle" or fields[i] == "inactive" then fields[i + 1] = idle end
      end
    end
    return consumers
  end
  function special.XCLAIM(call, key, group, consumer, ...)
    local reply, more, deliveredAt = call("XCLAIM", key, group, consumer, ...), { ... }, now
    if reply.err then return reply end
    for i = 1, #more - 1 do
      if more[i] == "IDLE" then deliveredAt = now - tonumber(more[i + 1]) end
    end
    for _, entry in ipairs(reply) do
      local id = type(entry) == "table" and entry[1] or entry
      remember("sim:d|" .. key .. "|" .. group .. "|" .. id, deliveredAt)
    end
    if reply[1] then remember("sim:s|" .. key .. "|" .. group .. "|" .. consumer, now) end
    return reply
  end
  function special.XGROUP(call, what, key, group, ...)
    local reply = call("XGROUP", what, key, group, ...)
    if what == "DELCONSUMER" then forget("sim:s|" .. key .. "|" .. group .. "|" .. (...)) end
    return reply
  end

  local function through(call)
    return function(command, ...)
      local handle = special[command]
      if handle then return handle(call, ...) end
      return call(command, ...)
    end
  end
  return setmetatable({ call = through(real.call), pcall = through(real.pcall) }, { __index = real })
end)()
`.trim();
