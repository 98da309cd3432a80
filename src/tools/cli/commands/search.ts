import type { InspectedQueue } from "../../inspect/inspector.ts";
import { sightMessage, type Sighting } from "../../inspect/sighting.ts";
import { packTrailer } from "../../../queue/message/trailer.ts";
import { UsageError } from "../parsing/usage-error.ts";
import { quoted } from "../printing/output.ts";
import { printMessages } from "../printing/print-messages.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

export const search = defineCommand({
  usage: "search [queue] --prefix <prefix>",
  help: `Finds the delayed messages whose keys begin with a prefix, in no particular order. Searches
all queues unless you name one. Reads every key of a queue, in bounded steps.`,
  words: [0, 1],
  options: { prefix: { type: "string", value: "<prefix>" }, payload: { type: "boolean" } },
  optionHelp: {
    prefix: "finds keys that begin with this, such as order:",
    payload: "shows payloads in readable form",
  },
  async run(session, [name], { prefix = "", payload = false }) {
    if (prefix === "") throw new UsageError("give a --prefix that is not empty");
    const { output, isJson, signal } = session;
    let count = 0;
    const look = async (queue: InspectedQueue) => {
      if (name === undefined && !isJson) output.progress(`Searching ${quoted(queue.name)} ...`);
      const found = withPrefix(queue, prefix, signal);
      count += await printMessages(session, found, queue.stats.serverTime, payload);
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    if (count === 0) output.say(`No delayed message has a key that begins with ${quoted(prefix)}.`);
    if (refused > 0) return EXIT.redis;
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});

async function* withPrefix(
  { name, messages }: InspectedQueue,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<Sighting, void, void> {
  for await (const message of messages.find({ prefix }, { signal })) {
    const { key = "", headers = {} } = message;
    const payload = Buffer.from(message.payload);
    const trailer = packTrailer({ key, headers });
    yield sightMessage({ queue: name, partition: undefined }, { ...message, payload, trailer });
  }
}
