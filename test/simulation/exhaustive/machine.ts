import { createHash } from "node:crypto";
import type { ChainableCommander, Redis } from "ioredis";
import { clock } from "../../../src/lua/fragments/clock.ts";
import type { RawReply } from "../../../src/lua/reply.ts";
import type { Script } from "../../../src/lua/script.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import {
  contentOf,
  LOOK,
  type Content,
  type Database,
  type Looked,
} from "../../helpers/contents.ts";

/** One change of the Lua of a script, to see that a world notices it. */
export interface Mutation {
  /** The beginning of the names of the scripts. */
  readonly script: string;
  readonly find: string;
  readonly replace: string;
}

/** What a command left behind. */
interface Outcome {
  readonly reply: RawReply;
  readonly error: Error | undefined;
  /** The contents of the keys that the command names, in their order. */
  readonly after: readonly (Content | undefined)[];
}

/**
 * Carries out single commands of the library on databases that are kept here, not in Redis.
 *
 * A command reads and writes no keys but those that it names. So only these are put into Redis before it, and read back
 * after it. A command that was carried out before, on the same contents, is not sent again: with `remembers`, its outcome
 * is known. That is sound because a script is a function of its keys, its arguments and the clock, which is stopped here.
 */
export class Machine {
  readonly #redis: Redis;
  readonly #mutation: Mutation | undefined;
  readonly #remembers: boolean;
  readonly #known = new Map<string, Promise<Outcome>>();
  readonly #loaded = new Set<string>();
  readonly #stopped = new Map<string, Script<never, never, unknown, never>>();
  readonly #luaBySha = new Map<string, string>();
  readonly #changes = new WeakMap<Database, WeakMap<Outcome, Database>>();
  #pipeline: ChainableCommander | undefined;
  #answers: ((replies: [Error | null, unknown][]) => void)[] = [];
  #length = 0;
  /** How many commands were sent to Redis. */
  sentCount = 0;

  constructor(redis: Redis, { remembers = true, mutation }: MachineOptions = {}) {
    this.#redis = redis;
    this.#remembers = remembers;
    this.#mutation = mutation;
  }

  /** Whether the mutation has been found in a script. */
  isMutated = false;

