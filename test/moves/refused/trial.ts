import type { ChainableCommander, Redis } from "ioredis";
import { IN_PART } from "../../../src/failure.ts";
import { asTarget } from "../../../src/lua/exchanges/putting.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import { run, type Script } from "../../../src/lua/script.ts";
import { scriptAt } from "../../helpers/script-at.ts";
import { newStreamsAt } from "../../helpers/streams.ts";
import { isSame } from "./rules.ts";
import { NOW, type Scenario } from "./scenarios.ts";
import { difference, newReader, type State } from "./state.ts";

/** Something that Redis refuses: a command, every command on a key, or writes because memory is full. */
export interface Trouble {
  readonly kind: "command" | "type" | "memory";
  readonly what: string;
}

/** Runs the script of a scenario again and again from the same state, in different troubles. */
export interface Trial {
  /** The keys that the script is given. */
  readonly keys: readonly string[];
  /** Runs the script while Redis refuses these; returns what is wrong with the outcome. */
  readonly judge: (troubles: readonly Trouble[]) => Promise<string | undefined>;
}

/** What a script replied, or Redis's error. */
type Outcome = { readonly reply: unknown } | { readonly error: string };

/** Any type of key but that of these holds a text in its place. */
const TEXTS: ReadonlySet<string> = new Set(["mover", "paused", "partitions"]);

/** Allows the limited user every command but these. */
const allow = (pipeline: ChainableCommander, denied: readonly string[] = []) =>
  pipeline.call("ACL", "SETUSER", "limited", "+@all", ...denied.map((name) => `-${name}`));

