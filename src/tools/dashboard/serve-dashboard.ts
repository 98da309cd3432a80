import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dashboard } from "./dashboard.ts";
import { serveSettings, type ServeOptions } from "./dashboard-options.ts";
import { isLoopback } from "./http/admission.ts";
import { nodeHandler } from "./http/node-handler.ts";

/** A dashboard with an HTTP server of its own, made by {@link serveDashboard}. */
export interface ServedDashboard extends AsyncDisposable {
  /** The URL of the page. */
  readonly url: string;
  /** Closes the server, its connections, and the dashboard. May be called twice. */
  close(): Promise<void>;
}

/**
 * Serves a dashboard from an HTTP server of its own. Refuses any `host` except loopback without `authorize`.
 *
 * @throws {TypeError | RangeError} if an option is not legal, or `authorize` is missing.
 * @throws the error of `listen`, for example if the port is taken (`EADDRINUSE`).
 */
export async function serveDashboard(options?: ServeOptions): Promise<ServedDashboard> {
  const { host, port, dashboard: boardOptions } = serveSettings(options);
  if (!isLoopback(host) && boardOptions.authorize === undefined) {
    throw new TypeError(
      `authorize must be given to serve on "${host}": everyone who can reach that address could see the queues`,
    );
  }
  const board = dashboard(boardOptions);
  const server = createServer(nodeHandler(board));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  }).catch(async (error: unknown) => {
    await board.close();
    throw error;
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
