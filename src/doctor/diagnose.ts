import { shareServers } from "../client/shared.ts";
import type { DelaylineOptions } from "../queue/options.ts";
import type { Finding } from "./checks/finding.ts";
import { checkServer, unreachable } from "./checks/server.ts";
import { readServer } from "./looks/server-report.ts";
import { Site } from "./looks/site.ts";

export type { Finding, Level } from "./checks/finding.ts";

/** Options of {@link diagnose}. */
export interface DiagnoseOptions {
  /** Where the queues are, as `new Delayline` takes it. */
  readonly redis?: DelaylineOptions["redis"];
  /** The queues to look at. Defaults to all that there are; to find them reads the names of all keys. */
  readonly queues?: readonly string[];
  /** Ends it; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks at Redis and at the queues, and yields what is not as it should be, as soon as it is found. It changes nothing
 * in the database. What Redis does not let it look at is a notice.
 *
 * Each question has a time bound of 3 s. With all queues in order it takes about a second.
 *
 * @throws {TypeError} if an address or the name of a queue is not legal.
 * @throws the signal's reason, if it is aborted.
 */
export async function* diagnose(
  options: DiagnoseOptions = {},
): AsyncGenerator<Finding, void, void> {
  const { redis, signal } = options;
  signal?.throwIfAborted();
  const listener = { report: () => {}, onRecovered: () => {} };
  const timeouts = { callTimeout: CALL_TIMEOUT, closeTimeout: CALL_TIMEOUT };
  const shared = shareServers(redis === undefined ? {} : { redis }, timeouts, listener);
  const sites = shared.map((one) => new Site(one, signal));
  try {
    for (const site of sites) yield* examineSite(site);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    for (const site of sites) site.close();
  }
}

async function* examineSite(site: Site): AsyncGenerator<Finding, void, void> {
  let nodes;
  try {
    nodes = await site.nodes();
  } catch (error) {
    yield unreachable(undefined, error);
    return;
  }
  for (const node of nodes) {
    try {
      yield* checkServer(await readServer(node));
    } catch (error) {
      yield unreachable(node.address, error);
    }
  }
}

/** Milliseconds that a question may take. */
const CALL_TIMEOUT = 3000;
