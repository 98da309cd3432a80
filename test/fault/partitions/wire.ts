import { setTimeout as sleep } from "node:timers/promises";
import { Roles } from "../../helpers/roles.ts";
import type { ProxyConnection, Verdict } from "../../helpers/tcp-proxy.ts";
import type { Member, Site } from "./site.ts";

/** Replies that can be lost: to an offer, to what moves, settles and cancels, and to who waits for messages. */
export type Loss = "commands" | "background" | "blocking";

/** Milliseconds in which a client reads what has come, on a busy machine. */
const MOMENT = 100;

/** What is on the wire between the clients and the servers of a site. */
export class Wire {
  /** Payloads that have come from Redis and gone on to a client whose connection lived on. */
  readonly sent = new Set<string>();
  /** Which of them went where a moment ago. */
  #recent: { readonly payload: string; readonly to: ProxyConnection; readonly at: number }[] = [];
  #wanted: { readonly role: Loss; readonly done: () => void } | undefined;
  #asking = new WeakSet<ProxyConnection>();

  constructor(site: Site) {
    for (const member of site.members) this.#watch(member);
  }

  /**
   * Loses the next reply of this kind, and cuts its connection: Redis has done it, and the client never knows. False if
   * there was none for a second.
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
      // What came for nobody goes back, and may come again.
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
        // A connection that is reset takes along what its client has not read yet.
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
  // A client that was lent has no name.
  return name.startsWith(`delayline:${role}`);
}

function payloadsIn(chunk: Buffer): string[] {
  return chunk.toString("latin1").match(/\b[pr]\d+;/g) ?? [];
}
