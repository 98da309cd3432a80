import { holds } from "../fragments/partitions/holds.ts";
import { asBuffer, asFlag, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** What a holder has popped. */
export interface HeldPop {
  /** Whether the lease is still the caller's. */
  readonly isOurs: boolean;
  /** Undefined if there was none. */
  readonly payload: Buffer | undefined;
}

/**
 * Pops a ready payload for the holder of the partition, which has nothing else in hand; if there is none, notes that it
 * is idle for the fact with this `epoch`. Nothing is popped if the lease is not the process's.
 */
export const popHeld = defineScript({
  name: "pop-held",
  keys: ["ready", "holder"],
  args: ["process", "fence", "epoch"],
  needs: [holds],
  lua: /* lua */ `
if not holds(process, fence) then return { 0 } end
local payload = redis.call("LPOP", ready)
if payload then redis.call("HDEL", holder, "idle") else redis.call("HSET", holder, "idle", epoch) end
return { 1, payload }
`,
  reply: (raw): HeldPop => asRow(raw, { isOurs: asFlag, payload: orNothing(asBuffer) }),
});
