import { quoted } from "../printing/output.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { confirm } from "../session/confirm.ts";
import { EXIT } from "../session/exit-code.ts";

export const resume = defineCommand({
  usage: "resume <queue>",
  help: `Resumes a paused queue. Messages that fell due during the pause become ready at once, in
order.`,
  words: [1, 1],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = ""], values) {
    const { messages } = await session.open(name);
    if (!(await confirm(session, `resume queue ${quoted(name)}`, values))) return EXIT.done;
    await messages.resume({ signal: session.signal });
    if (session.isJson) await session.output.json({ queue: name, isPaused: false });
    else await session.output.print(`Resumed queue ${quoted(name)}.`);
    return EXIT.done;
  },
});
