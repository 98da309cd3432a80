import { once } from "node:events";
import { serveDashboard } from "../../dashboard/index.ts";
import { MachineError, parseCount } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";

export const dashboard = defineCommand({
  usage: "dashboard [--port <port>] [--write] [--payloads]",
  help: `Serves a web page that shows the queues, until Ctrl-C. Only this machine can reach it. It
changes nothing unless you give --write. To serve it to others, mount delayline/dashboard in
a server of your own that checks who may see it.`,
  words: [0, 0],
  options: {
    port: { type: "string", value: "<port>", short: "p" },
    host: { type: "string", value: "<address>" },
    write: { type: "boolean" },
    payloads: { type: "boolean" },
  },
  optionHelp: {
    port: "listens on this port; 0 picks a free one; defaults to 8425",
    host: "listens on this loopback address; defaults to 127.0.0.1",
    write: "lets everybody on this machine change the queues",
    payloads: "shows payloads",
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
    }).catch((error: unknown) => {
      throw refusalOf(error) ?? error;
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

/** What the error of `listen` means; undefined if it is another error. */
function refusalOf(error: unknown): MachineError | undefined {
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & {
    readonly address?: string;
    readonly port?: number;
  };
  // The name of a host is looked up first.
  if (syscall !== "listen" && syscall !== "getaddrinfo") return undefined;
  const what = port === undefined ? "the address" : `port ${port} of ${address}`;
  const why = code === "EADDRINUSE" ? "it is in use" : `${code}`;
  return new MachineError(
    `cannot serve the dashboard at ${what}: ${why}; give another --port, or 0 for a free one`,
    EXIT.address,
    { cause: error },
  );
}
