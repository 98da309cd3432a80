import { offerKeyed } from "../delayed/offer-keyed.ts";
import { ack, ackAndNote, ackOnce } from "../reliable/deliveries.ts";
import { inFlightFor } from "../places/in-flight.ts";
import { mayFinish } from "../places/settle.ts";
import { asRow } from "../reply.ts";
import { defineScript, pushRows, type Row, type Script, type ScriptArg } from "../script.ts";
import { intoPartition, intoQueue, PUT_ARGS, type PutReply, type Putting } from "./putting.ts";

/**
 * The form of a script that acknowledges entries in which it first offers messages: for each entry both, or neither.
 *
 * It takes what the script takes, and a row for each message: `of`, the entry that it follows, and what `offer-keyed` takes. The
 * messages of entries that are in flight for the consumer are offered together, all or none; a key that another message holds
 * is left to that one. For other entries nothing is offered, and they are not acknowledged. Replies what the script replies,
 * and what became of the messages that were offered, in the order of the rows.
 *
 * Sent a second time, it does nothing, since the entries are no longer in flight.
 *
 * No rollback: the messages come first, and behind \`mayFinish\` Redis refuses no acknowledgement. If Redis refuses them, nothing
 * is acknowledged.
 */
function andOffer<Reply>(
  acknowledging: Acknowledging<Reply>,
  { keys, within, lua }: Putting,
  name = `${acknowledging.name}-and-offer`,
) {
  const own = [...acknowledging.args, ...rowArgsOf(acknowledging)];
  return defineScript({
    name,
    keys: [...acknowledging.keys, ...keys],
    args: [...own, ...PUT_ARGS],
    each: ["of", "member", "delay", "deadline", "newKey", "rule", "maxWait"],
    needs: [inFlightFor, mayFinish],
    within: { ...within, settle: acknowledging },
    lua: /* lua */ `
${lua}
local ids, offers = {}, {}
for each row do
  if not offers[of] then offers[of], ids[#ids + 1] = {}, of end
  table.insert(offers[of], { member, delay, deadline, newKey, rule, maxWait })
end
local mine, all, offered = inFlightFor(group, consumer, ids, tonumber(heldCount)), {}, false
for _, id in ipairs(ids) do
  for _, one in ipairs(mine[id] and offers[id] or {}) do all[#all + 1] = one end
end
if #all > 0 then
  mayFinish(group)
  if #all == 1 then
    offered = put(unpack(all[1]))
  else
    for i, one in ipairs(all) do
      for k, value in ipairs(one) do one[k] = struct.pack(">I4c0", #value, value) end
      all[i] = table.concat(one)
    end
    offered = put(table.concat(all))
  end
  if offered.err then return offered end
end
return { settle({ ${acknowledging.keys.join(", ")} }, { ${own.join(", ")} }), offered }
`,
    reply: (raw) =>
      asRow(raw, {
        settled: (settled) => acknowledging.reply(settled ?? null),
        put: (put): PutReply | undefined => (put ? offerKeyed.reply(put) : undefined),
      }),
  });
}

/** A script that acknowledges. */
type Acknowledging<Reply> = Script<"stream", string, Reply, string>;

/** The arguments that are the rows of a script that acknowledges. */
function rowArgsOf({ rowsAs, each }: Acknowledging<unknown>): readonly string[] {
  return rowsAs === "columns" ? each : ["rows"];
}

/** The rows of a script that acknowledges, as arguments of its forms here. */
export function rowsAsArgs(
  script: Acknowledging<unknown>,
  rows: readonly Row<string>[],
): Readonly<Record<string, ScriptArg>> {
  const words: ScriptArg[] = [];
  pushRows(words as string[], script, rows, (value) => value as string);
  return Object.fromEntries(rowArgsOf(script).map((name, i) => [name, words[i] as ScriptArg]));
}

/** The forms of the scripts that acknowledge: into an ordinary queue or the partition of the message, or another's partition. */
export const ackAndOffer = {
  ack: andOffer(ack, intoQueue()),
  ackAndNote: andOffer(ackAndNote, intoQueue()),
  ackOnce: andOffer(ackOnce, intoQueue()),
};
export const ackAndOfferIntoPartition = {
  ack: andOffer(ack, intoPartition(), "ack-and-offer-into-partition"),
  ackAndNote: andOffer(ackAndNote, intoPartition(), "ack-and-note-and-offer-into-partition"),
  ackOnce: andOffer(ackOnce, intoPartition(), "ack-once-and-offer-into-partition"),
};
