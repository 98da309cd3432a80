import { Redis } from "ioredis";

/** A server's report about itself. */
export interface ServerInfo {
  /** `redis` or `valkey`. */
  readonly name: string;
  /** Its version, such as `7.0.15`. */
  readonly version: string;
  /** Its process id, on its own machine. */
  readonly processId: number;
}

/**
 * Asks a server once for its name and version.
 *
 * @param timeout how long connecting may take, and then the answer, in milliseconds.
 * @throws {Error} if the server does not answer, is still loading its data, or refuses.
 */
export async function probe(url: string, timeout: number): Promise<ServerInfo> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    enableReadyCheck: false,
    connectTimeout: timeout,
    commandTimeout: timeout,
    // Otherwise ioredis waits even for connections that have already ended, which keeps the process alive.
    disconnectTimeout: 0,
  });
  // The event says why a connection failed. The calls below only report that it is closed.
  let failure: Error | undefined;
  client.on("error", (error) => (failure ??= error));
  try {
    await client.connect();
    await client.ping();
    return parseInfo(await client.info("server"));
  } catch (error) {
    throw failure ?? error;
  } finally {
    client.disconnect();
  }
}

function parseInfo(info: string): ServerInfo {
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*)\r?$`, "m").exec(info)?.[1]?.trim();
  return {
    name: field("server_name") ?? "redis",
    // Valkey's redis_version is the version of Redis that it is compatible with.
    version: field("valkey_version") ?? field("redis_version") ?? "of unknown version",
    processId: Number(field("process_id")),
  };
}
