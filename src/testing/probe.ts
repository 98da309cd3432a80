import { Redis } from "ioredis";

/** What a server says of itself. */
export interface ServerInfo {
  /** `redis` or `valkey`. */
  readonly name: string;
  /** Its version, such as `7.0.15`. */
  readonly version: string;
  /** Its process id, on its own machine. */
  readonly processId: number;
}

/**
 * Asks a server who it is, once.
 *
 * @param timeout how long it may take to connect, and then to answer, in milliseconds.
 * @throws {Error} if it does not answer, is still loading its data, or refuses to tell.
 */
export async function probe(url: string, timeout: number): Promise<ServerInfo> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    enableReadyCheck: false,
    connectTimeout: timeout,
    commandTimeout: timeout,
    // ioredis waits for the end of connections that have ended already, and keeps the process alive.
    disconnectTimeout: 0,
  });
  // This tells why a connection failed. The calls below only say that it is closed.
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
    // Valkey tells the version of Redis that it is compatible with as redis_version.
    version: field("valkey_version") ?? field("redis_version") ?? "of unknown version",
    processId: Number(field("process_id")),
  };
}
