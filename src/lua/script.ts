import { createHash } from "node:crypto";
import type { RedisClient } from "../redis/client.ts";

/** What a script takes as an argument. */
export type ScriptArg = string | number | Buffer;

/** What Redis answers to a script: integers, bulk strings, nil, and arrays of these. */
export type RawReply = number | string | Buffer | null | RawReply[];

/** One atomic move in Redis: a Lua script with named keys and arguments, and a typed reply. */
export interface Script<Key extends string, Arg extends string, Reply> {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  readonly reply: (raw: RawReply) => Reply;
}

/**
 * Declares a script.
 *
 * The body reads its keys and arguments under the names given here: `local timeouts = KEYS[1]` and
 * so on are written in front of it, so that the order exists once. Further arguments, as many as the
 * caller likes, follow the named ones and begin at `ARGV[REST]`. `fragments` are Lua functions that
 * the body calls.
 */
export function defineScript<const Key extends string, const Arg extends string, Reply>(
  definition: Pick<Script<Key, Arg, Reply>, "name" | "lua" | "keys" | "args" | "reply"> & {
    readonly fragments?: readonly string[];
  },
): Script<Key, Arg, Reply> {
  const { name, keys, args, reply, fragments = [] } = definition;
  const lua = [
    `-- delayline: ${name}`,
    ...keys.map((key, i) => `local ${key} = KEYS[${i + 1}]`),
    ...args.map((arg, i) => `local ${arg} = ARGV[${i + 1}]`),
    `local REST = ${args.length + 1}`,
    ...fragments,
    definition.lua,
  ].join("\n");
  return { name, lua, keys, args, reply, sha: createHash("sha1").update(lua).digest("hex") };
}

/**
 * Runs a script by its digest, and with its whole text where the server does not know it (yet, or
 * any longer: after a restart, a failover or `SCRIPT FLUSH`).
 *
 * This is the only place that knows EVALSHA, EVAL and NOSCRIPT. It defines no command on the client,
 * which may be one that we were lent.
 *
 * `onUnknown` is called before the text is sent: what was sent meanwhile is executed before it.
 *
 * Rejects with what ioredis rejects with, arguments included: callers wrap it before it gets out.
 */
export async function run<Key extends string, Arg extends string, Reply>(
  client: RedisClient,
  script: Script<Key, Arg, Reply>,
  keys: Readonly<Record<Key, string>>,
  args: Readonly<Record<Arg, ScriptArg>>,
  rest: readonly ScriptArg[] = [],
  onUnknown: () => void = () => {},
): Promise<Reply> {
  const { evalshaBuffer, evalBuffer } = client as unknown as EvalCommands;
  const words = [
    script.keys.length,
    ...script.keys.map((key) => keys[key]),
    ...script.args.map((arg) => args[arg]),
    ...rest,
  ];
  try {
    return script.reply(await evalshaBuffer.call(client, script.sha, ...words));
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    onUnknown();
    return script.reply(await evalBuffer.call(client, script.lua, ...words));
  }
}

// ioredis has these on every client, but its types leave evalshaBuffer out. `callBuffer("EVALSHA")`
// is no substitute: with enableAutoPipelining it sends the command without its name.
type EvalCommand = (
  this: RedisClient,
  script: string,
  ...words: readonly ScriptArg[]
) => Promise<RawReply>;
interface EvalCommands {
  readonly evalshaBuffer: EvalCommand;
  readonly evalBuffer: EvalCommand;
}

/** An integer in a reply; a caller's `stringNumbers: true` turns integers into strings. */
export function asNumber(raw: RawReply | undefined): number {
  if (raw === null || raw === undefined || Array.isArray(raw)) throw unexpected(raw);
  return Number(raw);
}

/** A deadline in a reply, as the fragment `replied` puts it: an integer, or the text of any double. */
export function asDeadline(raw: RawReply | undefined): number {
  return asNumber(Buffer.isBuffer(raw) ? raw.toString().replace("inf", "Infinity") : raw);
}

/** A bulk string in a reply. */
export function asBuffer(raw: RawReply | undefined): Buffer {
  if (!Buffer.isBuffer(raw)) throw unexpected(raw);
  return raw;
}

/** An array in a reply. */
export function asArray(raw: RawReply | undefined): RawReply[] {
  if (!Array.isArray(raw)) throw unexpected(raw);
  return raw;
}

function unexpected(raw: RawReply | undefined): TypeError {
  return new TypeError(`unexpected reply of a script: ${raw === null ? "nil" : typeof raw}`);
}
