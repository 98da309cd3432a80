import { createHash } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { replyOf } from "../failure.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import { inOrder, type Fragment } from "./fragment.ts";
import type { RawReply } from "./reply.ts";
import { performance } from "../time/network.ts";
import { serverStandIn } from "../time/runtime.ts";

/** An argument of a script. */
export type ScriptArg = string | number | Buffer;

/** One row of repeated arguments: a value for each column. */
export type Row<Column extends string> = Readonly<Record<Column, ScriptArg>>;

/** How rows are sent: each value as an argument or as a key, or all values of a column as a single argument. */
type RowsAs = "args" | "keys" | "columns";

/** One atomic move in Redis: a Lua script with named keys and arguments and a typed reply. */
export interface Script<Key extends string, Arg extends string, Reply, Column extends string> {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  /** The columns of the repeated arguments. */
  readonly each: readonly Column[];
  readonly rowsAs: RowsAs;
  readonly reply: (raw: RawReply) => Reply;
  /** The body as it was declared, and the fragments that it needs. */
  readonly source: { readonly body: string; readonly needs: readonly Fragment[] };
}

/**
 * Declares a script.
 *
 * The body reads its keys and arguments by the names given here: `local timeouts = KEYS[1]` and so on are written in
 * front of it, followed by the functions of the fragments that it `needs`. So the order of the keys and arguments
 * exists once.
 *
 * `each` names the columns of repeated arguments: the caller passes rows, for example one for each message. The body
 * loops over them with `for each row do ... end`, where every column is a local variable. `rowsAs` "keys": their values
 * are keys, which follow the named ones, and `row` is a position in KEYS. Defaults to "args".
 *
 * "columns": there is no loop. A column is a local variable that holds all its values, as a list in JSON. One argument
 * costs Node a tenth of one for each value, and `cjson.decode` makes the list in a fifth of the time that a loop takes.
 *
 * @throws {TypeError} if a fragment reads a key that the script does not declare.
 */
export function defineScript<
  const Key extends string,
  const Arg extends string,
  Reply,
  const Column extends string = never,
>(
  definition: Pick<Script<Key, Arg, Reply, Column>, "name" | "lua" | "keys" | "args" | "reply"> & {
    readonly each?: readonly Column[];
    readonly rowsAs?: RowsAs;
    readonly needs?: readonly Fragment[];
  },
): Script<Key, Arg, Reply, Column> {
  const { name, keys, args, each = [], rowsAs = "args", reply, needs = [] } = definition;
  const fragments = inOrder(needs);
  for (const key of fragments.flatMap((fragment) => fragment.keys)) {
    if ((keys as readonly string[]).includes(key)) continue;
    throw new TypeError(`script "${name}" must declare the key "${key}", which a fragment reads`);
  }
  const lua = [
    `-- delayline: ${name}`,
    ...keys.map((key, i) => `local ${key} = KEYS[${i + 1}]`),
    ...[...args, ...(rowsAs === "columns" ? each : [])].map(
      (arg, i) => `local ${arg} = ARGV[${i + 1}]`,
    ),
    ...fragments.map((fragment) => fragment.lua),
    definition.lua.replaceAll(
      "for each row do",
      rowsAs === "keys"
        ? eachRow("KEYS", keys.length + 1, each)
        : eachRow("ARGV", args.length + 1, each),
    ),
  ].join("\n");
  const source = { body: definition.lua, needs };
  return { name, lua, keys, args, each, rowsAs, reply, sha: digestOf(lua), source };
}

/** The digest by which Redis knows a script. */
export function digestOf(lua: string): string {
  return createHash("sha1").update(lua).digest("hex");
}

/** The head of a loop over the rows from position `first` on. An iterator, or a table for each row, would cost more. */
function eachRow(from: "KEYS" | "ARGV", first: number, columns: readonly string[]): string {
  const values = columns.map((_, i) => (i === 0 ? `${from}[row]` : `${from}[row + ${i}]`));
  return `for row = ${first}, #${from}, ${columns.length} do local ${columns.join(", ")} = ${values.join(", ")}`;
}

/**
 * Runs a script by its digest, or by its text if the server does not know it: before its first run, or after a
 * restart, a failover or `SCRIPT FLUSH`.
 *
 * All moves run here: no other code knows EVALSHA and NOSCRIPT. It defines no command on the client, which may be lent
 * to us. It publishes each run as a {@link ScriptRun} on the diagnostics channel `delayline:script`.
 *
 * Calls `onUnknown` before it sends the text of a script that Redis does not know: Redis runs whatever was sent in the
 * meantime before that text. If `onUnknown` throws, the text is not sent. With `isInTurn` the first run on a connection
 * sends the text at once: Redis would refuse its digest, and might know that of the next run, because another process
 * has sent the text in between.
 *
 * Rejects with ioredis's errors, which carry the arguments: callers wrap them.
 */
