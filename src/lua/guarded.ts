import { replyOf } from "../failure.ts";
import { defineScript, type Script } from "./script.ts";

/**
 * Returns the form of a script that runs in one partition, number `ofPartition`: it first compares the fact that the
 * caller knows (`knownFact`) with the one in Redis.
 *
 * A caller with an older fact is refused with `PARTITIONS <fact>`, and nothing is changed: the messages that it looks
 * for may be in another partition. A caller with a newer fact stores it, so that later callers with the older one are
 * refused; but only if it follows from what the partition holds: the partition has nothing left to migrate, and its
 * messages belong where they are by the newer fact, or by that which it changes. If not, Redis went back to an earlier
 * state, and the caller is refused in the same way, with that older fact: see `went-back.ts`. The first fact is always
 * stored, and so are those that scatter. A partition holds no fact before it is used: the first call writes the first
 * one, and each change writes its own beside every partition that it concerns. Only the changes that include the
 * ordinary queue (-1) matter to it.
 *
 * The ordinary form of the script pays for none of this.
 */
export function guarded<Key extends string, Arg extends string, Reply, Column extends string>(
  script: Script<Key, Arg, Reply, Column>,
): Script<Key | "partitions", Arg | "knownFact" | "ofPartition", Reply, Column> {
  let form = forms.get(script);
  if (form === undefined) {
    const { name, keys, args, each, rowsAs, reply, source } = script;
    form = defineScript({
      name: `${name}-guarded`,
      keys: keys.includes("partitions" as Key) ? keys : [...keys, "partitions"],
      args: [...args, "knownFact", "ofPartition"],
      each,
      rowsAs,
      needs: source.needs,
      rarely: source.rarely,
      within: source.within,
      lua: `${GUARD}${source.body}`,
      reply,
    });
    forms.set(script, form);
  }
  return form as Script<Key | "partitions", Arg | "knownFact" | "ofPartition", Reply, Column>;
}

/**
 * The fact, or other bytes, for which Redis refused a guarded script; undefined for any other failure. It is a newer one
 * than the caller's, unless Redis went back.
 */
export function heldFact(error: unknown): string | undefined {
  if (replyOf(error) !== REFUSAL) return undefined;
  return (error as Error).message.slice(REFUSAL.length + 1);
}

/** A Lua pattern that matches a fact and captures its epoch. */
export const FACT = "^(%d+):%d+:%d+:%a+:%d+[:%a]*$";

/** The first word of the refusal because of a fact. */
export const REFUSAL = "PARTITIONS";

const forms = new WeakMap<object, object>();

const GUARD = /* lua */ `
do
  local held = redis.call("GET", partitions)
  if held ~= knownFact and held ~= knownFact .. ":done" then
    local parts = "^(%d+):(%d+):(%d+):(%a+):%d+([:%a]*)$"
    local known, to, from, state, how = knownFact:match(parts)
    local epoch, heldTo, heldFrom, heldState, heldHow = (held or ""):match(parts)
    known, epoch = tonumber(known), tonumber(epoch or -1)
    local layout = (state == "stable" or from == "0") and to or from
    local isOrdinary, isMoving = ofPartition == "-1", state ~= "stable"
    local isElsewhere = isOrdinary and heldFrom ~= "0" and heldHow ~= ":everywhere"
    local isWhole = heldState == "stable" or (heldHow or ""):find(":done$") or isElsewhere
    local isHome = isOrdinary or heldTo == layout or tonumber(heldTo or 0) <= tonumber(ofPartition)
    local isUnused = isMoving and (known == 2 or isOrdinary) or tonumber(ofPartition) >= tonumber(layout)
    local mayFollow = known == 1 or how ~= "" or epoch > 0 and isWhole and isHome or epoch < 0 and isUnused
    if epoch >= known or not mayFollow then
      return redis.error_reply("${REFUSAL} " .. (held or ""))
    end
    redis.call("SET", partitions, knownFact)
  end
end
`;
