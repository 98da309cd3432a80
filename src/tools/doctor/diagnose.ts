import { setMaxListeners } from "node:events";
import type { DelaylineOptions } from "../../index.ts";
import { layout, sleepForNetwork, suggest } from "../../inside.ts";
import { Inspector, isEmpty } from "../view/inspector.ts";
import { shellWord, type CommandWord } from "../view/text.ts";
import { checkAccess } from "./checks/access.ts";
import { inBackticks, type CommandLine, type Finding } from "./checks/finding.ts";
import { merged } from "./checks/merged.ts";
import { hidden, unreachable } from "./checks/server.ts";
import { examineSite } from "./examine-site.ts";
import { readAccess } from "./looks/access-report.ts";
import type { SiteView } from "./looks/queue-report.ts";
import { Site } from "./looks/site.ts";
import { QueueExam } from "./queue-exam.ts";

export type { Finding } from "./checks/finding.ts";

/** Options of {@link diagnose}. */
export interface DiagnoseOptions {
  /** The Redis to examine, as `new Delayline` takes it. */
  readonly redis?: DelaylineOptions["redis"];
  /** The queues to examine. Defaults to all, which costs a scan of the names of all keys. */
  readonly queues?: readonly string[] | undefined;
  /**
   * Makes a `delayline` command for a repair, with the options that this Redis needs; undefined if it cannot be pasted.
   */
  readonly commandLine?: (...words: readonly CommandWord[]) => string | undefined;
  /** Aborts the examination, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Examines Redis and the queues, and yields what it finds: about servers at once, about queues when all have been looked
 * at, so that the same trouble of many queues is one finding. Changes nothing in Redis. Yields a notice for what Redis
 * does not let it examine.
 *
 * Every call has a time bound of 3 s. Some findings take two looks, half a second apart.
 *
 * @throws {TypeError} if an address or the name of a queue is invalid.
 * @throws the signal's reason, if it is aborted.
 */
export async function* diagnose(
  options: DiagnoseOptions = {},
): AsyncGenerator<Finding, void, void> {
  const told = { hasPassword: false };
  for await (const finding of examine(options, told)) {
    const needsPassword = told.hasPassword && NEEDS_PASSWORD.test(finding.repair);
    yield needsPassword
      ? { ...finding, repair: `${finding.repair}; the password is read from REDISCLI_AUTH` }
      : finding;
  }
}

/** Matches commands that hold no password and need one. */
const NEEDS_PASSWORD = /`redis-cli |`npx delayline [^`]*:\/\/[^`]*@/;

async function* examine(
  options: DiagnoseOptions,
  told: { hasPassword: boolean },
): AsyncGenerator<Finding, void, void> {
  const { signal } = options;
  const redis = options.redis === undefined ? {} : { redis: options.redis };
  signal?.throwIfAborted();
  // Many calls listen to it at once. Node would warn of a leak from the eleventh listener on.
  if (signal !== undefined) setMaxListeners(0, signal);
  // Refuse an invalid name before connecting.
  for (const name of options.queues ?? []) layout.queueKeys(name);
  const timeouts = { callTimeout: CALL_TIMEOUT, unreachableTimeout: CALL_TIMEOUT };
  // The awaited calls meet the same failures, and report them.
  const inspector = new Inspector({ ...redis, ...timeouts, onError: () => {} });
  const sites: readonly Site[] = inspector.servers.map((server) => new Site(server, signal));
  told.hasPassword = sites.some((site) => site.hasPassword);
  try {
    const views: SiteView[] = [];
    for (const site of sites) {
      const view = yield* examineSite(site, commandFor(options.commandLine));
      if (view !== undefined) views.push(view);
    }
    signal?.throwIfAborted();
    // A queue may have partitions on every server, so all of them are needed.
    if (views.length === sites.length) {
      yield* examineQueues(views, inspector, options);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    await inspector.close();
  }
}

async function* examineQueues(
  views: readonly SiteView[],
  inspector: Inspector,
  { queues, signal, commandLine }: DiagnoseOptions,
): AsyncGenerator<Finding, void, void> {
  let names = queues;
  try {
    names ??= await inspector.names(signal);
  } catch (error) {
    signal?.throwIfAborted();
    yield hidden(
      "queues",
      `the queues cannot be listed: ${(error as Error).message}`,
      "no queue was checked",
      "name the queues, or run the doctor as a user with +scan",
    );
    names = [];
  }
  if (queues !== undefined) yield* examineNames(queues, inspector, signal);
  const command = commandFor(commandLine);
  const exams = names.map((name) => new QueueExam(name, views, inspector, command, signal));
  const denied: Finding[] = [];
  const found: Finding[] = [];
  for (const exam of exams) {
    for await (const finding of exam.begin()) (exam.isDenied ? denied : found).push(finding);
  }
  yield* merged(found);
  if (exams.some(({ hidesTypes }) => hidesTypes)) {
    yield hidden(
      "key-type",
      "the types of keys cannot be read (TYPE)",
      "whether another program uses a key of a queue was not checked",
      "run the doctor as a user with +type",
    );
  }
  let isExplained = false;
  const isAnyReliable = exams.some(({ isReliable }) => isReliable);
  for (const node of views.flatMap((view) => view.nodes)) {
    if (node.role === "slave") continue;
    try {
      const tried = exams.filter(({ name }) => isLegal(name));
      for (const finding of checkAccess(await readAccess(node, tried), isAnyReliable)) {
        isExplained ||= finding.level !== "notice" || finding.what.includes("may not run");
        yield finding;
      }
    } catch (error) {
      signal?.throwIfAborted();
      yield unreachable(node, error);
    }
  }
  // The missing rights are the cause.
  if (!isExplained) yield* merged(denied);
  const unsure = exams.filter((exam) => exam.isUnsure);
  if (unsure.length === 0) return;
  await sleepForNetwork(BETWEEN_LOOKS, signal);
  signal?.throwIfAborted();
  const later: Finding[] = [];
  for (const exam of unsure) {
    for await (const finding of exam.end()) {
      if (!(isExplained && exam.isDenied && finding.check === "refused")) later.push(finding);
    }
  }
  yield* merged(later);
}

function commandFor(commandLine: DiagnoseOptions["commandLine"]): CommandLine {
  return (...words) =>
    inBackticks(
      commandLine?.(...words) ?? ["npx delayline", ...words.flat().map(shellWord)].join(" "),
    );
}

/** Whether a queue can have this name. A key that another program made may resemble the key of an impossible queue. */
function isLegal(name: string): boolean {
  try {
    return layout.queueKeys(name).ready === name;
  } catch {
    return false;
  }
}

/** Milliseconds that a call may take. */
const CALL_TIMEOUT = 3000;

/** Milliseconds between the two looks. */
const BETWEEN_LOOKS = 500;

/**
 * Reports the names that have no queue, with a similar name that has one. A misspelt name would otherwise look healthy.
 */
async function* examineNames(
  names: readonly string[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, void, void> {
  for (const queue of names) {
    try {
      if (!isEmpty(await inspector.line.stats(queue, { signal }))) continue;
      const others = (await inspector.names(signal)).filter((name) => name !== queue);
      const near = suggest(queue, others);
      yield {
        level: "error",
        check: "no-queue",
        queue,
        what: `there is no queue of that name${near === undefined ? "" : `; there is "${near}"`}`,
        why: "it holds no messages, and no process has it open: its messages are elsewhere, or were never offered",
        repair:
          "check its spelling, and that this is its server and database; a drained queue that nobody uses looks the same",
      };
    } catch {
      signal?.throwIfAborted();
      // Its exam reports why the queue cannot be read.
    }
  }
}
