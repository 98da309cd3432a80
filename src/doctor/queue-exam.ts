import { checkBacklog } from "./checks/backlog.ts";
import { checkEarly, checkIndex } from "./checks/business-keys.ts";
import { checkConsumers, checkGroups, idleGroups } from "./checks/consumers.ts";
import type { Finding } from "./checks/finding.ts";
import { checkKeys } from "./checks/keys.ts";
import { checkLeftovers } from "./checks/leftovers.ts";
import { checkChange, checkPartitions } from "./checks/partitions.ts";
import { checkTransfer } from "./checks/transfer.ts";
import type { Inspector } from "../inspect/inspector.ts";
import { sampleIndex } from "./looks/business-keys.ts";
import { EarlyWatch } from "./looks/early-watch.ts";
import { readQueue, type Place, type QueueReport } from "./looks/queue-report.ts";

/** Looks at one queue, and a moment later once more, if one look is not enough to be sure. */
export class QueueExam {
  readonly #name: string;
  readonly #places: readonly Place[];
  readonly #inspector: Inspector;
  readonly #signal: AbortSignal | undefined;
  readonly #watches: EarlyWatch[] = [];
  #first: QueueReport | undefined;

  constructor(
    name: string,
    places: readonly Place[],
    inspector: Inspector,
    signal: AbortSignal | undefined,
  ) {
    this.#name = name;
    this.#places = places;
    this.#inspector = inspector;
    this.#signal = signal;
  }

  /** As far as the first look has told. */
  get isReliable(): boolean {
    return this.#first?.stats?.kind === "reliable";
  }

  /** Whether Redis does not tell the types of its keys. */
  get hidesTypes(): boolean {
    return this.#first?.parts.some((part) => part.hidesTypes) ?? false;
  }

  /** Whether a second look is needed. */
  get isUnsure(): boolean {
    const first = this.#first;
    if (first?.stats === undefined) return false;
    const { stats, fact } = first;
    const isChanging = fact !== undefined && fact.state !== "stable";
    const isWaiting = stats.kind === "plain" && stats.ready > 0;
    return isChanging || isWaiting || idleGroups(first).length > 0 || this.#watches.length > 0;
  }

  /** The first look. */
  async *begin(): AsyncGenerator<Finding, void, void> {
    try {
      const report = await this.#look();
      this.#first = report;
      for (const part of report.parts) yield* checkKeys(this.#name, part);
      yield* checkPartitions(report);
      yield* checkTransfer(report);
      yield* checkConsumers(report);
      yield* checkLeftovers(report);
      if (report.stats === undefined) return;
      yield* this.#lookClosely(report, report.stats.serverTime);
    } catch (error) {
      yield this.#refused(error);
    }
  }

  /** The second look. */
  async *end(): AsyncGenerator<Finding, void, void> {
    const before = this.#first;
    if (before === undefined) return;
    try {
      const after = await this.#look();
      yield* checkChange(before, after);
      yield* checkBacklog(before, after);
      yield* checkGroups(before, after);
      for (const watch of this.#watches) {
        const early = await watch.end();
        if (early !== undefined) yield* checkEarly(this.#name, early);
      }
    } catch (error) {
      yield this.#refused(error);
    }
  }

  async *#lookClosely(report: QueueReport, now: number): AsyncGenerator<Finding, void, void> {
    for (const part of report.parts) {
      if (part.indexLength > 0) {
        const opened = await this.#inspector.open(this.#name, this.#signal);
        yield* checkIndex(this.#name, part, await sampleIndex(part, opened, now));
      }
      if (part.delayed === 0) continue;
      const watch = await EarlyWatch.begin(part);
      if (!watch.isEmpty) this.#watches.push(watch);
    }
  }

  #look(): Promise<QueueReport> {
    return readQueue(this.#name, this.#places, this.#inspector, this.#signal);
  }

  #refused(error: unknown): Finding {
    this.#signal?.throwIfAborted();
    return {
      level: "error",
      check: "refused",
      queue: this.#name,
      what: `the queue cannot be looked at: ${(error as Error).message}`,
      why: "who moves it or takes from it is probably refused in the same way",
      repair: "the reply says why; for permissions see what `access` finds",
    };
  }
}
