import { diagnose, type Finding } from "../../doctor/diagnose.ts";
import { HttpError } from "../http/reply.ts";
import { LAWS } from "../../view/health.ts";
import { countBySeverity, worstFirst } from "../../view/severity.ts";
import { shellWord } from "../../view/text.ts";
import type { DelaylineOptions } from "../../../index.ts";
import { networkTime } from "../../../inside.ts";

/** What the doctor found. */
export interface Examination {
  /** When it began, on this process's clock (epoch ms). */
  readonly at: number;
  /** How long it took (ms). */
  readonly took: number;
  /** The worst first. */
  readonly findings: readonly Finding[];
  /** How many of which severity; empty if there are none. */
  readonly summary: string;
  /** The worst error or warning that the numbers of the queues do not show; undefined if there is none. */
  readonly lead: Pick<Finding, "level" | "what"> | undefined;
}

/** An examination that is younger than this (ms) answers those who ask for another. */
const FRESH_FOR = 5_000;

/**
 * The same for pages that look by themselves. Settings and workers change seldom, and what changes often, the numbers of
 * the queues, pages see every two seconds.
 */
const KNOWN_FOR = 600_000;

/** How many times as long as it took an examination also stands: with many queues it takes 1 % of the time. */
const REST = 100;

/** Examines Redis and all queues: once for all who ask at the same time. */
export class Doctor {
  readonly #redis: DelaylineOptions["redis"];
  readonly #closed = new AbortController();
  #running: Promise<Examination> | undefined;
  #latest: { readonly endedAt: number; readonly result: Examination } | undefined;

  constructor(redis: DelaylineOptions["redis"]) {
    this.#redis = redis;
  }

  /** Returns what is found now, or was found within the last seconds. */
  async examine(): Promise<Examination> {
    return await this.#within(FRESH_FOR);
  }

  /** Returns what was found lately; examines if that is too long ago. */
  async look(): Promise<Examination> {
    const { took = 0, findings = [] } = this.#latest?.result ?? {};
    // What could not be reached may be back.
    const isReached = findings.every(({ check }) => check !== "reachable" && check !== "usable");
    return await this.#within(isReached ? Math.max(KNOWN_FOR, REST * took) : FRESH_FOR);
  }

  close(): void {
    this.#closed.abort(new HttpError(503, "the dashboard is closed"));
  }

  async #within(age: number): Promise<Examination> {
    const latest = this.#latest;
    if (latest !== undefined && networkTime.now() - latest.endedAt <= age) return latest.result;
    this.#running ??= this.#examine().finally(() => (this.#running = undefined));
    return await this.#running;
  }

  async #examine(): Promise<Examination> {
    const [at, began] = [Date.now(), networkTime.now()];
    const found: Finding[] = [];
    const redis = this.#redis;
    const where = { ...(redis !== undefined && { redis }), commandLine: commandLineFor(redis) };
    for await (const finding of diagnose({ ...where, signal: this.#closed.signal })) {
      found.push(finding);
    }
    const endedAt = networkTime.now();
    const findings = worstFirst(found);
    const lead = findings.find(({ level, check }) => level !== "notice" && !(check in LAWS));
    const result = {
      at,
      took: Math.round(endedAt - began),
      findings,
      summary: countBySeverity(findings),
      lead: lead && { level: lead.level, what: lead.what },
    };
    this.#latest = { endedAt, result };
    return result;
  }
}

/**
 * Makes commands for a Redis at a URL without a password. For others the doctor leaves the address out: whoever pastes
 * the command adds it.
 */
function commandLineFor(redis: DelaylineOptions["redis"]) {
  return (...words: readonly (string | readonly string[])[]): string | undefined => {
    if (typeof redis !== "string" || new URL(redis).password !== "") return undefined;
    const all = ["--redis", redis, ...words.flat()].map(shellWord);
    return ["npx delayline", ...all].join(" ");
  };
}
