import { escapeControl } from "../../view/text.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { changeLetters, deadByReason } from "../../view/dead-reasons.ts";
import { messagesIn } from "../../view/locate.ts";
import { isUnreadable, type Sighting } from "../../view/sighting.ts";
import type { DeadLetters } from "../../../index.ts";
import { checks, ids, type LetterFilter } from "../../../inside.ts";
import { parseDuration, parseSubWord, UsageError } from "../session/arguments.ts";
import {
  failureLines,
  firstOf,
  LIMIT,
  LIMIT_HELP,
  parseLimit,
  payloadLine,
  sayRest,
  sightingJson,
} from "../session/message-view.ts";
import { quoted, type Column } from "../session/output.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { confirm, type Session } from "../session/session.ts";
import { formatCount, formatDistance } from "../../view/words.js";

export const dead = defineCommand({
  usage: "dead list|reasons|redrive|remove <queue> [<id>... | --all]",
  help: `Lists, redrives or removes the dead letters of a reliable queue.
  list     lists them, oldest first, and says how many it leaves out
  reasons  counts them by reason, numbers aside; with --reason, counts
           those of one reason by what they say in full
  redrive  delivers them again like new messages; all, unless you choose some
  remove   removes them for good
Ids, or --reason and --older-than, choose some. Finding a letter is O(N) in the number of letters, in bounded steps.`,
  words: [2, 1000],
  options: {
    ...CHANGING,
    all: { type: "boolean" },
    reason: { type: "string", value: "<reason>" },
    "older-than": { type: "string", value: "<duration>" },
    delay: { type: "string", value: "<duration>" },
    ...LIMIT,
    payload: { type: "boolean" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    all: "redrives or removes all letters that are dead now",
    reason: "chooses letters with this reason, whole or as dead reasons shows it",
    "older-than": "redrives or removes letters of messages that died longer ago than this",
    delay: "redrives after this long; defaults to 0s",
    ...LIMIT_HELP,
    payload: "shows payloads in readable form, with list",
  },
  async run(session, [word, name = "", ...chosen], values) {
    const what = parseSubWord("dead", word, ["list", "reasons", "redrive", "remove"]);
    const { delay = "0s", payload = false, limit, reason, "older-than": age } = values;
    const most = parseLimit(limit);
    const isFiltered = reason !== undefined || age !== undefined;
    const isChange = what === "redrive" || what === "remove";
    const isVariants = what === "reasons" && reason !== undefined && age === undefined;
    if (isFiltered && (chosen.length > 0 || values.all || !(isChange || isVariants))) {
      throw new UsageError(
        "--reason and --older-than choose what to redrive or remove: give neither ids nor --all",
      );
    }
    const olderThan = age === undefined ? undefined : parseDuration("--older-than", age);
    // Redriving all loses nothing, so it needs no --all. Removing all does.
    const all = values.all ?? (what === "redrive" && chosen.length === 0);
    const wait = parseDuration("--delay", delay);
    checks.checkDuration("--delay", wait, { instant: "give how long it is from now" });
    if (isChange && !isFiltered && all === chosen.length > 0) {
      throw new UsageError(`give the ids to ${what}, or --all`);
    }
    const wrong = chosen.find((id) => !ids.isMessageId(id));
    if (wrong !== undefined) {
      throw new UsageError(
        `${JSON.stringify(wrong)} is not a message id; dead letters are not found by key`,
      );
    }
    const queue = await session.open(name);
    if (what === "list") return await list(session, queue, most, payload);
    if (what === "reasons" && reason !== undefined) {
      return await listVariants(session, queue, reason);
    }
    if (what === "reasons") return await listReasons(session, queue);
    if (isFiltered) {
      const { serverTime } = queue.stats;
      const diedBefore = olderThan === undefined ? undefined : serverTime - olderThan;
      return await changeSome(session, queue, what, { reason, diedBefore }, wait, values);
    }
    const letters = queue.deadLetters;
    const size = letters === undefined ? 0 : queue.stats.dead;
    if (letters === undefined || size === 0) return none(session, name);
    const letterCount = formatCount(all ? size : chosen.length, "dead letter");
    const change = `${what} ${all ? "all " : ""}${letterCount} of queue ${quoted(name)}`;
    if (!(await confirm(session, change, values))) return EXIT.done;
    const asked = [...new Set(chosen)];
    const changed = await changeEach(session, letters, what, all ? ["all"] : asked, wait);
    const missing = asked.filter((_, i) => changed[i] === 0);
    for (const id of missing) session.output.say(`There is no dead letter ${id}.`);
    const done = changed.reduce((sum, one) => sum + one, 0);
    await sayDone(session, name, what, done);
    if (done === 0) return EXIT.nothing;
    return missing.length > 0 ? EXIT.partial : EXIT.done;
  },
});

async function list(
  session: Session,
  queue: InspectedQueue,
  most: number,
  withPayload: boolean,
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const { serverTime } = queue.stats;
  let count = 0;
  let redrivable = 0;
  let unreadable: string | undefined;
  let page: Sighting[] = [];
  const flush = async () => {
    await printLetters(session, page, serverTime, withPayload);
    page = [];
  };
  for await (const seen of firstOf(messagesIn(queue, "dead", { signal }), most)) {
    count++;
    if (isUnreadable(seen)) unreadable ??= seen.id;
    else redrivable++;
    if (isJson) await output.json(sightingJson(seen, withPayload));
    else if (page.push(seen) === PAGE) await flush();
  }
  await flush();
  if (count === 0) return none(session, queue.name);
  if (count === most) sayRest(session, count, queue.stats.dead, "dead", "list", queue.name);
  if (!isJson) sayNext(session, queue.name, redrivable, unreadable);
  return EXIT.done;
}

/** Counts the letters by reason, in a table. */
async function listReasons(session: Session, queue: InspectedQueue): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  if (queue.deadLetters === undefined || queue.stats.dead === 0) return none(session, queue.name);
  const seen = await lastOf(deadByReason(queue, { signal }));
  if (seen === undefined) return none(session, queue.name);
  const { groups, others, read, total } = seen;
  if (isJson) for (const group of groups) await output.json(group);
  else {
    const now = queue.stats.serverTime;
    const rows = groups.map(({ count, lastDiedAt, group, reason }) => [
      formatCount(count),
      formatDistance(lastDiedAt, now),
      group,
      reason,
    ]);
    await output.table(REASON_COLUMNS, rows);
  }
  if (others > 0) output.say(`${formatCount(others, "letter")} have other reasons.`);
  if (read < total) {
    output.say(`Counted the oldest ${formatCount(read)} of ${formatCount(total, "letter")}.`);
  }
  const first = groups.find((group) => !group.isUnreadable);
  if (first === undefined || isJson) return EXIT.done;
  const words = ["dead", "redrive", queue.name, ["--reason", first.reason]] as const;
  const redrive = session.commandLine(...words);
  if (redrive !== undefined) output.say(`To deliver those of one reason again: ${redrive}`);
  return EXIT.done;
}

