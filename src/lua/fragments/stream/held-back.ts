import { defineFragment } from "../../fragment.ts";

/**
 * `isHeldBack(entry, now)`: whether an entry may not be delivered yet. If its time is over, removes `u` from the table.
 * `now` is what `clock()` returned.
 *
 * In strict order a failed message stays in flight during its pause. The pause belongs to the message, not to the
 * process that waits for it: so the entry itself says until when. Whoever moves an entry that is held back has to keep
 * `u`, or make the message a retry that is due then.
 */
export const heldBack = defineFragment({
  lua: /* lua */ `
local function isHeldBack(entry, now)
  if entry.u and entry.u > now / 1000 then return true end
  entry.u = nil
  return false
end
`,
});
