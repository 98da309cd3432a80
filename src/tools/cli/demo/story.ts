import { once } from "node:events";
import type { ReliableQueue } from "../../../index.ts";
import { networkTime, sleepForNetwork } from "../../../inside.ts";
import { Keyboard } from "../session/keyboard.ts";
import { type Io, type Output } from "../session/output.ts";
import { busyNote } from "./busy.ts";
import { titleOf, type Crew, type CrewEvents, type CrewMember } from "./crew.ts";
import { keyOf, LEASE_TIMEOUT, takenInWords, type Order, type Report } from "./order.ts";
import { formatCount, formatDuration } from "../../view/words.js";

/** How many orders are placed at once; when the first is due, and the time from one to the next, in milliseconds. */
const ORDERS = 10;
const FIRST = 2000;
// Longer than the work on one: a single worker keeps up.
const STEP = 1500;

/** How long a demo without keys may take, in milliseconds. */
const PATIENCE = 120_000;

async function until(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

/** What has become of an order. */
interface Fate {
  readonly deadline: number;
  state: "open" | "paid" | "handled";
  deliveries: number;
}

/** The orders of the demo: what happens to them in words, and the account at the end. */
export class Story implements CrewEvents {
  readonly #output: Output;
  readonly #orders: ReliableQueue<Order>;
  /** By the orders' numbers. */
  readonly #fates = new Map<number, Fate>();
  readonly #end = new AbortController();
  #startedAt = 0;
  /** What a demo without keys does after a report. */
  #script: (report: Report) => void = () => {};
  /** Whether the account of all orders so far was given. */
  #isTold = false;
  #onSettled: () => void = () => {};

  constructor(output: Output, orders: ReliableQueue<Order>) {
    this.#output = output;
    this.#orders = orders;
  }

  /** Tells what happens, and does what the keys say, until `q` or the signal. */
  async tell(crew: Crew, io: Io, signal: AbortSignal): Promise<void> {
    await this.#output.print(...KEYS, ...busyNote(), "");
    const keys: Readonly<Record<string, () => Promise<void> | void>> = {
      k: () => this.#kill(crew),
      w: async () => this.#say(`${titleOf(await crew.hire(signal))} takes orders`),
      p: () => this.#pay(),
      o: () => this.#order(),
      q: () => this.#end.abort(),
    };
    this.#onSettled = () => this.#remark("o places ten more orders, q ends the demo");
    await this.#order();
    using _ = new Keyboard(io, (key) => this.#attempt(async () => await keys[key]?.()));
    await until(AbortSignal.any([signal, this.#end.signal]));
  }

  /**
   * Tells what happens until every order has met its fate: on the way one is paid, and a worker is killed. Returns
   * whether none is lost.
   */
  async tellAlone(crew: Crew, signal: AbortSignal): Promise<boolean> {
    let taken = 0;
    this.#script = ({ what }) => {
      if (what !== "taken") return;
      taken++;
      if (taken === 2) this.#attempt(() => this.#pay());
      if (taken === 4) this.#kill(crew);
    };
    let isSettled = false;
    this.#onSettled = () => {
      isSettled = true;
      this.#end.abort();
    };
    await this.#order();
    await until(AbortSignal.any([signal, this.#end.signal, AbortSignal.timeout(PATIENCE)]));
    return isSettled;
  }

  report(member: CrewMember, report: Report): void {
    if (report.what === "taken") this.#tellTaken(member, report);
    if (report.what === "handled") {
      this.#fate(report.order).state = "handled";
      this.#say(`${keyOf(report.order)} is done by ${member.name}`);
    }
    this.#script(report);
    this.#attempt(() => this.#settle());
  }

  exit(member: CrewMember, isLast: boolean): void {
    const { holds } = member;
    const hands =
      holds === undefined ? "with nothing in its hands" : `with ${keyOf(holds)} in its hands`;
    this.#say(`${titleOf(member)} is dead, ${hands}`, "dead");
    if (holds !== undefined) {
      const lease = formatDuration(LEASE_TIMEOUT);
      this.#remark(
        `Its lease on ${keyOf(holds)} ends within ${lease}, then another worker gets it.`,
      );
    }
    if (isLast)
      this.#remark("No worker is left. Due orders wait in Redis until w starts a worker.");
  }

  /** Places ten more orders. */
  async #order(): Promise<void> {
    if (this.#startedAt === 0) this.#startedAt = networkTime.now();
    this.#isTold = false;
    const first = this.#fates.size + 1;
    const numbers = Array.from({ length: ORDERS }, (_, i) => first + i);
    await Promise.all(
      numbers.map(async (number, i) => {
        const order = { number, amount: 10 * number };
        const { deadline } = await this.#orders.offer(order, FIRST + i * STEP, {
          key: keyOf(number),
        });
        this.#fates.set(number, { deadline, state: "open", deliveries: 0 });
      }),
    );
    const times = [FIRST, FIRST + (ORDERS - 1) * STEP].map(formatDuration).join(" to ");
    this.#say(`${keyOf(first)} to ${keyOf(first + ORDERS - 1)} are placed: due in ${times}`);
  }

  /** Pays the last order that is still delayed: no worker will get it. */
  async #pay(): Promise<void> {
    const open = [...this.#fates].filter(([, { state }]) => state === "open").toReversed();
    for (const [number, fate] of open) {
      if (!(await this.#orders.cancel(keyOf(number)))) continue;
      fate.state = "paid";
      this.#say(`${keyOf(number)} is paid in time: cancelled, and never delivered`);
      return await this.#settle();
    }
    this.#say("No order waits for its payment: o places ten more");
  }

  #kill(crew: Crew): void {
    if (!crew.kill()) this.#say("There is no worker to kill: w starts one");
  }

  #tellTaken({ name }: CrewMember, taken: Extract<Report, { what: "taken" }>): void {
    const { order, attempt } = taken;
    const fate = this.#fate(order);
    fate.deliveries++;
    if (attempt > 1)
      this.#say(`${keyOf(order)} is taken again, by ${name}: attempt ${attempt}`, "again");
    else this.#say(takenInWords(name, taken, fate.deadline));
  }

  /** Gives the account, once every order has met its fate and the queue is empty. */
  async #settle(): Promise<void> {
    if (this.#isTold || this.#count("open") > 0) return;
    this.#isTold = true;
    // The last order may not be acknowledged yet.
    while ((await this.#left()) > 0) await sleepForNetwork(20);
    const again = [...this.#fates.values()].filter(({ deliveries }) => deliveries > 1).length;
    await this.#output.print(
      "",
      `${formatCount(this.#fates.size, "order")}: ${this.#count("handled")} done, ${this.#count("paid")} paid in time, ${this.#count("open")} lost.`,
      ...(again === 0 ? [] : [`${again} delivered twice: a worker died with it in its hands.`]),
      "",
    );
    this.#onSettled();
  }

  async #left(): Promise<number> {
    const { delayed, ready, inFlight, retries } = await this.#orders.stats();
    return delayed + ready + inFlight + retries;
  }

  #count(state: Fate["state"]): number {
    return [...this.#fates.values()].filter((fate) => fate.state === state).length;
  }

  #fate(number: number): Fate {
    const fate = this.#fates.get(number);
    if (fate === undefined) throw new Error(`there is no ${keyOf(number)}`);
    return fate;
  }

  /** Prints a line with the time since the first orders were placed. */
  #say(text: string, colour?: keyof typeof COLOURS): void {
    const seconds = (networkTime.now() - this.#startedAt) / 1000;
    const time = `${seconds.toFixed(1).padStart(6)} s`;
    const shown =
      this.#output.hasColours && colour !== undefined ? `${COLOURS[colour]}${text}\u001b[0m` : text;
    this.#attempt(() => this.#output.print(`${time}  ${shown}`));
  }

  /** Prints a line that belongs to the one above. */
  #remark(text: string): void {
    this.#attempt(() => this.#output.print(`${" ".repeat(10)}${text}`));
  }

  /** Runs something in the background, and prints its failure. */
  #attempt(act: () => Promise<void>): void {
    act().catch((error: unknown) => {
      if (error instanceof Error) this.#output.say(error.message);
    });
  }
}

const COLOURS = { dead: "\u001b[31m", again: "\u001b[36m" } as const;

const KEYS = [
  "  k  kills a worker in the middle of its work     p  pays an order in time",
  "  w  starts a worker                              o  places ten more orders",
  "                                                  q  ends the demo",
];
