import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { freePort } from "../../src/adapters/testing/server-process.ts";

/** Which way bytes flow: a request from the client to Redis, a reply from Redis to the client. */
export type Direction = "request" | "reply";

/** What to do with a chunk: pass it on (the default), lose it, or end the connection. */
export type Verdict = "forward" | "drop" | "cut";

/** Inspects a chunk, which may hold several commands, or a part of one. */
export type Inspect = (chunk: Buffer, connection: ProxyConnection) => Verdict | void;

/** Starts a proxy in front of the Redis at `url`, which is closed when the test has finished. */
export async function startProxy(url: string): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(url);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** A bad network between a client and Redis. Whatever happens to the bytes, they keep their order. */
export class TcpProxy {
  /** How late bytes arrive, in milliseconds. A change applies to chunks that arrive later. */
  readonly delay: Record<Direction, number> = { request: 0, reply: 0 };
  /** How many bytes a second each connection carries. A change applies to chunks that arrive later. */
  readonly rate: Record<Direction, number> = { request: Infinity, reply: Infinity };
  /** Called with every chunk from a client. */
  onRequest: Inspect | undefined;
  /** Called with every chunk from Redis. */
  onReply: Inspect | undefined;

  #target: URL;
  readonly #port: number;
  readonly #connections = new Set<ProxyConnection>();
  readonly #swallowed = new Set<Direction>();
  readonly #losses = new Set<Loss>();
  #server: Server | undefined;
  #lastId = 0;

  private constructor(target: URL, port: number) {
    this.#target = target;
    this.#port = port;
  }

