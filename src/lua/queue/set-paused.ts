import { defineScript } from "../script.ts";

/**
 * Pauses a queue (`isPaused` 1) or resumes it (0), and wakes every process up. The key holds `reason`, or 1 without one.
 *
 * It publishes first: if that is refused, nothing has changed, and nobody can look before the script has ended. `0` on
 * the channel means "look now", to Java clients as well.
 */
export const setPaused = defineScript({
  name: "set-paused",
  keys: ["paused"],
  args: ["channel", "isPaused", "reason"],
  lua: /* lua */ `
redis.call("PUBLISH", channel, 0)
if isPaused == "1" then redis.call("SET", paused, reason == "" and "1" or reason) else redis.call("DEL", paused) end
`,
  reply: () => undefined,
});
