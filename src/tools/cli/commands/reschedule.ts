import { checks } from "../../../inside.ts";
import { parseDuration, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { parseInstant } from "../session/instants.ts";
import { quoted } from "../session/output.ts";
import { confirm, findMessages, outcome } from "../session/session.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDistance } from "../../view/words.js";

export const reschedule = defineCommand({
  usage: "reschedule <queue> <id or key> (--in <duration> | --at <time>)",
  help: `Gives a delayed or retrying message a new deadline. A delayed message also gets a new id.`,
  words: [2, 2],
  options: {
    ...CHANGING,
    in: { type: "string", value: "<duration>" },
    at: { type: "string", value: "<time>" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    in: "makes it due this long from now, such as 15m",
    at: "makes it due at this time: 09:00 (the next nine o'clock), tomorrow 09:00, monday 09:00 or 2026-11-22T09:00",
  },
  async run(session, [name = "", wanted = ""], values) {
    const { in: delay, at } = values;
    if ((delay === undefined) === (at === undefined))
      throw new UsageError("give either --in or --at");
    const wait = delay === undefined ? undefined : parseDuration("--in", delay);
    checks.checkDuration("--in", wait ?? 0, { instant: "use --at" });
    const instantAt = (now: number) =>
      at === undefined ? undefined : parseInstant("--at", at, now);
    // Refuse an invalid time before connecting to Redis.
    instantAt(Date.now());
    const queue = await session.open(name);
    const { messages, stats } = queue;
    const instant = instantAt(Math.floor(stats.serverTime));
    const { output, signal } = session;
    const found = await findMessages(session, queue, [wanted]);
    if (found.size === 0) return EXIT.nothing;
    const when =
      instant === undefined
        ? `to be due in ${delay}`
        : `to ${formatInstant(instant)} (${distanceOf(instant, stats.serverTime)})`;
    const change = `reschedule ${quoted(wanted)} of queue ${quoted(name)} ${when}`;
    if (!(await confirm(session, change, values))) return EXIT.done;
    const moved =
      instant === undefined
        ? await messages.reschedule(wanted, wait ?? 0, { signal })
        : await messages.rescheduleAt(wanted, instant, { signal });
    if (moved === undefined) {
      output.say(`${quoted(wanted)} left the queue in the meantime.`);
      return EXIT.nothing;
    }
    if (session.isJson) await output.json({ queue: name, ...moved });
    else await output.print(`Due at ${formatInstant(moved.deadline)}. Its id is ${moved.id}.`);
    return EXIT.done;
  },
});

function distanceOf(instant: number, now: number): string {
  const distance = formatDistance(instant, now);
  return instant < now ? `${distance}: due at once` : distance;
}

export const deliverNow = defineCommand({
  usage: "deliver-now <queue> <id or key>...",
  help: `Makes delayed and retrying messages due now. They become ready as soon as a running process
transfers them. If some are not found, the others become due, and the exit code is 5.`,
  words: [2, 1000],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = "", ...wanted], values) {
    const queue = await session.open(name);
    const { output, signal } = session;
    const asked = [...new Set(wanted)];
    const found = await findMessages(session, queue, asked);
    if (found.size === 0) return EXIT.nothing;
    const what = `${formatCount(found.size, "message")} of queue ${quoted(name)}`;
    if (!(await confirm(session, `deliver ${what} now`, values))) return outcome(found.size, asked);
    let count = 0;
    const conditional: string[] = [];
    for (const [idOrKey, { onlyIf, deliverWithin }] of found) {
      if ((await queue.messages.promote(idOrKey, { signal })) === undefined) continue;
      count++;
      if (onlyIf !== undefined || deliverWithin !== undefined) conditional.push(idOrKey);
    }
    if (session.isJson) await output.json({ queue: name, due: count });
    else {
      const due = `${formatCount(count, "message")} of queue ${quoted(name)}`;
      await output.print(`Made ${due} due now.`);
    }
    const [first] = conditional;
    if (first !== undefined) {
      const said = `${formatCount(conditional.length, "message")} may be dropped: what onlyIf and deliverWithin demand is asked when a message moves.`;
      session.hint(said, "What became of it", "get", name, first);
    }
    return outcome(count, asked);
  },
});
