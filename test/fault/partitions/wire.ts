import { setTimeout as sleep } from "node:timers/promises";
import { Roles } from "../../helpers/roles.ts";
import type { ProxyConnection, Verdict } from "../../helpers/tcp-proxy.ts";
import type { Member, Site } from "./site.ts";

/** The connection whose reply is lost: offers; moves, settlements and cancels; or waits for messages. */
export type Loss = "commands" | "background" | "blocking";

/** Milliseconds in which a client on a busy machine reads the bytes that have arrived. */
const MOMENT = 500;

/** The bytes on the wire between the clients and the servers of a site. */
export class Wire {
  /** Payloads that Redis sent, and that the proxy forwarded to a client whose connection survived. */
  readonly sent = new Set<string>();
  /** Recently forwarded payloads, and the connection that each went to. */
  #recent: { readonly payload: string; readonly to: ProxyConnection; readonly at: number }[] = [];
  #wanted: { readonly role: Loss; readonly done: () => void } | undefined;
  #asking = new WeakSet<ProxyConnection>();

  constructor(site: Site) {
    for (const member of site.members) this.#watch(member);
  }

  /**
   * Loses the next reply of this kind, and cuts its connection: Redis has carried the request out, and the client never
   * knows. Resolves to false if there was no such reply for a second.
   */
  async loseReply(role: Loss): Promise<boolean> {
    const lost = new Promise<boolean>((resolve) => {
      this.#wanted = { role, done: () => resolve(true) };
    });
    const isLost = await Promise.race([lost, sleep(1000, false)]);
    this.#wanted = undefined;
    this.#asking = new WeakSet();
    return isLost;
  }

  #watch({ proxy }: Member): void {
    const roles = new Roles(proxy);
    roles.onRequest = (chunk, connection) => {
      // A message that arrived for nobody goes back, and may be sent again.
      if (isOf("background", roles.nameOf(connection))) this.#forget(payloadsIn(chunk));
      if (this.#wanted === undefined || this.#wanted.role === "blocking") return;
      if (!/\r\neval(sha)?\r\n/i.test(chunk.toString("latin1"))) return;
      if (isOf(this.#wanted.role, roles.nameOf(connection))) this.#asking.add(connection);
    };
    proxy.onReply = (chunk, connection) => {
      const payloads = payloadsIn(chunk);
      const verdict = this.#judge(payloads, connection, roles.nameOf(connection));
      const at = performance.now();
      this.#recent = this.#recent.filter((one) => at - one.at < MOMENT);
      if (verdict === "forward") {
        for (const payload of payloads) {
          this.sent.add(payload);
          this.#recent.push({ payload, to: connection, at });
        }
      } else {
        // A connection that is reset drops the bytes that its client has not read yet.
        for (const { payload, to } of this.#recent)
          if (to === connection) this.sent.delete(payload);
      }
      return verdict;
    };
  }

  #forget(payloads: readonly string[]): void {
    for (const payload of payloads) this.sent.delete(payload);
  }

  #judge(payloads: readonly string[], connection: ProxyConnection, name?: string): Verdict {
    if (this.#wanted === undefined) return "forward";
    const { role, done } = this.#wanted;
    const isHit =
      role === "blocking" ? payloads.length > 0 && isOf(role, name) : this.#asking.has(connection);
    if (!isHit) return "forward";
    this.#wanted = undefined;
    done();
    return "cut";
  }
}

function isOf(role: Loss, name = "delayline:commands"): boolean {
  // A lent client has no name.
  return name.startsWith(`delayline:${role}`);
}

function payloadsIn(chunk: Buffer): string[] {
  return chunk.toString("latin1").match(/\b[pr]\d+;/g) ?? [];
}
