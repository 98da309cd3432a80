import { quoted } from "../printing/output.ts";
import { formatCount } from "../printing/table.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { confirm } from "../session/confirm.ts";
import { EXIT } from "../session/exit-code.ts";
import { findMessages } from "../session/find-messages.ts";

export const deliverNow = defineCommand({
  usage: "deliver-now <queue> <id or key>...",
  help: `Makes delayed messages due now, and retrying ones if you give their ids. They become ready
as soon as a running process transfers them.`,
  words: [2, 1000],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = "", ...wanted], values) {
    const queue = await session.open(name);
    const { output, signal } = session;
    const found = await findMessages(session, queue, wanted);
    if (found.length === 0) return EXIT.nothing;
    const what = `${formatCount(found.length, "message")} of queue ${quoted(name)}`;
    if (!(await confirm(session, `deliver ${what} now`, values))) return EXIT.done;
    let count = 0;
    for (const idOrKey of found) {
      if ((await queue.messages.promote(idOrKey, { signal })) !== undefined) count++;
    }
    if (session.isJson) await output.json({ queue: name, due: count });
    else {
      const due = `${formatCount(count, "message")} of queue ${quoted(name)}`;
      await output.print(`Made ${due} due now.`);
    }
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});