export async function run<
  Key extends string,
  Arg extends string,
  Reply,
  Column extends string = never,
>(
  client: RedisClient,
  script: Script<Key, Arg, Reply, Column>,
  keys: Readonly<Record<Key, string>>,
  args: Readonly<Record<Arg, ScriptArg>>,
  rows: readonly Row<Column>[] = [],
  onUnknown?: () => void,
  isInTurn = false,
): Promise<Reply> {
  // Without an array for each row: apart from ioredis, this loop is most of what an offer costs Node.
  const words: ScriptArg[] = [script.keys.length];
  for (const key of script.keys) words.push(keys[key]);
  if (script.rowsAs === "keys") {
    pushRows(words, script.each, rows);
    words[0] = words.length - 1;
  }
  for (const arg of script.args) words.push(args[arg]);
  if (script.rowsAs === "args") pushRows(words, script.each, rows);
  if (script.rowsAs === "columns") {
    for (const column of script.each) words.push(JSON.stringify(rows.map((row) => row[column])));
  }
  const timed = serverStandIn()?.script(client, script, words);
  if (timed !== undefined) words.push(...timed.words);
  const text = timed ?? script;
  const sending = { onUnknown, isInTurn };
  if (!scriptRuns.hasSubscribers) return script.reply(await send(client, text, words, sending));
  const startedAt = performance.now();
  let isDone = false;
  try {
    const raw = await send(client, text, words, sending);
    isDone = true;
    return script.reply(raw);
  } finally {
    const key = String(words[1]);
    const duration = performance.now() - startedAt;
    const ran: ScriptRun = { script: script.name, key, rows: rows.length, duration, isDone };
    scriptRuns.publish(ran);
  }
}

function pushRows<Column extends string>(
  words: ScriptArg[],
  columns: readonly Column[],
  rows: readonly Row<Column>[],
): void {
  for (const row of rows) for (const column of columns) words.push(row[column]);
}

/** One run of a script, published on the diagnostics channel `delayline:script`. It holds no payload. */
export interface ScriptRun {
  /** The script's name. */
  readonly script: string;
  /** The script's first key, which identifies the queue. */
  readonly key: string;
  /** How many rows of repeated arguments it was given. */
  readonly rows: number;
  /** Milliseconds until the reply or the error arrived. */
  readonly duration: number;
  /** Whether Redis replied with anything but an error. */
  readonly isDone: boolean;
}

const scriptRuns = channel("delayline:script");

async function send(
  client: RedisClient,
  script: { readonly sha: string; readonly lua: string },
  words: readonly ScriptArg[],
  { onUnknown, isInTurn }: { onUnknown: (() => void) | undefined; isInTurn: boolean },
): Promise<RawReply> {
  const { evalshaBuffer, evalBuffer } = client as unknown as EvalCommands;
  if (isInTurn && isFirstOn(client, script.sha)) {
    return await evalBuffer.call(client, script.lua, ...words);
  }
  try {
    return await evalshaBuffer.call(client, script.sha, ...words);
  } catch (error) {
    if (replyOf(error) !== "NOSCRIPT") throw error;
    onUnknown?.();
    return await evalBuffer.call(client, script.lua, ...words);
  }
}

/** The scripts whose text each connection has sent. */
const sentOn = new WeakMap<object, Set<string>>();

/** Whether a connection has not sent the script yet. A Cluster does not show its connections, so it begins with the digest. */
function isFirstOn(client: RedisClient, sha: string): boolean {
  if (isCluster(client)) return false;
  // Before it connects for the first time, a client has no connection.
  const connection = (client.stream as typeof client.stream | undefined) ?? client;
  const sent = sentOn.get(connection) ?? new Set();
  sentOn.set(connection, sent);
  const { size } = sent;
  return sent.add(sha).size > size;
}

// Every client of ioredis has these, but its types omit evalshaBuffer. `callBuffer("EVALSHA")` is no substitute: with
// enableAutoPipelining it sends the command without its name.
type EvalCommand = (
  this: RedisClient,
  script: string,
  ...words: readonly ScriptArg[]
) => Promise<RawReply>;
interface EvalCommands {
  readonly evalshaBuffer: EvalCommand;
  readonly evalBuffer: EvalCommand;
}
