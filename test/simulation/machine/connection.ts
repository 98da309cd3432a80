import { Duplex } from "node:stream";
import type { Link } from "./link.ts";
import type { Claim } from "./claims.ts";
import { owners, type Owner } from "./owner.ts";
import { Cutter, wordsOf } from "./resp.ts";
import type { SimServer } from "./server.ts";

/** What a client has sent and Redis has not got yet. */
export type Sent = { readonly words: readonly Buffer[]; readonly since: number } | "end";

/** What Redis has sent and the client has not got yet. */
export type Received = {
  readonly since: number;
  /** When the machine first saw it (elapsed ms). */
  sentAt?: number;
} & (
  | {
      readonly raw: Buffer;
      readonly text: string;
      readonly isPublished: boolean;
      readonly claim: Claim | undefined;
    }
  | { readonly end: "closed" | "reset" }
);

/** Counts what is held, so that its order of age is known. */
export interface Ages {
  next(): number;
}

/**
 * A connection of a simulated client to Redis: two queues, and what stands at either end of them. The machine decides
 * when something passes.
 */
export class Connection {
  readonly owner: Owner;
  readonly server: SimServer;
  /** The id that the client sees. */
  readonly id: number;
  /** What the trace calls it. */
  label: string;
  /** Its name, as CLIENT SETNAME gave it. */
  name = "";
  protocol: "2" | "3" = "2";
  readonly since: number;
  /** Whether the client still waits for the connection. */
  isConnecting = true;
  link: Link | undefined;
  /** The id that Redis knows. */
  realId = 0;
  readonly sent: Sent[] = [];
  readonly received: Received[] = [];
  readonly stream: ClientStream;
  /** Until when the command that Redis carries out blocks (elapsed ms); undefined unless one does. */
  blockedUntil: number | undefined;
  /** Whether it has subscribed to a channel. */
  isSubscribed = false;
  /** The command that reads messages, until its reply has come. */
  reading: readonly Buffer[] | undefined;
  /** The key whose claim the next reply shows. */
  claimKey: string | undefined;
  /** Until when nothing passes (elapsed ms). */
  heldUntil = 0;
  /** How late the client gets what Redis sends (ms). */
  lag = 0;
  /** How many bytes a second come from Redis. */
  rate = Infinity;
  /** Nothing passes any more, and neither end notices. */
  isSilent = false;
  /** How many published messages it will miss. */
  missCount = 0;
  /** Whether Redis has lost it: by its own will, or because the client ended it. */
  isLost = false;
  readonly #ages: Ages;
  readonly #cutter = new Cutter();

  constructor(owner: Owner, server: SimServer, id: number, ages: Ages) {
    this.owner = owner;
    this.server = server;
    this.id = id;
    this.label = `${owner.name}#${id}`;
    this.#ages = ages;
    this.since = ages.next();
    this.stream = new ClientStream(this, server.index);
  }

