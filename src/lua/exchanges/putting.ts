import { offerKeyed } from "../delayed/offer-keyed.ts";
import { guarded, REFUSAL } from "../guarded.ts";
import type { Within } from "../script.ts";

/** What offers reply. */
export type PutReply = ReturnType<typeof offerKeyed.reply>;

/** The name, in a script, of a key of the queue that messages go to. */
type TargetKey<Name extends string> = `to${Capitalize<Name>}`;

/** The keys of a queue, by the names that they have in a script that puts messages there. */
export function asTarget<Name extends string>(
  keys: Readonly<Record<Name, string>>,
): Readonly<Record<TargetKey<Name>, string>> {
  const named = Object.entries(keys).map(([name, key]) => [targetKey(name), key]);
  return Object.fromEntries(named) as Readonly<Record<TargetKey<Name>, string>>;
}

function targetKey<Name extends string>(name: Name): TargetKey<Name> {
  return `to${name.charAt(0).toUpperCase()}${name.slice(1)}` as TargetKey<Name>;
}

/** The first word of the refusal if the target holds another fact than the caller knows (`toFact`); see {@link guarded}. */
export const TARGET_REFUSAL = "TARGET";

/** What a script declares and calls that puts messages into a queue, which may be another one than the script's. */
export interface Putting {
  /** Those of the target. Its type does not say them, as it does not say those of fragments: {@link asTarget} does. */
  readonly keys: readonly never[];
  readonly within: Within;
  /**
   * `put(...)`: offers messages, by the rows of `offer-keyed`: the values of the only one, or all packed. Returns its reply, or
   * a table with Redis's error: then nothing was put, or the error says that it may have been. Raises nothing.
   */
  readonly lua: string;
}

/** The arguments of a script that puts messages into a queue. The last two are for a partition. */
export const PUT_ARGS = ["toChannel", "toElements", "toFact", "toPartition"] as const;

/** A form of `offer-keyed`. It has more keys than its type says: those of its fragments. */
type PutBy = Within[string] & { readonly keys: readonly "timeouts"[] };

function putting(offer: PutBy, more: string): Putting {
  const keys = offer.keys.map(targetKey);
  return {
    keys: keys as readonly string[] as readonly never[],
    within: { offer },
    lua: /* lua */ `
local function put(...)
  local isDone, reply = pcall(offer, { ${keys.join(", ")} }, { toChannel, toElements${more}, ... })
  -- Redis 6.2 raises a string.
  if not isDone and type(reply) ~= "table" then reply = { err = "ERR " .. tostring(reply) } end
  if reply.err then return { err = (reply.err:gsub("^${REFUSAL} ", "${TARGET_REFUSAL} ")) } end
  return reply
end
`,
  };
}

/** Into an ordinary queue, or into the partition in which the script runs. */
export const intoQueue = (): Putting => putting(offerKeyed as PutBy, "");

/** Into a partition of another queue. */
export const intoPartition = (): Putting =>
  putting(guarded(offerKeyed) as PutBy, ", toFact, toPartition");
