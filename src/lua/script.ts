import { createHash } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import { replyOf } from "../failure.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import type { Elements } from "./family.ts";
import { frontOf, inOrder, keysOf, type Fragment, type Needs } from "./fragment.ts";
import type { RawReply } from "./reply.ts";
import { Readiness } from "../redis/readiness.ts";
import { Delay } from "../time/delay.ts";
import { networkTime, serverStandIn } from "../time/runtime.ts";

/** An argument of a script. */
export type ScriptArg = Word | Delay;

/** A word of a command. */
type Word = string | number | Buffer;

/**
 * The arguments of a script, by name. `elementsAre` tells what the queue's insertion order holds; `Queue` fills it in.
 * Defaults to addresses.
 */
export type Arguments<Arg extends string> = Readonly<
  Record<Exclude<Arg, "elementsAre">, ScriptArg>
> & { readonly elementsAre?: Elements };

/** The value of an argument. */
export function argumentOf<Arg extends string>(args: Arguments<Arg>, name: Arg): ScriptArg {
  if (name === "elementsAre") return args.elementsAre ?? "addresses";
  return (args as Readonly<Record<Arg, ScriptArg>>)[name];
}

/** One row of repeated arguments: a value for each column. */
export type Row<Column extends string> = Readonly<Record<Column, ScriptArg>>;

/** How rows are sent: packed into one argument, each value as a key, or all values of a column as one argument. */
type RowsAs = "packed" | "keys" | "columns";

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
  /** Whether a row that is the only one is sent flat: each value as an argument. */
  readonly takesOneFlat: boolean;
  readonly reply: (raw: RawReply) => Reply;
  /** What it was declared with: the body, what it needs, and what it runs within; and what stands in front of the body. */
  readonly source: {
    readonly front: string;
    readonly body: string;
    readonly within: Within;
  } & Needs;
}

/** Whole scripts that another one runs, by the names of the functions by which it does. */
export type Within = Readonly<Record<string, Pick<AnyScript, "name" | "lua" | "source">>>;

type AnyScript = Script<never, never, unknown, never>;

/**
 * Declares a script.
 *
 * The body reads its keys and arguments by the names given here: `local timeouts = KEYS[1]` and so on are written in
 * front of it, followed by the functions of the fragments that it `needs`. So the order of the keys and arguments
 * exists once. The keys that only fragments read follow by themselves. What it needs `rarely`, it calls as `rare().name()`; see {@link frontOf}.
 *
 * `each` names the columns of repeated arguments: the caller passes rows, for example one for each message. The body
 * loops over them with `for each row do ... end`, where every column is a local variable. All values are packed into one
 * argument: an argument for each would cost ioredis a microsecond. But a row that is the only one need not be packed, nor
 * go through tables: for a body with `if the only row then ... else ... end`, it is sent flat, and the first block sees it.
 *
 * `rowsAs` "keys": the values are keys, which follow the named ones, and `row` is a position in KEYS. "columns": there is
 * no loop. A column is a local variable that holds all its values, as a list in JSON; `cjson.decode` makes the list in a
 * fifth of the time that a loop takes. Defaults to "packed".
 *
 * `within` names whole scripts that the body runs as functions of their keys and arguments: `offer(keys, args)`. Each returns
 * what the script replies.
 *
 * @throws {TypeError} if a fragment needs itself, or no fragment defines what is called through `rare()`.
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
    readonly rarely?: readonly Fragment[];
    readonly within?: Within;
  },
): Script<Key, Arg, Reply, Column> {
  const { name, args, each = [], rowsAs = "packed", reply } = definition;
  const { needs = [], rarely = [], within = {}, lua: body } = definition;
  const keys = [...new Set([...definition.keys, ...keysOf({ needs, rarely })])] as Key[];
  const keysAtOnce = new Set<string>([
    ...definition.keys,
    ...inOrder(needs).flatMap((fragment) => fragment.keys),
  ]);
  const front = [
    `-- delayline: ${name}`,
    ...keys.flatMap((key, i) => (keysAtOnce.has(key) ? `local ${key} = KEYS[${i + 1}]` : [])),
    ...[...args, ...(rowsAs === "columns" ? each : [])].map(
      (arg, i) => `local ${arg} = ARGV[${i + 1}]`,
    ),
    functionsOf(name, keys, { needs, rarely }, body),
    ...Object.entries(within).map(
      ([called, { lua: text }]) => `local function ${called}(KEYS, ARGV)\n${text}\nend`,
    ),
  ]
    .filter((text) => text !== "")
    .join("\n");
  const eachRow =
    rowsAs === "keys" ? eachKey(keys.length + 1, each) : eachPacked(args.length + 1, each);
  const lua = `${front}\n${body
    .replaceAll("for each row do", eachRow)
    .replaceAll(ONLY_ROW, onlyRow(args.length + 1, each))}`;
  const takesOneFlat = body.includes(ONLY_ROW);
  const source = { front, body, needs, rarely, within };
  return { name, lua, keys, args, each, rowsAs, takesOneFlat, reply, sha: digestOf(lua), source };
}

function functionsOf(script: string, keys: readonly string[], needs: Needs, body: string): string {
  try {
    return frontOf(keys, needs, body);
  } catch (error) {
    throw new TypeError(`script "${script}": ${(error as TypeError).message}`, { cause: error });
  }
}

/** The digest by which Redis knows a script. */
export function digestOf(lua: string): string {
  return createHash("sha1").update(lua).digest("hex");
}

