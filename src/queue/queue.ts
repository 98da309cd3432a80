import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import { pick, type Family, type Into, type Layout } from "../lua/family.ts";
import { tellTime } from "../lua/queue/tell-time.ts";
import { Counters } from "../observe/counters.ts";
import { setAside } from "../lua/ready/set-aside.ts";
import { guarded, newerFact } from "../lua/guarded.ts";
import { run, type Row, type Script, type ScriptArg } from "../lua/script.ts";
import { isCluster, type RedisClient } from "../redis/client.ts";
import type { Connections } from "../redis/connections.ts";
import type { Expiries } from "../time/expiries.ts";
import { ServerClock } from "../time/server-clock.ts";
import type { QueueKeys } from "./keys.ts";
import type { CallOptions } from "./options.ts";

/** Options of a call that is sent once. */
interface OnceOptions<Reply> extends CallOptions {
  /** Is given a reply that came after the call was given up. It must not throw. */
  readonly onLate?: ((reply: Reply) => void) | undefined;
}

interface RunOptions<Column extends string, Reply> extends OnceOptions<Reply> {
  readonly rows?: readonly Row<Column>[];
  /** Of a partition: what the caller knew when it chose this one. The script checks it. */
  readonly knownFact?: string | undefined;
}

/** Sends one command of a client. */
type Send<Reply> = (redis: RedisClient, keys: QueueKeys) => Promise<Reply>;

/**
 * A queue as it is in Redis: its name, its keys, and how commands for it are sent.
 *
 * A call that somebody awaits is sent again while Redis refuses it for now, as in a failover. What it
 * rejects with is an error of ours: those of ioredis carry the arguments of the command.
 */
export class Queue {
  readonly name: string;
  readonly keys: QueueKeys;
  readonly report: (error: DelaylineError) => void;
  /** What this client does with it; of a partition: with the whole queue. */
  readonly counters: Counters;
  readonly #connections: Connections;
  readonly #expiries: Expiries;
  #layout: Layout;
  readonly #learn: (fact: string) => void;
  #makesStream = false;
  #isClosed = false;

  constructor(
    name: string,
    keys: QueueKeys,
    layout: Layout,
    shared: {
      readonly connections: Connections;
      readonly expiries: Expiries;
      readonly report: (error: DelaylineError) => void;
      /** Defaults to new ones. */
      readonly counters?: Counters;
    },
    /** Of a partition: is told what a script has been refused for. */
    learn: (fact: string) => void = () => {},
  ) {
    this.name = name;
    this.keys = keys;
    this.#layout = layout;
    this.report = shared.report;
    this.counters = shared.counters ?? new Counters(name);
    this.#connections = shared.connections;
    this.#expiries = shared.expiries;
    this.#learn = learn;
  }

  /** How it lies in Redis, as far as this process knows. It may become reliable at any time. */
  get layout(): Layout {
    return this.#layout;
  }

  /**
   * Whether this process makes the stream where it is missing, since it has a handle of the reliable queue. Others
   * fill it as long as it is there.
   */
  get makesStream(): boolean {
    return this.#makesStream;
  }

  /** From now on due messages go into the stream, which this process makes where it is missing. */
  becomeReliable(): void {
    this.#makesStream = true;
    this.follow("stream");
  }

  /** Due messages go where others have put them, as Redis has told. */
  follow(into: Into): void {
    this.#layout = { ...this.#layout, into };
  }

  /** @throws {ClosedError} after {@link close}. */
  checkOpen(): void {
    if (this.#isClosed) throw new ClosedError("the client");
  }

  /** Refuses every call from now on. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Sends a command that changes nothing if it is sent twice, on the connection of the awaited calls.
   *
   * @param doing completes "cannot ... queue".
   * @throws {ClosedError} after {@link close}.
   * @throws {RedisError} if Redis refuses the command, or its reply is lost or late.
   * @throws the signal's reason, if it is aborted.
   */
  async call<Reply>(doing: string, send: Send<Reply>, signal?: AbortSignal): Promise<Reply> {
    return await this.#send("commands", doing, send, { signal });
  }

  /** As {@link call}, on the connection that never re-sends: for what must not be carried out twice. */
  async callOnce<Reply>(
    doing: string,
    send: Send<Reply>,
    options?: OnceOptions<Reply>,
  ): Promise<Reply> {
    return await this.#send("background", doing, send, options);
  }

  /** Runs a script that only reads. Otherwise as {@link call}. */
  read<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Readonly<Record<Arg, ScriptArg>>,
    { rows, signal, knownFact }: RunOptions<Column, Reply> = {},
  ): Promise<Reply> {
    const script = pick(scripts, this.layout);
    return this.call(doing, (redis) => this.run(redis, script, args, rows, knownFact), signal);
  }

  /** Runs a script that must not be sent twice. Otherwise as {@link callOnce}. */
  change<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Readonly<Record<Arg, ScriptArg>>,
    { rows, knownFact, ...options }: RunOptions<Column, Reply> = {},
  ): Promise<Reply> {
    const script = pick(scripts, this.layout);
    return this.callOnce(doing, (redis) => this.run(redis, script, args, rows, knownFact), options);
  }

  /**
   * Runs a script on the queue's keys through one of the client's connections; with a `knownFact` in the form that
   * checks it.
   *
   * Rejects with what ioredis rejects with.
   */
  run<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    redis: RedisClient,
    script: Script<Key, Arg, Reply, Column>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rows?: readonly Row<Column>[],
    knownFact?: string,
    onUnknown?: () => void,
  ): Promise<Reply> {
    if (knownFact === undefined) return run(redis, script, this.keys, args, rows, onUnknown);
    const checked = { ...args, knownFact };
    const running = run(redis, guarded(script), this.keys, checked, rows, onUnknown);
    return running.catch((error: unknown) => {
      const fact = newerFact(error);
      if (fact !== undefined) this.#learn(fact);
      throw error;
    });
  }

  /**
   * Asks the server that the queue is on for its time (epoch ms), through one of the client's connections.
   *
   * Rejects with what ioredis rejects with.
   */
  async time(redis: RedisClient): Promise<number> {
    if (isCluster(redis)) return await run(redis, tellTime, this.keys, {});
    return ServerClock.fromTime(await redis.time());
  }

  /**
   * Keeps bytes that nobody could read: a payload, or a whole member of an unknown layout (`"unreadable"`).
   * Never rejects: a failure is reported.
   */
  async quarantine(bytes: Buffer, into: "quarantine" | "unreadable" = "quarantine"): Promise<void> {
    try {
      const keys = { quarantine: this.keys[into] };
      await run(this.#connections.background, setAside, keys, { bytes });
    } catch (error) {
      this.report(new RedisError(`cannot put a message of queue "${this.name}" aside`, error));
    }
  }

  async #send<Reply>(
    through: "commands" | "background",
    doing: string,
    send: Send<Reply>,
    { signal, onLate }: OnceOptions<Reply> = {},
  ): Promise<Reply> {
    this.checkOpen();
    try {
      const limit = { expiries: this.#expiries, signal };
      return await this.#connections.call(
        through,
        limit,
        (redis) => send(redis, this.keys),
        onLate,
      );
    } catch (error) {
      signal?.throwIfAborted();
      throw new RedisError(`cannot ${doing} queue "${this.name}"`, error);
    }
  }
}
