import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { newConsumerName } from "../../../src/reliable/group/consumer-name.ts";
import { ReclaimWatch, type ConsumerState } from "../../../src/reliable/group/reclaim-watch.ts";

const OURS = 6_000;
const SELF = newConsumerName(OURS, 8);

function newWatch(leaseTimeout = OURS): ReclaimWatch {
  return new ReclaimWatch({ leaseTimeout, self: SELF });
}

/** A consumer with a timeout of 6 s. */
const other = newConsumerName(6_000, 8);

/** One look at one consumer: when it happens, the silence so far, the verdict, and the pause until the next look. */
type Row = readonly [now: number, idle: number, isDead: boolean, lookIn: number];

describe("a consumer with a timeout of 6 s", () => {
  test.each<[string, Row[]]>([
    [
      "that dies is looked at after half the timeout, and found after the whole",
      [
        [0, 0, false, 1_000],
        [1_000, 1_000, false, 1_000],
        [2_000, 2_000, false, 1_000],
        [3_000, 3_000, false, 1_000],
        [4_000, 4_000, false, 1_000],
        [5_500, 5_500, false, 500],
        [5_999, 5_999, false, 50],
        [6_000, 6_000, true, 1_000],
      ],
    ],
    [
      "that is dead at our first look is found after half a timeout",
      [
        [0, 100_000, false, 1_000],
        [1_000, 101_000, false, 1_000],
        [2_800, 102_800, false, 200],
        [2_999, 102_999, false, 50],
        [3_000, 103_000, true, 1_000],
      ],
    ],
    [
      "that died shortly before our first look is found after the whole timeout",
      [
        [0, 3_500, false, 1_000],
        [2_499, 5_999, false, 501],
        [3_000, 6_500, true, 1_000],
      ],
    ],
    [
      "is reported until its messages are reclaimed",
      [
        [0, 10_000, false, 1_000],
        [3_000, 13_000, true, 1_000],
        [3_050, 13_050, true, 1_000],
        [9_000, 19_000, true, 1_000],
      ],
    ],
    [
      "that gives a sign of life in time is alive",
      [
        [0, 3_000, false, 1_000],
        [2_900, 5_900, false, 100],
        [3_000, 50, false, 1_000],
        [5_950, 3_000, false, 1_000],
        [8_949, 5_999, false, 50],
        [8_950, 6_000, true, 1_000],
      ],
    ],
    [
      "that gave a sign of life between two looks has the whole timeout again",
      [
        [0, 3_000, false, 1_000],
        [9_000, 6_000, false, 1_000],
        [11_999, 8_999, false, 50],
        [12_000, 9_000, true, 1_000],
      ],
    ],
    [
      "that beats stays alive when the clock is set forward",
      [
        [0, 1_000, false, 1_000],
        [1_000, 602_000, false, 1_000],
        [2_000, 1_000, false, 1_000],
        [3_000, 2_000, false, 1_000],
        [4_000, 1_000, false, 1_000],
      ],
    ],
    [
      "that beats stays alive if the second look is half a timeout later",
      [
        [0, 602_000, false, 1_000],
        [3_000, 1_000, false, 1_000],
        [6_000, 2_000, false, 1_000],
      ],
    ],
    [
      "that was slow stays alive when the clock is set forward between the looks",
      [
        [0, 3_100, false, 1_000],
        [3_000, 602_000, false, 1_000],
        [4_000, 1_000, false, 1_000],
        [6_000, 1_000, false, 1_000],
      ],
    ],
    [
      "that is dead is found later when the clock is set forward",
      [
        [0, 3_000, false, 1_000],
        [2_000, 605_000, false, 1_000],
        [4_999, 607_999, false, 50],
        [5_000, 608_000, true, 1_000],
      ],
    ],
    [
      "that is dead is found later when the clock is set back",
      [
        [0, 3_000, false, 1_000],
        [1_000, 0, false, 1_000],
        [600_000, 0, false, 1_000],
        [603_000, 3_000, false, 1_000],
        [605_999, 5_999, false, 50],
        [606_000, 6_000, true, 1_000],
      ],
    ],
    [
      "that is dead is found later when the clock is set back a little",
      [
        [0, 10_000, false, 1_000],
        [3_000, 12_500, false, 1_000],
        [6_000, 15_500, true, 1_000],
      ],
    ],
    [
      "is dead although replies are slow",
      [
        [0, 3_000, false, 1_000],
        [1_000, 4_290, false, 1_000],
        [2_000, 4_710, false, 1_000],
        [3_000, 6_290, true, 1_000],
      ],
    ],
    [
      "has the whole timeout, even if the server's clock is slower",
      [
        [0, 3_000, false, 1_000],
        [3_000, 5_850, false, 150],
        [3_150, 6_000, true, 1_000],
      ],
    ],
    [
      "is alive if the clocks differ by more than a tenth of the time between the looks",
      [
        [0, 4_000, false, 1_000],
        [3_000, 6_699, false, 1_000],
        [6_000, 10_000, false, 1_000],
        [9_000, 13_000, true, 1_000],
      ],
    ],
  ])("%s", (_, rows) => {
    const watch = newWatch();
    const looks = rows.map(([now, idle]) => {
      const { dead, lookIn } = watch.look([{ name: other, inFlight: 1, idle }], now);
      return [now, idle, dead, lookIn];
    });
    expect(looks).toEqual(
      rows.map(([now, idle, isDead, lookIn]) => [
        now,
        idle,
        isDead ? [{ name: other, idle }] : [],
        lookIn,
      ]),
    );
  });
});

