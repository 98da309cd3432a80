import { WrongHandleError } from "../../errors.ts";
import type { Elements } from "../../lua/family.ts";
import { isInUse } from "../../lua/partitions/partition.ts";
import type { Server, Servers } from "../../redis/server.ts";
import type { Fact } from "../ring/fact.ts";
import type { Part } from "./part.ts";

/**
 * Why a client cannot follow an ordinary queue to its partitions, and the two reports of a handle that gets nothing since
 * it was opened in another way than those of other processes. Each is made once.
 */
export class WrongUses {
  readonly #name: string;
  readonly #servers: Servers;
  /** The ordinary queue of the same name, for inspection. */
  readonly #ordinary: () => Part;
  /**
   * Why the queue cannot have partitions as this client has opened it; undefined if it can. With a brace in the key
   * prefix, all keys would be in one Cluster slot.
   */
  readonly obstacle: string | undefined;
  /** Whether it was reported that this client cannot follow the queue to its partitions. */
  #isUnableTold = false;
  /** Whether it was reported that a queue is consumed exclusively that has no partitions. */
  #isUncreatedTold = false;

  constructor(name: string, servers: Servers, elements: Elements, ordinary: () => Part) {
    this.#name = name;
    this.#servers = servers;
    this.#ordinary = ordinary;
    this.obstacle = obstacleOf(name, servers, elements);
  }

  /** Whether this client can follow the queue to its partitions. If not, its queue and they are two of one name. */
  mayFollow({ servers }: Fact): boolean {
    const own = this.#servers.length;
    const elsewhere =
      servers === own
        ? undefined
        : `it is on ${servers} server(s), and the option redis names ${own}`;
    const obstacle = this.obstacle ?? elsewhere;
    if (obstacle !== undefined) this.#noteUnable(obstacle);
    return obstacle === undefined;
  }

  #noteUnable(obstacle: string): void {
    if (this.#isUnableTold) return;
    this.#isUnableTold = true;
    const what = `has partitions, but this client uses the ordinary queue of that name beside them, whose messages and keys are apart: ${obstacle}; open it as the other processes do, or under another name`;
    this.#ordinary().queue.report(new WrongHandleError(this.#name, what));
  }

  /** Reports that exclusive consumers wait for partitions, if messages go into the ordinary queue. */
  async noteUncreated(): Promise<void> {
    if (this.#isUncreatedTold) return;
    const { queue } = this.#ordinary();
    const { background } = queue.server.connections;
    if (!(await queue.run(background, isInUse, { asked: "used" }))) return;
    this.#isUncreatedTold = true;
    const what =
      "is in use and has no partitions, but this client consumes it exclusively, and gets nothing before it has some: set the option partitions, call setPartitions, or leave out exclusive";
    queue.report(new WrongHandleError(this.#name, what));
  }
}

function obstacleOf(name: string, servers: Servers, elements: Elements): string | undefined {
  if (elements === "members") return `interop of queue "${name}" must be "none" with partitions`;
  const server = servers.find((one) => prefixOf(one).includes("{"));
  if (server === undefined) return undefined;
  return `keyPrefix must not contain a brace for a partitioned queue, got ${JSON.stringify(prefixOf(server))}`;
}

function prefixOf({ connections }: Server): string {
  return connections.commands.options.keyPrefix ?? "";
}
