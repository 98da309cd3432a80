import type { Link } from "./link.ts";
import { claimIn, claimKeyOf } from "./claims.ts";
import type { Connection } from "./connection.ts";
import { bulk, ErrorReply, type Frame, type Value } from "./resp.ts";
import { turn, type SimServer } from "./server.ts";
import type { Stage } from "./stage.ts";
import { shown } from "./trace.ts";
import { deliveredKey, QUIET, seenKey } from "./virtual-form.ts";

/**
 * Carries a command to Redis, and everything that Redis sends because of it to the queues of the connections. Returns
 * what the trace says of the command.
 *
 * Redis itself replies to everything that concerns data. What would show its real clock, its real ids or the time of
 * day is replied to by the wire.
 */
export async function carry(
  connection: Connection,
  words: readonly Buffer[],
  stage: Stage,
): Promise<string> {
  const { server } = connection;
  for (const word of words) stage.mix(word);
  const command = (words[0] as Buffer).toString().toUpperCase();
  const about = (words[1] ?? "").toString().toUpperCase();
  const local = replyOf(connection, command, about, words, stage);
  if (local !== undefined) {
    connection.receive(local, shown([command, about]));
    return shown(words);
  }
  let name = "";
  let actual: readonly (Buffer | string)[] = words;
  if (command === "EVAL" || command === "EVALSHA") {
    const script = await server.script(words, Math.floor(stage.serverTime(server) * 1000));
    if (script === undefined) {
      connection.receive(NOSCRIPT, "NOSCRIPT");
      return shown([command, ...words.slice(1)]);
    }
    ({ name, words: actual } = script);
    connection.claimKey = claimKeyOf(name, words);
  } else if (command === "CLIENT") {
    actual = withRealId(words, stage);
  }
  const seconds = blockOf(command, words);
  if (seconds !== undefined) actual = blockingForEver(command, words);
  if (SUBSCRIBES.has(command)) connection.isSubscribed = true;
  const seen = command === "XREADGROUP" ? noteSeen(words, stage.serverTime(server)) : [];
  const noted = seen.length > 0 ? server.ask("MSET", ...seen) : undefined;
  const link = connection.link as Link;
  link.send(actual);
  if (seconds !== undefined) {
    connection.reading = words;
    connection.blockedUntil = seconds === 0 ? Infinity : stage.elapsed + seconds * 1000;
  } else if (command === "XREADGROUP") {
    connection.reading = words;
  }
  await noted;
  if (seconds === undefined) {
    await link.arrival();
    const isQuiet = name === "" ? QUIET.has(command) : link.unwrap();
    await (isQuiet ? turn() : server.settled(link));
  } else {
    await server.settled();
  }
  await collect(server, stage);
  const text = name === "" ? shown(words) : shown([name, ...words.slice(3)]);
  return `${text}${connection.blockedUntil === undefined ? "" : " (blocks)"}`;
}

/** Waits until Redis is quiet, and queues all that it has sent to the clients. */
export async function gather(server: SimServer, stage: Stage): Promise<void> {
  await server.settled();
  await collect(server, stage);
}

/** Queues what Redis has sent to the clients. */
async function collect(server: SimServer, stage: Stage): Promise<void> {
  const delivered: string[] = [];
  for (const connection of stage.connectionsTo(server)) {
    const { link: source } = connection;
    if (source === undefined || connection.isLost) continue;
    for (const frame of source.take()) {
      const isPublished = isMessage(frame.value);
      refuseBroken(frame.value);
      if (!isPublished && connection.reading !== undefined) {
        noteDeliveries(delivered, connection.reading, frame.value, stage.serverTime(server));
        connection.reading = undefined;
        connection.blockedUntil = undefined;
      }
      const [raw, text] = withoutRealId(connection, frame);
      const { claimKey } = connection;
      const claim =
        isPublished || claimKey === undefined ? undefined : claimIn(claimKey, frame.value);
      if (!isPublished) connection.claimKey = undefined;
      connection.receive(raw, text, isPublished, claim);
    }
    if (source.isEnded) connection.lose();
  }
  if (delivered.length > 0) await server.ask("MSET", ...delivered);
}

/** @throws {Error} if a script has a mistake in its Lua: no library may send such, and no machine make it so. */
function refuseBroken(value: Value): void {
  if (!(value instanceof ErrorReply)) return;
  if (/attempt to|Lua redis lib|compiling script|global variable/.test(value.message)) {
    throw new Error(`a script is broken: ${value.message}`);
  }
}

/** Ends a command that has blocked for as long as it said. */
export async function endBlock(connection: Connection, stage: Stage): Promise<void> {
  await connection.server.ask("CLIENT", "UNBLOCK", String(connection.realId), "TIMEOUT");
  await gather(connection.server, stage);
}

const NOSCRIPT = Buffer.from("-NOSCRIPT No matching script. Please use EVAL.\r\n");
const OK = Buffer.from("+OK\r\n");

