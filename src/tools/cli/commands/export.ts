import { once } from "node:events";
import { exportQueue } from "../../inspect/export-queue.ts";
import { NewFile } from "../printing/new-file.ts";
import { quoted, toJson } from "../printing/output.ts";
import { formatCount } from "../printing/table.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

export const exportCommand = defineCommand({
  usage: "export <queue> [file]",
  help: `Writes a queue to a file, or to stdout: one line about the queue, one line of JSON per
message with its payload in base64, and one line at the end. The queue keeps its messages.
An export is not a snapshot: to get each message exactly once, pause the queue and let its
handlers finish first.`,
  words: [1, 2],
  options: { force: { type: "boolean" } },
  optionHelp: { force: "replaces an existing file" },
  async run(session, [name = "", path], { force = false }) {
    const { output, io, signal } = session;
    const queue = await session.open(name);
    const file = path === undefined ? undefined : await NewFile.open(path, force);
    // The first and the last line are not messages.
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
        output.progress(`Exported ${formatCount(count, "message")}`);
      }
      await flush();
      await file?.finish();
    } finally {
      await file?.discard();
    }
    output.say(`Exported ${formatCount(count, "message")} of queue ${quoted(name)}.`);
    if (unknown > 0) {
      const left = `${formatCount(unknown, "delayed member")} of unknown layout`;
      session.hint(`Left out ${left}.`, "To learn more", "doctor", name);
    }
    return EXIT.done;
  },
});

/** Lines per write. */
const STEP = 1000;
