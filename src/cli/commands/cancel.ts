import type { InspectedQueue } from "../../inspect/inspector.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { quoted } from "../printing/output.ts";
import { findMessages } from "../command/find-messages.ts";
import type { Session } from "../command/session.ts";
import { formatCount } from "../printing/table.ts";
import { UsageError } from "../words/usage-error.ts";

export const cancel = defineCommand({
  usage: "cancel <queue> (<id or key>... | --prefix <prefix>)",
  help: `Cancels delayed messages, and by their ids retrying ones: they will never be delivered.
What is ready, in flight or dead stays.`,
  words: [1, 1000],
  options: { ...CHANGING, prefix: { type: "string" } },
  optionHelp: { ...CHANGING_HELP, prefix: "all whose keys begin so, such as order:" },
  async run(session, [name = "", ...wanted], values) {
    const { prefix } = values;
    if ((prefix === undefined) === (wanted.length === 0) || prefix === "") {
      throw new UsageError("name ids or keys, or give a --prefix that is not empty");
    }
    const queue = await session.open(name);
    const { output, signal } = session;
    const isPrefix = prefix !== undefined;
    const named = isPrefix ? [] : await findMessages(session, queue, wanted);
    const found = isPrefix
      ? (await queue.messages.cancelWhere({ prefix }, { dryRun: true, signal })).count
      : named.length;
    if (found === 0) {
      if (isPrefix) output.say(`No delayed message has a key that begins with ${quoted(prefix)}.`);
      return EXIT.nothing;
    }
    const what = `${formatCount(found)} message(s) of queue ${quoted(name)}`;
    if (!(await session.mayChange(`cancel ${what}`, values))) return EXIT.done;
    const count = isPrefix
      ? (await queue.messages.cancelWhere({ prefix }, { signal })).count
      : await cancelEach(session, queue, named);
    if (session.isJson) await output.json({ queue: name, cancelled: count });
    else await output.print(`Cancelled ${formatCount(count)} message(s) of queue ${quoted(name)}.`);
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});

async function cancelEach(
  { signal }: Session,
  { messages }: InspectedQueue,
  wanted: readonly string[],
): Promise<number> {
  const verdicts = await messages.cancelMany(wanted, { signal });
  return verdicts.filter(Boolean).length;
}
