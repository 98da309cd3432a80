import { advanceFact, createFact, readFact } from "../../lua/partitions/fact.ts";
import { isInUse } from "../../lua/partitions/partition.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, parseFact, type Fact } from "../ring/fact.ts";
import { noteDeed } from "../../queue/activity.ts";
import type { Queue } from "../../queue/queue.ts";
import { sleepForNetwork } from "../../time/sleep.ts";
import type { Part } from "./part.ts";
import { prepare } from "./prepare.ts";

/** How to create the partitions of a queue that has none yet. */
export interface Creation {
  /** How many; undefined if another process has to create them. A handle that is opened later may set it. */
  partitions: number | undefined;
  readonly servers: number;
  /** Opens a partition, or the ordinary queue of the same name, which becomes a part if it is in use. */
  readonly at: (partition: number) => Part;
}

/** The queue has no partitions, and this client does not know how many to create. */
export class UncreatedError extends TypeError {}

/**
 * Returns the fact that partition 0 holds; creates the partitions if there are none, and publishes that on the channel
 * `notice`.
 *
 * @throws {RedisError} if Redis cannot be asked.
 * @throws {TypeError} if the queue is on another number of servers than this client, or the fact is malformed.
 * @throws {UncreatedError} if there are no partitions, and `creation` does not say how many to create.
 */
export async function loadFact(
  name: string,
  { queue }: Part,
  creation: Creation,
  notice: string,
  through: "commands" | "background" = "commands",
): Promise<string> {
  const found =
    (await askAny(queue, creation, through)) ?? (await create(name, queue, creation, notice));
  checkFact(name, found, creation.servers);
  return found;
}

/** @throws {TypeError} if the fact is malformed, or the queue is on another number of servers than this client. */
export function checkFact(name: string, found: string, servers: number): void {
  const fact = parseFact(found);
  if (fact === undefined) {
    throw new TypeError(`queue "${name}" has a malformed record of its partitions: "${found}"`);
  }
  if (fact.servers !== servers) {
    throw new TypeError(
      `queue "${name}" is on ${fact.servers} server(s), but the option redis names ${servers}`,
    );
  }
}

/**
 * The fact that Redis holds; undefined if there is none. If the server of partition 0 does not reply within a second,
 * the first partition on each other server is asked as well. An old fact does no harm: Redis refuses scripts that act
 * on it, and replies with the newer one.
 */
async function askAny(
  first: Queue,
  { servers, at }: Creation,
  through: "commands" | "background",
): Promise<string | undefined> {
  const doing = "ask for the partitions of";
  // The background connection never resends a command whose reply was lost.
  const asked =
    through === "commands" ? ask(first) : first.change(doing, readFact, {}).catch(() => ask(first));
  if (servers === 1 || (await isFulfilledWithin(PATIENCE, asked))) return await asked;
  const others = Array.from({ length: servers - 1 }, async (_, i) => {
    const fact = await ask(at(i + 1).queue);
    if (fact === undefined) throw new Error("this server holds no fact");
    return fact;
  });
  return await Promise.any([asked, ...others]).catch(() => asked);
}

function ask(queue: Queue): Promise<string | undefined> {
  return queue.read("ask for the partitions of", readFact, {});
}

/** Whether a promise is fulfilled within `duration` milliseconds. */
async function isFulfilledWithin(duration: number, promise: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const late = sleepForNetwork(duration, settled.signal).then(() => false);
  const done = promise.then(
    () => true,
    () => false,
  );
  return await Promise.race([done, late]).finally(() => settled.abort());
}

/** Milliseconds to wait for the server of partition 0 before the other servers are asked. */
const PATIENCE = 1000;

async function create(
  name: string,
  first: Queue,
  { partitions, servers, at }: Creation,
  notice: string,
): Promise<string> {
  if (partitions === undefined) {
    throw new UncreatedError(
      `queue "${name}" has no partitions yet: set the option partitions to create them`,
    );
  }
  const isUsed = await at(ORDINARY).queue.read("look at", isInUse, { asked: "used" });
  const fact: Fact = {
    epoch: 1,
    to: partitions,
    from: isUsed ? FROM_ORDINARY : partitions,
    state: isUsed ? "moving" : "stable",
    servers,
  };
  if (isUsed) await prepare(at, fact);
  const args = { fact: formatFact(fact), notice };
  const created = await first.read("create the partitions of", createFact, args);
  // A process may have the ordinary queue open that has never used it. Not awaited: if it fails, the next change of the
  // number tells that process.
  void tellOrdinary(at(ORDINARY).queue, created).catch(() => {});
  const isOurs = created === args.fact;
  if (isUsed && isOurs) await noteDeed(first, { what: "partitions set", detail: `${partitions}` });
  return created;
}

/** Notes a fact beside the ordinary queue, and makes its processes sweep, which tells them of the fact. */
export async function tellOrdinary(queue: Queue, fact: string): Promise<void> {
  const doing = "tell of the partitions of";
  await queue.read(doing, advanceFact, { fact, notice: `${queue.keys.partitions}:notice` });
  // Only a hint.
  await queue.call(doing, (redis, { channel }) => redis.publish(channel, "0")).catch(() => {});
}