/** Counts the letters of one reason by what they say in full, in a table. */
async function listVariants(
  session: Session,
  queue: InspectedQueue,
  reason: string,
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const seen = await lastOf(deadByReason(queue, { filter: { reason }, signal }));
  const groups = seen?.groups ?? [];
  if (groups.length === 0) {
    const said = `No dead letter of queue ${quoted(queue.name)} has that reason.`;
    session.hint(said, "Their reasons", "dead", "reasons", queue.name);
    return EXIT.nothing;
  }
  const rows = groups.flatMap(({ group, variants }) => variants.map((one) => ({ group, ...one })));
  if (isJson) for (const row of rows) await output.json(row);
  else {
    const now = queue.stats.serverTime;
    const texts = rows.map(({ count, firstDiedAt, lastDiedAt, group, reason: whole }) => [
      formatCount(count),
      formatDistance(firstDiedAt, now),
      formatDistance(lastDiedAt, now),
      group,
      quoted(whole),
    ]);
    await output.table(VARIANT_COLUMNS, texts);
    const all = groups.reduce((sum, { count }) => sum + count, 0);
    const shown = rows.reduce((sum, { count }) => sum + count, 0);
    if (shown < all) output.say(`${formatCount(all - shown, "letter")} say something else.`);
  }
  const [first] = rows;
  const words = ["dead", "redrive", queue.name, ["--reason", first?.reason ?? ""]] as const;
  const redrive = session.commandLine(...words);
  if (!isJson && redrive !== undefined) {
    output.say(`To deliver those that say the same again: ${redrive}`);
  }
  return EXIT.done;
}

