import { clock } from "../fragments/clock.ts";
import { FACT } from "../guarded.ts";
import { asBuffer } from "../reply.ts";
import { defineScript } from "../script.ts";

/*
 * The fact of how many partitions a queue has: a text that begins with its epoch, a whole number that grows by one with
 * each change, and a colon. Whoever changes it publishes it on the channel `notice`; that is a hint, which
 * may be refused.
 */

/** The fact that is there, if there is one. */
export const readFact = defineScript({
  name: "read-fact",
  keys: ["partitions"],
  args: [],
  lua: /* lua */ `return redis.call("GET", partitions)`,
  reply: (raw) => (raw === null ? undefined : asBuffer(raw).toString()),
});

/** Writes `fact` if `condition` holds for the one that is there, `found`; returns the one that is there then. */
const defineChange = <const Arg extends string>(
  name: string,
  args: readonly Arg[],
  condition: string,
) =>
  defineScript({
    name,
    keys: ["partitions"],
    args: ["fact", "notice", ...args],
    lua: /* lua */ `
local found = redis.call("GET", partitions)
if not (${condition}) then return found or "" end
redis.call("SET", partitions, fact)
redis.pcall("PUBLISH", notice, fact)
return fact
`,
    reply: (raw) => asBuffer(raw).toString(),
  });

/** Writes the fact if there is none; returns the one that is there then. */
export const createFact = defineChange("create-fact", [], "not found");

/** Writes the fact if its epoch is later than that of the one which is there; returns the one that is there then. */
export const advanceFact = defineChange(
  "advance-fact",
  [],
  `tonumber(fact:match("${FACT}")) > (tonumber((found or ""):match("${FACT}")) or -1)`,
);

/**
 * Writes the fact if the one that is there is `expected`; returns the one that is there then, empty if there is
 * none.
 */
export const changeFact = defineChange("change-fact", ["expected"], "found == expected");

/**
 * As {@link changeFact}, for the fact with which a change of the number begins; it writes `holding` instead of `fact` if a
 * process consumes the queue exclusively: one was seen within `timeout` milliseconds. Whoever joins later learns the
 * fact as it joins; so nobody consumes exclusively while that is not held to.
 */
export const beginChange = defineScript({
  name: "begin-change",
  keys: ["partitions", "members"],
  args: ["fact", "holding", "notice", "expected", "timeout"],
  needs: [clock],
  lua: /* lua */ `
local found = redis.call("GET", partitions)
if found ~= expected then return found or "" end
local now = math.floor(clock() / 1000)
for _, member in ipairs(redis.call("ZRANGEBYSCORE", members, now - timeout, now + timeout)) do
  if member:match("^%a*[xr]%a*:") then fact = holding end
end
redis.call("SET", partitions, fact)
redis.pcall("PUBLISH", notice, fact)
return fact
`,
  reply: (raw) => asBuffer(raw).toString(),
});
