import { holds } from "../fragments/partitions/holds.ts";
import { asBuffer, asFlag, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The outcome of a pop by the holder of a partition. */
export interface HeldPop {
  /** Whether the lease is still the caller's. */
  readonly isOurs: boolean;
  /** Undefined if nothing was ready. */
  readonly payload: Buffer | undefined;
}

/**
 * Pops a ready payload for the holder of the partition, which must hold no other. If nothing is ready, notes that the
 * holder is idle for the fact with this `epoch`. Pops nothing if the process has lost the lease.
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
