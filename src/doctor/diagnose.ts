import { setTimeout as sleep } from "node:timers/promises";
import { openServers } from "../client/open-server.ts";
import { Inspector, isEmpty } from "../inspect/inspector.ts";
import { queueKeys } from "../queue/keys.ts";
import type { DelaylineOptions } from "../queue/options.ts";
import { checkAccess } from "./checks/access.ts";
import type { Finding } from "./checks/finding.ts";
import { hidden, unreachable } from "./checks/server.ts";
import { examineDatabase } from "./examine-database.ts";
import { examineSite } from "./examine-site.ts";
import { QueueExam } from "./queue-exam.ts";
import { readAccess } from "./looks/access-report.ts";
import type { Place } from "./looks/queue-report.ts";
import { Site } from "./looks/site.ts";

export type { Finding } from "./checks/finding.ts";

/** Options of {@link diagnose}. */
export interface DiagnoseOptions {
  /** Where the queues are, as `new Delayline` takes it. */
  readonly redis?: DelaylineOptions["redis"];
  /** The queues to look at. Defaults to all that there are; to find them reads the names of all keys. */
  readonly queues?: readonly string[] | undefined;
  /** Ends it; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks at Redis and at the queues, and yields what is not as it should be, as soon as it is found. It changes nothing
 * in the database. What Redis does not let it look at is a notice.
 *
 * Each question has a time bound of 3 s. Some things are seen by looking twice, half a second apart.
 *
 * @throws {TypeError} if an address or the name of a queue is not legal.
 * @throws the signal's reason, if it is aborted.
 */
export async function* diagnose(
  options: DiagnoseOptions = {},
): AsyncGenerator<Finding, void, void> {
  const { signal } = options;
  const redis = options.redis === undefined ? {} : { redis: options.redis };
  signal?.throwIfAborted();
  // An illegal name is refused before anything is asked.
  for (const name of options.queues ?? []) queueKeys(name);
  const listener = { report: () => {}, onRecovered: () => {} };
  const timeouts = { callTimeout: CALL_TIMEOUT, closeTimeout: CALL_TIMEOUT };
  const sites = openServers(redis, timeouts, listener).map((one) => new Site(one, signal));
  const inspector = new Inspector({ ...redis, ...timeouts });
  // What a background connection meets is met by the questions, too.
  inspector.line.on("error", () => {});
  try {
    const places: Place[] = [];
    const servers = [options.redis].flat();
    for (const [i, site] of sites.entries()) {
      const place = yield* examineSite(site);
      const server = servers[i];
      const isThere =
        place === undefined ||
        typeof server !== "string" ||
        (yield* examineDatabase(server, CALL_TIMEOUT));
      if (place !== undefined && isThere) places.push(place);
    }
    signal?.throwIfAborted();
    // A queue may be in partitions on all of them.
    if (places.length === sites.length) {
      yield* examineQueues(places, inspector, options);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    await inspector.close();
    for (const site of sites) site.close();
  }
}

async function* examineQueues(
  places: readonly Place[],
  inspector: Inspector,
  { queues, signal }: DiagnoseOptions,
): AsyncGenerator<Finding, void, void> {
  let names = queues;
  try {
    names ??= await inspector.names(signal);
  } catch (error) {
    signal?.throwIfAborted();
    yield hidden(
      "queues",
      `the queues cannot be listed: ${(error as Error).message}`,
      "no queue was looked at",
      "name the queues, or run the doctor as a user with +scan",
    );
    names = [];
  }
  if (queues !== undefined) yield* missing(queues, inspector, signal);
  const exams = names.map((name) => new QueueExam(name, places, inspector, signal));
  for (const exam of exams) yield* exam.begin();
  if (exams.some(({ hidesTypes }) => hidesTypes)) {
    yield hidden(
      "key-type",
      "the types of keys cannot be asked for (TYPE)",
      "whether another program uses a key of a queue was not looked at",
      "run the doctor as a user with +type",
    );
  }
  const reliable = exams.some(({ isReliable }) => isReliable);
  for (const node of places.flatMap((place) => place.nodes)) {
    if (node.role === "slave") continue;
    try {
      yield* checkAccess(await readAccess(node, names.filter(isLegal)), reliable);
    } catch (error) {
      signal?.throwIfAborted();
      yield unreachable(node.address, error);
    }
  }
  const unsure = exams.filter((exam) => exam.isUnsure);
  if (unsure.length === 0) return;
  await sleep(BETWEEN_LOOKS, undefined, signal === undefined ? {} : { signal });
  for (const exam of unsure) yield* exam.end();
}

/** Names under which there is no queue: one that is misspelt has no trouble, either. */
async function* missing(
  queues: readonly string[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, void, void> {
  for (const queue of queues) {
    try {
      if (!isEmpty(await inspector.line.stats(queue, { signal }))) continue;
      const others = (await inspector.names(signal)).filter((name) => name !== queue);
      const near = others.filter((name) => isNear(name, queue)).slice(0, 3);
      const named = near.map((name) => `"${name}"`).join(", ");
      yield {
        level: "error",
        check: "no-queue",
        queue,
        what: `there is no queue of that name${near.length > 0 ? `; there is ${named}` : ""}`,
        why: "nothing is in it, and no process has it open: what its messages should be is elsewhere, or was never offered",
        repair:
          "look at its spelling, and at which server and database it is; a queue that is drained and that nobody uses looks the same",
      };
    } catch {
      signal?.throwIfAborted();
      // The exam tells why it cannot be looked at.
    }
  }
}

/** Whether two names are the same but for a letter, their case, or what one has at its end. */
function isNear(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  if (a.startsWith(b) || b.startsWith(a)) return true;
  let [from, toA, toB] = [0, a.length, b.length];
  while (from < toA && from < toB && a[from] === b[from]) from++;
  while (toA > from && toB > from && a[toA - 1] === b[toB - 1]) {
    toA--;
    toB--;
  }
  return Math.max(toA, toB) - from <= 2;
}

/** A key that others have made may look like that of a queue which cannot be. */
function isLegal(name: string): boolean {
  try {
    return queueKeys(name).ready === name;
  } catch {
    return false;
  }
}

/** Milliseconds that a question may take. */
const CALL_TIMEOUT = 3000;

/** Milliseconds. */
const BETWEEN_LOOKS = 500;