/** Prepares a trial on a Redis of its own. `limited` is a client of a user of that name. */
export async function newTrial(
  url: string,
  { admin, limited }: { readonly admin: Redis; readonly limited: Redis },
  scenario: Scenario,
): Promise<Trial> {
  await admin.flushall();
  const queue = await newStreamsAt(url);
  const call = await scenario.seed(queue);
  queue.redis.disconnect();
  const script = scriptAt(NOW, scenario.script);
  // What an exchange offers goes to the same queue.
  const keysOf: Readonly<Record<string, string>> = { ...queue.keys, ...asTarget(queue.keys) };
  const names = new Map(
    Object.entries(queue.keys).map(([name, key]): [string, string] => [key, name]),
  );
  const { rules = [], partly } = scenario;

  const dumped: [key: string, ttl: number, bytes: Buffer][] = [];
  for (const key of await admin.keys("*")) {
    const bytes = await admin.dumpBuffer(key);
    dumped.push([key, Math.max(0, await admin.pttl(key)), bytes]);
  }

  /** Puts the seed there, but other types in place of the keys in `foreign`. */
  const restore = (pipeline: ChainableCommander, foreign: readonly string[] = []) => {
    pipeline.flushall();
    for (const [key, ttl, bytes] of dumped) pipeline.restore(key, ttl, bytes, "REPLACE");
    for (const key of foreign) {
      pipeline.del(key);
      if (TEXTS.has(names.get(key) ?? "")) pipeline.rpush(key, "foreign");
      else pipeline.set(key, "foreign");
    }
    return pipeline;
  };
  const execute = async (): Promise<Outcome> => {
    try {
      const args = { ...call.args, elementsAre: scenario.elements ?? "addresses" };
      return { reply: await runAny(limited, script, keysOf, { ...call, args }) };
    } catch (error) {
      if (error instanceof Error && error.name === "ReplyError") return { error: error.message };
      throw error;
    }
  };

  await allow(restore(admin.pipeline())).exec();
  const read = await newReader(admin, names);
  const seeded = await read();
  const undisturbed = await execute();
  if ("error" in undisturbed) throw new Error(`${scenario.script.name}: ${undisturbed.error}`);
  const done = await read();
  if (isSame(seeded, done) !== (scenario.changesNothing ?? false))
    throw new Error(`${scenario.script.name}: not what its scenario says`);

  /** Runs the script a second time, once Redis refuses nothing any more. */
  const finishLater = async (what: string, change: string, foreign: readonly string[]) => {
    const healing = allow(admin.pipeline());
    for (const key of foreign) healing.del(key);
    for (const [key, ttl, bytes] of dumped)
      if (foreign.includes(key)) healing.restore(key, ttl, bytes);
    await healing.exec();
    const second = await execute();
    if ("error" in second) return `${what}, and again: ${second.error}`;
    const final = await read();
    if (!isSame(final, done, rules)) return `${what}, and in the end ${difference(done, final)}`;
    return partly === undefined ? `${what}, but changed ${change}` : undefined;
  };

  const judge = async (troubles: readonly Trouble[]): Promise<string | undefined> => {
    const those = (kind: Trouble["kind"]) =>
      troubles.filter((one) => one.kind === kind).map(({ what }) => what);
    const foreign = those("type");
    await allow(restore(admin.pipeline(), foreign), those("command")).exec();
    const before = foreign.length > 0 ? await read() : seeded;
    const isFull = those("memory").length > 0;
    if (isFull) await admin.config("SET", "maxmemory", "1");
    const outcome = await execute();
    if (isFull) await admin.config("SET", "maxmemory", "0");
    const after = await read();

    const isUnchanged = isSame(before, after, rules);
    const change = difference(before, after);
    if ("error" in outcome) {
      if (isUnchanged) return undefined;
      if (scenario.isTold && !outcome.error.includes(IN_PART)) return "the error does not tell";
      return await finishLater(`refused (${outcome.error.slice(0, 40)})`, change, foreign);
    }
    // The reply may tell that nothing was done, or a part.
    const isOther = asTold(outcome.reply) !== asTold(undisturbed.reply);
    if (isOther && isUnchanged) return undefined;
    if (isOther && partly !== undefined) return await finishLater("told", change, foreign);
    if (foreign.length > 0) return await compareWithMissing(after, foreign);
    if (isOther) return `replies ${asTold(outcome.reply)}, not ${asTold(undisturbed.reply)}`;
    return isSame(after, done, rules) ? undefined : `not refused, but ${difference(done, after)}`;
  };

  /** A key of another type that the script does not mind counts as there, or as missing. */
  const compareWithMissing = async (after: State, foreign: readonly string[]) => {
    const preparing = allow(restore(admin.pipeline()));
    for (const key of foreign) preparing.del(key);
    await preparing.exec();
    const missing = await execute();
    if ("error" in missing) return "refused only if the key is missing";
    const others = (state: State) =>
      Object.fromEntries(
        Object.entries(state).filter(([name]) => !foreign.some((key) => names.get(key) === name)),
      );
    const [found, expected] = [others(after), others(await read())];
    if (isSame(found, others(done), rules)) return undefined;
    return isSame(found, expected, rules)
      ? undefined
      : `not refused, but ${difference(expected, found)}`;
  };

  const keys =
    script.rowsAs === "keys"
      ? (call.rows ?? []).flatMap((row) => Object.values(row).map(String))
      : [...new Set(script.keys.map((name) => keysOf[name] ?? ""))];
  return { keys, judge };
}

async function runAny(
  redis: Redis,
  script: Script<string, string, unknown, string>,
  keys: Readonly<Record<string, string>>,
  { args, rows = [] }: Awaited<ReturnType<Scenario["seed"]>>,
): Promise<unknown> {
  return await run(redis as RedisClient, script, keys, args, rows);
}

/** What a reply says, without the ids of new entries, idle times, what a sweep has yet to tidy, and a refused note. */
function asTold(reply: unknown): string {
  return JSON.stringify(reply, toldOf) ?? "nothing";
}

function toldOf(name: string, value: unknown): unknown {
  return NOT_TOLD.has(name) ? undefined : value;
}

const NOT_TOLD: ReadonlySet<string> = new Set(["untidy", "entryId", "idle", "refusal"]);
