import { replyOf } from "../failure.ts";
import { defineScript, type Script } from "./script.ts";

/**
 * Returns the form of a script that runs in one partition: it first compares the fact that the caller knows
 * (`knownFact`) with the one in Redis.
 *
 * A caller with an older fact is refused with `PARTITIONS <fact>`, and nothing is changed: the messages that it looks
 * for may be in another partition. A caller with a newer fact stores it, so that later callers with the older one are
 * refused. Bytes that are not a fact are overwritten. The ordinary form of the script pays for none of this.
 */
export function guarded<Key extends string, Arg extends string, Reply, Column extends string>(
  script: Script<Key, Arg, Reply, Column>,
): Script<Key | "partitions", Arg | "knownFact", Reply, Column> {
  let form = forms.get(script);
  if (form === undefined) {
    const { name, keys, args, each, rowsAs, reply, source } = script;
    form = defineScript({
      name: `${name}-guarded`,
      keys: keys.includes("partitions" as Key) ? keys : [...keys, "partitions"],
      args: [...args, "knownFact"],
      each,
      rowsAs,
      needs: source.needs,
      lua: `${GUARD}${source.body}`,
      reply,
    });
    forms.set(script, form);
  }
  return form as Script<Key | "partitions", Arg | "knownFact", Reply, Column>;
}

/** The newer fact for which Redis refused a guarded script; undefined for any other failure. */
export function newerFact(error: unknown): string | undefined {
  if (replyOf(error) !== REFUSAL) return undefined;
  return (error as Error).message.slice(REFUSAL.length + 1);
}

/** A Lua pattern that matches a fact and captures its epoch. */
export const FACT = "^(%d+):%d+:%d+:%a+:%d+$";

/** The first word of the refusal of an older fact. */
export const REFUSAL = "PARTITIONS";

const forms = new WeakMap<object, object>();

const GUARD = /* lua */ `
do
  local held = redis.call("GET", partitions)
  if held ~= knownFact then
    local function epochOf(fact) return tonumber(fact and fact:match("${FACT}") or -1) end
    if epochOf(held) > epochOf(knownFact) then return redis.error_reply("${REFUSAL} " .. held) end
    redis.call("SET", partitions, knownFact)
  end
end
`;
