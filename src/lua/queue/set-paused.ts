import { defineScript } from "../script.ts";

/**
 * Pauses a queue (`isPaused` 1) or resumes it (0), and wakes every process up.
 *
 * It publishes first: if that is refused, nothing has changed, and nobody can look before the script has ended. `0` on
 * the channel means "look now", to Java clients as well.
 */
export const setPaused = defineScript({
  name: "set-paused",
  keys: ["paused"],
  args: ["channel", "isPaused"],
  lua: /* lua */ `
redis.call("PUBLISH", channel, 0)
if isPaused == "1" then redis.call("SET", paused, 1) else redis.call("DEL", paused) end
`,
  reply: () => undefined,
});
