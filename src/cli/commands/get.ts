import { locate, type Location } from "../../inspect/locate.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { describe, sightingJson } from "../printing/message-view.ts";
import { nextStep } from "../printing/next-step.ts";
import { quoted } from "../printing/output.ts";
import type { Session } from "../command/session.ts";

export const get = defineCommand({
  usage: "get [queue] <id or key>",
  help: `Where one message is, by its id or its business key: delayed, retrying, ready, in flight
or dead, since when, and for whom. Without a queue it looks into all. What is ready in a
plain queue has neither id nor key any more, and cannot be found.
A delayed message is found in O(log N). Otherwise all of a reliable queue is read, in
bounded steps.`,
  words: [1, 2],
  options: { payload: { type: "boolean" } },
  optionHelp: { payload: "shows the payload, readable and escaped" },
  async run(session, words, { payload = false }) {
    const wanted = words.at(-1) as string;
    const { output, signal, isJson } = session;
    const mayBeReady: string[] = [];
    let found = 0;
    const look = async (queue: InspectedQueue) => {
      output.progress(`Looking into ${quoted(queue.name)} ...`);
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
    const where = isOne ? `in queue ${quoted(name)}` : `in any of ${count - refused} queues`;
    const isKnown = refused === 0 && mayBeReady.length === 0;
    const why = isKnown ? ": it was handled, cancelled or never offered" : "";
    output.say(`${quoted(wanted)} is not ${where}${why}.`);
    if (!isOne) {
      output.say(
        "A queue with only ready messages is not among them: delayline get <queue> <key>.",
      );
    }
    for (const one of mayBeReady) {
      output.say(
        `It may be ready in ${quoted(one)}: what is ready in a plain queue has neither id nor key.`,
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
  const { output, isJson } = session;
  for (const seen of sightings) {
    if (isJson) {
      await output.json(sightingJson(seen, withPayload));
      continue;
    }
    const head = `${quoted(wanted)} is ${seen.state} in queue ${quoted(name)}.`;
    await output.print(head, ...describe(seen, stats.serverTime, withPayload));
    const next = nextStep(seen, stats.serverTime, (...words) => session.commandLine(...words));
    if (next !== undefined) output.say(next);
  }
}
