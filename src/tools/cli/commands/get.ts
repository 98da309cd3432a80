import type { InspectedQueue } from "../../inspect/inspector.ts";
import { locate, type Location } from "../../inspect/locate.ts";
import { describe, nextStep, sightingJson } from "../session/message-view.ts";
import { formatCount, quoted } from "../session/output.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import type { Session } from "../session/session.ts";

/** Where a message may be that this command cannot see. */
const ELSEWHERE = "in another database or under another key prefix";

export const get = defineCommand({
  usage: "get [queue] <id or key>",
  help: `Shows where a message is, by its id or its business key: delayed, retrying, ready, in flight
or dead, since when, and which consumer holds it. Searches all queues unless you name one.
Ready messages of a plain queue cannot be found: they have neither id nor key.
O(log N) in a plain queue, and for a delayed message by its id. Otherwise reads all of a
reliable queue, in bounded steps.`,
  words: [1, 2],
  options: { payload: { type: "boolean" } },
  optionHelp: { payload: "shows the payload in readable form" },
  async run(session, words, { payload = false }) {
    const wanted = words.at(-1) as string;
    const { output, signal, isJson } = session;
    const mayBeReady: string[] = [];
    let found = 0;
    const look = async (queue: InspectedQueue) => {
      output.progress(`Searching ${quoted(queue.name)} ...`);
      const location = await locate(queue, wanted, { signal });
      if (location.mayBeReady) mayBeReady.push(queue.name);
      found += location.sightings.length;
      await print(session, wanted, queue, location, payload);
    };
    const isOne = words.length === 2;
    const [name = ""] = words;
    if (isOne) await look(await session.open(name));
    const { count, refused } = isOne ? { count: 1, refused: 0 } : await session.eachQueue(look);
    if (found > 0) return EXIT.done;
    const where = isOne
      ? `queue ${quoted(name)}`
      : `any of ${formatCount(count - refused, "queue")}`;
    const isGone = refused === 0 && mayBeReady.length === 0;
    const why = isGone ? `: it was handled, cancelled or never offered, or is ${ELSEWHERE}` : "";
    output.say(`${quoted(wanted)} is not in ${where}${why}.`);
    if (!isOne) {
      output.say(
        "A queue whose ready messages only Java has moved may have been missed: name it, as in delayline get <queue> <key>.",
      );
    }
    for (const one of mayBeReady) {
      output.say(
        `It may be ready in ${quoted(one)}: ready messages of a plain queue have neither id nor key.`,
      );
    }
    if (isJson) await output.json({ wanted, found: false, mayBeReadyIn: mayBeReady });
    return refused > 0 ? EXIT.redis : EXIT.nothing;
  },
});

async function print(
  session: Session,
  wanted: string,
  { name, stats }: InspectedQueue,
  { sightings }: Location,
  withPayload: boolean,
): Promise<void> {
  const { output, isJson, commandLine } = session;
  for (const seen of sightings) {
    if (isJson) {
      await output.json(sightingJson(seen, withPayload));
      continue;
    }
    const head = `${quoted(wanted)} is ${seen.state} in queue ${quoted(name)}.`;
    await output.print(head, ...describe(seen, stats.serverTime, withPayload));
    const next = nextStep(seen, stats.serverTime, commandLine);
    if (next !== undefined) output.say(next);
  }
}
