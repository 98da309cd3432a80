import type { PauseState } from "../../../src/queue/pause-watch.ts";
import { Blocks } from "../../../src/redis/blocks.ts";
import type { Connections } from "../../../src/redis/connections.ts";
import type { Troubles, Work } from "../../../src/redis/troubles.ts";

/** A sent command, to which the test replies by hand. */
export interface Sent {
  readonly words: readonly unknown[];
  readonly reply: (value: unknown) => void;
  readonly fail: (error: Error) => void;
}

/** A taker's knowledge of a queue's pause, which the test sets. */
export class KnownPause implements PauseState {
  #isPaused: boolean | undefined;
  readonly #listeners = new Set<() => void>();
  /** Called when a taker needs to know. */
  ask: () => Promise<void> = () => Promise.resolve();

  constructor(isPaused?: boolean) {
    this.#isPaused = isPaused;
  }

  get isPaused(): boolean | undefined {
    return this.#isPaused;
  }

  set isPaused(isPaused: boolean) {
    this.#isPaused = isPaused;
    for (const listener of this.#listeners) listener();
  }

  known(): Promise<void> {
    return this.ask();
  }

  /** How many listen for changes. */
  get listenerCount(): number {
    return this.#listeners.size;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The error of a refusal by Redis. */
export function refusal(message: string): Error {
  return Object.assign(new Error(message), { name: "ReplyError" });
}

function ignore(): void {}

/** Troubles that note every failure, even those that a client would not repeat. */
export function troublesIn(messages: string[]): Troubles {
  const note = ({ message }: Error) => messages.push(message);
  const work: Work = {
    failed: note,
    unreachable: ignore,
    succeeded: ignore,
    stopped: ignore,
    ended: ignore,
  };
  return { work: () => work } as unknown as Troubles;
}

/** Connections to nowhere: a test sees the commands, and makes the replies. */
export class Wire {
  /** The commands without a reply, oldest first. */
  readonly #open: Sent[] = [];
  /** All commands so far, by name. */
  readonly names: string[] = [];
  /** The blocking connections, in the order in which they were opened. */
  readonly opened: { status: string }[] = [];

  /** The oldest command of this name without a reply. */
  take(name: string): Sent {
    const index = this.#open.findIndex(({ words }) => words[0] === name);
    if (index < 0) throw new Error(`no ${name}, but ${JSON.stringify(this.open)}`);
    return this.#open.splice(index, 1)[0] as Sent;
  }

  /** The names of the commands without a reply. */
  get open(): unknown[] {
    return this.#open.map(({ words }) => words[0]);
  }

  get connections(): Connections {
    const connections: Pick<Connections, "open" | "peerOf" | "explain" | "ofNode" | "blocks"> & {
      background: unknown;
    } = {
      explain: (error) => error,
      ofNode: (reason) => Promise.resolve(reason),
      // Nobody tells it of messages, so all blocks are short.
      blocks: new Blocks(30_000, () => Promise.resolve()),
      background: {
        evalshaBuffer: (...words: unknown[]) => this.#send("EVALSHA", ...words),
        zrem: (...words: unknown[]) => this.#send("ZREM", ...words),
      },
      open: async () => {
        await this.#send("connect");
        const redis = {
          status: "ready",
          options: {},
          stream: { cork: () => {}, uncork: () => {} },
          client: () => Promise.resolve(1),
          evalshaBuffer: (...words: unknown[]) => this.#send("EVALSHA", ...words),
          evalBuffer: (...words: unknown[]) => this.#send("EVAL", ...words),
          lpopBuffer: (...words: unknown[]) => this.#send("LPOP", ...words),
          blpopBuffer: (...words: unknown[]) => this.#send("BLPOP", ...words),
          disconnect: () => (redis.status = "end"),
        };
        this.opened.push(redis);
        return redis as never;
      },
      peerOf: () => ({ client: (word: string) => this.#send(word) }) as never,
    };
    return connections as unknown as Connections;
  }

  #send(...words: unknown[]): Promise<unknown> {
    this.names.push(String(words[0]));
    return new Promise((reply, fail) => this.#open.push({ words, reply, fail }));
  }
}
