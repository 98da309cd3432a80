import { replyOf } from "../failure.ts";
import { defineScript, type Script } from "./script.ts";

/**
 * The form of a script that one partition of a queue runs: it first compares what the caller knows about the
 * partitions (`knownFact`) with what Redis knows.
 *
 * A caller that knows less is refused with `PARTITIONS <fact>`, and nothing has been done: the messages that it means
 * may be elsewhere by now. One that knows more writes it down, so that nobody who knows less comes behind it. What is
 * no fact is written over. The ordinary form has none of this and pays for none of it.
 */
export function guarded<Key extends string, Arg extends string, Reply, Column extends string>(
  script: Script<Key, Arg, Reply, Column>,
): Script<Key | "partitions", Arg | "knownFact", Reply, Column> {
  let form = forms.get(script);
  if (form === undefined) {
    const { name, keys, args, each, reply, source } = script;
    form = defineScript({
      name: `${name}-guarded`,
      keys: [...keys, "partitions"],
      args: [...args, "knownFact"],
      each,
      needs: source.needs,
      lua: `${GUARD}${source.body}`,
      reply,
    });
    forms.set(script, form);
  }
  return form as Script<Key | "partitions", Arg | "knownFact", Reply, Column>;
}

/** What Redis knew when it refused a guarded script for that; undefined for any other failure. */
export function newerFact(error: unknown): string | undefined {
  if (replyOf(error) !== REFUSAL) return undefined;
  return (error as Error).message.slice(REFUSAL.length + 1);
}

/** The pattern of Lua of a fact; it catches the epoch. */
export const FACT = "^(%d+):%d+:%d+:%a+:%d+$";

/** The first word of that refusal. */
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
