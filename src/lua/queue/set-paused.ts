import { defineScript } from "../script.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/**
 * Pauses a queue (`isPaused` 1) or resumes it (0), and wakes every process up. The key holds `reason`, or 1 without one.
 *
 * It wakes them first: if that is refused, nothing has changed.
 */
export const setPaused = defineScript({
  name: "set-paused",
  keys: ["paused"],
  args: ["channel", "isPaused", "reason"],
  needs: [wakeUp],
  lua: /* lua */ `
local refusal = wakeUp(0)
if refusal then return refusal end
if isPaused == "1" then redis.call("SET", paused, reason == "" and "1" or reason) else redis.call("DEL", paused) end
`,
  reply: () => undefined,
});
