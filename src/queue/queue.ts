import { ClosedError, RedisError, type DelaylineError } from "../errors.ts";
import { pick, type Family, type Layout } from "../lua/family.ts";
import { setAside } from "../lua/ready/set-aside.ts";
import { run, type Row, type Script, type ScriptArg } from "../lua/script.ts";
import type { RedisClient } from "../redis/client.ts";
import type { Connections } from "../redis/connections.ts";
import { retrying } from "../redis/retry.ts";
import type { QueueKeys } from "./keys.ts";

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
  readonly layout: Layout;
  readonly report: (error: DelaylineError) => void;
  readonly #connections: Connections;
  #isClosed = false;

  constructor(
    name: string,
    keys: QueueKeys,
    layout: Layout,
    shared: {
      readonly connections: Connections;
      readonly report: (error: DelaylineError) => void;
    },
  ) {
    this.name = name;
    this.keys = keys;
    this.layout = layout;
    this.report = shared.report;
    this.#connections = shared.connections;
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
   * @throws {RedisError} if Redis refuses the command, or its reply is lost.
   */
  async call<Reply>(doing: string, send: Send<Reply>): Promise<Reply> {
    this.checkOpen();
    return await this.#send(doing, () => send(this.#connections.commands, this.keys));
  }

  /** As {@link call}, on the connection that never re-sends: for what takes messages out of Redis. */
  async callOnce<Reply>(doing: string, send: Send<Reply>): Promise<Reply> {
    this.checkOpen();
    return await this.#send(doing, () => send(this.#connections.background, this.keys));
  }

  /** Runs a script that only reads. Otherwise as {@link call}. */
  read<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rows?: readonly Row<Column>[],
  ): Promise<Reply> {
    return this.call(doing, (redis, keys) =>
      run(redis, pick(scripts, this.layout), keys, args, rows),
    );
  }

  /** Runs a script that takes messages out. Otherwise as {@link callOnce}. */
  change<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    doing: string,
    scripts: Family<Script<Key, Arg, Reply, Column>>,
    args: Readonly<Record<Arg, ScriptArg>>,
    rows?: readonly Row<Column>[],
  ): Promise<Reply> {
    return this.callOnce(doing, (redis, keys) =>
      run(redis, pick(scripts, this.layout), keys, args, rows),
    );
  }

  /** Keeps bytes that nobody could read. Never rejects: a failure is reported. */
  async quarantine(bytes: Buffer): Promise<void> {
    try {
      await run(this.#connections.background, setAside, this.keys, { bytes });
    } catch (error) {
      this.report(new RedisError(`cannot put a message of queue "${this.name}" aside`, error));
    }
  }

  async #send<Reply>(doing: string, send: () => Promise<Reply>): Promise<Reply> {
    try {
      return await retrying(send);
    } catch (error) {
      const reason = this.#connections.explain(error);
      throw new RedisError(`cannot ${doing} queue "${this.name}"`, reason);
    }
  }
}