/** Looks at a consumer, and again after a long silence. */
function lookTwice(consumer: ConsumerState) {
  const watch = newWatch();
  watch.look([consumer], 0);
  return watch.look([{ ...consumer, idle: consumer.idle + 100_000 }], 100_000);
}

test("with a short timeout a reply may still take 50 ms", () => {
  const watch = newWatch();
  const name = newConsumerName(600, 8);
  const lookAt = (now: number, idle: number) => watch.look([{ name, inFlight: 1, idle }], now).dead;
  lookAt(0, 350);
  expect(lookAt(300, 600)).toHaveLength(1);
  lookAt(1_000, 5_000);
  expect(lookAt(1_300, 5_249)).toEqual([]);
});

describe("found dead", () => {
  const silent = { inFlight: 5, idle: 1_000_000 };

  test("is a consumer that stays silent", () => {
    expect(lookTwice({ name: other, ...silent }).dead).toHaveLength(1);
  });

  test("is nobody in an empty group", () => {
    expect(newWatch().look([], 0)).toEqual({ dead: [], lookIn: 1_000 });
  });

  test("is no consumer without messages in flight, which causes no earlier look either", () => {
    const idle = { name: other, inFlight: 0, idle: 2_990 };
    expect(newWatch().look([idle], 0)).toEqual({ dead: [], lookIn: 1_000 });
    expect(lookTwice({ name: other, ...silent, inFlight: 0 }).dead).toEqual([]);
  });

  test("is not this process itself", () => {
    expect(lookTwice({ name: SELF, ...silent }).dead).toEqual([]);
  });
});

describe("the first look is forgotten", () => {
  const first = { name: other, inFlight: 1, idle: 10_000 };
  const second = { ...first, idle: 13_000 };

  test.each<[string, ConsumerState[]]>([
    ["with a consumer that vanished", []],
    ["when a consumer has nothing in flight", [{ ...first, inFlight: 0, idle: 11_000 }]],
    ["with a sign of life", [{ ...first, idle: 100 }]],
  ])("%s", (_, between) => {
    const watch = newWatch();
    watch.look([first], 0);
    watch.look(between, 1_000);
    expect(watch.look([second], 3_000).dead).toEqual([]);
    expect(watch.look([{ ...second, idle: 16_000 }], 6_000).dead).toHaveLength(1);
  });
});

describe("the timeout is the judged consumer's", () => {
  test.each<[string, number, string, number]>([
    ["ours 5 s, theirs 60 s", 5_000, newConsumerName(60_000, 8), 60_000],
    ["ours 60 s, theirs 5 s", 60_000, newConsumerName(5_000, 8), 5_000],
    ["ours 5 s, a foreign name", 5_000, "worker-1", 5_000],
    ["ours 60 s, a foreign name", 60_000, `delayline:x:${randomUUID()}`, 60_000],
  ])("%s", (_, ours, name, timeout) => {
    const watch = newWatch(ours);
    const lookAt = (idle: number) => watch.look([{ name, inFlight: 1, idle }], idle);
    const least = Math.min(ours / 6, timeout / 2);
    expect(lookAt(0)).toEqual({ dead: [], lookIn: least });
    expect(lookAt(timeout / 2 - 60)).toEqual({ dead: [], lookIn: 60 });
    expect(lookAt(timeout / 2)).toEqual({ dead: [], lookIn: least });
    expect(lookAt(timeout - 60)).toEqual({ dead: [], lookIn: 60 });
    expect(lookAt(timeout)).toEqual({ dead: [{ name, idle: timeout }], lookIn: ours / 6 });
  });
});

