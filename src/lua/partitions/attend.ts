import { clock } from "../fragments/clock.ts";
import { asNumber, asRow, asRows, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Who has a queue open, and how many partitions it has. */
export interface Attendance {
  /** The fact that is there, if there is one; see `fact.ts`. */
  readonly fact: string | undefined;
  /** The processes that were seen lately, in no order that means anything, and how many milliseconds ago. */
  readonly members: readonly { readonly member: string; readonly idle: number }[];
}

/**
 * Notes that the process `member` has the queue open, or if `gone` is 1 that it has not any more; returns
 * who has.
 *
 * Whoever was not seen for `timeout` milliseconds is dropped, and so is who was seen that far in the future: the
 * clock has been set back since. Removals come first: behind one Redis takes every write, even if memory is full.
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
