import { once } from "node:events";
import { serveDashboard } from "../../dashboard/index.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { parseCount } from "../words/parse-count.ts";

export const dashboard = defineCommand({
  usage: "dashboard [--port <port>] [--write] [--payloads]",
  help: `Serves a page that shows the queues, on this machine alone, until Ctrl-C. It only shows,
unless --write is given. For others than this machine, mount delayline/dashboard in a server
of yours that knows who may see it.`,
  words: [0, 0],
  options: {
    port: { type: "string", short: "p" },
    host: { type: "string" },
    write: { type: "boolean" },
    payloads: { type: "boolean" },
  },
  optionHelp: {
    port: "which port; defaults to 8425, 0 is one that is free",
    host: "a loopback address; defaults to 127.0.0.1",
    write: "lets everybody on this machine change the queues",
    payloads: "lets payloads be looked at",
  },
  async run(session, _, { port = "8425", host, write = false, payloads = false }) {
    const { addresses, output, isJson, signal } = session;
    await session.inspector();
    const served = await serveDashboard({
      redis: addresses.redis,
      ...session.options,
      port: parseCount("--port", port, 0, 65_535),
      ...(host !== undefined && { host }),
      readOnly: !write,
      payloads,
    });
    try {
      if (isJson) await output.json({ url: served.url });
      else await output.print(`The queues of ${addresses.shown} are at ${served.url}`);
      if (!signal.aborted) await once(signal, "abort");
    } finally {
      await served.close();
    }
    return EXIT.interrupted;
  },
});
