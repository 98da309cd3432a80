import { once } from "node:events";
import { createServer } from "node:net";
import { randomInt } from "node:crypto";

/**
 * A TCP port on 127.0.0.1 that nobody listens on at the moment.
 *
 * Another process may take it before the caller does, so a server that cannot listen on it should try another port.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    // Below the ports that kernels use for outgoing connections (from 32768 on Linux, 49152 on macOS). A client that
    // keeps reconnecting to a port in that range while its server is down may connect to itself, and the server then
    // cannot get its port back.
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
