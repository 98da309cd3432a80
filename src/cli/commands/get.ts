import { locate, type Location } from "../../inspect/locate.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-code.ts";
import { describe, sightingJson } from "../message-view.ts";
import { quoted } from "../output.ts";
import type { Session } from "../session.ts";

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
    const inspector = await session.inspector();
    const names = words.length === 2 ? [words[0] as string] : await inspector.names(signal);
    const mayBeReady: string[] = [];
    let count = 0;
    for (const name of names) {
      output.progress(`Looking into ${quoted(name)} ...`);
      const queue =
        words.length === 2 ? await session.open(name) : await inspector.open(name, signal);
      const found = await locate(queue, wanted, { signal });
      if (found.mayBeReady) mayBeReady.push(name);
      count += found.sightings.length;
      await print(session, wanted, queue, found, payload);
    }
    if (count > 0) return EXIT.done;
    const where =
      words.length === 2
        ? `in queue ${quoted(names[0] ?? "")}`
        : `in any of ${names.length} queues`;
    output.say(`${quoted(wanted)} is not ${where}.`);
    for (const name of mayBeReady) {
      output.say(
        `It may be ready in ${quoted(name)}: what is ready in a plain queue has neither id nor key.`,
      );
    }
    if (isJson) await output.json({ wanted, found: false, mayBeReadyIn: mayBeReady });
    return EXIT.nothing;
  },
});

async function print(
  { output, isJson }: Session,
  wanted: string,
  { name, stats }: InspectedQueue,
  { sightings }: Location,
  withPayload: boolean,
): Promise<void> {
  for (const seen of sightings) {
    if (isJson) {
      await output.json(sightingJson(seen, withPayload));
      continue;
    }
    const head = `${quoted(wanted)} is ${seen.state} in queue ${quoted(name)}.`;
    await output.print(head, ...describe(seen, stats.serverTime, withPayload));
  }
}
