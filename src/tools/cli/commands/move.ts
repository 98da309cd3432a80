import { Delayline } from "../../../index.ts";
import { sleepForNetwork } from "../../../inside.ts";
import { escapeControl } from "../../view/text.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { quoted } from "../session/output.ts";
import type { Session } from "../session/session.ts";

export const move = defineCommand({
  usage: "move [queue]...",
  help: `Makes due messages ready, until Ctrl-C or SIGTERM, and takes none: so that workers can be
scaled to zero, or written in Java. Without names it moves those of all queues, and looks for
new ones once a minute. Plans schedules whose payloads are not made by code. Several of them
may run: one moves, the others stand by.`,
  words: [0, Infinity],
  options: {},
  optionHelp: {},
  async run(session, names) {
    const { addresses, output, isJson, signal } = session;
    // Refuses an address or a queue that does not exist.
    await session.inspector();
    for (const name of names) await session.open(name);
    const line = new Delayline({ redis: addresses.redis, ...session.options });
    line.on("error", (error) => output.say(escapeControl(error.message)));
    try {
      const moved = new Set<string>();
      do {
        const some = names.length > 0 ? names : await namesIn(session);
        const fresh = some.filter((name) => !moved.has(name));
        for (const name of fresh) {
          await openFor(line, name);
          moved.add(name);
          if (isJson) await output.json({ queue: name });
          else await output.print(`Moving the messages of queue ${quoted(name)}.`);
        }
        if (moved.size === 0) output.say("There is no queue yet.");
        // With names there is nothing to look for.
        await sleepForNetwork(names.length > 0 ? LONG : MINUTE, signal);
      } while (!signal.aborted);
    } finally {
      await line.close();
    }
    return EXIT.interrupted;
  },
});

async function namesIn(session: Session): Promise<readonly string[]> {
  return await (await session.inspector()).names(session.signal);
}

/** Opens the handle that moves what is due, retries of a reliable queue included. */
async function openFor(line: Delayline, name: string): Promise<void> {
  const { kind } = await line.stats(name);
  if (kind === "reliable") line.getReliableQueue(name);
  else line.getDelayedQueue(name);
}

/** Milliseconds. */
const MINUTE = 60_000;

/** Milliseconds; the longest that a timer of Node lasts is a little more. */
const LONG = 2 ** 31 - 1;
