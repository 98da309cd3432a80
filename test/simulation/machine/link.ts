import { createConnection, type Socket } from "node:net";
import { Cutter, encode, ErrorReply, type Frame, type Value } from "./resp.ts";

/** A real connection to Redis, as the machine uses it. */
export class Link {
  readonly #socket: Socket;
  readonly #cutter = new Cutter();
  /** What came in and nobody has taken yet. */
  #frames: Frame[] = [];
  readonly #awaited: ((frame: Frame) => void)[] = [];
  #onArrival: () => void = () => {};
  /** Whether Redis has ended the connection. */
  isEnded = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => {
      for (const frame of this.#cutter.add(chunk)) {
        const take = this.#awaited.shift();
        if (take === undefined) this.#frames.push(frame);
        else take(frame);
      }
      this.#onArrival();
    });
    const end = () => {
      this.isEnded = true;
      this.#onArrival();
    };
    socket.on("end", end).on("close", end).on("error", end);
  }

  /** Connects to a Unix socket: what is written to it has arrived when the write returns. */
  static async open(path: string): Promise<Link> {
    const socket = createConnection(path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve).once("error", reject);
    });
    return new Link(socket);
  }

  send(words: readonly (Buffer | string)[]): void {
    this.#socket.write(encode(words));
  }

  /** Resolves when something has come in that nobody has taken, or the connection has ended. */
  async arrival(): Promise<void> {
    // A large reply comes in pieces.
    while (this.#frames.length === 0 && !this.isEnded) {
      await new Promise<void>((resolve) => (this.#onArrival = resolve));
    }
  }

  /** Sends a command that Redis answers at once. */
  async ask(...words: readonly (Buffer | string)[]): Promise<Value> {
    const { value } = await new Promise<Frame>((resolve) => {
      this.#awaited.push(resolve);
      this.send(words);
    });
    if (value instanceof ErrorReply) throw new Error(`${String(words[0])}: ${value.message}`);
    return value;
  }

  /**
   * Takes the reply of a script in virtual form apart, which has come in: leaves what the script itself has replied.
   * Returns whether Redis has sent nothing else because of it.
   */
  unwrap(): boolean {
    const frame = this.#frames.at(-1);
    if (frame === undefined || !Array.isArray(frame.value)) return false;
    const [value, loudness] = frame.value as readonly Value[] as readonly [Value, number];
    const raw = frame.raw.subarray(HEAD, frame.raw.length - HEAD);
    this.#frames[this.#frames.length - 1] = { ...frame, raw, value };
    return loudness === 0;
  }

  /** Whether something has come in that nobody has taken. */
  get hasUnread(): boolean {
    return this.#frames.length > 0;
  }

  /** Returns what has come in since the last call. */
  take(): Frame[] {
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }

  close(): void {
    this.isEnded = true;
    this.#socket.destroy();
  }
}

/** The bytes of the head of a list of two, and those of a digit behind it. */
const HEAD = 4;
