import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { formatDistance, formatInstant, parseDuration } from "../words/durations.ts";
import { EXIT } from "../command/exit-code.ts";
import { findMessages } from "../command/find-messages.ts";
import { parseInstant } from "../words/instants.ts";
import { quoted } from "../printing/output.ts";
import { UsageError } from "../words/usage-error.ts";

export const reschedule = defineCommand({
  usage: "reschedule <queue> <id or key> (--in <duration> | --at <time>)",
  help: `Gives a delayed message another deadline, and by its id a retrying one. A delayed message
gets another id by that.`,
  words: [2, 2],
  options: { ...CHANGING, in: { type: "string" }, at: { type: "string" } },
  optionHelp: {
    ...CHANGING_HELP,
    in: "from now on, such as 15m",
    at: "a time, such as 2026-11-22T09:00; 09:00 is the next nine o'clock; tomorrow 09:00, monday 09:00",
  },
  async run(session, [name = "", wanted = ""], values) {
    const { in: delay, at } = values;
    if ((delay === undefined) === (at === undefined))
      throw new UsageError("give either --in or --at");
    const wait = delay === undefined ? undefined : parseDuration("--in", delay);
    const instantAt = (now: number) =>
      at === undefined ? undefined : parseInstant("--at", at, now);
    // What is not legal is refused before Redis is asked.
    instantAt(Date.now());
    const { messages, ...queue } = await session.open(name);
    const instant = instantAt(Math.floor(queue.stats.serverTime));
    const { output, signal } = session;
    const found = await findMessages(session, { ...queue, messages }, [wanted]);
    if (found.length === 0) return EXIT.nothing;
    const when =
      instant === undefined
        ? `to be due in ${delay}`
        : `to ${formatInstant(instant)} (${distanceOf(instant, queue.stats.serverTime)})`;
    const doing = `reschedule ${quoted(wanted)} of queue ${quoted(name)} ${when}`;
    if (!(await session.mayChange(doing, values))) return EXIT.done;
    const moved =
      instant === undefined
        ? await messages.reschedule(wanted, wait ?? 0, { signal })
        : await messages.rescheduleAt(wanted, instant, { signal });
    if (moved === undefined) {
      output.say(`${quoted(wanted)} has left meanwhile.`);
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
