import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { classpath, type RedissonVersion } from "./java-build.ts";
import type { JavaValue } from "./java-value.ts";

/** Redisson's codecs, as Codecs.java names them. */
export type JavaCodec =
  | "StringCodec"
  | "LongCodec"
  | "IntegerCodec"
  | "DoubleCodec"
  | "ByteArrayCodec"
  | "TypedJsonJacksonCodec"
  | "TypedJsonJacksonCodec+MessagePack"
  | "JsonJacksonCodec"
  | "MsgPackJacksonCodec"
  | "Kryo5Codec";

/** A Java process in which Redisson carries out requests. */
export class RedissonProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #lastClient = 0;
  #stderr = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-10_000);
    });
    if (child.stdout) createInterface(child.stdout).on("line", (line) => this.#onAnswer(line));
    // Writing to a killed process.
    child.stdin?.on("error", () => {});
    child.once("error", (error) => this.#fail(error.message));
    child.once("close", (code, signal) => this.#fail(`ended (${signal ?? code})`));
  }

  /** @param jvmOptions defaults to options for a process that does little and starts soon. */
  static async start(
    version: RedissonVersion,
    jvmOptions: readonly string[] = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
  ): Promise<RedissonProcess> {
    const args = [...jvmOptions, "-cp", await classpath(version), "interop.Driver"];
    return new RedissonProcess(spawn("java", args, { stdio: ["pipe", "pipe", "pipe"] }));
  }

  /** Connects a new Redisson client, with at most so many connections apart from its subscriptions. */
  async connect(url: string, connections = 16): Promise<Redisson> {
    const client = `client-${++this.#lastClient}`;
    await this.call({ client, method: "connect", url, connections });
    return new Redisson(this, client);
  }

  /** Sends a request to Driver.java. */
  call(request: object): Promise<unknown> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) throw new Error("the Java process has ended");
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin?.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }

  /** Kills the process (SIGKILL), and waits until it is gone. May be called twice. */
  async kill(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const isClosed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await isClosed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #onAnswer(line: string): void {
    const { id, value, error } = JSON.parse(line) as Answer;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(`Redisson: ${error}`));
  }

  #fail(how: string): void {
    const error = new Error(`the Java process ${how}; its stderr:\n${this.#stderr}`);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** A `RedissonClient`. */
export class Redisson {
  readonly #process: RedissonProcess;
  readonly #client: string;

  constructor(process: RedissonProcess, client: string) {
    this.#process = process;
    this.#client = client;
  }

  /** Sends nothing to Redis yet: see {@link DelayedQueueInJava.construct}. */
  queue(name: string, codec: JavaCodec): QueueInJava {
    return new QueueInJava((method, request) =>
      this.#process.call({ client: this.#client, queue: name, codec, method, ...request }),
    );
  }

  /** Calls a method of Bench.java. */
  async bench(method: string, request: object): Promise<unknown> {
    return await this.#process.call({ client: this.#client, method, ...request });
  }

  async shutdown(): Promise<void> {
    await this.#process.call({ client: this.#client, method: "shutdown" });
  }
}

type Call = (method: string, request?: object) => Promise<unknown>;

/** A queue: its delayed messages, and its ready ones. */
export class QueueInJava {
  readonly delayed: DelayedQueueInJava;
  readonly ready: BlockingQueueInJava;

  constructor(call: Call) {
    this.delayed = new DelayedQueueInJava((method, request) =>
      call(method, { of: "delayed", ...request }),
    );
    this.ready = new BlockingQueueInJava((method, request) =>
      call(method, { of: "ready", ...request }),
    );
  }
}

/** The methods of both, as Java's `Queue` has them. */
class Queue {
  protected readonly call: Call;

  constructor(call: Call) {
    this.call = call;
  }

  size = async () => (await this.call("size")) as number;
  readAll = async () => (await this.call("readAll")) as JavaValue[];
  /** By Java's iterator, element by element. */
  iterate = async () => (await this.call("iterate")) as JavaValue[];
  peek = async () => (await this.call("peek")) as JavaValue;
  poll = async () => (await this.call("poll")) as JavaValue;
  pollMany = async (limit: number) => (await this.call("pollMany", { limit })) as JavaValue[];
  contains = async (value: JavaValue) => (await this.call("contains", { value })) as boolean;
  remove = async (value: JavaValue) => (await this.call("remove", { value })) as boolean;
  removeAll = async (values: JavaValue[]) => (await this.call("removeAll", { values })) as boolean;
  retainAll = async (values: JavaValue[]) => (await this.call("retainAll", { values })) as boolean;
}

/** An `RDelayedQueue`. The first call constructs it. */
class DelayedQueueInJava extends Queue {
  /** From now on this client moves due messages. */
  async construct(): Promise<void> {
    await this.call("construct");
  }

  /** Destroys the handle. The next call constructs it anew. */
  async destroy(): Promise<void> {
    await this.call("destroy");
  }

  /** Destroys the handle as well, but the next call still uses it. */
  async stopMoving(): Promise<void> {
    await this.call("stopMoving");
  }

  async offer(value: JavaValue, delay: number): Promise<void> {
    await this.call("offer", { value, delay });
  }

  /** In this order, 100 in flight. */
  async offerMany(values: readonly JavaValue[], delays: readonly number[]): Promise<void> {
    await this.call("offerMany", { values, delays });
  }
}

/** An `RBlockingQueue`. */
class BlockingQueueInJava extends Queue {
  async put(value: JavaValue): Promise<void> {
    await this.call("put", { value });
  }

  async take(): Promise<JavaValue> {
    return (await this.call("take")) as JavaValue;
  }

  /** Waits for so many whole seconds; null if no message came. */
  async pollFor(seconds: number): Promise<JavaValue> {
    return (await this.call("pollFor", { seconds })) as JavaValue;
  }

  /** Begins to take every message that becomes ready. */
  async startTaking(threads: number): Promise<void> {
    await this.call("startTaking", { threads });
  }

  /** How many messages have been taken so far. */
  async takenCount(): Promise<number> {
    return (await this.call("takenCount")) as number;
  }

  /** Ends that. Returns all messages that were taken. */
  async stopTaking(): Promise<JavaValue[]> {
    return (await this.call("stopTaking")) as JavaValue[];
  }
}
