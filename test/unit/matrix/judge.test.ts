import { describe, expect, test } from "vitest";
import type { Queue } from "../../../scripts/matrix/cells.ts";
import type { History, Offered, Run } from "../../matrix/history.ts";
import { judge, type Circumstances } from "../../matrix/judge.ts";

/** A message that was offered at `sentAt`, and is due 100 ms later. */
function offer(n: number, sentAt = 1000 * n, more: Partial<Offered> = {}): Offered {
  const result = { acknowledgedAt: sentAt + 1, deadline: sentAt + 100 };
  return { n, key: "k", sentAt, delay: 100, ...result, ...more };
}

/** A handler that runs for 5 ms, at the deadline by default. */
function run(n: number, more: Partial<Run> = {}): Run {
  const startedAt = more.startedAt ?? 1000 * n + 100;
  return { n, by: "a", attempt: 1, fence: 1, startedAt, doneAt: startedAt + 5, ...more };
}

/** A run that never ended. */
function broken(n: number, more: Partial<Run> = {}): Run {
  const { doneAt: _, ...rest } = run(n, more);
  return rest;
}

type Disturbance = Partial<Pick<History, "kills" | "stalls" | "rollbacks">>;

interface Story extends Disturbance {
  readonly queue?: Queue;
  readonly offers: readonly Offered[];
  readonly runs: readonly Run[];
}

const CALM: Circumstances = { inHand: 1, wasSent: () => true, lease: undefined };

function verdictOf({ queue = "reliable", offers, runs, ...rest }: Story, more = CALM) {
  const history: History = {
    queue,
    offers: new Map(offers.map((one) => [one.n, one])),
    runs: [...runs],
    kills: [],
    stalls: [],
    rollbacks: [],
    epoch: 0,
    ...rest,
  };
  return judge(history, more);
}

test("a quiet run is without faults", () => {
  const verdict = verdictOf({ offers: [offer(1), offer(2)], runs: [run(1), run(2)] });
  expect(verdict).toEqual({
    messages: 2,
    refused: 0,
    lost: 0,
    forfeited: 0,
    twice: 0,
    again: 0,
    early: 0,
    unwanted: null,
    disordered: null,
    latest: 5,
    faults: [],
  });
});

describe("lost", () => {
  test("an acknowledged message that nobody finished is lost, one without a reply is not", () => {
    const { acknowledgedAt: _, ...unknown } = offer(3);
    const story = { offers: [offer(1), offer(2), unknown], runs: [broken(1)] };
    expect(verdictOf(story)).toMatchObject({ messages: 2, lost: 2, forfeited: 0 });
  });

  test("what the server has forgotten is forfeited, and nothing else", () => {
    const rollbacks = [{ from: 1900, to: 2100 }];
    const story = { offers: [offer(1), offer(2), offer(3)], runs: [], rollbacks };
    expect(verdictOf(story)).toMatchObject({ lost: 2, forfeited: 1 });
  });

  test("a plain message in the hands of a killed process is forfeited, no more than it could hold", () => {
    const kills = [{ by: "a", at: 1101 }];
    const offers = [offer(1), offer(2, 1000)];
    const runs = [broken(1), broken(2, { startedAt: 1100 })];
    expect(verdictOf({ queue: "plain", offers, runs, kills })).toMatchObject({
      lost: 1,
      forfeited: 1,
    });
    expect(verdictOf({ queue: "reliable", offers, runs, kills })).toMatchObject({ lost: 2 });
    const others = [{ by: "b", at: 1101 }];
    expect(verdictOf({ queue: "plain", offers, runs, kills: others })).toMatchObject({ lost: 2 });
  });

  test("a plain message on its way to a cut connection is forfeited, a reliable one is lost", () => {
    const story = { offers: [offer(1), offer(2)], runs: [] };
    const cut: Circumstances = { ...CALM, wasSent: (n) => n !== 1 };
    expect(verdictOf({ ...story, queue: "plain" }, cut)).toMatchObject({ lost: 1, forfeited: 1 });
    expect(verdictOf(story, cut)).toMatchObject({ lost: 2, forfeited: 0 });
  });
});

