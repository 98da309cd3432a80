import { once } from "node:events";
import { exportQueue } from "../../inspect/export-queue.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { NewFile } from "../command/new-file.ts";
import { quoted, toJson } from "../printing/output.ts";
import { formatCount } from "../printing/table.ts";

export const exportCommand = defineCommand({
  usage: "export <queue> [file]",
  help: `Writes a queue to a file, or to stdout: first a line about the queue, then one line of JSON
for each message, payloads in base64. Nothing is taken. It is no snapshot: to have each
message exactly once, pause the queue and let its handlers finish.`,
  words: [1, 2],
  options: { force: { type: "boolean" } },
  optionHelp: { force: "replaces a file that is there" },
  async run(session, [name = "", path], { force = false }) {
    const { output, io, signal } = session;
    const queue = await session.open(name);
    // Payloads are for the owner's eyes.
    const file = path === undefined ? undefined : await NewFile.open(path, force);
    // The first and the last line are no messages.
    let count = -2;
    let unknown = 0;
    let lines: string[] = [];
    const flush = async () => {
      const text = lines.join("");
      lines = [];
      if (file !== undefined) await file.write(text);
      // As bytes: a stream encodes a long string much more slowly.
      else if (!io.stdout.write(Buffer.from(text))) await once(io.stdout, "drain", { signal });
    };
    try {
      for await (const record of exportQueue(queue, { signal, onUnknown: () => unknown++ })) {
        lines.push(`${toJson(record)}\n`);
        if (++count % STEP !== 0 || count <= 0) continue;
        await flush();
        output.progress(`Exported ${formatCount(count)} messages`);
      }
      await flush();
      await file?.finish();
    } finally {
      await file?.discard();
    }
    output.say(`Exported ${formatCount(count)} message(s) of queue ${quoted(name)}.`);
    if (unknown > 0) {
      const left = `${formatCount(unknown)} delayed member(s) of an unknown layout`;
      session.hint(`Left out: ${left}.`, "More about them", "doctor", name);
    }
    return EXIT.done;
  },
});

const STEP = 1000;
