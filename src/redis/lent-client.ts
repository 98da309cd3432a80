import type { ClusterOptions, Redis, RedisOptions } from "ioredis";
import { messageOf, UnansweredError } from "../failure.ts";
import { HandshakeError, noDatabase } from "./handshake.ts";

/**
 * A client that the user lends to Delayline: a `Redis` or `Cluster` of ioredis 5.8 or later, or of ioredis 6.
 *
 * This type describes its shape. The classes of ioredis have private members: their types would only accept clients of
 * one copy and version of the package.
 */
export interface LentClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: object;
  sendCommand(...args: never): unknown;
  duplicate(...args: never): unknown;
}

/**
 * Emits a process warning, once for each client, if a lent client lacks an option without which a failover loses
 * offers, or has them refused for ever. The options of a lent client are never changed.
 */
export function warnOfMissingOptions(client: LentClient): void {
  if (warned.has(client)) return;
  warned.add(client);
  const missing = missingOption(client);
  if (missing === undefined) return;
  process.emitWarning(`the ioredis client that was lent to Delayline has no ${missing}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_LENT_CLIENT",
  });
}

const warned = new WeakSet<LentClient>();

function missingOption({ isCluster, options }: LentClient): string | undefined {
  const { slotsRefreshInterval, sentinels, failoverDetector, reconnectOnError } =
    options as ClusterOptions & RedisOptions;
  if (isCluster) {
    if (slotsRefreshInterval) return undefined;
    return "slotsRefreshInterval: while a master hangs, calls wait for it even after a failover. Set it to 2000";
  }
  if (sentinels != null && !failoverDetector) {
    return "failoverDetector: after a failover it goes on writing to the old master, and those offers are lost. Set it to true";
  }
  if (!reconnectOnError?.(new Error(READONLY))) {
    return 'reconnectOnError: if its server becomes a replica, every offer is refused. Set it to (error) => error.message.startsWith("READONLY")';
  }
  return undefined;
}

const READONLY = "READONLY You can't write against a read only replica.";

/**
 * Whether the commands of a lent client go to the database of its options, where our own connections work.
 *
 * When Redis refuses the database, ioredis sends the commands to database 0. We must not touch a lent client's
 * connections, so we ask before the first command on each: one SELECT, and none for database 0.
 */
export class LentDatabase {
  readonly #client: Redis;
  readonly #database: number;
  /** The connection that certainly has the database. */
  #certain: Redis["stream"] | undefined;
  #checking: Promise<void> | undefined;

  /** @throws {TypeError} if the client's database is not a number: an environment variable that is not set. */
  constructor(client: Redis) {
    this.#client = client;
    this.#database = client.options.db ?? 0;
    if (Number.isInteger(this.#database)) return;
    throw new TypeError(
      `the lent client's option db must be a whole number, got ${this.#database}: an environment variable that is not set?`,
    );
  }

  /** Whether a command that is sent now goes to the database. */
  get isCertain(): boolean {
    return this.#selected === this.#database && this.#isSame;
  }

  /**
   * Asks whether the current connection has the database; concurrent calls share the question.
   *
   * @throws {HandshakeError} if Redis refuses it, or the lender has selected another one.
   */
  async check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined));
    await this.#checking;
  }

  /**
   * To be called when a reply has come: ioredis may have sent the command again after a reconnect.
   *
   * @throws {UnansweredError} if the connection has been replaced by one without the database.
   */
  async confirm(): Promise<void> {
    try {
      // The check may have concerned a connection that is lost by now.
      while (!this.#isSame) await this.check();
    } catch (error) {
      const what = "the connection was lost, and ioredis sent the command again to database 0";
      const why = messageOf(error as Error);
      throw new UnansweredError(`${what}: ${why}`, true, { cause: error });
    }
  }

  async #check(): Promise<void> {
    const { stream } = this.#client;
    const [database, selected] = [this.#database, this.#selected];
    if (selected !== database) {
      throw new HandshakeError(
        `the lent client has selected database ${selected}, but its option db says ${database}, and all else works there: lend a client that nobody calls select() on`,
      );
    }
    try {
      await this.#client.select(database);
    } catch (error) {
      throw noDatabase(database, error);
    }
    this.#certain = stream;
  }

  /** Whether the connection is the one that was checked. Every connection has database 0. */
  get #isSame(): boolean {
    return this.#database === 0 || this.#client.stream === this.#certain;
  }

  /** The database that ioredis selects when it reconnects; the last one selected. */
  get #selected(): number {
    const { condition } = this.#client as unknown as { condition?: { select?: number } | null };
    return condition?.select ?? this.#database;
  }
}
