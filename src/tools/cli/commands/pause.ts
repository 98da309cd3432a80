import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { quoted } from "../session/output.ts";
import { confirm } from "../session/session.ts";

export const pause = defineCommand({
  usage: "pause <queue>",
  help: `Pauses a queue for every process, across restarts, until delayline resume: nothing becomes
ready, and nothing is delivered. Messages can still be offered and cancelled.`,
  words: [1, 1],
  options: CHANGING,
  optionHelp: CHANGING_HELP,
  async run(session, [name = ""], values) {
    const { messages } = await session.open(name);
    if (!(await confirm(session, `pause queue ${quoted(name)}`, values))) return EXIT.done;
    await messages.pause({ signal: session.signal });
    if (session.isJson) await session.output.json({ queue: name, isPaused: true });
    else await session.output.print(`Paused queue ${quoted(name)}.`);
    return EXIT.done;
  },
});

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
