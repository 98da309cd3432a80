import { changeWaiting } from "../../view/change.ts";
import { UsageError } from "../session/arguments.ts";
import { quoted } from "../session/output.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { confirm, findMessages, outcome } from "../session/session.ts";
import { formatCount } from "../../view/words.js";

export const cancel = defineCommand({
  usage: "cancel <queue> (<id or key>... | --prefix <prefix>)",
  help: `Cancels delayed and retrying messages. Cancelled messages are never delivered. Messages that
are ready, in flight or dead stay. If some are not found, the others are cancelled, and the
exit code is 5.`,
  words: [1, 1000],
  options: { ...CHANGING, prefix: { type: "string", value: "<prefix>" } },
  optionHelp: {
    ...CHANGING_HELP,
    prefix: "cancels all delayed and retrying messages whose keys begin with this, such as order:",
  },
  async run(session, [name = "", ...wanted], values) {
    const { prefix } = values;
    if ((prefix === undefined) === (wanted.length === 0) || prefix === "") {
      throw new UsageError("give ids or keys, or a --prefix that is not empty");
    }
    const queue = await session.open(name);
    const { output, signal } = session;
    const asked = [...new Set(wanted)];
    const isPrefix = prefix !== undefined;
    const named = isPrefix ? [] : [...(await findMessages(session, queue, asked)).keys()];
    const found = isPrefix
      ? (await queue.messages.cancelWhere({ prefix }, { dryRun: true, signal })).count
      : named.length;
    if (found === 0) {
      if (isPrefix)
        output.say(`No message that waits has a key that begins with ${quoted(prefix)}.`);
      return EXIT.nothing;
    }
    const what = `${formatCount(found, "message")} of queue ${quoted(name)}`;
    if (!(await confirm(session, `cancel ${what}`, values))) return outcome(found, asked);
    const count = isPrefix
      ? (await queue.messages.cancelWhere({ prefix }, { signal })).count
      : await changeWaiting(queue, "cancel", named, { signal });
    if (session.isJson) await output.json({ queue: name, cancelled: count });
    else await output.print(`Cancelled ${formatCount(count, "message")} of queue ${quoted(name)}.`);
    return outcome(count, asked);
  },
});
