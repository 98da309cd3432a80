import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import type { Family, Into, Layout } from "../lua/family.ts";
import { Counters } from "../observe/counters.ts";
import { quarantineBytes } from "../lua/ready/quarantine.ts";
import { guarded, heldFact } from "../lua/guarded.ts";
import { lookBack } from "../lua/queue/look-back.ts";
import { asFlag } from "../lua/reply.ts";
import { run, type Arguments, type Row, type Script } from "../lua/script.ts";
import { runTogether } from "../lua/together.ts";
import type { RedisClient } from "../redis/client.ts";
import type { Server } from "../redis/server.ts";
import { ServerClock } from "../time/server-clock.ts";
import type { Call } from "./call.ts";
import { queueKeys, type QueueKeys } from "./keys.ts";
import { Memory } from "./memory.ts";
import { serverTime } from "./server-time.ts";

/** A call that is sent once. */
interface OnceCall<Reply> extends Call {
  /** Receives a reply that comes after the call has rejected. It must not throw. */
  readonly onLate?: ((reply: Reply) => void) | undefined;
}

interface ScriptCall<Column extends string, Reply> extends OnceCall<Reply> {
  readonly rows?: readonly Row<Column>[];
  /** Keys of another queue, under names that this one's keys do not have. */
  readonly keys?: Readonly<Record<string, string>>;
}

/** Sends one command of a client. */
type Send<Reply> = (redis: RedisClient, keys: QueueKeys) => Promise<Reply>;

/** What a partition shares with the rest of its queue. */
export interface QueueLink {
  /** The counters of the whole queue. Defaults to new ones. */
  readonly counters?: Counters;
  /** See {@link Queue.knownFact}. */
  readonly knownFact?: () => string | undefined;
  /** The number of the partition; that of the ordinary queue if omitted. */
  readonly partition?: number;
  /** See {@link Queue.shares}. */
  readonly shares?: () => number;
  /** See {@link Queue.arriving}. */
  readonly arriving?: () => Buffer;
  /** Receives a fact that Redis tells. */
  readonly learn?: (fact: string) => void;
  /** Receives what Redis holds, if it has refused a script because of the fact `sent` with it. */
  readonly refused?: (held: string, sent: string) => void;
  /** Receives whether the stream exists, whenever Redis has told. */
  readonly noteStream?: (exists: boolean) => void;
}

/**
 * A queue as it is in Redis: its name, its keys, and how its commands are sent.
 *
 * A call that a caller awaits is sent again while Redis refuses it for now, as in a failover. It only rejects with
 * Delayline errors, since ioredis's errors carry the arguments of the command.
 */
export class Queue {
  readonly name: string;
  readonly keys: QueueKeys;
  /** The server that the queue is on. */
  readonly server: Server;
  /** The estimate of the server's clock. On a Cluster, each node has its own: a shared estimate would jump all the time. */
  readonly clock: ServerClock;
  /** The counters of the queue; for a partition, those of the whole queue. */
  readonly counters: Counters;
  /** What this process remembers of the queue, in case Redis goes back to an older copy. */
  readonly memory: Memory;
  #layout: Layout;
  /** The latest fact that this process knows of the queue's partitions; undefined for an ordinary queue. */
  readonly knownFact: () => string | undefined;
  /** How many parts there are, as far as this process knows: each has an equal share of the queue's rate. */
  readonly shares: () => number;
  /** Which buckets have messages that arrive here while the number of partitions changes: 1,024 bytes, or none. */
  readonly arriving: () => Buffer;
  /** Called with a fact that this process may not know yet. */
  readonly learn: (fact: string) => void;
  /** Called with what Redis holds, if it has refused a script because of the fact `sent` with it. */
  readonly refused: (held: string, sent: string) => void;
  /** The number of the partition; that of the ordinary queue if it is none. */
  readonly partition: number;
  /** Called with whether the stream exists, so that the queue is reliable. */
  readonly noteStream: (exists: boolean) => void;
  /** Whether this client offers to the queue, takes from it or moves its messages: it does not only look. */
  isUsed = false;
  #makesStream = false;
  #isClosed = false;
  readonly #underWay = new Set<Promise<unknown>>();