  /** Runs `send` with a client that has this database; returns the database afterwards, and the reply or the error. */
  async on<Reply>(
    database: Database,
    send: (client: RedisClient) => Promise<Reply>,
  ): Promise<{ readonly database: Database; readonly reply?: Reply; readonly error?: Error }> {
    let after = database;
    const carryOut = async (words: readonly Word[], keys: readonly string[]) => {
      const outcome = await this.#outcomeOf(words, keys, after);
      after = this.#changed(after, keys, outcome);
      if (outcome.error !== undefined) throw outcome.error;
      return outcome.reply;
    };
    const client = {
      evalshaBuffer: (sha: string, count: number, ...words: Word[]) =>
        carryOut(["EVALSHA", sha, count, ...words], words.slice(0, count).map(String)),
      // The last words of a plain command name its one key, or its key comes first.
      callBuffer: (name: string, key: string, ...words: Word[]) =>
        carryOut([name, ...wordsOf(name, key, words)], [key]),
    } as unknown as RedisClient;
    try {
      return { reply: await send(client), database: after };
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "ReplyError") throw error;
      return { error, database: after };
    }
  }

  /** The script as it runs while the server's clock shows `instant` (epoch ms), with the mutation if it is for it. */
  at<S extends Script<string, string, unknown, string>>(instant: number, script: S): S {
    const name = `${instant} ${script.sha}`;
    let stopped = this.#stopped.get(name);
    if (stopped === undefined) {
      stopped = this.#stop(instant, script as unknown as Script<never, never, unknown, never>);
      this.#stopped.set(name, stopped);
      this.#luaBySha.set(stopped.sha, stopped.lua);
    }
    return stopped as unknown as S;
  }

  #stop<S extends Script<never, never, unknown, never>>(instant: number, script: S): S {
    const { script: mutated, find, replace } = this.#mutation ?? NO_MUTATION;
    let lua = script.lua.replace(
      clock.lua,
      `local function clock() return ${Math.round(instant * 1000)} end`,
    );
    if (script.name.startsWith(mutated) && lua.includes(find)) {
      this.isMutated = true;
      lua = lua.replace(find, () => replace);
    }
    return { ...script, lua, sha: createHash("sha1").update(lua).digest("hex") };
  }

  #outcomeOf(
    words: readonly Word[],
    keys: readonly string[],
    database: Database,
  ): Promise<Outcome> {
    if (!this.#remembers) return this.#carryOut(words, keys, database);
    const called = words.map((word) => (Buffer.isBuffer(word) ? word.toString("latin1") : word));
    const held = keys.map((key) => database.get(key)?.text ?? "");
    const name = JSON.stringify([called, held]);
    const known = this.#known.get(name) ?? this.#carryOut(words, keys, database);
    this.#known.set(name, known);
    return known;
  }

  #carryOut(words: readonly Word[], keys: readonly string[], database: Database) {
    const pipeline = (this.#pipeline ??= this.#begin());
    const from = this.#length;
    const send = (name: string, ...rest: Word[]) => {
      pipeline.callBuffer(name, ...rest);
      this.#length++;
    };
    if (words[0] === "EVALSHA") this.#load(String(words[1]), send);
    send("DEL", ...keys);
    for (const key of keys) {
      const content = database.get(key);
      if (content !== undefined) send("RESTORE", key, 0, content.dump);
    }
    const at = this.#length - from;
    send(String(words[0]), ...words.slice(1));
    send("EVALSHA", LOOK_SHA, keys.length, ...keys);
    this.sentCount++;
    return new Promise<Outcome>((resolve, reject) => {
      this.#answers.push((replies) => {
        const own = replies.slice(from);
        const [error, reply] = own[at] ?? [];
        const [failure, looked] = own[at + 1] ?? [];
        if (failure) return reject(failure);
        const after = (looked as Looked[]).map(contentOf);
        resolve({ reply: reply as RawReply, error: error ?? undefined, after });
      });
    });
  }

  /** The same object for the same change of the same database, so that what is read from it is read once. */
  #changed(database: Database, keys: readonly string[], outcome: Outcome): Database {
    let known = this.#changes.get(database);
    if (known === undefined) this.#changes.set(database, (known = new WeakMap()));
    let next = known.get(outcome);
    if (next !== undefined) return next;
    const isSame = keys.every((key, i) => database.get(key)?.text === outcome.after[i]?.text);
    next = isSame ? database : changed(database, keys, outcome.after);
    known.set(outcome, next);
    return next;
  }

  #load(sha: string, send: (name: string, ...rest: Word[]) => void): void {
    for (const [one, lua] of [
      [LOOK_SHA, LOOK],
      [sha, this.#luaBySha.get(sha)],
    ] as const) {
      if (this.#loaded.has(one) || lua === undefined) continue;
      this.#loaded.add(one);
      send("SCRIPT", "LOAD", lua);
    }
  }

  #begin(): ChainableCommander {
    setImmediate(() => {
      const [pipeline, answers] = [this.#pipeline, this.#answers];
      [this.#pipeline, this.#answers, this.#length] = [undefined, [], 0];
      void pipeline?.exec().then((replies) => {
        for (const answer of answers) answer(replies as [Error | null, unknown][]);
      });
    });
    return this.#redis.pipeline();
  }
}

interface MachineOptions {
  readonly remembers?: boolean;
  readonly mutation?: Mutation | undefined;
}

type Word = string | number | Buffer;

const NO_MUTATION: Mutation = { script: "none", find: "none", replace: "" };

const LOOK_SHA = createHash("sha1").update(LOOK).digest("hex");

/** The words behind the name of a command. XREADGROUP has its key near its end. */
function wordsOf(name: string, key: string, words: readonly Word[]): Word[] {
  return name === "XREADGROUP" ? [...words, "STREAMS", key, ">"] : [key, ...words];
}

function changed(
  database: Database,
  keys: readonly string[],
  after: readonly (Content | undefined)[],
): Database {
  const next = new Map(database);
  for (const [i, key] of keys.entries()) {
    const content = after[i];
    if (content === undefined) next.delete(key);
    else next.set(key, content);
  }
  return next;
}