/** Changes the letters that the filter chooses, after a dry run that counts them. */
async function changeSome(
  session: Session,
  queue: InspectedQueue,
  what: "redrive" | "remove",
  filter: LetterFilter,
  delay: number,
  values: { yes?: boolean; "dry-run"?: boolean },
): Promise<ExitCode> {
  const { output, signal } = session;
  const { name } = queue;
  if (queue.deadLetters === undefined || queue.stats.dead === 0) return none(session, name);
  const count = (await lastOf(changeLetters(queue, what, filter, { isDry: true, signal })))
    ?.matched;
  if (count === undefined || count === 0) {
    const said = `No dead letter of queue ${quoted(name)} meets that.`;
    session.hint(said, "Their reasons", "dead", "reasons", name);
    return EXIT.nothing;
  }
  const change = `${what} ${formatCount(count, "dead letter")} of queue ${quoted(name)}`;
  if (!(await confirm(session, change, values))) return EXIT.done;
  let done = 0;
  for await (const step of changeLetters(queue, what, filter, { delay, signal })) {
    ({ done } = step);
    output.progress(`${formatCount(done)} of ${formatCount(count)} ...`);
  }
  await sayDone(session, name, what, done);
  return done === 0 ? EXIT.nothing : EXIT.done;
}

async function sayDone(
  { output, isJson }: Session,
  name: string,
  what: "redrive" | "remove",
  done: number,
): Promise<void> {
  const verb = what === "redrive" ? "Redrove" : "Removed";
  if (isJson) await output.json({ queue: name, [what]: done });
  else await output.print(`${verb} ${formatCount(done, "dead letter")} of queue ${quoted(name)}.`);
}

async function lastOf<Item>(items: AsyncIterable<Item>): Promise<Item | undefined> {
  let last: Item | undefined;
  for await (const item of items) last = item;
  return last;
}

/** Suggests commands: to redrive letters, and to remove the unreadable one whose id is given. */
function sayNext(
  session: Session,
  name: string,
  redrivable: number,
  unreadable: string | undefined,
): void {
  const redrive = session.commandLine("dead", "redrive", name);
  if (redrivable > 0 && redrive !== undefined) {
    session.output.say(`To deliver them all again (give ids for some): ${redrive}`);
  }
  if (unreadable === undefined) return;
  const remove = session.commandLine("dead", "remove", name, unreadable);
  if (remove !== undefined) {
    session.output.say(`To remove an unreadable one, which cannot be redriven: ${remove}`);
  }
}

/** Prints a table of letters, and under each letter why it died and which attempts failed before. */
async function printLetters(
  { output }: Session,
  letters: readonly Sighting[],
  now: number,
  withPayload: boolean,
): Promise<void> {
  if (letters.length === 0) return;
  const rows = letters.map(({ id, diedAt = 0, attempts, key }) => [
    formatDistance(diedAt, now),
    id,
    String(attempts),
    key ?? "-",
  ]);
  const under = letters.map((letter) => {
    const { group = "", reason = "", attempts, failures, payload } = letter;
    const lines = failureLines(letter, now);
    return [
      `    ${escapeControl(group)}${reason === "" ? "" : `: ${quoted(reason)}`}`,
      // The last failed attempt is usually the one it died of, whose reason is in the line above.
      ...(failures.at(-1)?.attempt === attempts ? lines.slice(0, -1) : lines),
      ...(withPayload ? [payloadLine(payload)] : []),
    ];
  });
  await output.table(COLUMNS, rows, under);
}

/** Returns how many letters each id stood for. */
async function changeEach(
  { signal }: Session,
  letters: DeadLetters<Uint8Array>,
  what: "redrive" | "remove",
  chosen: readonly string[],
  delay: number,
): Promise<number[]> {
  const counts: number[] = [];
  for (const id of chosen) {
    if (what === "redrive") counts.push(await letters.redrive(id, { delay, signal }));
    else if (id === "all") counts.push(await letters.clear({ signal }));
    else counts.push((await letters.remove(id, { signal })) ? 1 : 0);
  }
  return counts;
}

function none({ output }: Session, name: string): ExitCode {
  output.say(`Queue ${quoted(name)} has no dead letters.`);
  return EXIT.nothing;
}

/** Letters per table. */
const PAGE = 100;

const REASON_COLUMNS: readonly Column[] = [
  { title: "LETTERS", align: "right" },
  { title: "LAST" },
  { title: "GROUP", canShrink: true },
  { title: "REASON" },
];

const VARIANT_COLUMNS: readonly Column[] = [
  { title: "LETTERS", align: "right" },
  { title: "SINCE" },
  { title: "LAST" },
  { title: "GROUP", canShrink: true },
  { title: "WHOLE REASON" },
];

const COLUMNS: readonly Column[] = [
  { title: "DIED" },
  { title: "ID" },
  { title: "ATTEMPTS", align: "right" },
  { title: "KEY", canShrink: true },
];