  /** @throws {TypeError} if the name cannot name a queue. */
  constructor(
    name: string,
    layout: Layout,
    server: Server,
    {
      counters = new Counters(name),
      knownFact = () => undefined,
      partition = -1,
      shares = () => 1,
      arriving = () => NOTHING,
      learn = () => {},
      refused = () => {},
      noteStream = () => {},
    }: QueueLink = {},
  ) {
    this.name = name;
    this.keys = queueKeys(name);
    this.server = server;
    this.clock = server.isCluster ? new ServerClock() : server.clock;
    this.counters = counters;
    this.memory = new Memory(counters.queue, () =>
      this.runTogether(server.connections.background, lookBack, {}),
    );
    server.fuse.add(this.memory);
    this.#layout = layout;
    this.knownFact = knownFact;
    this.shares = shares;
    this.arriving = arriving;
    this.learn = learn;
    this.refused = refused;
    this.partition = partition;
    this.noteStream = noteStream;
  }

  /** Reports an error that no caller awaits. */
  get report(): (error: DelaylineError) => void {
    return this.server.report;
  }

  /** The queue's layout in Redis, as far as this process knows. The queue may become reliable at any time. */
  get layout(): Layout {
    return this.#layout;
  }

  /**
   * Whether this process creates the stream if it is missing, because it has a handle of the reliable queue. A process
   * without one uses the stream only while it exists.
   */
  get makesStream(): boolean {
    return this.#makesStream;
  }

  /** From now on due messages go into the stream, and this process creates the stream if it is missing. */
  becomeReliable(): void {
    this.#makesStream = true;
    this.follow("stream");
  }

  /** From now on due messages go where Redis says that the queue's messages go. */
  follow(into: Into): void {
    this.#layout = { ...this.#layout, into };
  }

  /** @throws {ClosedError} after {@link close}. */
  checkOpen(): void {
    if (this.#isClosed) throw new ClosedError(`queue "${this.name}"`);
  }

  /** Refuses every call from now on. */
  close(): void {
    this.#isClosed = true;
    this.server.fuse.remove(this.memory);
  }

  /**
   * Sends a command that is safe to send twice, on the connection of the awaited calls.
   *
   * @param doing completes the error's "cannot ... queue".
   * @throws {ClosedError} after {@link close}.
   * @throws {RedisError} if Redis refuses the command, or its reply is lost or late.
   * @throws the signal's reason, if it is aborted.
   */
  async call<Reply>(doing: string, send: Send<Reply>, call?: Call): Promise<Reply> {
    return await this.#send("commands", doing, send, call);
  }

  /** As {@link call}, on the connection that never sends again: for commands that Redis must not carry out twice. */
  async callOnce<Reply>(doing: string, send: Send<Reply>, call?: OnceCall<Reply>): Promise<Reply> {
    const { fuse } = this.server;
    const sending: Send<Reply> = (redis, keys) =>
      fuse.passed(this.memory)?.then(() => send(redis, keys)) ?? send(redis, keys);
    return await this.#send("background", doing, sending, call);
  }

  /** Resolves when the calls that are under way now have settled: what is sent gets its reply. */
  async done(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Runs a script that is safe to send twice, usually because it only reads. Otherwise as {@link call}. */
  read<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Arguments<Arg>,
    call?: ScriptCall<Column, Reply>,
  ): Promise<Reply> {
    const send = (redis: RedisClient) =>
      this.run(redis, scripts, args, call?.rows, call?.knownFact);
    return this.call(doing, send, call);
  }

  /** As {@link read}, with {@link Call.together} in one command with the same looks at other queues. */
  look<Key extends keyof QueueKeys, Arg extends string, Reply>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, never>>,
    args: Arguments<Arg>,
    call: Call | undefined,
  ): Promise<Reply> {
    const { together, knownFact } = call ?? {};
    if (together === undefined) return this.read(doing, scripts, args, call);
    const send = (redis: RedisClient) =>
      this.runTogether(redis, scripts, args, knownFact, together);
    return this.call(doing, send, call);
  }