describe("twice", () => {
  const offers = [offer(1)];
  const second = run(1, { by: "b", startedAt: 4000, attempt: 2 });

  test("a second run without a reason", () => {
    const verdict = verdictOf({ offers, runs: [run(1), second] });
    expect(verdict).toMatchObject({ twice: 1, again: 0, faults: ["1 twice: message 1"] });
  });

  test.each<[string, Disturbance]>([
    ["the process died in the handler", { kills: [{ by: "a", at: 1103 }] }],
    ["the process died before it was settled", { kills: [{ by: "a", at: 1800 }] }],
    ["the process stood still", { stalls: [{ by: "a", from: 1102, to: 3900 }] }],
    ["the server has forgotten it", { rollbacks: [{ from: 1100, to: 1200 }] }],
  ])("again: %s", (_reason, disturbance) => {
    const verdict = verdictOf({ offers, runs: [run(1), second], ...disturbance });
    expect(verdict).toMatchObject({ twice: 0, again: 1, faults: [] });
  });

  test.each<[string, Disturbance]>([
    ["another process died", { kills: [{ by: "c", at: 1103 }] }],
    ["the second process stood still", { stalls: [{ by: "b", from: 900, to: 3900 }] }],
    ["the process died long after", { kills: [{ by: "a", at: 2500 }] }],
    ["the process stood still before", { stalls: [{ by: "a", from: 100, to: 900 }] }],
    ["the server has forgotten later times", { rollbacks: [{ from: 3000, to: 5000 }] }],
  ])("no excuse: %s", (_reason, disturbance) => {
    expect(verdictOf({ offers, runs: [run(1), second], ...disturbance })).toMatchObject({
      twice: 1,
    });
  });

  test("a lease that ran out excuses what comes after it, where connections were broken", () => {
    const cut = { ...CALM, lease: 2000 };
    const soon = run(1, { by: "b", startedAt: 2000, attempt: 2 });
    expect(verdictOf({ offers, runs: [run(1), second] }, cut)).toMatchObject({ again: 1 });
    expect(verdictOf({ offers, runs: [run(1), soon] }, cut)).toMatchObject({ twice: 1 });
    expect(verdictOf({ queue: "plain", offers, runs: [run(1), second] }, cut)).toMatchObject({
      twice: 1,
    });
  });

  test("an offer whose reply came after the deadline may be stored twice, in time it may not", () => {
    const first = { attempt: 1, startedAt: 4000 };
    const late = [offer(1, 1000, { acknowledgedAt: 1200 })];
    expect(verdictOf({ offers: late, runs: [run(1), run(1, first)] })).toMatchObject({ again: 1 });
    expect(verdictOf({ offers, runs: [run(1), run(1, first)] })).toMatchObject({ twice: 1 });
  });
});

test("a handler that starts before the deadline is early", () => {
  const runs = [run(1, { startedAt: 1097 }), run(2, { startedAt: 2099 })];
  expect(verdictOf({ offers: [offer(1), offer(2)], runs })).toMatchObject({ early: 1 });
});

test("a message that was certainly not stored must not be delivered", () => {
  const { acknowledgedAt: _, deadline: __, ...rejected } = offer(1);
  const offers: Offered[] = [{ ...rejected, rejected: "none" }];
  expect(verdictOf({ offers, runs: [run(1)] }).faults).toEqual([
    "1 not stored, and delivered: message 1",
  ]);
  expect(
    verdictOf({ offers: [{ ...rejected, rejected: "unknown" }], runs: [run(1)] }),
  ).toMatchObject({ refused: 1, faults: [] });
});

describe("order", () => {
  const offers = [offer(1, 1000), offer(2, 1010)];
  const runs = [run(2, { startedAt: 1120 }), run(1, { startedAt: 1130 })];

  test("it is not judged where several handlers run at once", () => {
    for (const queue of ["plain", "reliable", "partitioned"] as const) {
      expect(verdictOf({ queue, offers, runs })).toMatchObject({ disordered: null });
    }
  });

  test("exclusive: by key, across processes, whatever happens, one handler at a time", () => {
    const two = [runs[0]!, { ...runs[1]!, by: "b", fence: 2 }];
    const exclusive = { queue: "exclusive" as const, offers };
    expect(verdictOf({ ...exclusive, runs: two })).toMatchObject({ disordered: 1 });
    const keys = [offer(1, 1000), offer(2, 1010, { key: "other" })];
    expect(verdictOf({ queue: "exclusive", offers: keys, runs: two })).toMatchObject({
      disordered: 0,
    });
    const overlapping = [
      run(1, { startedAt: 1120, doneAt: 1140 }),
      run(2, { by: "b", fence: 2, startedAt: 1130 }),
    ];
    expect(verdictOf({ ...exclusive, runs: overlapping })).toMatchObject({ disordered: 1 });
  });
});

describe("a message that is not wanted any more", () => {
  const queue = "conditional" as const;
  const inTime = { forbidSentAt: 1050, forbiddenAt: 1051 };

  test("may be dropped", () => {
    const verdict = verdictOf({ queue, offers: [offer(1, 1000, inTime)], runs: [] });
    expect(verdict).toMatchObject({ lost: 0, unwanted: 0, faults: [] });
  });

  test("must not be delivered once Redis knew it before the deadline", () => {
    const verdict = verdictOf({ queue, offers: [offer(1, 1000, inTime)], runs: [run(1)] });
    expect(verdict).toMatchObject({
      unwanted: 1,
      faults: ["1 unwanted, and delivered: message 1"],
    });
  });

  test("may be delivered if Redis knew it at the deadline, or has forgotten it", () => {
    const late = offer(1, 1000, { forbidSentAt: 1090, forbiddenAt: 1100 });
    expect(verdictOf({ queue, offers: [late], runs: [run(1)] }).faults).toEqual([]);
    const rollbacks = [{ from: 1040, to: 1060 }];
    const forgotten = { queue, offers: [offer(1, 1000, inTime)], runs: [run(1)], rollbacks };
    expect(verdictOf(forgotten).faults).toEqual([]);
  });

  test("is lost if its handler was begun and never ends", () => {
    const verdict = verdictOf({ queue, offers: [offer(1, 1000, inTime)], runs: [broken(1)] });
    expect(verdict.lost).toBe(1);
  });
});
