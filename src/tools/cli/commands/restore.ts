import type { InspectedQueue } from "../../view/inspector.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { numberColumn, quoted } from "../session/output.ts";
import { confirm } from "../session/session.ts";
import { formatCount, formatDistance } from "../../view/words.js";

export const restore = defineCommand({
  usage: "restore [queue]...",
  help: `Pauses all queues, or those that you name, and shows what would come at once: for a Redis
that was restored from a backup, before the first worker starts. Everything comes again that
was handled or cancelled after the backup was made. Then look with delayline overdue, and let
a queue go on with delayline resume.`,
  words: [0, 1000],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, names, values) {
    const { output, isJson, signal } = session;
    const queues: InspectedQueue[] = [];
    let refused = 0;
    const look = async (queue: InspectedQueue) => void queues.push(queue);
    if (names.length === 0) ({ refused } = await session.eachQueue(look));
    else for (const name of new Set(names)) await look(await session.open(name));
    if (queues.length === 0) {
      output.say("There are no queues.");
      return refused > 0 ? EXIT.redis : EXIT.nothing;
    }
    const [one, other] = queues;
    const what =
      one !== undefined && other === undefined
        ? `queue ${quoted(one.name)}`
        : formatCount(queues.length, "queue");
    const isSure = await confirm(session, `pause ${what}`, values);
    if (isSure) {
      for (const { messages } of queues) await messages.pause({ reason: REASON, signal });
    }
    if (isJson) {
      for (const { name, stats } of queues) {
        const { overdue, nextDeadline, ready, inFlight, schedules } = stats;
        const isPaused = isSure || stats.isPaused;
        await output.json({
          queue: name,
          isPaused,
          overdue,
          nextDeadline,
          ready,
          inFlight,
          schedules,
        });
      }
    } else await output.table(COLUMNS, queues.map(rowOf));
    if (isSure && !isJson) output.say(`Paused ${what}. To let one go on: delayline resume <queue>`);
    return refused > 0 ? EXIT.redis : EXIT.done;
  },
});

const REASON = "Redis was restored from a backup: look with delayline overdue, then resume";

const COLUMNS = [
  { title: "QUEUE", canShrink: true },
  ...["OVERDUE", "READY", "IN FLIGHT", "DELAYED", "SCHEDULES"].map(numberColumn),
  { title: "FIRST DUE" },
];

function rowOf({ name, stats }: InspectedQueue): string[] {
  const { overdue, ready, inFlight, delayed, schedules, nextDeadline, serverTime } = stats;
  const counts = [overdue, ready, inFlight, delayed, schedules].map((count) => formatCount(count));
  const first = nextDeadline === undefined ? "-" : formatDistance(nextDeadline, serverTime);
  return [name, ...counts, first];
}