  /** Runs a script that must not be sent twice. Otherwise as {@link callOnce}. */
  change<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Arguments<Arg>,
    call?: ScriptCall<Column, Reply>,
  ): Promise<Reply> {
    const send = (redis: RedisClient) =>
      this.run(redis, scripts, args, call?.rows, call?.knownFact, undefined, call?.keys);
    return this.callOnce(doing, send, call);
  }

  /**
   * Runs the form of a script for the queue's layout, through one of the client's connections. A `knownFact` selects the guarded form,
   * which checks it.
   *
   * Rejects with ioredis's errors.
   */
  run<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    redis: RedisClient,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Arguments<Arg>,
    rows?: readonly Row<Column>[],
    knownFact?: string,
    onUnknown?: () => void,
    more?: Readonly<Record<string, string>>,
  ): Promise<Reply> {
    const script = this.#formOf(scripts);
    // Only offers say what to do when the script is unknown, and they have to keep their order.
    const isInTurn = onUnknown !== undefined;
    const all = this.#withElements(args);
    const keys = more === undefined ? this.keys : { ...this.keys, ...more };
    if (knownFact === undefined) return run(redis, script, keys, all, rows, onUnknown, isInTurn);
    const checked = { ...all, knownFact, ofPartition: this.partition };
    return this.#noting(
      knownFact,
      run(redis, guarded(script), keys, checked, rows, onUnknown, isInTurn),
    );
  }

  /**
   * Runs a script as {@link run} does, in one command with those that other queues run at the same time: for a look that
   * is not urgent, and that may be repeated.
   */
  runTogether<Key extends keyof QueueKeys, Arg extends string, Reply>(
    redis: RedisClient,
    scripts: Family<Script<Key, Arg, Reply, never>>,
    args: Arguments<Arg>,
    knownFact?: string,
    most?: number,
  ): Promise<Reply> {
    const script = this.#formOf(scripts);
    const all = this.#withElements(args);
    if (knownFact === undefined) return runTogether(redis, script, this.keys, all, most);
    const checked = { ...all, knownFact, ofPartition: this.partition };
    return this.#noting(knownFact, runTogether(redis, guarded(script), this.keys, checked, most));
  }

  #formOf<Form extends Pick<Script<never, never, unknown, never>, "reply">>(
    family: Family<Form>,
  ): Form {
    return "reply" in family ? family : family[this.#layout.into];
  }

  /** What the insertion order of a queue holds never changes, and scripts that write it have to know. */
  #withElements<Arg extends string>(args: Arguments<Arg>): Arguments<Arg> {
    const { elements } = this.#layout;
    return elements === "addresses" ? args : { ...args, elementsAre: elements };
  }

  /**
   * Returns the time (epoch ms) of the server that the queue is on, through one of the client's connections.
   *
   * Rejects with ioredis's errors.
   */
  async time(redis: RedisClient): Promise<number> {
    return await serverTime(redis, this.keys);
  }

  /**
   * Whether the queue is paused, asked through one of the client's connections. One plain command: every queue asks.
   *
   * Rejects with ioredis's errors.
   */
  async isPaused(redis: RedisClient): Promise<boolean> {
    return asFlag(await redis.exists(this.keys.paused));
  }

  /**
   * Asks whether the queue was given partitions, through one of the client's connections, and learns the fact if so.
   *
   * Rejects with ioredis's errors.
   */
  async askForPartitions(redis: RedisClient): Promise<void> {
    const fact = await redis.get(this.keys.partitions);
    if (fact !== null) this.learn(fact);
  }

  /**
   * Asks whether the queue is reliable, through one of the client's connections, and notes the reply.
   *
   * Rejects with ioredis's errors.
   */
  async askForStream(redis: RedisClient): Promise<void> {
    this.noteStream(asFlag(await redis.exists(this.keys.stream)));
  }

  /**
   * Puts bytes into the quarantine: a payload that the codec refused, or a whole member of an unknown layout
   * (`"unreadable"`). Returns whether Redis has them. Never rejects: it reports a failure.
   */
  async quarantine(
    bytes: Buffer,
    into: "quarantine" | "unreadable" = "quarantine",
  ): Promise<boolean> {
    try {
      const keys = { quarantine: this.keys[into] };
      await run(this.server.connections.background, quarantineBytes, keys, { bytes });
      return true;
    } catch (error) {
      const doing = `cannot put a message of queue "${this.name}" into its quarantine`;
      this.report(new RedisError(doing, error));
      return false;
    }
  }

  #noting<Reply>(sent: string, running: Promise<Reply>): Promise<Reply> {
    return running.catch((error: unknown) => {
      const held = heldFact(error);
      if (held !== undefined) this.refused(held, sent);
      throw error;
    });
  }

  async #send<Reply>(
    through: "commands" | "background",
    doing: string,
    send: Send<Reply>,
    { signal, onLate }: OnceCall<Reply> = {},
  ): Promise<Reply> {
    this.checkOpen();
    const { connections, expiries } = this.server;
    const limit = { expiries, signal };
    const calling = connections.call(through, limit, (redis) => send(redis, this.keys), onLate);
    this.#underWay.add(calling);
    try {
      return await calling;
    } catch (error) {
      signal?.throwIfAborted();
      throw new RedisError(`cannot ${doing} queue "${this.name}"`, error);
    } finally {
      this.#underWay.delete(calling);
    }
  }
}

const NOTHING = Buffer.alloc(0);
