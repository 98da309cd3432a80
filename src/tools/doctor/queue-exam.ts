import { causeOf, facts } from "../../inside.ts";
import type { Inspector } from "../view/inspector.ts";
import { checkSlots } from "./checks/cluster.ts";
import {
  checkBacklog,
  checkConsumers,
  checkGroups,
  idleGroups,
  withElsewhere,
} from "./checks/consumers.ts";
import {
  checkEarly,
  checkIndex,
  checkKeys,
  checkLeftovers,
  checkOtherName,
} from "./checks/keys.ts";
import type { CommandLine, Finding } from "./checks/finding.ts";
import { checkChange, checkPartitions } from "./checks/partitions.ts";
import { checkSchedules } from "./checks/schedules.ts";
import { checkDrops, checkTransfer, isClosed, mayDropLate } from "./checks/transfer.ts";
import { EarlyWatch, sampleIndex } from "./looks/close-look.ts";
import { readQueue, type SiteView, type QueueReport } from "./looks/queue-report.ts";

/** Examines one queue: once, and if that is not conclusive, a second time half a second later. */
export class QueueExam {
  readonly name: string;
  readonly #views: readonly SiteView[];
  readonly #inspector: Inspector;
  readonly #commandLine: CommandLine;
  readonly #signal: AbortSignal | undefined;
  readonly #watches: EarlyWatch[] = [];
  #first: QueueReport | undefined;
  /** Whether a finding has said that no process has the queue open. */
  #isClosed = false;
  /** Whether Redis has denied its user the look. */
  isDenied = false;

  constructor(
    name: string,
    views: readonly SiteView[],
    inspector: Inspector,
    commandLine: CommandLine,
    signal: AbortSignal | undefined,
  ) {
    this.name = name;
    this.#views = views;
    this.#inspector = inspector;
    this.#commandLine = commandLine;
    this.#signal = signal;
  }

  /** Whether the queue is reliable, according to the first look. */
  get isReliable(): boolean {
    return this.#first?.stats?.kind === "reliable";
  }

  /** How many partitions it has; 0 if it is an ordinary queue, or that is not known. */
  get partitions(): number {
    const fact = this.#first?.fact;
    return fact === undefined ? 0 : facts.partitionsOf(fact);
  }

  /** Whether the user may not ask for the types of its keys. */
  get hidesTypes(): boolean {
    return this.#first?.parts.some((part) => part.hidesTypes) ?? false;
  }

  /** Whether a second look is needed. */
  get isUnsure(): boolean {
    const first = this.#first;
    if (first?.stats === undefined) return false;
    const { stats, fact } = first;
    const isChanging = fact !== undefined && fact.state !== "stable";
    if (isChanging || this.#watches.length > 0 || mayDropLate(first)) return true;
    const mayBeUntaken = stats.kind === "plain" && stats.ready > 0;
    return !this.#isClosed && (mayBeUntaken || idleGroups(first).length > 0);
  }

  /** Takes the first look, and yields what it shows. */
  async *begin(): AsyncGenerator<Finding, void, void> {
    try {
      const report = await this.#look();
      this.#first = report;
      for (const part of report.parts) {
        yield* checkKeys(this.name, part);
        yield* checkOtherName(this.name, part);
      }
      yield* checkPartitions(report, this.#commandLine);
      yield* checkSlots(report);
      for (const finding of checkTransfer(report, this.#commandLine)) {
        this.#isClosed ||= isClosed(report) && finding.check !== "paused";
        yield withElsewhere(finding, report);
      }
      yield* checkConsumers(report, this.#commandLine);
      yield* checkLeftovers(report, this.#commandLine);
      yield* checkSchedules(report, this.#commandLine);
      if (report.stats === undefined) return;
      yield* this.#lookClosely(report, report.stats.serverTime);
    } catch (error) {
      yield this.#refused(error);
    }
  }

  /** Takes the second look, and yields what both together show. */
  async *end(): AsyncGenerator<Finding, void, void> {
    const before = this.#first;
    if (before === undefined) return;
    try {
      const after = await this.#look();
      yield* checkChange(before, after, this.#commandLine);
      yield* checkDrops(before, after);
      if (!this.#isClosed) {
        for (const finding of [...checkBacklog(before, after), ...checkGroups(before, after)])
          yield withElsewhere(finding, after);
      }
      for (const watch of this.#watches) {
        const early = await watch.end();
        if (early !== undefined) yield* checkEarly(this.name, early);
      }
    } catch (error) {
      yield this.#refused(error);
    }
  }

  async *#lookClosely(report: QueueReport, now: number): AsyncGenerator<Finding, void, void> {
    for (const part of report.parts) {
      if (part.indexLength > 0) {
        yield* checkIndex(this.name, part, await sampleIndex(part, now));
      }
      if (part.delayed === 0) continue;
      const watch = await EarlyWatch.begin(part);
      if (!watch.isEmpty) this.#watches.push(watch);
    }
  }

  #look(): Promise<QueueReport> {
    return readQueue(this.name, this.#views, this.#inspector, this.#signal);
  }

  #refused(error: unknown): Finding {
    this.#signal?.throwIfAborted();
    const cause = causeOf(error);
    this.isDenied = cause?.kind === "access";
    return {
      level: "error",
      check: "refused",
      queue: this.name,
      what: `the queue cannot be read: ${(error as Error).message.replace(`; ${cause?.repair}`, "")}`,
      why: "processes that move it or take from it are probably refused in the same way",
      repair: cause?.repair ?? "the reply says why",
    };
  }
}
