import { clock } from "../fragments/clock.ts";
import { FACT } from "../guarded.ts";
import { asBuffer, asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/*
 * The fact says how many partitions a queue has. It is a text that begins with its epoch, a whole number that grows by
 * one with each change, and a colon; by `:done` while the partition beside it has nothing left to migrate. A script that changes it also publishes it on the channel `notice`. Redis may
 * refuse that: a notice is only a hint.
 */

/** Returns the stored fact; undefined if there is none. */
export const readFact = defineScript({
  name: "read-fact",
  keys: ["partitions"],
  args: [],
  lua: /* lua */ `return redis.call("GET", partitions)`,
  reply: (raw) => (raw === null ? undefined : asBuffer(raw).toString()),
});

/** Writes `fact` if `condition` is true for the stored fact, `found`. Returns the fact that is stored afterwards. */
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

/** Writes the fact if there is none. Returns the fact that is stored afterwards. */
export const createFact = defineChange("create-fact", [], "not found");

/** Writes the fact if its epoch is later than the stored one's. Returns the fact that is stored afterwards. */
export const advanceFact = defineChange(
  "advance-fact",
  [],
  `tonumber(fact:match("${FACT}")) > (tonumber((found or ""):match("${FACT}")) or -1)`,
);

/**
 * Writes the fact if the stored one is `expected`. Returns the fact that is stored afterwards, empty if there is none.
 */
export const changeFact = defineChange("change-fact", ["expected"], "found == expected");

/** Notes beside one partition that it has nothing left to migrate. Returns false if it does not hold the fact. */
export const noteDone = defineScript({
  name: "note-done",
  keys: ["partitions"],
  args: ["fact", "done"],
  lua: /* lua */ `
local found = redis.call("GET", partitions)
if found == done then return 1 end
if found ~= fact then return 0 end
redis.call("SET", partitions, done)
return 1
`,
  reply: asFlag,
});

/**
 * Does what {@link changeFact} does, for the fact that begins a change of the number. An empty `expected` stands for
 * none. Writes `holding` instead of
 * `fact` if the order of each key has to be kept:
 *
 * - if partition 0 was ever held for a group, whoever runs now;
 * - if a process that consumes exclusively, or is about to, was seen within `timeout` milliseconds;
 * - if the queue is reliable and no process was seen that takes from it. Then no process has to wait for the change,
 *   and the first exclusive consumers may be about to start.
 *
 * A process that joins later learns the fact before it consumes anything.
 *
 * Notes in the journal when the change began (epoch ms), for people. Redis may refuse that.
 */
export const beginChange = defineScript({
  name: "begin-change",
  keys: ["partitions", "members", "holder", "stream", "journal"],
  args: ["fact", "holding", "notice", "expected", "timeout"],
  needs: [clock],
  lua: /* lua */ `
local found = redis.call("GET", partitions) or ""
if found ~= expected then return found end
local isExclusive, isTaken = redis.call("HEXISTS", holder, "group") == 1, false
local now = math.floor(clock() / 1000)
for _, member in ipairs(redis.call("ZRANGEBYSCORE", members, now - timeout, now + timeout)) do
  isExclusive = isExclusive or member:match("^%a*[xr]%a*:")
  isTaken = isTaken or member:match(":[^:]+$")
end
if isExclusive or not isTaken and redis.call("EXISTS", stream) == 1 then fact = holding end
redis.call("SET", partitions, fact)
redis.pcall("HSET", journal, "began", now)
redis.pcall("PUBLISH", notice, fact)
return fact
`,
  reply: (raw) => asBuffer(raw).toString(),
});
