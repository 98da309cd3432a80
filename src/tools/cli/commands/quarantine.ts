import { parseCount, parseSubWord } from "../session/arguments.ts";
import { payloadJson, payloadLine } from "../session/message-view.ts";
import { quoted } from "../session/output.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { confirm } from "../session/session.ts";
import { formatCount } from "../../view/words.js";

export const quarantine = defineCommand({
  usage: "quarantine list|requeue|remove <queue>",
  help: `Lists, requeues or removes the quarantine of a queue: messages that no consumer could read.
  list     lists the size of each message
  requeue  moves payloads back to the ready messages, oldest first
  remove   removes all of them for good
Messages of unknown layout cannot be requeued.`,
  words: [2, 2],
  options: {
    ...CHANGING,
    limit: { type: "string", value: "<count>" },
    payload: { type: "boolean" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    limit: "requeues no more than this many; defaults to all",
    payload: "shows payloads in readable form, with list",
  },
  async run(session, [word, name = ""], values) {
    const what = parseSubWord("quarantine", word, ["list", "requeue", "remove"]);
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
        else await output.print(formatCount(bytes.length, "byte"));
        if (withPayload && !isJson) await output.print(payloadLine(bytes));
      }
      return EXIT.done;
    }
    const count = Math.min(stats.quarantined, what === "remove" ? Infinity : (most ?? Infinity));
    const change = `${what} ${formatCount(count, "payload")} of queue ${quoted(name)}`;
    if (!(await confirm(session, change, values))) return EXIT.done;
    const done =
      what === "remove"
        ? await messages.quarantine.clear({ signal })
        : await messages.quarantine.requeue(most, { signal });
    if (isJson) await output.json({ queue: name, [what]: done });
    else
      await output.print(
        `${what === "remove" ? "Removed" : "Requeued"} ${formatCount(done, "payload")} of queue ${quoted(name)}.`,
      );
    return done > 0 ? EXIT.done : EXIT.nothing;
  },
});
