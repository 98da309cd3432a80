import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { quoted } from "../printing/output.ts";

export const pause = defineCommand({
  usage: "pause <queue>",
  help: `Pauses a queue until delayline resume, for every process and across restarts: nothing
becomes ready, and nothing is handed out. Offers and cancellations go on.`,
  words: [1, 1],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = ""], values) {
    const { messages } = await session.open(name);
    if (!(await session.mayChange(`pause queue ${quoted(name)}`, values))) return EXIT.done;
    await messages.pause({ signal: session.signal });
    if (session.isJson) await session.output.json({ queue: name, isPaused: true });
    else await session.output.print(`Queue ${quoted(name)} is paused.`);
    return EXIT.done;
  },
});