  /** The client has written. */
  write(chunk: Buffer): void {
    for (const frame of this.#cutter.add(chunk)) {
      if (!this.owner.isAlive || this.isLost) continue;
      this.sent.push({ words: wordsOf(frame), since: this.#ages.next() });
    }
  }

  /** The client has closed its side. What it sent before still arrives. */
  end(): void {
    if (this.sent.at(-1) !== "end") this.sent.push("end");
  }

  receive(raw: Buffer, text: string, isPublished = false, claim?: Claim): void {
    if (isPublished && this.missCount > 0) {
      this.missCount--;
      return;
    }
    this.received.push({ raw, text, since: this.#ages.next(), isPublished, claim });
  }

  /** Redis has lost it: what the client still sends goes nowhere. */
  lose(end: "closed" | "reset" = "closed"): void {
    if (this.isLost) return;
    this.isLost = true;
    this.sent.length = 0;
    this.reading = undefined;
    this.blockedUntil = undefined;
    this.link?.close();
    this.received.push({ end, since: this.#ages.next() });
  }

  /** The client is connected now. */
  connected(): void {
    this.isConnecting = false;
    owners.run(this.owner, () => this.stream.emit("connect"));
  }

  /** Hands the client what it gets next, at this instant (elapsed ms): of a slow connection a part at most. */
  deliver(now: number): string {
    const next = this.received.shift() as Received;
    const most = Math.ceil(this.rate * PART);
    if (!("end" in next) && this.rate < Infinity) {
      const part = next.raw.subarray(0, most);
      this.heldUntil = now + (1000 * part.length) / this.rate;
      if (part.length < next.raw.length) {
        this.received.unshift({ ...next, raw: next.raw.subarray(part.length) });
        owners.run(this.owner, () => this.stream.arrive(part));
        return `${part.length} bytes of ${next.text}`;
      }
    }
    return owners.run(this.owner, () => {
      if ("end" in next) {
        if (next.end === "closed") this.stream.push(null);
        else
          this.stream.destroy(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
        return next.end;
      }
      this.stream.arrive(next.raw);
      return next.text;
    });
  }

  /** When the client may get what comes next (elapsed ms); Infinity if nothing comes. `now`: when it is asked. */
  nextAt(now: number): number {
    for (const one of this.received) one.sentAt ??= now;
    return (this.received[0]?.sentAt ?? Infinity) + this.lag;
  }

  /** Whether neither end has anything to do with it any more. */
  get isOver(): boolean {
    const clientIsGone = !this.owner.isAlive || this.stream.destroyed;
    return this.isLost && clientIsGone;
  }
}

/** The client's end: what ioredis takes for a socket. */
class ClientStream extends Duplex {
  readonly remoteAddress: string;
  readonly remotePort = 6379;
  bytesRead = 0;
  bytesWritten = 0;
  readonly #connection: Connection;
  #timeout: NodeJS.Timeout | undefined;

  constructor(connection: Connection, server: number) {
    super({ allowHalfOpen: false });
    this.#connection = connection;
    this.remoteAddress = `10.0.0.${server + 1}`;
  }

  get connecting(): boolean {
    return this.#connection.isConnecting;
  }

  override _read(): void {}

  /** Bytes have come. */
  arrive(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    this.push(bytes);
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.bytesWritten += chunk.length;
    this.#connection.write(chunk);
    done();
  }

  override _final(done: () => void): void {
    this.#connection.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timeout);
    this.#connection.end();
    this.#connection.received.length = 0;
    done(error);
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** ioredis limits the time to connect by it. */
  setTimeout(duration: number, onTimeout?: () => void): this {
    clearTimeout(this.#timeout);
    if (duration > 0) this.#timeout = setTimeout(() => onTimeout?.(), duration);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** Seconds between two parts of a reply that trickles. */
const PART = 0.5;

/** How ioredis gets its connections: `begin` makes one, which waits until the machine lets it connect. */
export function connectorTo(begin: () => Connection): new (options: unknown) => object {
  return class {
    connecting = false;
    stream: Duplex | undefined;
    firstError: Error | undefined;
    readonly #timeout: number;

    constructor(options: unknown) {
      this.#timeout = (options as { disconnectTimeout: number }).disconnectTimeout;
    }

    check(): boolean {
      return true;
    }

    connect(): Promise<Duplex> {
      this.connecting = true;
      return new Promise((resolve, reject) => {
        process.nextTick(() => {
          if (!this.connecting) {
            reject(new Error("Connection is closed."));
            return;
          }
          const { stream } = begin();
          this.stream = stream;
          stream.once("error", (error) => (this.firstError = error));
          resolve(stream);
        });
      });
    }

    disconnect(): void {
      this.connecting = false;
      const { stream } = this;
      if (stream === undefined) return;
      const timeout = setTimeout(() => stream.destroy(), this.#timeout);
      stream.on("close", () => clearTimeout(timeout));
      stream.end();
    }
  };
}
