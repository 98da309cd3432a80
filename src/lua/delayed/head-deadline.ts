import { asDeadline, LAST_DEADLINE } from "../fragments/message/replied.ts";
import { defineScript } from "../script.ts";

/** Returns the earliest deadline (epoch ms); Infinity if it never comes, undefined if nothing is delayed. */
export const headDeadline = defineScript({
  name: "head-deadline",
  keys: ["timeouts"],
  args: [],
  lua: /* lua */ `return redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")[2] or false`,
  reply: (raw) => {
    if (raw === null) return undefined;
    const deadline = asDeadline(raw);
    return deadline > LAST_DEADLINE ? Infinity : deadline;
  },
});
