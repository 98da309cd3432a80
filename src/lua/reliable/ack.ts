import { finish } from "../fragments/stream/finish.ts";
import { inFlightFor } from "../fragments/stream/in-flight-for.ts";
import { asFlags } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Acknowledges entries; returns for each whether it was in flight for this consumer.
 *
 * An entry is deleted once no other group needs it. `own` (1 or 0): whether the entry is for this group only.
 * `heldCount`: about how many entries the consumer has in flight. Sent a second time, the script changes nothing and
 * returns false for all.
 */
export const ack = defineScript({
  name: "ack",
  keys: ["stream"],
  args: ["group", "consumer", "heldCount"],
  each: ["entry", "own"],
  needs: [finish, inFlightFor],
  lua: /* lua */ `
local ids, isOwn = {}, {}
for each row do
  ids[#ids + 1] = entry
  isOwn[entry] = own == "1"
end
local mine = inFlightFor(group, consumer, ids, heldCount)
local settled, done = {}, {}
for i, id in ipairs(ids) do
  settled[i] = mine[id] and 1 or 0
  if mine[id] then
    done[#done + 1] = id
    -- Settle an id that is listed twice only once.
    mine[id] = nil
  end
end
finish(group, done, isOwn)
return settled
`,
  reply: asFlags,
});
