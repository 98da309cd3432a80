import { escapeControl } from "../../inspect/escape-control.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

export const queues = defineCommand({
  usage: "queues",
  help: `Lists the names of all queues in alphabetical order. Scans the names of all keys in the
database. A plain queue that holds only ready messages is listed until an hour after the
last transfer.`,
  words: [0, 0],
  options: {},
  optionHelp: {},
  async run(session) {
    const { output, isJson, signal } = session;
    const names = await (await session.inspector()).names(signal);
    for (const name of names) {
      if (isJson) await output.json({ queue: name });
      else await output.print(escapeControl(name));
    }
    if (names.length === 0) output.say("There are no queues.");
    return names.length > 0 ? EXIT.done : EXIT.nothing;
  },
});
