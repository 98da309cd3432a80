import type { InspectedQueue } from "../../inspect/inspector.ts";
import { escapeControl } from "../../inspect/escape-control.ts";
import { messagesIn } from "../../inspect/messages-in.ts";
import { isUnreadable, type Sighting } from "../../inspect/sighting.ts";
import { isMessageId } from "../../queue/message/message.ts";
import type { DeadLetters } from "../../reliable/dead-letters.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { formatDistance, parseDuration } from "../words/durations.ts";
import { EXIT, type ExitCode } from "../command/exit-code.ts";
import { failureLines, payloadLine, sightingJson } from "../printing/message-view.ts";
import { quoted } from "../printing/output.ts";
import type { Session } from "../command/session.ts";
import { subWord } from "../words/sub-word.ts";
import { formatCount, type Column } from "../printing/table.ts";
import { UsageError } from "../words/usage-error.ts";

export const dead = defineCommand({
  usage: "dead list|redrive|remove <queue> [<id>... | --all]",
  help: `The dead letters of a reliable queue.
  list     prints them, oldest first
  redrive  delivers them again, as if for the first time; all, if none is named
  remove   removes them for good
A letter is found by reading: O(N) in the number of letters, in bounded steps.`,
  words: [2, 1000],
  options: {
    ...CHANGING,
    all: { type: "boolean" },
    delay: { type: "string" },
    payload: { type: "boolean" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    all: "all that are dead now",
    delay: "of redrive: how long they wait before; defaults to 0s",
    payload: "of list: shows payloads, readable and escaped",
  },
  async run(session, [word, name = "", ...ids], values) {
    const what = subWord("dead", word, ["list", "redrive", "remove"]);
    const { delay = "0s", payload = false } = values;
    // To put all back loses nothing.
    const all = values.all ?? (what === "redrive" && ids.length === 0);
    const wait = parseDuration("--delay", delay);
    if (what !== "list" && all === ids.length > 0) {
      throw new UsageError(`name the ids to ${what}, or say --all`);
    }
    const wrong = ids.find((id) => !isMessageId(id));
    if (wrong !== undefined) {
      throw new UsageError(
        `${JSON.stringify(wrong)} is no message id; dead letters have no other name`,
      );
    }
    const queue = await session.open(name);
    if (what === "list") return await list(session, queue, payload);
    const letters = queue.deadLetters;
    const size = letters === undefined ? 0 : queue.stats.dead;
    if (letters === undefined || size === 0) return none(session, name);
    const count = all
      ? `all ${formatCount(size)} dead letters`
      : `${formatCount(ids.length)} dead letter(s)`;
    const doing = `${what} ${count} of queue ${quoted(name)}`;
    if (!(await session.mayChange(doing, values))) return EXIT.done;
    const done = await change(session, letters, what, all ? ["all"] : ids, wait);
    const verb = what === "redrive" ? "Redrove" : "Removed";
    if (session.isJson) await session.output.json({ queue: name, [what]: done });
    else
      await session.output.print(
        `${verb} ${formatCount(done)} dead letter(s) of queue ${quoted(name)}.`,
      );
    return done > 0 ? EXIT.done : EXIT.nothing;
  },
});

async function list(
  session: Session,
  queue: InspectedQueue,
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
  for await (const seen of messagesIn(queue, "dead", { signal })) {
    count++;
    if (isUnreadable(seen)) unreadable ??= seen.id;
    else redrivable++;
    if (isJson) await output.json(sightingJson(seen, withPayload));
    else if (page.push(seen) === PAGE) await flush();
  }
  await flush();
  if (count === 0) return none(session, queue.name);
  if (!isJson) sayNext(session, queue.name, redrivable, unreadable);
  return EXIT.done;
}

/** What can be done about letters, of which the first `unreadable` one is named. */
function sayNext(
  session: Session,
  name: string,
  redrivable: number,
  unreadable: string | undefined,
): void {
  const redrive = session.commandLine("dead", "redrive", name);
  if (redrivable > 0 && redrive !== undefined) {
    session.output.say(`To deliver them again, or some by their ids: ${redrive}`);
  }
  if (unreadable === undefined) return;
  const remove = session.commandLine("dead", "remove", name, unreadable);
  if (remove !== undefined) {
    session.output.say(`To remove one that is unreadable, and cannot be redriven: ${remove}`);
  }
}

/** A table; under each letter why it died, and what failed before. */
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
      // Mostly the last one is that of which it died, as it stands above.
      ...(failures.at(-1)?.attempt === attempts ? lines.slice(0, -1) : lines),
      ...(withPayload ? [payloadLine(payload)] : []),
    ];
  });
  await output.table(COLUMNS, rows, under);
}

async function change(
  { signal }: Session,
  letters: DeadLetters<Uint8Array>,
  what: "redrive" | "remove",
  ids: readonly string[],
  delay: number,
): Promise<number> {
  let count = 0;
  for (const id of ids) {
    if (what === "redrive") count += await letters.redrive(id, { delay, signal });
    else if (id === "all") count += await letters.clear({ signal });
    else if (await letters.remove(id, { signal })) count++;
  }
  return count;
}

function none({ output }: Session, name: string): ExitCode {
  output.say(`Queue ${quoted(name)} has no dead letters.`);
  return EXIT.nothing;
}

/** Letters per table. */
const PAGE = 100;

const COLUMNS: readonly Column[] = [
  { title: "DIED" },
  { title: "ID" },
  { title: "TRIES", align: "right" },
  { title: "KEY", canShrink: true },
];
