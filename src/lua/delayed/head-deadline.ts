import { asDeadline, LAST_DEADLINE } from "../fragments/message/replied.ts";
import { defineScript } from "../script.ts";

/** The earliest deadline in epoch milliseconds, Infinity if it is beyond all deadlines, or undefined. */
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
