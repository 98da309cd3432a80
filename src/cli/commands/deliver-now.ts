import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { findMessages } from "../command/find-messages.ts";
import { quoted } from "../printing/output.ts";
import { formatCount } from "../printing/table.ts";

export const deliverNow = defineCommand({
  usage: "deliver-now <queue> <id or key>...",
  help: `Makes delayed messages due now, and by their ids retrying ones. Some process that moves the
queue's messages makes them ready.`,
  words: [2, 1000],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = "", ...wanted], values) {
    const queue = await session.open(name);
    const { output, signal } = session;
    const found = await findMessages(session, queue, wanted);
    if (found.length === 0) return EXIT.nothing;
    const what = `${formatCount(found.length)} message(s) of queue ${quoted(name)}`;
    if (!(await session.mayChange(`deliver ${what} now`, values))) return EXIT.done;
    let count = 0;
    for (const idOrKey of found) {
      if ((await queue.messages.promote(idOrKey, { signal })) !== undefined) count++;
    }
    if (session.isJson) await output.json({ queue: name, due: count });
    else
      await output.print(`${formatCount(count)} message(s) of queue ${quoted(name)} are due now.`);
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});
