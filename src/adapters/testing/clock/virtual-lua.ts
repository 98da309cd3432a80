/**
 * Returns a script's text in virtual time: the instant is its last argument, in microseconds.
 *
 * The text stays as it is, so it may come from any version of the library. A wrapper around `redis.call` and
 * `redis.pcall` gives it what Redis would take from its own clock: TIME, ids of entries, and idle times of entries in
 * flight and of consumers.
 *
 * Redis has idle times of its own. `times` is Lua that says what they are in virtual time. It may take further
 * arguments from ARGV, and finds `now` (epoch ms), the `real` redis, and two tables to fill:
 *
 * - `idle.ofEntry(idle, stream, group, id)` and `idle.ofConsumer(idle, stream, group, name)` turn what Redis replies
 *   into virtual milliseconds, and `idle.toClaim(idle)` turns virtual ones into those that XCLAIM is given;
 * - `commands.NAME(call, ...)` carries out a command by `call`.
 */
export function virtualLua(text: string, times: string): string {
  return `${WRAPPER.replace("-- times", () => times)}\n${text}`;
}

const WRAPPER = /* lua */ `
local virtualMicros = tonumber(table.remove(ARGV))
local redis = (function()
  local real, now, commands, idle = redis, math.floor(virtualMicros / 1000), {}, {}
  local function fixed(number) return string.format("%.0f", number) end

  function commands.TIME(call)
    call("TIME")
    return { fixed(math.floor(virtualMicros / 1000000)), fixed(virtualMicros % 1000000) }
  end
  -- The next id of a stream: of the virtual instant, or behind the last one if that is later.
  local function nextId(key)
    local found, ms, seq = real.pcall("XINFO", "STREAM", key), nil, nil
    for i = 1, #found, 2 do
      if found[i] == "last-generated-id" then ms, seq = found[i + 1]:match("^(%d+)%-(%d+)$") end
    end
    if not ms or tonumber(ms) < now then return fixed(now) .. "-1" end
    return ms .. "-" .. fixed(tonumber(seq) + 1)
  end
  function commands.XADD(call, key, ...)
    local words = { ... }
    -- Behind an option, or a rule by which it trims.
    local at = ({ MAXLEN = 4, MINID = 4, NOMKSTREAM = 2 })[words[1]] or 1
    if words[at] == "*" then words[at] = nextId(key) end
    return call("XADD", key, unpack(words))
  end
  function commands.XPENDING(call, key, group, ...)
    local rows = call("XPENDING", key, group, ...)
    if rows.err or select("#", ...) == 0 then return rows end
    for _, row in ipairs(rows) do row[3] = idle.ofEntry(row[3], key, group, row[1]) end
    return rows
  end
  function commands.XINFO(call, about, key, ...)
    local found, group = call("XINFO", about, key, ...), ...
    if about ~= "CONSUMERS" or found.err then return found end
    for _, fields in ipairs(found) do
      local at = {}
      for i = 1, #fields, 2 do at[fields[i]] = i + 1 end
      fields[at.idle] = idle.ofConsumer(fields[at.idle], key, group, fields[at.name])
    end
    return found
  end
  function commands.XCLAIM(call, ...)
    local words = { ... }
    for i = 1, #words - 1 do
      if words[i] == "IDLE" then words[i + 1] = idle.toClaim(words[i + 1]) end
    end
    return call("XCLAIM", unpack(words))
  end

-- times

  local function through(call)
    return function(command, ...)
      local handle = commands[command]
      if handle then return handle(call, ...) end
      return call(command, ...)
    end
  end
  return setmetatable({ call = through(real.call), pcall = through(real.pcall) }, { __index = real })
end)()
`.trim();
