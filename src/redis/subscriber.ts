import type { Redis } from "ioredis";
import type { Connections } from "./connections.ts";
import { ClosedError, RedisError } from "../errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Pause } from "../time/pause.ts";
import type { Troubles, Work } from "./troubles.ts";

/** A listener to one channel. */
export interface Listener {
  /** Whether it can do without: if Redis refuses the channel, the others stay, and nothing is reported. */
  readonly isOptional?: boolean;
  /** The channel is subscribed, for the first time or again. Earlier messages were missed. */
  onSubscribed(): void;
  onMessage(message: string): void;
}

/**
 * The only subscriber connection of a client to one server.
 *
 * It opens with the first channel. Whenever it is lost, it reopens, however often; a {@link Heartbeat} notices when it
 * dies silently. Pub/sub is only a hint.
 */
export class Subscriber {
  readonly #connections: Connections;
  readonly #work: Work;
  readonly #listeners = new Map<string, Listener>();
  readonly #pause = new Pause(50, 1000);
  #connection: Redis | undefined;
  #isOpening = false;
  #isClosed = false;

  constructor(connections: Connections, troubles: Troubles) {
    this.#connections = connections;
    this.#work = troubles.work();
  }

  /** Subscribes to a channel, which may have one listener. */
  listen(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener);
    if (this.#connection !== undefined) this.#subscribe(this.#connection, [channel]);
    else this.#open();
  }

  /**
   * Unsubscribes from a channel, if this is its listener. It hears nothing more, even if Redis refuses to unsubscribe.
   */
  unlisten(channel: string, listener: Listener): void {
    if (this.#listeners.get(channel) !== listener) return;
    this.#listeners.delete(channel);
    this.#connection?.unsubscribe(channel).catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
    this.#pause.end();
    this.#connection?.disconnect();
  }

  #open(): void {
    if (this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    void this.#keepOpening();
  }

  async #keepOpening(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const connection = await this.#connections.open("subscriber");
        this.#isOpening = false;
        this.#attach(connection);
        return;
      } catch (error) {
        if (this.#isClosed || error instanceof ClosedError) return;
        this.#work.unreachable(error);
        await this.#pause.wait();
      }
    }
  }

  #attach(connection: Redis): void {
    if (this.#isClosed) {
      connection.disconnect();
      return;
    }
    this.#connection = connection;
    const heartbeat = new Heartbeat(connection, {
      ask: () => connection.ping(),
      onSilence: () => {
        connection.disconnect();
        this.#connections.suspectAll();
      },
      every: this.#connections.heartbeat,
    });
    connection.once("end", () => {
      heartbeat.close();
      this.#connection = undefined;
      this.#open();
    });
    connection.on("message", (channel: string, message: string) =>
      this.#listeners.get(channel)?.onMessage(message),
    );
    const channels = [...this.#listeners.keys()];
    if (channels.length > 0) this.#subscribe(connection, channels);
    else this.#work.ended();
  }

  #subscribe(connection: Redis, channels: readonly string[]): void {
    const isOptional = (channel: string) => this.#listeners.get(channel)?.isOptional === true;
    const onSubscribed = (channel: string) => this.#listeners.get(channel)?.onSubscribed();
    const needed = channels.filter((channel) => !isOptional(channel));
    // Each for itself: Redis refuses a command as a whole.
    for (const channel of channels.filter(isOptional)) {
      connection.subscribe(channel).then(
        () => onSubscribed(channel),
        () => {},
      );
    }
    if (needed.length === 0) return;
    connection.subscribe(...needed).then(
      () => {
        this.#pause.reset();
        this.#work.succeeded();
        needed.forEach(onSubscribed);
      },
      (error: unknown) => {
        if (this.#isClosed) return;
        this.#work.failed(new RedisError("cannot subscribe to the wake-ups", error));
        // Until the next attempt, tasks rely on their timers and sweeps.
        void this.#pause.wait().then(() => connection.disconnect());
      },
    );
  }
}