test("each consumer is judged by itself, and the next look is when the first may be dead", () => {
  const [quick, slow, dead] = [newConsumerName(2_000, 8), newConsumerName(60_000, 8), other];
  const watch = newWatch();
  const at = (now: number, quickIdle: number) =>
    watch.look(
      [
        { name: slow, inFlight: 1, idle: 29_900 + now },
        { name: dead, inFlight: 1, idle: 50_000 + now },
        { name: SELF, inFlight: 9, idle: 100_000 + now },
        { name: quick, inFlight: 1, idle: quickIdle },
      ],
      now,
    );
  expect(at(0, 700)).toEqual({ dead: [], lookIn: 100 });
  expect(at(100, 800)).toEqual({ dead: [], lookIn: 200 });
  expect(at(3_000, 900)).toEqual({ dead: [{ name: dead, idle: 53_000 }], lookIn: 100 });
});

/** A simulated group: consumers that beat every third of their timeouts, and a server clock that may be set. */
class World {
  /** Milliseconds of real time so far. */
  now = 0;
  /** The server's clock at that moment. */
  clock = 1_700_000_000_000;
  readonly #consumers: { name: string; seenAt: number; beatAt: number; isAlive: boolean }[] = [];

  add(name: string): void {
    this.#consumers.push({ name, seenAt: this.clock, beatAt: this.now, isAlive: true });
  }

  kill(name: string): void {
    for (const consumer of this.#consumers) if (consumer.name === name) consumer.isAlive = false;
  }

  pass(duration: number): void {
    const [from, to] = [this.now, this.now + duration];
    for (const consumer of this.#consumers) {
      const interval = Number(consumer.name.split(":")[1]) / 3;
      while (consumer.isAlive && consumer.beatAt <= to) {
        consumer.seenAt = this.clock + consumer.beatAt - from;
        // Sometimes late, as in a busy process.
        consumer.beatAt += interval * (0.9 + 0.2 * Math.random());
      }
    }
    this.now = to;
    this.clock += duration;
  }

  read(): ConsumerState[] {
    return this.#consumers.map(({ name, seenAt }) => ({
      name,
      inFlight: 1,
      idle: Math.max(0, Math.floor(this.clock - seenAt)),
    }));
  }
}

/** A world with 40 live consumers. */
function newWorld(): { world: World; names: string[]; watch: ReclaimWatch } {
  const world = new World();
  const names = Array.from({ length: 40 }, (_, i) =>
    newConsumerName([2_000, 6_000, 30_000][i % 3] ?? 0, 8),
  );
  for (const name of names) {
    world.add(name);
    world.pass(Math.random() * 1_000);
  }
  return { world, names, watch: newWatch() };
}

/** Looks for this long; returns which consumers were found dead, and when. */
function watchFor(duration: number, world: World, watch: ReclaimWatch): Map<string, number> {
  const found = new Map<string, number>();
  for (const end = world.now + duration; world.now < end;) {
    const { dead, lookIn } = watch.look(world.read(), world.now);
    for (const { name } of dead) if (!found.has(name)) found.set(name, world.now);
    world.pass(lookIn + Math.random() * 20);
  }
  return found;
}

test("a consumer that dies among many live ones is found after one timeout", () => {
  for (let i = 0; i < 20; i++) {
    const { world, names, watch } = newWorld();
    watchFor(10_000, world, watch);
    const victim = names[i] ?? "";
    const timeout = Number(victim.split(":")[1]);
    world.kill(victim);
    const killedAt = world.now;
    const found = watchFor(3 * timeout, world, watch);
    expect([...found.keys()]).toEqual([victim]);
    // Its last beat may have been up to a third of the timeout before it died.
    const after = ((found.get(victim) ?? 0) - killedAt) / timeout;
    expect(after).toBeGreaterThan(0.6);
    expect(after).toBeLessThan(1.1);
  }
});

test.each([600_000, 5_000, 1_500, -1_500, -5_000, -600_000])(
  "a step of the clock by %d ms makes no live consumer dead",
  (step) => {
    for (let i = 0; i < 20; i++) {
      const { world, watch } = newWorld();
      const found: string[] = [];
      for (let steps = 0; steps < 3; steps++) {
        found.push(...watchFor(2_500 + Math.random() * 17_500, world, watch).keys());
        world.clock += step;
      }
      found.push(...watchFor(60_000, world, watch).keys());
      expect(found).toEqual([]);
    }
  },
);
