import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import { bundle } from "../../helpers/bundle.ts";
import { eachMessage, startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { Random } from "../garbage.ts";
import type { AttemptNote } from "../workers/attempts-worker.ts";

/*
 * Whatever happens to processes and their connections: the attempt of each delivery is one more than its failures, and
 * each failure says what has failed. Processes are killed, frozen until others take their messages, and closed while
 * their handlers run; replies are cut off; the number of partitions changes.
 *
 * ATTEMPTS_SECONDS=600 for a long run; ATTEMPTS_SEED=... to repeat the choices of one.
 */

const { ATTEMPTS_SECONDS, ATTEMPTS_SEED } = process.env;
const SECONDS = Number(ATTEMPTS_SECONDS ?? 8);
const SEED = Number(ATTEMPTS_SEED ?? Date.now() % 1_000_000_000);

/** Offers in each tenth of a second. */
const OFFERS = 10;
const WORKERS = 3;

/** One reply in so many is cut off, with its connection. */
const CUT = 30;

/** Milliseconds. */
const LEASE = 600;

const MAX_DELIVERIES = 5;

/** The reasons that these handlers give, and what may become of their deliveries. */
const REASON =
  /^(bad luck|nacked|hopeless|the delivery was not settled in time|its consumer died in delivery \d+|the (queue|subscription) is closed)$/;

test.each([
  ["a group", { partitions: 3 }],
  // The number stays: changing it takes too long under such a storm.
  ["an exclusive group in strict order", { partitions: 6, exclusive: true, strict: true }],
])(
  `${SECONDS} s of trouble for %s: attempts and failures agree (seed ${SEED})`,
  async (_, own) => {
    const random = new Random(SEED);
    const options = {
      leaseTimeout: LEASE,
      maxAttempts: MAX_DELIVERIES,
      retry: [20],
      ...own,
    };
    const isShared = !("exclusive" in own);
    const server = await startOwnServer();
    const proxy = await startProxy(server.url);
    const name = uniqueName();
    const line = newLine({ redis: server.url, codec: "string" });
    const queue = line.getReliableQueue<string>(name, options);
    await queue.size();
    const workers = await Workers.start({
      REDIS: proxy.url,
      QUEUE: name,
      OPTIONS: JSON.stringify(options),
      SEED: String(SEED),
      BY_HAND: isShared ? "2" : "0",
    });

    const end = performance.now() + SECONDS * 1000;
    const isRaging = () => performance.now() < end;
    let offered = 0;
    const offering = async () => {
      while (isRaging()) {
        const payloads = Array.from({ length: OFFERS }, () => `any ${offered++}`);
        await queue.offerMany(payloads.map((payload) => ({ payload, delay: random.below(200) })));
        await sleep(100);
      }
    };
    const changing = async () => {
      if (!isShared) return;
      while (isRaging()) {
        await line.setPartitions(name, 1 + random.below(4));
        await sleep(300);
      }
    };
    proxy.onReply = () => (random.once(CUT) ? "cut" : "forward");
    const raging = async () => {
      while (isRaging()) {
        await workers.suffer(random);
        await sleep(random.below(200));
      }
    };
    await Promise.all([offering(), changing(), raging()]);
    proxy.onReply = undefined;
    await eventually(
      async () => {
        const { delayed, ready, inFlight, retries } = await queue.stats();
        expect([delayed, ready, inFlight, retries]).toEqual([0, 0, 0, 0]);
      },
      { within: 60_000 },
    );
    const deliveries = await workers.end();
    const letters = (await collect(queue.deadLetters)).map(({ payload, attempt, failures }) => {
      const told = failures.map((one) => [one.attempt, one.reason] as const);
      return { payload: String(payload), attempt, failures: told };
    });

    if (ATTEMPTS_SECONDS !== undefined) {
      const counts = { deliveries: deliveries.length, letters: letters.length };
      console.log({ offered, ...counts, ...workers.counts });
    }
    const again = `ATTEMPTS_SEED=${SEED}`;
    expect(deliveries.filter(isWrong), again).toEqual([]);
    // The last attempt of a dead letter has failed, too.
    expect(
      letters.filter((letter) => isWrong({ ...letter, attempt: letter.attempt + 1 })),
      again,
    ).toEqual([]);
    const isEarly = ({ attempt, failures }: AttemptNote) =>
      attempt !== MAX_DELIVERIES && failures.at(-1)?.[1] !== "hopeless";
    expect(letters.filter(isEarly), again).toEqual([]);
    expect(deliveries.filter(({ attempt }) => attempt > MAX_DELIVERIES)).toEqual([]);
    // There was something to judge.
    expect(deliveries.filter(({ attempt }) => attempt > 1).length).toBeGreaterThan(10);
    expect(letters).not.toEqual([]);
  },
  60_000 + SECONDS * 3000,
);

/** Whether the failures are not those of the earlier attempts, the last ten, or one of them is of no attempt. */
function isWrong({ attempt, failures }: AttemptNote): boolean {
  const first = Math.max(1, attempt - 10);
  const wanted = Array.from({ length: attempt - first }, (_, i) => first + i);
  const found = failures.map(([failed]) => failed);
  return String(found) !== String(wanted) || !failures.every(([, reason]) => REASON.test(reason));
}

/** Processes that work, and loaded ones that take the places of those that end. */
class Workers {
  /** How often each trouble has happened. */
  readonly counts = { kill: 0, stall: 0, close: 0 };
  readonly #start: () => Child;
  readonly #spares: Child[] = [];
  readonly #working: Child[] = [];
  readonly #listening: Promise<void>[] = [];
  readonly #notes: AttemptNote[] = [];

  private constructor(start: () => Child) {
    this.#start = start;
  }

  static async start(env: NodeJS.ProcessEnv): Promise<Workers> {
    const program = await bundle(new URL("../workers/attempts-worker.ts", import.meta.url));
    const workers = new Workers(() => startChild(program, { env }));
    for (let i = 0; i < 2; i++) workers.#spares.push(workers.#start());
    await workers.#fill();
    return workers;
  }

  /** Something goes wrong with one of them. */
  async suffer(random: Random): Promise<void> {
    const [worker] = this.#working.splice(random.below(WORKERS), 1) as [Child];
    const trouble = random.pick(["kill", "kill", "stall", "close"] as const);
    this.counts[trouble]++;
    if (trouble === "kill") await worker.kill("SIGKILL");
    if (trouble === "close") {
      await worker.send("close");
      await worker.exit;
    }
    if (trouble === "stall") {
      process.kill(worker.pid, "SIGSTOP");
      await sleep(2 * LEASE);
      process.kill(worker.pid, "SIGCONT");
      this.#working.push(worker);
    }
    await this.#fill();
  }

  /** Ends all; returns what they have reported. */
  async end(): Promise<AttemptNote[]> {
    for (const worker of this.#working) await worker.kill("SIGKILL");
    await Promise.all(this.#listening);
    return this.#notes;
  }

  async #fill(): Promise<void> {
    while (this.#working.length < WORKERS) {
      this.#spares.push(this.#start());
      const worker = this.#spares.shift() as Child;
      await worker.next((word) => word === "loaded");
      const note = (one: unknown) => void this.#notes.push(one as AttemptNote);
      this.#listening.push(eachMessage(worker, note));
      await worker.send("go");
      this.#working.push(worker);
    }
  }
}
