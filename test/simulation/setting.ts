import type { ReliableQueueOptions } from "../../src/index.ts";
import { BULKY } from "./bulky.ts";
import { Clerk } from "./clerk.ts";
import type { Promises } from "./ledger.ts";
import { MOST_AT_ONCE, PLAIN_STYLES, takeLastPlainly, takePlainly } from "./plain-takers.ts";
import { RELIABLE_STYLES, takeLastReliably, takeReliably } from "./reliable-takers.ts";
import { revokeSome } from "./revoking.ts";
import { audit, produce, Shop } from "./shop.ts";
import type { ProcessOptions, Sim, SimProcess } from "./sim.ts";

/** What the queue of a run is like. It is noted, so that the ledger knows it. */
export interface Setting {
  readonly kind: "plain" | "reliable";
  /** How many partitions the queue has at first; 0 for an ordinary queue. */
  readonly partitions: number;
  /** Whether some processes open the queue as an ordinary one all the same. */
  readonly isMixed: boolean;
  /** Whether payloads are large. */
  readonly isBulky: boolean;
  readonly isExclusive: boolean;
  readonly isStrict: boolean;
  readonly maxAttempts: number;
  readonly retry: readonly number[];
  readonly leaseTimeout: number;
  /** How often an attempt fails, from 0 to 1. */
  readonly failing: number;
  /** Whether a consumer may let the lane rest of a message that has failed. */
  readonly mayHoldLane: boolean;
  /** How many processes take, and how many offer. */
  readonly takers: number;
  readonly producers: number;
}

/** Draws a setting; what a world has decided goes into `fixed`. */
export function drawSetting({ random }: Sim, fixed: Partial<Setting> = {}): Setting {
  return {
    kind: random.pick(["plain", "reliable"]),
    partitions: 0,
    isMixed: false,
    isBulky: false,
    isExclusive: false,
    isStrict: false,
    maxAttempts: random.between(2, 4),
    retry: random.pick([[0], [50, 500], [10, 1000]]),
    leaseTimeout: random.pick([1000, 3000]),
    failing: 0.25,
    mayHoldLane: false,
    takers: random.between(1, 2),
    producers: random.between(1, 2),
    ...fixed,
  };
}

/** What happens in a run besides the takers, who need no telling. */
export interface Deeds {
  /** Options of every client. */
  readonly options?: ProcessOptions;
  /** What comes over a process of a reliable queue one of whose handlers has thrown. */
  readonly onFailure?: (shop: Shop, process: SimProcess) => void;
  /** The work of a producer. */
  readonly work: (shop: Shop, clerk: Clerk) => Promise<void>;
  /** Something else, while the producers work. Its end is awaited. */
  readonly meanwhile?: (shop: Shop, clerks: readonly Clerk[]) => Promise<void>;
  /** Ends what has to end before the queue can be emptied, when no fault comes any more. */
  readonly settle?: (shop: Shop, clerk: Clerk, setting: Setting) => Promise<void>;
}

/** Runs a queue of this setting from the first offer to the last message, and closes everything. */
export async function runSetting(sim: Sim, setting: Setting, deeds: Deeds): Promise<void> {
  sim.note({ setting });
  const shop = new Shop(sim, "orders", {
    ...(setting.isBulky && { codec: BULKY }),
    ...deeds.options,
  });
  const options = optionsOf(setting);
  const takeRest = (isLast: boolean) => (process: SimProcess) =>
    takeLast(shop, process, setting, isLast);
  for (let i = 0; i < setting.takers; i++) staff(shop, `taker${i}`, setting, deeds);
  const names = ["office", ...Array.from({ length: setting.producers }, (_, i) => `producer${i}`)];
  const clerks = names.map((name) => {
    const process = shop.hire(name, name === "office" ? { mayCrash: false } : {});
    return new Clerk(
      shop.ledger,
      process,
      process.run(() => open(process, shop, setting)),
    );
  });
  const [office, ...producers] = clerks;
  if (office === undefined) return;
  // A plain queue revokes nothing.
  const revoking = setting.kind === "reliable" && sim.random.chance(0.6) ? clerks.slice(-1) : [];
  await Promise.all([
    ...revoking.map((clerk) => revokeSome(shop, clerk)),
    produce(shop, producers, (clerk) => deeds.work(shop, clerk)),
    deeds.meanwhile?.(shop, clerks),
  ]);
  const settle = async () => {
    await sim.go(
      "office settles",
      office.process,
      async () => await deeds.settle?.(shop, office, setting),
    );
  };
  await shop.end(takeRest(true), settle);
  if (setting.kind === "reliable") {
    const queue = office.process.run(() =>
      office.process.line.getReliableQueue<number>(shop.queue, options),
    );
    for (let round = 0; ; round++) {
      const then = round > 3 || sim.random.chance(0.5) ? "clear" : "redrive";
      if ((await shop.seeDeadLetters(office.process, queue, then)) === 0) break;
      await shop.end(takeRest(true), settle);
    }
  }
  await shop.closeAll(takeRest(false));
}

