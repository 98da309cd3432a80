import type { Connections } from "../../../src/redis/connections.ts";

/** A command that was sent, which the test answers by hand. */
export interface Sent {
  readonly words: readonly unknown[];
  readonly reply: (value: unknown) => void;
  readonly fail: (error: Error) => void;
}

/** What Redis refuses with. */
export function refusal(message: string): Error {
  return Object.assign(new Error(message), { name: "ReplyError" });
}

/** Connections to nowhere: a test sees the commands, and makes the replies. */
export class Wire {
  /** The commands that have no reply yet, oldest first. */
  readonly #open: Sent[] = [];
  /** All commands so far, by name. */
  readonly names: string[] = [];
  /** The connections that block, in the order in which they were opened. */
  readonly opened: { status: string }[] = [];

  /** The oldest command of this name that has no reply yet. */
  take(name: string): Sent {
    const index = this.#open.findIndex(({ words }) => words[0] === name);
    if (index < 0) throw new Error(`no ${name}, but ${JSON.stringify(this.open)}`);
    return this.#open.splice(index, 1)[0] as Sent;
  }

  /** The names of the commands that have no reply yet. */
  get open(): unknown[] {
    return this.#open.map(({ words }) => words[0]);
  }

  get connections(): Connections {
    const connections: Pick<Connections, "open" | "peerOf"> & { background: unknown } = {
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
