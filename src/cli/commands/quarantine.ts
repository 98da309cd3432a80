import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { payloadJson, payloadLine } from "../printing/message-view.ts";
import { quoted } from "../printing/output.ts";
import { parseCount } from "../words/parse-count.ts";
import { subWord } from "../words/sub-word.ts";
import { formatCount } from "../printing/table.ts";

export const quarantine = defineCommand({
  usage: "quarantine list|requeue|remove <queue>",
  help: `What nobody could read of a queue's messages.
  list     prints how large each is; with --payload what is in it
  requeue  puts payloads back to the ready messages, oldest first
  remove   drops all for good
Whole messages of an unknown layout cannot be requeued.`,
  words: [2, 2],
  options: { ...CHANGING, limit: { type: "string" }, payload: { type: "boolean" } },
  optionHelp: {
    ...CHANGING_HELP,
    limit: "of requeue: how many at most; defaults to all",
    payload: "of list: shows payloads, readable and escaped",
  },
  async run(session, [word, name = ""], values) {
    const what = subWord("quarantine", word, ["list", "requeue", "remove"]);
    const { limit, payload: withPayload = false } = values;
    const most = limit === undefined ? undefined : parseCount("--limit", limit, 0, 2 ** 40);
    const { stats, messages } = await session.open(name);
    const { output, isJson, signal } = session;
    if (stats.quarantined === 0) {
      output.say(`The quarantine of queue ${quoted(name)} is empty.`);
      return EXIT.nothing;
    }
    if (what === "list") {
      for await (const bytes of messages.quarantine) {
        signal.throwIfAborted();
        if (isJson)
          await output.json({ size: bytes.length, ...(withPayload && payloadJson(bytes)) });
        else await output.print(`${formatCount(bytes.length)} bytes`);
        if (withPayload && !isJson) await output.print(payloadLine(bytes));
      }
      return EXIT.done;
    }
    const count = formatCount(
      Math.min(stats.quarantined, what === "remove" ? Infinity : (most ?? Infinity)),
    );
    const doing = `${what} ${count} payload(s) of queue ${quoted(name)}`;
    if (!(await session.mayChange(doing, values))) return EXIT.done;
    const done =
      what === "remove"
        ? await messages.quarantine.clear({ signal })
        : await messages.quarantine.requeue(most, { signal });
    if (isJson) await output.json({ queue: name, [what]: done });
    else
      await output.print(
        `${what === "remove" ? "Removed" : "Requeued"} ${formatCount(done)} payload(s).`,
      );
    return done > 0 ? EXIT.done : EXIT.nothing;
  },
});
