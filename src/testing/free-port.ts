import { once } from "node:events";
import { createServer } from "node:net";
import { randomInt } from "node:crypto";

/**
 * A TCP port on 127.0.0.1 that nobody listens on at the moment.
 *
 * Somebody may take it before the caller does, so a server that fails to listen should try another.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    // Below the ports that kernels give to outgoing connections (from 32768 on Linux, 49152 on
    // macOS). A client that keeps reconnecting to a port in that range while its server is down
    // ends up connected to itself one day, and then the server cannot have its port back.
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
