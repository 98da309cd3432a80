import { escapeControl } from "../../inspect/escape-control.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";

export const queues = defineCommand({
  usage: "queues",
  help: `Prints the names of all queues, in alphabetical order. Reads the names of all keys of
the database. A plain queue with nothing but ready messages is found for an hour after the
last was moved.`,
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
