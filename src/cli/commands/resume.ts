import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { quoted } from "../printing/output.ts";

export const resume = defineCommand({
  usage: "resume <queue>",
  help: `Lets a paused queue go on. What fell due meanwhile becomes ready at once, in order.`,
  words: [1, 1],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = ""], values) {
    const { messages } = await session.open(name);
    if (!(await session.mayChange(`resume queue ${quoted(name)}`, values))) return EXIT.done;
    await messages.resume({ signal: session.signal });
    if (session.isJson) await session.output.json({ queue: name, isPaused: false });
    else await session.output.print(`Queue ${quoted(name)} goes on.`);
    return EXIT.done;
  },
});
