import type { Into } from "../family.ts";
import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { depart } from "../fragments/partitions/depart.ts";
import { BATCH, type Batch } from "../fragments/partitions/journal.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { waitingFor } from "../fragments/failed/waiting-for.ts";
import { asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Takes the `wanted` messages out of this partition, so that they can be put into the partitions that they belong to.
 * Messages that belong to this one (`own`; -1 for the ordinary queue) stay. `buckets` holds the partition of each of
 * the 1,024 buckets, one byte each.
 *
 * The messages are in the journal until `dropBatch`. If a batch is open already, the script takes nothing out and
 * returns that batch.
 *
 * If Redis refuses a write, as when its memory is full, nothing has changed. The messages' elements in the insertion
 * order stay behind, as they do when a message is cancelled.
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

/** Takes messages out by business key. */
export const pullOutKeys = definePullOut("pull-out-keys", add("delayedWith"));

/**
 * Takes messages out by address, with ids of 8 or 16 bytes. The form `stream` also looks among the retries for a
 * message that is not delayed.
 */
export const pullOutIds = {
  list: definePullOut("pull-out-ids", add("locate")),
  stream: definePullOut("pull-out-ids-and-retries", add("locate", addRetries), "stream"),
};

/**
 * Takes messages out by their members, which are the same in each copy of an offer: for an offer that is sent again,
 * whose deadline the caller does not know. O(log N).
 */
export const pullOutMembers = definePullOut(
  "pull-out-members",
  /* lua */ `
  local deadline = redis.call("ZSCORE", timeouts, wanted)
  if deadline then addMessage(wanted, deadline) end`,
);
