import { offerKeyed } from "../delayed/offer-keyed.ts";
import { keysOf, probing } from "../places/delayed.ts";
import { keysOfRetries, resolve } from "../places/key-index.ts";
import { leaving } from "../places/leaving.ts";
import { asArray, asNumber, asText, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";
import { intoPartition, intoQueue, PUT_ARGS, type PutReply, type Putting } from "./putting.ts";

/** What became of a row. */
export interface Exchange {
  /** Whether the message was there, and is cancelled. */
  readonly isCancelled: boolean;
  /** What became of the new message; undefined if there was nothing to cancel. */
  readonly put: PutReply | undefined;
  /** Why Redis refused the row. Then neither was done, unless the text says that a part may be. */
  readonly refusal: string | undefined;
}

/**
 * Cancels messages, and offers another one in place of each: both, or neither. Row by row, as if each were alone.
 *
 * A row names a message by its address or business key, as in `remove`, and has what `offer-keyed` takes; `newKey` is the key of
 * the new message. If a third message holds that, nothing is done, and the reply says so. The message that leaves frees its
 * own: so the new one may have it, and it counts as free since now.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 *
 * No rollback: whether the old message may leave is asked first, and it leaves last, so a refusal leaves it where it is. A key
 * that the new message is to have is taken out of the index before, and put back if the new one does not come: Redis has shown
 * that it permits both.
 */
const defineExchange = (name: string, { keys, within, lua }: Putting) =>
  defineScript({
    name,
    keys: ["businessKeys", "room", "turns", ...keys],
    args: ["elementsAre", ...PUT_ARGS],
    each: ["id", "key", "member", "delay", "deadline", "newKey", "maxWait"],
    needs: [keysOf, leaving, probing, resolve],
    rarely: [keysOfRetries],
    within,
    lua: /* lua */ `
${lua}
local function exchange(id, key, newKey, ...)
  local place, name, _, all = resolve(id, key)
  if not place then return { 0 } end
  local names = {}
  for _, one in ipairs(all or { { name = name } }) do names[#names + 1] = one.name end
  local own = key ~= "" and key or (all and rare().keysOfRetries(all) or keysOf(names))[1]
  mayLeave({ place }, true)
  if place == "waiting" then
    -- It is read once more when it leaves, behind the first write.
    redis.call("HMGET", room, "delayline: nothing")
    redis.call("EXISTS", turns, room)
  end
  local entry = own and own == newKey and businessKeys == toBusinessKeys and redis.call("HGET", businessKeys, own)
  if entry then
    redis.call("HSET", businessKeys, own, entry)
    redis.call("HDEL", businessKeys, own)
  end
  local offered = put(...)
  if offered.err or offered[2][2] ~= 0 then
    -- It is taken if the new message could not be taken back.
    if entry and not redis.call("HGET", businessKeys, own) then redis.call("HSET", businessKeys, own, entry) end
    return offered.err and { 0, offered.err } or { 0, offered }
  end
  leave(place, names, elementsAre)
  -- If it stays, an entry points to nothing.
  if own and not entry then redis.pcall("HDEL", businessKeys, own) end
  return { 1, offered }
end
local replies = {}
for each row do
  local isDone, reply = pcall(exchange, id, key, newKey, member, delay, deadline, newKey, "ignore", maxWait)
  if not isDone then reply = { 0, type(reply) == "table" and reply.err or "ERR " .. tostring(reply) } end
  replies[#replies + 1] = reply
end
return replies
`,
    reply: (raw) => asArray(raw).map(asExchange),
  });

function asExchange(raw: RawReply): Exchange {
  const [flag, offered] = asArray(raw);
  const isRefused = Buffer.isBuffer(offered);
  const isPut = !isRefused && offered !== undefined && offered !== null;
  return {
    isCancelled: asNumber(flag) === 1,
    put: isPut ? offerKeyed.reply(offered) : undefined,
    refusal: isRefused ? asText(offered) : undefined,
  };
}

/** Offers to an ordinary queue, or to the partition in which the script runs. */
export const exchange = defineExchange("exchange", intoQueue());

/** Offers to a partition of another queue. */
export const exchangeIntoPartition = defineExchange("exchange-into-partition", intoPartition());
