import { inFlight } from "../fragments/stream/in-flight.ts";
import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Removes a consumer that has nothing in flight; returns whether it is gone.
 *
 * A consumer with entries in flight stays, since Redis would drop them with it.
 */
export const leave = defineScript({
  name: "leave",
  keys: ["stream"],
  args: ["group", "consumer"],
  needs: [inFlight],
  lua: /* lua */ `
if #inFlight(group, "-", "+", 1, consumer) > 0 then return 0 end
local done = redis.pcall("XGROUP", "DELCONSUMER", stream, group, consumer)
if type(done) == "number" or redis.call("EXISTS", stream) == 0 or done.err:find("^%-?NOGROUP") then return 1 end
return done
`,
  reply: asFlag,
});
