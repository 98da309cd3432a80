import type { Into } from "../family.ts";
import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { depart } from "../fragments/partitions/depart.ts";
import { BATCH, type Batch } from "../fragments/partitions/journal.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { waitingFor } from "../fragments/failed/waiting-for.ts";
import { asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Takes the messages that the rows stand for out of this partition, to be brought to those that they belong to. What
 * belongs to this one (`own`, or -1) stays. `buckets`: the partition of each of the 1,024 buckets, a byte each.
 *
 * They are in the journal until `dropBatch`. If a batch is under way already, nothing is taken out, and that one
 * is returned.
 *
 * If Redis refuses a write, as with a full memory, nothing has changed. Elements of the insertion order stay behind, as
 * those of cancelled messages do.
 */
const definePullOut = (name: string, add: string, into: Into = "list") =>
  defineScript({
    name,
    keys: ["timeouts", "businessKeys", "retries", "retrying", "journal", "stream"],
    args: ["own", "buckets"],
    each: ["wanted"],
    needs: [delayedWith, depart, locate, ...(into === "stream" ? [waitingFor] : [])],
    lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1 } end
for each row do
  ${add}
end
number, batch = depart()
return { number, batch, 0 }
`,
    reply: (raw): Batch => asRow(raw, BATCH),
  });

const add = (resolve: "locate" | "delayedWith", otherwise = "") => /* lua */ `
  local member, deadline = ${resolve}(wanted)
  if member then addMessage(member, string.format("%.17g", deadline)) ${otherwise} end`;

const addRetries = /* lua */ `else
    local names, dues = waitingFor(wanted)
    for i, name in ipairs(names) do addRetry(name, string.format("%.17g", dues[i])) end
  `;

/** By business keys. */
export const pullOutKeys = definePullOut("pull-out-keys", add("delayedWith"));

/**
 * By addresses, with ids of 8 or 16 bytes. The form "stream" looks among the retries, too, for a message that is
 * not delayed.
 */
export const pullOutIds = {
  list: definePullOut("pull-out-ids", add("locate")),
  stream: definePullOut("pull-out-ids-and-retries", add("locate", addRetries), "stream"),
};
