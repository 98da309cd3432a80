import { clock } from "../fragments/clock.ts";
import { asNumber, asRow, asRows, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The processes that have a queue open, and the fact. */
export interface Attendance {
  /** The stored fact, if there is one; see `fact.ts`. */
  readonly fact: string | undefined;
  /** The processes that were seen lately, in no particular order; `idle` is how many milliseconds ago. */
  readonly members: readonly { readonly member: string; readonly idle: number }[];
}

/**
 * Notes that the process `member` has the queue open or, if `gone` is 1, that it no longer has. Returns all processes
 * that have the queue open.
 *
 * Drops members that were not seen for `timeout` milliseconds, and those seen that far in the future: the clock has
 * been set back since. The removals come first: after a removal Redis accepts every write of the script, even if its
 * memory is full.
 */
export const attend = defineScript({
  name: "attend",
  keys: ["members", "partitions"],
  args: ["member", "timeout", "gone"],
  needs: [clock],
  lua: /* lua */ `
local fact = redis.call("GET", partitions)
local now = math.floor(clock() / 1000)
redis.call("ZREM", members, "", unpack(redis.call("ZRANGEBYSCORE", members, "-inf", now - timeout, "LIMIT", 0, 1000)))
redis.call("ZREM", members, "", unpack(redis.call("ZRANGEBYSCORE", members, now + timeout, "inf", "LIMIT", 0, 1000)))
if gone == "1" then redis.call("ZREM", members, member) else redis.call("ZADD", members, now, member) end
redis.call("EXPIRE", members, math.ceil(timeout / 100))
return { fact, redis.call("ZRANGE", members, 0, -1, "WITHSCORES"), now }
`,
  reply: (raw: RawReply): Attendance => {
    const { fact, members, now } = asRow(raw, {
      fact: orNothing(asText),
      members: (rows) => asRows(rows, { member: asText, seenAt: asNumber }),
      now: asNumber,
    });
    return {
      fact,
      members: members.map(({ member, seenAt }) => ({ member, idle: now - seenAt })),
    };
  },
});
