import { diagnose, type Finding } from "../../doctor/diagnose.ts";
import { shellWord } from "../../view/text.ts";
import type { DelaylineOptions } from "../../../index.ts";
import { networkTime } from "../../../inside.ts";

/** What the doctor found. */
export interface Examination {
  /** When it began, on this process's clock (epoch ms). */
  readonly at: number;
  /** How long it took (ms). */
  readonly took: number;
  readonly findings: readonly Finding[];
}

/** An examination that is younger than this (ms) answers those who ask for another. */
const FRESH_FOR = 5_000;

/** Examines Redis and all queues when somebody asks: once for all who ask at the same time. */
export class Doctor {
  readonly #redis: DelaylineOptions["redis"];
  readonly #closed = new AbortController();
  #latest: { readonly until: number; readonly result: Promise<Examination> } | undefined;

  constructor(redis: DelaylineOptions["redis"]) {
    this.#redis = redis;
  }

  /** Returns what is found now, or was found within the last seconds. */
  async examine(): Promise<Examination> {
    if (this.#latest === undefined || networkTime.now() > this.#latest.until) {
      const result = this.#examine();
      // While it runs, everybody waits for it; a failure is forgotten at once.
      this.#latest = { until: Infinity, result };
      void result.then(
        () => (this.#latest = { until: networkTime.now() + FRESH_FOR, result }),
        () => (this.#latest = undefined),
      );
    }
    return await this.#latest.result;
  }

  close(): void {
    this.#closed.abort();
  }

  async #examine(): Promise<Examination> {
    const [at, began] = [Date.now(), networkTime.now()];
    const findings: Finding[] = [];
    const redis = this.#redis;
    const where = { ...(redis !== undefined && { redis }), commandLine: commandLineFor(redis) };
    for await (const finding of diagnose({ ...where, signal: this.#closed.signal })) {
      findings.push(finding);
    }
    return { at, took: Math.round(networkTime.now() - began), findings };
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