/** The head of a loop over the keys from position `first` on. An iterator, or a table for each row, would cost more. */
function eachKey(first: number, columns: readonly string[]): string {
  const keys = columns.map((_, i) => (i === 0 ? "KEYS[row]" : `KEYS[row + ${i}]`));
  return `for row = ${first}, #KEYS, ${columns.length} do local ${columns.join(", ")} = ${keys.join(", ")}`;
}

/** The head of a loop over packed rows. `c0` is a text of the length before it: one call unpacks a whole row. */
function eachPacked(position: number, columns: readonly string[]): string {
  const names = columns.join(", ");
  const format = `>${"I4c0".repeat(columns.length)}`;
  return [
    `local packedRows, nextRow = ARGV[${position}], 1`,
    `while nextRow <= #packedRows do local ${names}`,
    `${names}, nextRow = struct.unpack("${format}", packedRows, nextRow)`,
  ].join(" ");
}

const ONLY_ROW = "if the only row then";

/** The head of a block that sees a row that was sent flat; packed rows are one argument. */
function onlyRow(position: number, columns: readonly string[]): string {
  const values = columns.map((_, i) => `ARGV[${position + i}]`);
  return `if #ARGV > ${position} then local ${columns.join(", ")} = ${values.join(", ")}`;
}

/**
 * Runs a script by its digest, or by its text if the server does not know it: before its first run, or after a
 * restart, a failover or `SCRIPT FLUSH`.
 *
 * All moves run here: no other code knows EVALSHA and NOSCRIPT. It defines no command on the client, which may be lent
 * to us. It publishes each run as a {@link ScriptEvent} on the diagnostics channel `delayline:script`.
 *
 * Calls `onUnknown` before it sends the text of a script that Redis does not know: Redis runs whatever was sent in the
 * meantime before that text. If `onUnknown` throws, the text is not sent. With `isInTurn` the first run on a connection
 * sends the text at once: Redis would refuse its digest, and might know that of the next run, because another process
 * has sent the text in between.
 *
 * Rejects with ioredis's errors, which carry the arguments: callers wrap them.
 */
export function run<Key extends string, Arg extends string, Reply, Column extends string = never>(
  client: RedisClient,
  script: Script<Key, Arg, Reply, Column>,
  keys: Readonly<Record<Key, string>>,
  args: Arguments<Arg>,
  rows: readonly Row<Column>[] = [],
  onUnknown?: () => void,
  isInTurn = false,
): Promise<Reply> {
  const words = wordsOf(script, keys, args, rows, client);
  const timed = serverStandIn()?.script(client, script, words);
  if (timed !== undefined) words.push(...timed.words);
  const text = timed ?? script;
  const sent = send(client, text, words, { onUnknown, isInTurn });
  if (scriptRuns.hasSubscribers)
    tell(sent, { script: script.name, key: String(words[1]), rows: rows.length });
  return sent.then(script.reply);
}

/**
 * The words of a script's command, behind its digest or text: how many keys there are, the keys, and the arguments. Rows
 * are among them as the script's `rowsAs` says. Of a {@link Delay} it is what is left when `client` can be used.
 */
