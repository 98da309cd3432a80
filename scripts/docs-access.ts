import { PLACES } from "../src/nouns/places.ts";
import { KEYS, type KeyOfQueue } from "../src/queue/keys.ts";
import { rulesFor, TRIALS } from "../src/tools/doctor/looks/access-report.ts";
import { allScripts } from "../test/helpers/scripts.ts";

// The access rules in docs/operations/setting-up.md: what scripts call, what the library sends itself, and the names.

/** Commands for one purpose. */
interface Purpose {
  readonly of: RegExp;
  readonly purpose: string;
}

/** Queue that the page's rules are for. */
const QUEUE = "orders";

/** What the library sends itself, beside what scripts call. */
const SENT = `
  hello auth ping info select client|setname time evalsha eval
  blpop client|id client|unblock subscribe client|list client|kill scan type
  lpop rpush lrange llen lindex blmove xlen xreadgroup zscan
`;

/** Words in capitals that scripts write in quotes, and that are no commands. */
const NO_COMMANDS = new Set(
  `
  BYLEX MATCH CONSUMERS COUNT CREATE DELCONSUMER EX FORCE GROUP GROUPS IDLE JUSTID LIMIT MAXLEN MINID MKSTREAM NOMKSTREAM NUMSUB NX
  RETRYCOUNT SETID STREAM STREAMS WITHSCORES WRONGTYPE XX
  `
    .trim()
    .split(/\s+/),
);

/** The purposes of all commands, in the order of the table. The first that matches applies. */
const PURPOSES: readonly Purpose[] = [
  {
    of: /^(?:hello|auth|ping|info|select|client\|setname)$/,
    purpose: "connecting, and asking whether a connection is alive",
  },
  { of: /^time$/, purpose: "the clock that decides what is due" },
  { of: /^eval/, purpose: "all moves are scripts; most of the commands below run in them" },
  { of: /^(?:blpop|client\|(?:id|unblock))$/, purpose: "waiting for messages, and ending a wait" },
  { of: /^(?:publish|subscribe)$/, purpose: "wake-ups" },
  { of: /^z/, purpose: keysOf("sorted sets", "zset") },
  { of: /^(?:l|rpush$|rpop$|blmove$)/, purpose: keysOf("lists", "list") },
  { of: /^h/, purpose: keysOf("hashes", "hash") },
  { of: /^x/, purpose: keysOf("streams", "stream") },
  { of: /^(?:get|set)$/, purpose: keysOf("strings", "string") },
  { of: /^(?:del|unlink|exists|expire|rename)$/, purpose: "whole keys of every type" },
  {
    of: /^client\|(?:list|kill)$/,
    purpose: "ending the connection of a process that has lost a partition",
  },
  {
    of: /^pubsub$/,
    purpose: "`stats()` counts listeners; without this right it returns everything else",
  },
  {
    of: /^(?:scan|type)$/,
    purpose: "finding all queues (`line.queues()`, the command line, the dashboard); the doctor",
  },
];

const NEEDED_BY = {
  all: "every queue",
  reliable: "reliable queues",
  exclusive: "[exclusive consumption](../guide/partitions.md#one-consumer-per-key)",
} as const;

/** The rules as `ACL SETUSER` takes them, in a block of code. */
export async function access(): Promise<string> {
  const granted = (await commandRows()).flatMap(({ names }) => names.map((name) => `+${name}`));
  const rules = rulesFor(QUEUE, true, "").map(({ rule }) => rule);
  return ["```", ...wrapped(granted), ...wrapped(rules), "```"].join("\n");
}

/** What each command is for, and which queues need it. */
export async function commands(): Promise<string> {
  const rows = (await commandRows()).map(({ names, purpose, neededBy }) => {
    const words = names.map((name) => `\`${name.replace("|", String.raw`\|`)}\``).join(" ");
    return `| ${words} | ${purpose} | ${NEEDED_BY[neededBy]} |`;
  });
  return ["| commands | for | needed by |", "| - | - | - |", ...rows].join("\n");
}

interface CommandRow {
  readonly names: readonly string[];
  readonly purpose: string;
  readonly neededBy: keyof typeof NEEDED_BY;
}

async function commandRows(): Promise<CommandRow[]> {
  const all = [...new Set([...SENT.trim().split(/\s+/), ...(await called())])];
  const unknown = all.filter((name) => !PURPOSES.some(({ of }) => of.test(name)));
  if (unknown.length > 0) {
    throw new Error(
      `scripts/docs-access.ts does not say what these commands are for: ${unknown.join(", ")}`,
    );
  }
  return PURPOSES.flatMap(({ of, purpose }) => {
    const own = all.filter((name) => of.test(name) && purposeOf(name) === purpose);
    const rows = (Object.keys(NEEDED_BY) as (keyof typeof NEEDED_BY)[]).map((neededBy) => ({
      names: own.filter((name) => neededByOf(name) === neededBy).toSorted(),
      purpose,
      neededBy,
    }));
    const [first, ...others] = rows.filter((row) => row.names.length > 0);
    if (first === undefined) throw new Error(`no command is for ${purpose}`);
    return [first, ...others.map((row) => ({ ...row, purpose: "the same" }))];
  });
}

/**
 * The commands in the texts of all scripts. A script may call a command by a function of a fragment, so that every
 * word in capitals counts that is not known to be none.
 */
async function called(): Promise<string[]> {
  const texts = (await allScripts()).map(({ lua }) => lua).join("\n");
  const words = Array.from(texts.matchAll(/(?<=["'])[A-Z]{2,}(?=["'])/g), ([word]) => word);
  return [...new Set(words)]
    .filter((word) => !NO_COMMANDS.has(word))
    .map((word) => word.toLowerCase());
}

function purposeOf(command: string): string | undefined {
  return PURPOSES.find(({ of }) => of.test(command))?.purpose;
}

/** Which queues need a command, as the doctor has it. It does not try those that every connection needs. */
function neededByOf(command: string): keyof typeof NEEDED_BY {
  const trial = TRIALS.find(({ rule }) => rule === command || rule.startsWith(`${command}|`));
  return trial?.neededBy ?? "all";
}

/** Names the keys of a type, each with the places of the messages in it. */
function keysOf(what: string, type: KeyOfQueue["type"]): string {
  const keys = Object.entries<KeyOfQueue>(KEYS).filter(([, key]) => key.type === type);
  const names = keys.map(([name, { prefix }]) => {
    const places = Object.entries(PLACES).flatMap(([place, { keys: held }]) =>
      (held as readonly string[]).includes(name) ? [place] : [],
    );
    const short = `\`${prefix?.slice(0, -1) ?? QUEUE}\``;
    return places.length === 0 ? short : `${short} (${places.join(", ")})`;
  });
  return `${what}: ${names.join(", ")}`;
}

/** Puts words into lines of up to 110 characters. */
function wrapped(words: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= 110) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
