import { createFact, readFact } from "../lua/partitions/fact.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, parseFact, type Fact } from "./fact.ts";
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
  const ask = () => queue.read("ask for the partitions of", readFact, {});
  const found =
    // What is lost there is not sent again.
    (await (through === "commands"
      ? ask()
      : queue.change("ask for the partitions of", readFact, {}).catch(ask))) ??
    (await create(name, queue, creation, notice));
  const fact = parseFact(found);
  if (fact === undefined) throw new TypeError(`queue "${name}" has no legal number of partitions`);
  if (fact.servers !== creation.servers) {
    throw new TypeError(
      `queue "${name}" is on ${fact.servers} server(s), got ${creation.servers} in redis`,
    );
  }
  return found;
}

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
