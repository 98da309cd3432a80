import type { RedisClient } from "../redis/client.ts";
import { networkTime, serverStandIn } from "../time/runtime.ts";
import { asArray, asFlag, type RawReply } from "./reply.ts";
import { argumentOf, digestOf, run, type Arguments, type Script } from "./script.ts";

type AnyScript = Script<string, string, unknown, never>;

/** A run of a script that waits for others. */
interface Run {
  readonly keys: Readonly<Record<string, string>>;
  readonly args: Arguments<string>;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs a script for one queue, and at once for the other queues of the process that come within a moment: as one
 * command. For looks that are not urgent, and may be repeated: if one of them fails, or all together are refused, each is
 * run alone, and says what is wrong. At most `most` go in one command: up to a millisecond of Redis's time.
 *
 * A Cluster allows no script with keys of several nodes, so there each is run alone.
 */
export function runTogether<Key extends string, Arg extends string, Reply>(
  client: RedisClient,
  script: Script<Key, Arg, Reply, never>,
  keys: Readonly<Record<Key, string>>,
  args: Arguments<Arg>,
  most = MOST,
): Promise<Reply> {
  if (client.isCluster || serverStandIn() !== undefined) return run(client, script, keys, args);
  let rounds = known.get(client);
  if (rounds === undefined) known.set(client, (rounds = new Rounds(client)));
  return rounds.add(script, keys, args, most) as Promise<Reply>;
}

const known = new WeakMap<RedisClient, Rounds>();

/** The runs that wait for others, on one connection. */
class Rounds {
  readonly #client: RedisClient;
  readonly #batches = new Map<AnyScript, { runs: Run[]; timer: NodeJS.Timeout }>();

  constructor(client: RedisClient) {
    this.#client = client;
  }

  add(script: AnyScript, keys: Run["keys"], args: Run["args"], most: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let batch = this.#batches.get(script);
      if (batch === undefined) {
        batch = { runs: [], timer: networkTime.setTimeout(() => this.#send(script), MOMENT) };
        this.#batches.set(script, batch);
      }
      batch.runs.push({ keys, args, resolve, reject });
      if (batch.runs.length >= most) this.#send(script);
    });
  }

  #send(script: AnyScript): void {
    const { runs, timer } = this.#batches.get(script) as { runs: Run[]; timer: NodeJS.Timeout };
    networkTime.clearTimeout(timer);
    this.#batches.delete(script);
    if (runs.length === 1) this.#runAlone(script, runs);
    else void this.#runAll(script, runs);
  }

  async #runAll(script: AnyScript, runs: readonly Run[]): Promise<void> {
    let replies: readonly RawReply[] = [];
    try {
      const form = formTogether(script, runs.length);
      const keys = runs.flatMap((one) => script.keys.map((key) => one.keys[key] as string));
      const args = runs.flatMap((one) => script.args.map((arg) => argumentOf(one.args, arg)));
      replies = await run(this.#client, form, byPosition(keys), byPosition(args));
    } catch {
      // Alone, each says why: one of the queues may be forbidden.
    }
    const failed: Run[] = [];
    runs.forEach((one, i) => {
      const [hasFailed = 1, reply = null] = asArray(replies[i] ?? []);
      if (asFlag(hasFailed)) failed.push(one);
      else settle(one, () => script.reply(reply));
    });
    this.#runAlone(script, failed);
  }

  #runAlone(script: AnyScript, runs: readonly Run[]): void {
    for (const { keys, args, resolve, reject } of runs) {
      run(this.#client, script, keys, args).then(resolve, reject);
    }
  }
}

/** The values by their positions: "0", "1" and so on. */
function byPosition<Value>(values: readonly Value[]): Readonly<Record<string, Value>> {
  return values as unknown as Readonly<Record<string, Value>>;
}

function settle({ resolve, reject }: Run, read: () => unknown): void {
  try {
    resolve(read());
  } catch (error) {
    reject(error);
  }
}

/** The form of a script that runs it `count` times. Its text is the same for each count. */
export function formTogether(
  script: AnyScript,
  count: number,
): Script<string, string, RawReply[], never> {
  let text = texts.get(script);
  if (text === undefined) {
    const lua = textOf(script);
    texts.set(script, (text = { lua, sha: digestOf(lua) }));
  }
  const times = ({ length }: readonly string[]) =>
    Array.from({ length: count * length }, (_, position) => String(position));
  return {
    ...script,
    ...text,
    name: `${script.name}-together`,
    keys: times(script.keys),
    args: times(script.args),
    reply: asArray,
  };
}

const texts = new WeakMap<AnyScript, { readonly lua: string; readonly sha: string }>();

/** Each reply is 0 and the reply of the run, or 1 if it has failed. */
function textOf({ name, keys, args, lua }: AnyScript): string {
  return `-- delayline: ${name}-together
local function run(KEYS, ARGV)
${lua}
end
local replies = {}
for i = 0, #KEYS / ${keys.length} - 1 do
  local keys, args = {}, {}
  for k = 1, ${keys.length} do keys[k] = KEYS[i * ${keys.length} + k] end
  for k = 1, ${args.length} do args[k] = ARGV[i * ${args.length} + k] end
  local isDone, reply = pcall(run, keys, args)
  local hasFailed = not isDone or type(reply) == "table" and reply.err
  replies[i + 1] = hasFailed and { 1 } or { 0, reply }
end
return replies`;
}

/** Milliseconds for which a run waits for others. */
const MOMENT = 10;

/** Runs per command, of scripts that take some 20 us each. */
const MOST = 50;