export function wordsOf<Key extends string, Arg extends string, Reply, Column extends string>(
  script: Script<Key, Arg, Reply, Column>,
  keys: Readonly<Record<Key, string>>,
  args: Arguments<Arg>,
  rows: readonly Row<Column>[],
  client?: RedisClient,
): Word[] {
  const wordOf = (value: ScriptArg): Word =>
    value instanceof Delay ? value.restAt(readyAtOf(client)) : value;
  const words: Word[] = [script.keys.length];
  for (const key of script.keys) {
    const name = keys[key];
    if ((name as string | undefined) === undefined) {
      throw new TypeError(`script "${script.name}" needs the key "${key}"`);
    }
    words.push(name);
  }
  if (script.rowsAs === "keys") {
    for (const row of rows) for (const column of script.each) words.push(wordOf(row[column]));
    words[0] = words.length - 1;
  }
  for (const arg of script.args) words.push(wordOf(argumentOf(args, arg)));
  pushRows(words, script, rows, wordOf);
  return words;
}

/** Adds what a script's rows become, unless they are keys, to the words of a command. */
export function pushRows<Column extends string>(
  words: Word[],
  { each, rowsAs, takesOneFlat }: Rows<Column>,
  rows: readonly Row<Column>[],
  wordOf: (value: ScriptArg) => Word,
): void {
  const [only] = rows;
  if (takesOneFlat && only !== undefined && rows.length === 1) {
    for (const column of each) words.push(wordOf(only[column]));
  } else if (rowsAs === "packed" && each.length > 0) {
    words.push(packRows(each, rows, wordOf));
  }
  if (rowsAs === "columns") {
    for (const column of each) words.push(JSON.stringify(rows.map((row) => wordOf(row[column]))));
  }
}

/** How a script takes its rows. */
type Rows<Column extends string> = Pick<
  Script<never, never, unknown, Column>,
  "each" | "rowsAs" | "takesOneFlat"
>;

function readyAtOf(client: RedisClient | undefined): number {
  return client === undefined ? -Infinity : Readiness.of(client).readyAt;
}

/** Packs rows into one argument: each value behind its length (4 bytes, big-endian). */
function packRows<Column extends string>(
  columns: readonly Column[],
  rows: readonly Row<Column>[],
  wordOf: (value: ScriptArg) => Word,
): Buffer {
  const values: (string | Buffer)[] = [];
  let size = 0;
  for (const row of rows) {
    for (const column of columns) {
      const value = wordOf(row[column]);
      const bytes = typeof value === "number" ? String(value) : value;
      values.push(bytes);
      size += 4 + (typeof bytes === "string" ? Buffer.byteLength(bytes) : bytes.length);
    }
  }
  const packed = Buffer.allocUnsafe(size);
  let at = 0;
  for (const value of values) {
    const begin = at + 4;
    const length =
      typeof value === "string" ? packed.write(value, begin) : value.copy(packed, begin);
    packed.writeUInt32BE(length, at);
    at = begin + length;
  }
  return packed;
}

/** One run of a script, published on the diagnostics channel `delayline:script`. It holds no payload. */
export interface ScriptEvent {
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

/** Publishes a run once Redis has replied. */
function tell(sent: Promise<RawReply>, what: Pick<ScriptEvent, "script" | "key" | "rows">): void {
  const startedAt = networkTime.now();
  const publish = (isDone: boolean) => {
    const ran: ScriptEvent = { ...what, duration: networkTime.now() - startedAt, isDone };
    scriptRuns.publish(ran);
  };
  sent.then(
    () => publish(true),
    () => publish(false),
  );
}

function send(
  client: RedisClient,
  script: { readonly sha: string; readonly lua: string },
  words: readonly Word[],
  { onUnknown, isInTurn }: { onUnknown: (() => void) | undefined; isInTurn: boolean },
): Promise<RawReply> {
  const { evalshaBuffer, evalBuffer } = client as unknown as EvalCommands;
  if (isInTurn && isFirstOn(client, script.sha)) {
    return evalBuffer.call(client, script.lua, ...words);
  }
  return evalshaBuffer.call(client, script.sha, ...words).catch((error: unknown) => {
    if (replyOf(error) !== "NOSCRIPT") throw error;
    onUnknown?.();
    return evalBuffer.call(client, script.lua, ...words);
  });
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
  ...words: readonly Word[]
) => Promise<RawReply>;
interface EvalCommands {
  readonly evalshaBuffer: EvalCommand;
  readonly evalBuffer: EvalCommand;
}
