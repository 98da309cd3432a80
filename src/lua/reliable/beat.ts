import { inFlight } from "../fragments/stream/in-flight.ts";
import { asArray } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Says that a consumer lives; returns the ids of the entries in flight for it, in their order: those behind
 * `after` (all, if it is empty), `limit` at most.
 *
 * What keeps the consumer's leases is the time at which Redis has seen it last. An XCLAIM of an entry that it has
 * already refreshes that. If it has none it has no lease to keep, and nothing is written. A read that waits
 * does not refresh it on Redis 7.0.
 */
export const beat = defineScript({
  name: "beat",
  keys: ["stream"],
  args: ["group", "consumer", "after", "limit"],
  needs: [inFlight],
  lua: /* lua */ `
local found = inFlight(group, after == "" and "-" or "(" .. after, "+", limit, consumer)
local ids = {}
for i, row in ipairs(found) do ids[i] = row[1] end
-- From Redis 7.0 on an XCLAIM strikes out an entry whose data are gone, instead of claiming it. It is returned once
-- more all the same: a page that is not full is the last.
for _, id in ipairs(ids) do
  if redis.call("XCLAIM", stream, group, consumer, 0, id, "JUSTID")[1] then break end
end
return ids
`,
  reply: (raw) => asArray(raw).map(String),
});