  /** Resolves when the proxy listens on a port of 127.0.0.1. */
  static async start(url: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(url), await freePort());
    await proxy.accept();
    return proxy;
  }

  /** The URL to give to a client in place of Redis's own. */
  get url(): string {
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String(this.#port);
    return url.href;
  }

  get port(): number {
    return this.#port;
  }

  /** The open connections, in the order in which they were opened. */
  get connections(): ProxyConnection[] {
    return [...this.#connections];
  }

  /** How many connections have been accepted so far. Their ids count from 1. */
  get acceptedCount(): number {
    return this.#lastId;
  }

  /** Sends new connections to another Redis, as a changed DNS name does. Open connections stay. */
  moveTo(url: string): void {
    this.#target = new URL(url);
  }

  /** Closes all connections, as a crashing peer's kernel does. New ones are accepted. */
  cut(): void {
    for (const connection of this.connections) connection.cut();
  }

  /** Resets all connections (RST): clients see ECONNRESET. New ones are accepted. */
  reset(): void {
    for (const connection of this.connections) connection.reset();
  }

  /**
   * Loses all bytes in these directions, on all connections, until {@link TcpProxy.forward}.
   *
   * Sockets stay open, and neither side learns when the other one closes: the connections are half-open.
   */
  swallow(...directions: Direction[]): void {
    for (const direction of bothUnless(directions)) this.#swallowed.add(direction);
  }

  /** Ends {@link TcpProxy.swallow}. Lost bytes stay lost. */
  forward(): void {
    this.#swallowed.clear();
  }

  /**
   * Loses the reply to the next request that holds these bytes: Redis carries it out, and the client never learns.
   *
   * Resolves when the reply has arrived and is lost. The connection is then cut, or with `"swallow"` stays open but
   * silent. The next chunk on the same connection counts as the reply, so nothing else should be under way on it.
   */
  loseReplyTo(bytes: string | Buffer, how: "cut" | "swallow" = "cut"): Promise<ProxyConnection> {
    return new Promise((resolve) => {
      this.#losses.add({ bytes, how, lost: resolve, connection: undefined });
    });
  }

  /** Refuses new connections (ECONNREFUSED). Open connections stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Accepts new connections again, on the same port. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      this.#connect(client);
    });
    this.#server = server;
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
  }

  /** Ends everything. */
  async close(): Promise<void> {
    const closed = this.#server && once(this.#server, "close");
    this.refuse();
    this.cut();
    await closed;
  }

  #connect(client: Socket): void {
    const port = Number(this.#target.port || 6379);
    const host = this.#target.hostname.replace(/^\[|\]$/g, "");
    const upstream = connect({ port, host, allowHalfOpen: true, noDelay: true });
    const connection: ProxyConnection = new ProxyConnection(++this.#lastId, client, upstream, {
      delay: (direction) => this.delay[direction],
      rate: (direction) => this.rate[direction],
      isSwallowed: (direction) => this.#swallowed.has(direction),
      inspect: (direction, chunk) => this.#inspect(direction, chunk, connection),
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
  }

  #inspect(direction: Direction, chunk: Buffer, connection: ProxyConnection): Verdict {
    if (direction === "request") {
      for (const loss of this.#losses) {
        if (loss.connection === undefined && chunk.includes(loss.bytes))
          loss.connection = connection;
      }
      return this.onRequest?.(chunk, connection) ?? "forward";
    }
    for (const loss of this.#losses) {
      if (loss.connection !== connection) continue;
      this.#losses.delete(loss);
      if (loss.how === "swallow") connection.swallow("reply");
      loss.lost(connection);
      return loss.how === "cut" ? "cut" : "drop";
    }
    return this.onReply?.(chunk, connection) ?? "forward";
  }
}

/** A reply that is to be lost. */
interface Loss {
  readonly bytes: string | Buffer;
  readonly how: "cut" | "swallow";
  readonly lost: (connection: ProxyConnection) => void;
  /** Where the request was seen, once it was. */
  connection: ProxyConnection | undefined;
}

/** What a connection asks of its proxy. */
interface Rules {
  delay(direction: Direction): number;
  rate(direction: Direction): number;
  isSwallowed(direction: Direction): boolean;
  inspect(direction: Direction, chunk: Buffer): Verdict;
  closed(): void;
}

/** One client's connection through the proxy. */
export class ProxyConnection {
  /** Connections are numbered from 1 in the order in which they were opened. */
  readonly id: number;
  /** How late this connection's bytes arrive, in milliseconds. Overrides the proxy's delay. */
  readonly delay: Partial<Record<Direction, number>> = {};
  /** How many bytes a second this connection carries. Overrides the proxy's rate. */
  readonly rate: Partial<Record<Direction, number>> = {};
  /** How many bytes it has carried so far. */
  readonly carried: Record<Direction, number> = { request: 0, reply: 0 };
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #rules: Rules;
  readonly #swallowed = new Set<Direction>();
  readonly #held = new Set<Direction>();

  constructor(id: number, client: Socket, upstream: Socket, rules: Rules) {
    this.id = id;
    this.#client = client;
    this.#upstream = upstream;
    this.#rules = rules;
    this.#pipe("request", client, upstream);
    this.#pipe("reply", upstream, client);
  }

  /** Closes the connection on both sides. */
  cut(): void {
    this.#client.destroy();
    this.#upstream.destroy();
  }

  /** Resets the connection (RST) on both sides. */
  reset(): void {
    this.#client.resetAndDestroy();
    this.#upstream.resetAndDestroy();
  }

  /** Loses all bytes in these directions from now on, as {@link TcpProxy.swallow} does. */
  swallow(...directions: Direction[]): void {
    for (const direction of bothUnless(directions)) this.#swallowed.add(direction);
  }

  /** Holds back the client's bytes, or those of Redis, until {@link ProxyConnection.letGo}. */
  hold(direction: Direction = "request"): void {
    this.#held.add(direction);
    (direction === "request" ? this.#client : this.#upstream).pause();
  }

  /** Ends {@link ProxyConnection.hold}: the held bytes go on in their order. */
  letGo(): void {
    this.#held.clear();
    this.#client.resume();
    this.#upstream.resume();
  }

  #isSwallowed(direction: Direction): boolean {
    return this.#swallowed.has(direction) || this.#rules.isSwallowed(direction);
  }

  #pipe(direction: Direction, source: Socket, to: Socket): void {
    const line = new DelayLine();
    /** When the link has carried all that came so far. */
    let freeAt = 0;
    let queued = 0;
    const later = (action: () => void): void => {
      const delay = this.delay[direction] ?? this.#rules.delay(direction);
      line.push(delay + Math.max(0, freeAt - performance.now()), action);
    };
    // Check again: what comes may have been delayed when the network went dark.
    const isPassable = () => !this.#isSwallowed(direction) && to.writable;
    const carry = (chunk: Buffer): void => {
      const rate = this.rate[direction] ?? this.#rules.rate(direction);
      // A slow link delivers a large chunk bit by bit, and its sender notices that it is full.
      const size = Math.max(1, Math.floor(rate / 20));
      for (let from = 0; from < chunk.length; from += size) {
        const piece = chunk.subarray(from, from + size);
        freeAt = Math.max(freeAt, performance.now()) + (1000 * piece.length) / rate;
        queued += piece.length;
        if (rate < Infinity && queued > FULL) source.pause();
        later(() => {
          queued -= piece.length;
          if (queued <= FULL && !this.#held.has(direction)) source.resume();
          if (!isPassable()) return;
          this.carried[direction] += piece.length;
          to.write(piece);
        });
      }
    };
    const end = () =>
      later(() => {
        if (isPassable()) to.end();
      });
    source.on("data", (chunk) => {
      if (this.#isSwallowed(direction)) return;
      const verdict = this.#rules.inspect(direction, chunk);
      if (verdict === "cut") this.cut();
      if (verdict === "forward") carry(chunk);
    });
    source.on("end", end);
    // A reset is passed on as an end, and "close" follows.
    source.on("error", end);
    source.on("close", () => {
      if (!to.destroyed) return;
      line.clear();
      this.#rules.closed();
    });
  }
}

/** Bytes on a slow link beyond which it takes no more for now. */
const FULL = 65_536;

/** Runs actions later, in the order in which they were pushed. */
class DelayLine {
  readonly #waiting: { dueAt: number; action: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  push(delay: number, action: () => void): void {
    if (delay === 0 && this.#waiting.length === 0) {
      action();
      return;
    }
    // A shorter delay must not let an action overtake an earlier one.
    const earliest = this.#waiting.at(-1)?.dueAt ?? 0;
    this.#waiting.push({ dueAt: Math.max(earliest, performance.now() + delay), action });
    if (this.#waiting.length === 1) this.#sleep();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }

  #sleep(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const remaining = Math.ceil(next.dueAt - performance.now());
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, remaining));
  }

  #wake(): void {
    while (this.#waiting[0] !== undefined && this.#waiting[0].dueAt <= performance.now()) {
      this.#waiting.shift()?.action();
    }
    this.#sleep();
  }
}

function bothUnless(directions: Direction[]): Direction[] {
  return directions.length > 0 ? directions : ["request", "reply"];
}
