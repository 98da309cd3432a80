import { expect, test } from "vitest";
import type { Child } from "../../scripts/child/child.ts";
import { bundle } from "../helpers/bundle.ts";
import { eachMessage, startChild } from "../helpers/child.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";
import { redisUrl, uniqueName } from "../helpers/redis.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { Random } from "./garbage.ts";
import type { DeliveryNote } from "./workers/collect-worker.ts";

/*
 * Two clients collect under the same keys, and their replies are cut off: each offer is a payload of one message, whatever
 * is sent again. Consumers have their replies cut off as well, and are killed: a message is delivered with the same payloads
 * each time.
 *
 * COLLECT_SEED=... to repeat the choices of a run.
 */

const SEED = Number(process.env["COLLECT_SEED"] ?? Date.now() % 1_000_000_000);
const CLIENTS = ["a", "b"];
const KEYS = upTo(3).map((i) => `key ${i}`);
/** By each client under each key, one after the other. */
const OFFERS = 150;
/** So small that messages are full all the time. */
const MAX_COLLECTED = 7;
/** Milliseconds. Longer than any outage: the key of an offer that is sent again knows it. */
const DELAY = 3000;
/** One reply in so many is cut off, with its connection. */
const CUT = 10;
/** The same, of consumers. */
const CUT_BEHIND = 50;

test.each([
  ["replies are cut off", 0],
  ["replies are cut off and consumers killed", 8],
])(
  `900 offers collect while %s: each is a payload of one message (seed ${SEED})`,
  async (_, kills) => {
    const random = new Random(SEED);
    const name = uniqueName();
    const proxy = await startProxy(redisUrl());
    const behind = await startProxy(redisUrl());
    const offered: string[] = [];
    const offering = CLIENTS.flatMap((client) => {
      const line = newLineThatMayFail({ redis: proxy.url, codec: "string", transfer: false });
      const queue = line.getReliableQueue<string>(name);
      return KEYS.map(async (key) => {
        for (const i of upTo(OFFERS)) {
          const payload = `${key} ${client} ${i}`;
          await queue.offer(payload, DELAY, {
            key,
            onDuplicate: "collect",
            maxCollected: MAX_COLLECTED,
          });
          offered.push(payload);
        }
      });
    });
    let cuts = 0;
    proxy.onReply = () => {
      const isCut = random.once(CUT);
      cuts += isCut ? 1 : 0;
      return isCut ? "cut" : "forward";
    };
    behind.onReply = () => (random.once(CUT_BEHIND) ? "cut" : "forward");
    const consumers = await Consumers.start({ REDIS: behind.url, QUEUE: name });
    const all = Promise.all(offering);
    // The last messages are due after the last offer, so there is one to kill for; perhaps no second one.
    for (let i = 0, isOver = false; i < kills && !isOver; i++)
      isOver = await consumers.killInHandler(i > 0 ? all : new Promise(() => {}));
    await all;
    behind.onReply = undefined;
    const queue = newLine({ codec: "string", transfer: false }).getReliableQueue<string>(name);
    await eventually(
      async () => {
        const { delayed, ready, inFlight, retries } = await queue.stats();
        expect([delayed, ready, inFlight, retries]).toEqual([0, 0, 0, 0]);
      },
      { within: 30_000 },
    );
    const deliveries = await consumers.end();

    const messages = new Map<string, readonly string[]>();
    for (const { id, payloads } of deliveries) {
      expect(payloads).toEqual(messages.get(id) ?? payloads);
      messages.set(id, payloads);
    }
    expectEachOnce(offered, [...messages.values()].flat());
    for (const payloads of messages.values()) {
      expect(payloads.length).toBeLessThanOrEqual(MAX_COLLECTED);
      // A client offers one after the other.
      for (const client of CLIENTS) {
        const theirs = payloads.filter((payload) => payload.includes(` ${client} `));
        expect(theirs).toEqual(theirs.toSorted((a, b) => offered.indexOf(a) - offered.indexOf(b)));
      }
    }
    if (kills === 0) expect(deliveries).toHaveLength(messages.size);
    else expect(deliveries.length).toBeGreaterThan(messages.size);
    // There was something to judge.
    expect(cuts).toBeGreaterThan(10);
    expect(messages.size).toBeGreaterThan(offered.length / MAX_COLLECTED);
    expect(messages.size).toBeLessThan(offered.length / 2);
  },
  120_000,
);

/** Processes that handle, and a loaded one that takes the place of one that is killed. */
class Consumers {
  readonly #start: () => Child;
  readonly #working: Child[] = [];
  readonly #listening: Promise<void>[] = [];
  readonly #notes: DeliveryNote[] = [];
  #onNote: ((worker: Child) => void) | undefined;

  private constructor(start: () => Child) {
    this.#start = start;
  }

  static async start(env: NodeJS.ProcessEnv): Promise<Consumers> {
    const program = await bundle(new URL("workers/collect-worker.ts", import.meta.url));
    const consumers = new Consumers(() => startChild(program, { env }));
    await consumers.#add();
    await consumers.#add();
    return consumers;
  }

  /** Kills the process that tells the next delivery, and starts another. Returns whether `end` came first. */
  async killInHandler(end: Promise<unknown>): Promise<boolean> {
    const noted = new Promise<Child>((resolve) => (this.#onNote = resolve));
    const worker = await Promise.race([noted, end.then(() => undefined)]);
    this.#onNote = undefined;
    if (worker === undefined) return true;
    this.#working.splice(this.#working.indexOf(worker), 1);
    await worker.kill("SIGKILL");
    await this.#add();
    return false;
  }

  /** Ends all; returns what they have told. */
  async end(): Promise<DeliveryNote[]> {
    for (const worker of this.#working) await worker.kill("SIGKILL");
    await Promise.all(this.#listening);
    return this.#notes;
  }

  async #add(): Promise<void> {
    const worker = this.#start();
    await worker.next((word) => word === "loaded");
    const listening = eachMessage(worker, (note) => {
      this.#notes.push(note as DeliveryNote);
      if (this.#working.includes(worker)) this.#onNote?.(worker);
    });
    this.#listening.push(listening);
    await worker.send("go");
    this.#working.push(worker);
  }
}
