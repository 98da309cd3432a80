import { defineFragment } from "../fragment.ts";

/**
 * `may(command, key)`: raises Redis's error if it does not permit this command, or if the key is of another type; changes
 * nothing. `command`: `ZADD`, `ZREM`, `HDEL`, `LTRIM` or `XDEL`.
 *
 * No rollback: so what a script needs later is asked before it writes. And when memory is full, Redis refuses only the
 * first write of a script, and never a removal: behind a removal of nothing every write passes. A `ZADD` shows whether it
 * is.
 */
export const may = defineFragment({
  lua: /* lua */ `
local function may(command, key)
  if command == "LTRIM" then redis.call(command, key, 0, -1)
  elseif command == "XDEL" then redis.call(command, key, "0-0")
  elseif command == "ZADD" then redis.call(command, key, "XX", 0, "delayline: nothing")
  else redis.call(command, key, "delayline: nothing") end
end
`,
});
