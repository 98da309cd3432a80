import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { exportQueue } from "../../inspect/export-queue.ts";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-code.ts";
import { quoted, toJson } from "../output.ts";
import { formatCount } from "../table.ts";

export const exportCommand = defineCommand({
  usage: "export <queue> [file]",
  help: `Writes a queue to a file, or to stdout: first a line about the queue, then one line of JSON
for each message, payloads in base64. Nothing is taken. It is no snapshot: to have each
message exactly once, pause the queue and let its handlers finish.`,
  words: [1, 2],
  options: {},
  optionHelp: {},
  async run(session, [name = "", path]) {
    const { output, io, signal } = session;
    const queue = await session.open(name);
    // Payloads are for the owner's eyes.
    const file = path === undefined ? io.stdout : createWriteStream(path, { mode: 0o600 });
    if (path !== undefined) await once(file, "open", { signal });
    // The first and the last line are no messages.
    let count = -2;
    let lines: string[] = [];
    const flush = async () => {
      const isReady = file.write(lines.join(""));
      lines = [];
      if (!isReady) await once(file, "drain", { signal });
    };
    for await (const record of exportQueue(queue, { signal })) {
      lines.push(`${toJson(record)}\n`);
      if (++count % STEP !== 0 || count <= 0) continue;
      await flush();
      output.progress(`Exported ${formatCount(count)} messages`);
    }
    await flush();
    if (path !== undefined) {
      file.end();
      await finished(file);
    }
    output.say(`Exported ${formatCount(count)} message(s) of queue ${quoted(name)}.`);
    return EXIT.done;
  },
});

const STEP = 1000;