/** What the wire replies itself. */
function replyOf(
  connection: Connection,
  command: string,
  about: string,
  words: readonly Buffer[],
  stage: Stage,
): Buffer | undefined {
  if (command === "PING" && connection.protocol === "3") return Buffer.from("+PONG\r\n");
  if (command === "TIME") {
    const micros = Math.floor(stage.serverTime(connection.server) * 1000);
    const parts = [Math.floor(micros / 1e6), micros % 1e6].map((part) => bulk(String(part)));
    return Buffer.concat([Buffer.from("*2\r\n"), ...parts]);
  }
  if (command === "INFO") {
    const fields = ["redis_version:7.0.15", "redis_mode:standalone", "role:master", "loading:0"];
    return bulk([...fields, `run_id:${connection.server.runId}`, ""].join("\r\n"));
  }
  if (command !== "CLIENT") return undefined;
  if (about === "ID") return Buffer.from(`:${connection.id}\r\n`);
  if (about === "SETINFO") return OK;
  if (about === "SETNAME") {
    connection.name = String(words[2]);
    const role = connection.name.split(":")[1] ?? connection.name;
    connection.label = `${connection.owner.name}.${role}#${connection.id}`;
    return OK;
  }
  if (about === "LIST") {
    const found = stage.byId(Number(words.at(-1)));
    return bulk(found === undefined || found.isLost ? "" : `id=${found.id} name=${found.name}\n`);
  }
  return undefined;
}

/** The words of a CLIENT command, with the id that Redis knows in place of the one that clients see. */
function withRealId(words: readonly Buffer[], stage: Stage): readonly (Buffer | string)[] {
  return words.map((word) => {
    if (!/^\d+$/.test(word.toString())) return word;
    const found = stage.byId(Number(word));
    // No connection has 0.
    return String(found === undefined ? 0 : found.realId);
  });
}

/** What the client gets of a reply, and what the trace shows: the reply to HELLO has the id that Redis knows. */
function withoutRealId(connection: Connection, { raw, value }: Frame): [Buffer, string] {
  const isHello = Array.isArray(value) && textOf((value[0] ?? null) as Value) === "server";
  if (!isHello) return [raw, textOf(value)];
  connection.protocol = "3";
  const text = raw.toString("latin1").replace(/(\r\nid\r\n:)\d+/, `$1${connection.id}`);
  return [Buffer.from(text, "latin1"), "HELLO"];
}

/** How many seconds a command blocks; 0 is for ever, undefined is not at all. */
function blockOf(command: string, words: readonly Buffer[]): number | undefined {
  if (AT_THE_END.has(command)) return Number(words.at(-1));
  if (command === "BLMPOP" || command === "BZMPOP") return Number(words[1]);
  const at = blockWord(command, words);
  return at < 0 ? undefined : Number(words[at + 1]) / 1000;
}

function blockingForEver(command: string, words: readonly Buffer[]): readonly (Buffer | string)[] {
  const at = AT_THE_END.has(command)
    ? words.length - 1
    : command === "BLMPOP" || command === "BZMPOP"
      ? 1
      : blockWord(command, words) + 1;
  return words.map((word, i) => (i === at ? "0" : word));
}

function blockWord(command: string, words: readonly Buffer[]): number {
  if (command !== "XREADGROUP" && command !== "XREAD") return -1;
  const streams = words.findIndex((word) => word.toString().toUpperCase() === "STREAMS");
  return words.findIndex((word, i) => i < streams && word.toString().toUpperCase() === "BLOCK");
}

const SUBSCRIBES = new Set(["SUBSCRIBE", "SSUBSCRIBE", "PSUBSCRIBE"]);

const AT_THE_END = new Set(["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX"]);

/** What MSET has to remember of a consumer that reads, whether it gets something or not. */
function noteSeen(words: readonly Buffer[], serverTime: number): string[] {
  const [, , group, consumer] = words.map(String);
  const rest = words.slice(words.findIndex((word) => String(word).toUpperCase() === "STREAMS") + 1);
  const streams = rest.slice(0, rest.length / 2).map(String);
  const now = String(Math.floor(serverTime));
  return streams.flatMap((stream) => [seenKey(stream, group ?? "", consumer ?? ""), now]);
}

/** Collects what MSET has to remember of the entries that an XREADGROUP has delivered. */
function noteDeliveries(
  into: string[],
  words: readonly Buffer[],
  reply: Value,
  serverTime: number,
): void {
  if (String(words[0]).toUpperCase() !== "XREADGROUP" || !Array.isArray(reply)) return;
  const now = String(Math.floor(serverTime));
  const [group, consumer] = [String(words[2]), String(words[3])];
  // RESP2 lists pairs, RESP3 a map.
  const pairs = reply.flatMap((item) =>
    Array.isArray(item) && !Array.isArray(item[0]) && Array.isArray(item[1]) && item.length === 2
      ? [...item]
      : [item],
  ) as Value[];
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const stream = nameOf(pairs[i]);
    for (const entry of pairs[i + 1] as readonly (readonly Value[])[]) {
      into.push(deliveredKey(stream, group, nameOf(entry[0])), now);
    }
    into.push(seenKey(stream, group, consumer), now);
  }
}

function nameOf(value: Value | undefined): string {
  return (value as Buffer).toString();
}

function isMessage(value: Value): boolean {
  return Array.isArray(value) && /^[ps]?message$/.test(String(value[0]));
}

function textOf(value: Value): string {
  if (value === null) return "nil";
  if (value instanceof ErrorReply) return `error: ${value.message}`;
  if (Array.isArray(value)) return `[${value.map(textOf).join(" ")}]`.slice(0, 120);
  return shown([typeof value === "number" ? String(value) : (value as Buffer | string)]);
}
