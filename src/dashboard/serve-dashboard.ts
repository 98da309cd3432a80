import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dashboard } from "./dashboard.ts";
import { isLoopback } from "./http/guard.ts";
import { nodeHandler } from "./http/node-handler.ts";
import { serveSettings, type ServeOptions } from "./http/options.ts";

/** A dashboard with a server of its own. */
export interface ServedDashboard extends AsyncDisposable {
  /** Where it is. */
  readonly url: string;
  /** Ends the server, its connections, and the dashboard. May be called twice. */
  close(): Promise<void>;
}

/**
 * Serves a dashboard by itself. On anything but the loopback it refuses to start without `authorize`.
 *
 * @throws {TypeError | RangeError} if an option is not legal, or `authorize` is missing.
 * @throws what `listen` fails with, as when the port is taken.
 */
export async function serveDashboard(options?: ServeOptions): Promise<ServedDashboard> {
  const { host, port, dashboard: boardOptions } = serveSettings(options);
  if (!isLoopback(host) && boardOptions.authorize === undefined) {
    throw new TypeError(
      `authorize must be given to serve the dashboard on "${host}": everybody who reaches that address could see the queues`,
    );
  }
  const board = dashboard(boardOptions);
  const server = createServer(nodeHandler(board));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  let closing: Promise<void> | undefined;
  const end = async () => {
    const ended = new Promise((resolve) => server.close(resolve));
    await board.close();
    server.closeAllConnections();
    await ended;
  };
  const close = () => (closing ??= end());
  return {
    url: `http://${name}:${address.port}${boardOptions.basePath ?? ""}/`.replace(/\/+$/, "/"),
    close,
    [Symbol.asyncDispose]: close,
  };
}
