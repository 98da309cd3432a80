import type { Inspect, ProxyConnection, TcpProxy } from "./tcp-proxy.ts";

/**
 * Tells the connections behind a proxy apart, by the names that they give themselves.
 *
 * Occupies the proxy's `onRequest`; a test uses the `onRequest` here instead.
 */
export class Roles {
  /** Called with every chunk from a client. */
  onRequest: Inspect | undefined;
  readonly #proxy: TcpProxy;
  readonly #names = new WeakMap<ProxyConnection, string>();

  constructor(proxy: TcpProxy) {
    this.#proxy = proxy;
    proxy.onRequest = (chunk, connection) => {
      const name = /setname\r\n\$\d+\r\n([^\r]+)\r\n/i.exec(chunk.toString("latin1"))?.[1];
      if (name !== undefined) this.#names.set(connection, name);
      return this.onRequest?.(chunk, connection);
    };
  }

  /** The name of a connection, such as `delayline:subscriber`. */
  nameOf(connection: ProxyConnection): string | undefined {
    return this.#names.get(connection);
  }

  /** The connections of a role (`subscriber`, `blocking`, `background`, `commands`) that are open now. */
  all(role: string): ProxyConnection[] {
    return this.#proxy.connections.filter((connection) => {
      const name = this.nameOf(connection) ?? "";
      return name === `delayline:${role}` || name.startsWith(`delayline:${role}:`);
    });
  }

  /** The one connection of a role. */
  only(role: string): ProxyConnection {
    const [connection, ...others] = this.all(role);
    if (connection === undefined || others.length > 0) {
      throw new Error(`${others.length + (connection ? 1 : 0)} connections have the role ${role}`);
    }
    return connection;
  }
}