/** Judges a run of {@link runSetting}. */
export async function checkSetting(sim: Sim, more: Partial<Promises> = {}): Promise<string[]> {
  const noted = sim.history.find(({ event }) => "setting" in event);
  const setting = noted?.event["setting"] as Setting;
  return await audit(sim, {
    ...setting,
    queue: "orders",
    groups: [setting.kind === "plain" ? "" : "default"],
    // A process may get one more from each place where it waits.
    ...(setting.partitions > 0 && { capacity: 2 * MOST_AT_ONCE }),
    ...more,
  });
}

/** Starts a process that takes, and a successor whenever it crashes or closes. */
export function staff(
  shop: Shop,
  name: string,
  setting: Setting,
  { onFailure }: Pick<Deeds, "onFailure"> = {},
): void {
  shop.staff(name, (process) =>
    take(shop, process, setting, (failed) => onFailure?.(shop, failed)),
  );
}

/** Lets a process take as the setting says, until its client is closed. */
export function take(
  shop: Shop,
  process: SimProcess,
  setting: Setting,
  onFailure: (process: SimProcess) => void = () => {},
): void {
  const { random } = shop.sim;
  if (setting.kind === "plain") {
    takePlainly(shop, process, random.pick(PLAIN_STYLES), partitionsOf(setting, shop.sim));
    return;
  }
  const styles = RELIABLE_STYLES.filter((style) => style !== "route");
  takeReliably(shop, process, {
    options: optionsOf(setting, shop.sim),
    style: setting.isExclusive ? "subscribe" : random.pick(styles),
    longest: random.pick([50, 800]),
    failing: setting.failing,
    mayHoldLane: setting.mayHoldLane,
    onFailure,
  });
}

async function takeLast(
  shop: Shop,
  process: SimProcess,
  setting: Setting,
  isLast: boolean,
): Promise<void> {
  if (setting.kind === "plain") await takeLastPlainly(shop, process, isLast);
  else if (!setting.isExclusive) {
    await takeLastReliably(shop, process, [optionsOf(setting)], isLast);
  } else {
    takeReliably(shop, process, { options: optionsOf(setting), style: "subscribe", isLast });
    await shop.isEmptyWithin(30_000);
  }
}

function open(process: SimProcess, { sim, queue }: Shop, setting: Setting) {
  return setting.kind === "plain"
    ? process.line.getDelayedQueue<number>(queue, partitionsOf(setting, sim))
    : process.line.getReliableQueue<number>(queue, optionsOf(setting, sim));
}

/** `sim` draws whether a process leaves the number out, if the setting is mixed. */
function partitionsOf({ partitions, isMixed }: Setting, sim?: Sim): { partitions?: number } {
  return partitions === 0 || (isMixed && sim?.random.chance(0.5) === true) ? {} : { partitions };
}

function optionsOf(setting: Setting, sim?: Sim): ReliableQueueOptions<number> {
  const { maxAttempts, retry, leaseTimeout, isExclusive, isStrict } = setting;
  const options = { maxAttempts, retry, leaseTimeout, ...partitionsOf(setting, sim) };
  return isExclusive ? { ...options, exclusive: true, strict: isStrict } : options;
}
