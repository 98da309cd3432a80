import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startRedis, type RedisServer } from "../../../src/adapters/testing/index.ts";
import { digestOf } from "../../../src/lua/script.ts";
import { instantOf, isClaimKey } from "./claims.ts";
import { Link } from "./link.ts";
import type { Value } from "./resp.ts";
import { virtualForm, type VirtualForm } from "./virtual-form.ts";

/** What a server held at some moment. */
export interface Copy {
  readonly dumps: readonly (readonly [key: Buffer, dump: Buffer])[];
  /** The last claim in each key (epoch us). */
  readonly claims: ReadonlyMap<string, number>;
}

/**
 * A real Redis in virtual time. It serves run after run.
 *
 * Its clock, and which scripts it knows, are the machine's. Redis itself carries out every command.
 */
export class SimServer {
  readonly index: number;
  /** A client that is never held. */
  readonly control: Redis;
  readonly #redis: RedisServer;
  readonly #directory: string;
  readonly #link: Link;
  /** The scripts that Redis really has: whether it has them must not depend on earlier runs. */
  readonly #loaded = new Set<string>();
  /** The scripts that simulated clients have sent in this run. */
  readonly #known = new Map<string, VirtualForm>();
  /** How far its clock is ahead (ms). */
  offset = 0;
  /** The id of the server process, as INFO shows it. */
  runId = "";
  #withdrawn = new Set<string>();

  private constructor(
    index: number,
    redis: RedisServer,
    directory: string,
    link: Link,
    control: Redis,
  ) {
    this.index = index;
    this.#redis = redis;
    this.#directory = directory;
    this.#link = link;
    this.control = control;
  }

  static async start(index: number): Promise<SimServer> {
    const directory = mkdtempSync(join(tmpdir(), "delayline-simulation-"));
    const path = join(directory, "socket");
    const redis = await startRedis({ args: ["--unixsocket", path, ...ARGS], env: OWN });
    const link = await Link.open(path);
    await link.ask("ACL", "SETUSER", MACHINE, "on", "nopass", "~*", "&*", "+@all");
    await link.ask("AUTH", MACHINE, "none");
    const control = new Redis({ path, username: MACHINE, password: "none" });
    await control.ping();
    return new SimServer(index, redis, directory, link, control);
  }

  async stop(): Promise<void> {
    this.control.disconnect();
    this.#link.close();
    await this.#redis.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Makes it empty for a run. */
  async begin(): Promise<void> {
    await this.#link.ask("ACL", "SETUSER", "default", "+@all");
    await this.#link.ask("FLUSHALL");
    this.#known.clear();
    this.#withdrawn.clear();
    this.offset = 0;
  }

  open(): Promise<Link> {
    return Link.open(join(this.#directory, "socket"));
  }

  ask(...words: readonly (Buffer | string)[]): Promise<Value> {
    return this.#link.ask(...words);
  }

  /**
   * Resolves when Redis has carried out everything that was sent before, and all that it sent in turn has been read.
   *
   * A first reply shows that Redis has read what was sent before: that of a command on `link`, or that of a PING. Redis may
   * write the replies of one turn in any order, and ends connections afterwards. The reply to a PING that is sent then
   * comes from a later turn. By that time everything lies in this process's sockets, and Node reads it in one turn.
   */
  async settled(link?: Link): Promise<void> {
    await (link === undefined ? this.#link.ask("PING") : link.arrival());
    await this.#link.ask("PING");
    await turn();
  }

  /**
   * Turns an EVAL or EVALSHA into the form that lives in virtual time. Returns undefined if the server does not know
   * the script.
   */
  async script(
    words: readonly Buffer[],
    micros: number,
  ): Promise<{ readonly name: string; readonly words: readonly (Buffer | string)[] } | undefined> {
    const [command, script, ...rest] = words as [Buffer, Buffer, ...Buffer[]];
    const text = script.toString();
    const isText = command.toString().toUpperCase() === "EVAL";
    const form = isText ? virtualForm(text) : this.#known.get(text);
    if (form === undefined) return undefined;
    if (isText && !this.#withdrawn.has("eval")) this.#known.set(digestOf(text), form);
    if (!this.#loaded.has(form.sha)) await this.#link.ask("SCRIPT", "LOAD", form.lua);
    this.#loaded.add(form.sha);
    // A text takes Redis longer than its digest, but a client may have the right to one of them only.
    const isSentAsText = isText && ["eval", "evalsha"].some((name) => this.#withdrawn.has(name));
    const head = isSentAsText ? ["EVAL", form.lua] : ["EVALSHA", form.sha];
    return { name: form.name, words: [...head, ...rest, micros.toFixed(0)] };
  }

  /** What a command is: its name, or that of the script that it runs. */
  kindOf([command, script]: readonly Buffer[]): string {
    const name = String(command).toUpperCase();
    if (script === undefined || (name !== "EVAL" && name !== "EVALSHA")) return name;
    const text = script.toString();
    return (name === "EVAL" ? virtualForm(text) : this.#known.get(text))?.name ?? name;
  }

  forgetScripts(): void {
    this.#known.clear();
  }

  /** Refuses a command to all but the machine. */
  async withdraw(command: string): Promise<void> {
    this.#withdrawn.add(command);
    await this.#link.ask("ACL", "SETUSER", "default", `-${command}`);
  }

  async giveBack(command: string): Promise<void> {
    if (this.#withdrawn.delete(command)) {
      await this.#link.ask("ACL", "SETUSER", "default", `+${command}`);
    }
  }

  /** Copies all keys, for {@link restore}. */
  async copy(): Promise<Copy> {
    const keys = (await this.#link.ask("KEYS", "*")) as readonly Buffer[];
    const dumps = await Promise.all(keys.map((key) => this.#link.ask("DUMP", key)));
    const claims = new Map<string, number>();
    for (const key of keys.map(String).filter(isClaimKey)) {
      const instant = instantOf(await this.#link.ask("GET", key));
      if (instant !== undefined) claims.set(key, instant);
    }
    return { dumps: keys.map((key, i) => [key, dumps[i] as Buffer]), claims };
  }

  /** Falls back to a {@link copy}, as a replica that lagged, or a restored backup. It knows no scripts. */
  async restore({ dumps }: Copy): Promise<void> {
    await this.#link.ask("FLUSHALL");
    await Promise.all(dumps.map(([key, dump]) => this.#link.ask("RESTORE", key, "0", dump)));
    this.#known.clear();
  }

  /** Removes what the machine itself keeps in Redis. */
  async tidy(): Promise<void> {
    const keys = (await this.#link.ask("KEYS", "sim:*")) as readonly Buffer[];
    if (keys.length > 0) await this.#link.ask("UNLINK", ...keys);
  }
}

/** The user of the machine. The simulated clients are the default user, whose rights change. */
const MACHINE = "machine";

/** Not the server at REDIS_URL: a run empties its server. */
const OWN = { ...process.env, REDIS_URL: "" };

/** Large hashes would be listed in an order that differs from server to server. */
const ARGS = "--hash-max-listpack-entries 1000000 --hash-max-listpack-value 1000000".split(" ");

const realImmediate = setImmediate;

/** A real turn of the event loop: all ticks and microtasks are done, and all that lay in the sockets is read. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    realImmediate(resolve);
  });
}
