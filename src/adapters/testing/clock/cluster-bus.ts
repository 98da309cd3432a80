import { randomUUID } from "node:crypto";
import { REAL } from "../../../time/runtime.ts";
import type { Connection } from "./connection.ts";

/**
 * The links between the nodes of a Cluster, over which they pass on what is published.
 *
 * Each pair of nodes has a link of its own, which keeps the order. So a mark that is published on each node, and has
 * been heard on each, shows that everything published before has come as far.
 */
export class ClusterBus {
  readonly #channel = `delayline:test-clock:${randomUUID()}`;
  /** A subscriber on each node, by the node's address. */
  readonly #ears = new Map<string, Connection>();
  /** The marks that have not been heard yet: one for each pair of nodes. */
  readonly #unheard = new Set<string>();
  #markCount = 0;
  #onAllHeard: () => void = () => {};

  /**
   * Resolves when whatever was published on these nodes before has been sent to the subscribers on all of them.
   *
   * Rejects with ioredis's errors.
   */
  async pass(nodes: readonly Connection[]): Promise<void> {
    await Promise.all(nodes.map((node) => this.#listenTo(node)));
    while (!(await this.#mark(nodes))) {
      // A link was lost, and with it the mark.
    }
  }

  close(): void {
    for (const ear of this.#ears.values()) ear.disconnect();
  }

  /** Returns whether the mark was heard everywhere. */
  async #mark(nodes: readonly Connection[]): Promise<boolean> {
    const mark = ++this.#markCount;
    this.#unheard.clear();
    for (const to of nodes.map(addressOf)) {
      for (const from of nodes.map(addressOf)) this.#unheard.add(`${to} ${from} ${mark}`);
    }
    const heard = new Promise<boolean>((resolve) => {
      const timeout = REAL.network.setTimeout(() => resolve(false), MARK_LOST);
      this.#onAllHeard = () => {
        REAL.network.clearTimeout(timeout);
        resolve(true);
      };
    });
    await Promise.all(
      nodes.map((node) => node.publish(this.#channel, `${addressOf(node)} ${mark}`)),
    );
    return await heard;
  }

  async #listenTo(node: Connection): Promise<void> {
    const address = addressOf(node);
    if (this.#ears.has(address)) return;
    const ear = node.duplicate({ lazyConnect: false, retryStrategy: () => 50 });
    this.#ears.set(address, ear);
    ear.on("error", () => {});
    ear.on("message", (_, mark) => {
      if (this.#unheard.delete(`${address} ${mark}`) && this.#unheard.size === 0)
        this.#onAllHeard();
    });
    await ear.subscribe(this.#channel);
  }
}

function addressOf({ options }: Connection): string {
  const { host, port } = options as { readonly host?: string; readonly port?: number };
  return `${host}:${port}`;
}

/** Real milliseconds after which a mark that was not heard is lost. */
const MARK_LOST = 1000;
