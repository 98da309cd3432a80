import { createFact, readFact } from "../../lua/partitions/fact.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, parseFact, type Fact } from "../ring/fact.ts";
import type { Part } from "./part.ts";
import { isInUse, prepare } from "./prepare.ts";

/** How a queue gets partitions that has none yet. Who opens it later may know how many. */
export interface Creation {
  /** How many; undefined: somebody else has to create them. */
  partitions: number | undefined;
  readonly servers: number;
  /** A partition, or the ordinary queue of the same name. If that is in use, it is taken in. */
  readonly at: (partition: number) => Part;
}

/** There are no partitions, and this client does not say how many there are to be. */
export class UncreatedError extends TypeError {}

/**
 * The fact as partition 0 knows it; creates the partitions if there are none. `notice` is the channel on which that is
 * told.
 *
 * @throws {RedisError} if Redis cannot be asked.
 * @throws {TypeError} if the queue is on another number of servers than this client, or the fact is not legal.
 * @throws {UncreatedError} if there are none, and nobody says how many there are to be.
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
  const fact = parseFact(found);
  if (fact === undefined) throw new TypeError(`queue "${name}" has no legal number of partitions`);
  if (fact.servers !== creation.servers) {
    throw new TypeError(
      `queue "${name}" is on ${fact.servers} server(s), got ${creation.servers} in redis`,
    );
  }
  return found;
}

/**
 * The fact as Redis has it; undefined if there is none. If partition 0 does not reply soon, the first partitions on the
 * other servers are asked as well. An old fact does no harm: whoever acts on it is refused, and told.
 */
async function askAny(
  first: Part["queue"],
  { servers, at }: Creation,
  through: "commands" | "background",
): Promise<string | undefined> {
  const doing = "ask for the partitions of";
  // What is lost on the background connection is not sent again.
  const asked =
    through === "commands" ? ask(first) : first.change(doing, readFact, {}).catch(() => ask(first));
  if (servers === 1 || (await isSoon(asked, PATIENCE))) return await asked;
  const others = Array.from({ length: servers - 1 }, async (_, i) => {
    const fact = await ask(at(i + 1).queue);
    if (fact === undefined) throw new Error("nobody knows any partitions here");
    return fact;
  });
  return await Promise.any([asked, ...others]).catch(() => asked);
}

function ask(queue: Part["queue"]): Promise<string | undefined> {
  return queue.read("ask for the partitions of", readFact, {});
}

/** Whether a promise is fulfilled within so many milliseconds. */
async function isSoon(promise: Promise<unknown>, within: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, within, false)));
  const done = promise.then(
    () => true,
    () => false,
  );
  return await Promise.race([done, late]).finally(() => clearTimeout(timer));
}

/** Milliseconds until the other servers are asked. */
const PATIENCE = 1000;

async function create(
  name: string,
  first: Part["queue"],
  { partitions, servers, at }: Creation,
  notice: string,
): Promise<string> {
  if (partitions === undefined) {
    throw new UncreatedError(`queue "${name}" has no partitions yet: say how many it is to have`);
  }
  const isUsed = await isInUse(at(ORDINARY), "used");
  const fact: Fact = {
    epoch: 1,
    to: partitions,
    from: isUsed ? FROM_ORDINARY : partitions,
    state: isUsed ? "moving" : "stable",
    servers,
  };
  if (isUsed) await prepare(at, fact);
  const args = { fact: formatFact(fact), notice };
  return await first.read("create the partitions of", createFact, args);
}
