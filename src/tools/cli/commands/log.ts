import { wordsOf } from "../../view/activity.ts";
import { formatInstant } from "../../view/instants.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { LIMIT, LIMIT_HELP, parseLimit } from "../session/message-view.ts";
import { quoted } from "../session/output.ts";

export const log = defineCommand({
  usage: "log <queue>",
  help: `Shows what people and processes did to a queue, the newest first: paused and resumed, messages
cancelled by prefix, dead letters redriven or removed, schedules declared, partitions set. Redis
keeps the last 200 entries, for 90 days after the last one.`,
  words: [1, 1],
  options: LIMIT,
  optionHelp: LIMIT_HELP,
  async run(session, [name = ""], { limit }) {
    const most = parseLimit(limit);
    const { output, isJson, signal } = session;
    const { inside } = await session.open(name);
    const entries = (await inside.activity({ signal })).slice(0, most);
    if (isJson) for (const entry of entries) await output.json({ queue: name, ...entry });
    else if (entries.length === 0) output.say(`The log of queue ${quoted(name)} is empty.`);
    else {
      const rows = entries.map((entry) => [
        formatInstant(entry.at),
        entry.by ?? "",
        wordsOf(entry),
      ]);
      await output.table([{ title: "AT" }, { title: "BY" }, { title: "WHAT" }], rows);
    }
    return entries.length === 0 ? EXIT.nothing : EXIT.done;
  },
});
