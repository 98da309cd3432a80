import { inFlight } from "../fragments/stream/in-flight.ts";
import { asArray } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Gives a sign of life for a consumer, which renews its leases. Returns the ids of the entries in flight for it, in
 * order: up to `limit` ids behind `after`, or from the first one if `after` is empty.
 *
 * Redis records when it last saw a consumer. An XCLAIM of an entry that the consumer already has updates this, while
 * a read that blocks does not on Redis 7.0. A consumer without entries has no lease to renew, so nothing is written.
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
-- One successful XCLAIM is enough. From Redis 7.0 on it removes an entry whose data are gone, and claims nothing. Such
-- an id is returned nevertheless, because a page that is not full counts as the last one.
for _, id in ipairs(ids) do
  if redis.call("XCLAIM", stream, group, consumer, 0, id, "JUSTID")[1] then break end
end
return ids
`,
  reply: (raw) => asArray(raw).map(String),
});
