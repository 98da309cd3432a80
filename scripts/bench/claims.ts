import type { Figure, Goal } from "./figure.ts";
import { PEER_NAMES, type ByPeer, type PeerName } from "./peers/load.ts";

type ValueOf = (figure: string, peer?: PeerName) => number;

/** A ratio between figures of one round, and the goal that Delayline claims for it, if any. */
interface Claim {
  readonly name: string;
  readonly contest: string;
  readonly ratio: (value: ValueOf) => number;
  readonly goal?: Goal;
}

const CLAIMS: readonly Claim[] = [
  ...["100 in flight", "in bulk, 4 calls of 250 in flight"].flatMap((figure): Claim[] => [
    {
      name: `offers ${figure} vs BullMQ`,
      contest: "offers",
      ratio: (value) => value(figure) / value(figure, "bullmq"),
      goal: { atLeast: 2 },
    },
    {
      name: `offers ${figure} vs bee-queue`,
      contest: "offers",
      ratio: (value) => value(figure) / value(figure, "bee-queue"),
      goal: { atLeast: 1 },
    },
  ]),
  {
    name: "lateness p99 vs BullMQ",
    contest: "lateness",
    ratio: (value) => value("lateness p99, 2,000/s") / value("lateness p99, 2,000/s", "bullmq"),
    goal: { atMost: 0.1 },
  },
  {
    name: "processor time per message, 1 worker, 2,000/s vs BullMQ",
    contest: "lateness",
    ratio: (value) => {
      const figure = "Redis processor time per message, 2,000/s";
      return value(figure) / value(figure, "bullmq");
    },
    goal: { atMost: 1 / 3 },
  },
  {
    name: "worker's processor time, 200/s vs bare",
    contest: "lateness",
    ratio: (value) => {
      const figure = "worker's processor time per message, 200/s";
      return value(figure) / value(figure, "bare");
    },
    goal: { atMost: 1.2 },
  },
  {
    name: "worker's processor time, 2,000/s vs bee-queue",
    contest: "lateness",
    ratio: (value) => {
      const figure = "worker's processor time per message, 2,000/s";
      return value(figure) / value(figure, "bee-queue");
    },
    goal: { atMost: 1.3 },
  },
  {
    name: "burst: taken/s vs BullMQ",
    contest: "burst",
    ratio: (value) => value("taken") / value("taken", "bullmq"),
    goal: { atLeast: 5 },
  },
  {
    name: "burst: processor time per message vs BullMQ",
    contest: "burst",
    ratio: (value) => {
      const figure = "Redis processor time per message";
      return value(figure) / value(figure, "bullmq");
    },
    goal: { atMost: 1 / 3 },
  },
  {
    name: "acknowledged: handled/s vs BullMQ",
    contest: "acknowledged",
    ratio: (value) => value("handled", "delayline-reliable") / value("handled", "bullmq"),
    goal: { atLeast: 5 },
  },
  {
    name: "acknowledged: handled/s vs not acknowledged",
    contest: "acknowledged",
    ratio: (value) => value("handled", "delayline-reliable") / value("handled"),
    goal: { atLeast: 0.6 },
  },
  {
    name: "a fresh process: first offer vs ioredis alone",
    contest: "start",
    ratio: (value) => value("offered after") / value("offered after", "redisson"),
    goal: { atMost: 1.3 },
  },
  ...["key", "id"].map((by): Claim => ({
    name: `cancelled/s by ${by} vs bee-queue`,
    contest: "cancel",
    ratio: (value) => {
      const figure = `cancelled by ${by}, 50,000 delayed`;
      return value(figure) / value(figure, "bee-queue");
    },
    goal: { atLeast: 1 },
  })),
  {
    name: "script time of Redisson vs ours, 1 M",
    contest: "delayed",
    ratio: (value) => {
      const figure = "script time per message, 1,000,000 delayed";
      return value(figure, "redisson") / value(figure);
    },
    goal: { atLeast: 1000 },
  },
  {
    name: "processor time per message, 1 client, 1,000/s vs BullMQ",
    contest: "workers",
    ratio: (value) =>
      wholeTime(value, "1 client", "delayline") / wholeTime(value, "1 client", "bullmq"),
  },
  {
    name: "processor time per message, 50 clients vs 1",
    contest: "workers",
    ratio: (value) =>
      wholeTime(value, "50 clients", "delayline") / wholeTime(value, "1 client", "delayline"),
    goal: { atMost: 1.5 },
  },
  {
    name: "commands per message delivered, 50 clients vs bee-queue",
    contest: "workers",
    ratio: (value) => {
      const figure = "Redis commands per message delivered, 50 clients";
      return value(figure) / value(figure, "bee-queue");
    },
    goal: { atMost: 1 },
  },
  {
    name: "memory at 100 B vs BullMQ",
    contest: "memory",
    ratio: (value) => value("payload of 100 B") / value("payload of 100 B", "bullmq"),
    goal: { atMost: 1 / 3 },
  },
  {
    name: "memory at 1 KB vs the least of the others",
    contest: "memory",
    ratio: (value) => {
      const others = PEER_NAMES.filter((name) => !name.startsWith("delayline"));
      const figure = "payload of 1,024 B";
      const values = others.map((peer) => value(figure, peer));
      return value(figure) / Math.min(...values.filter((bytes) => !Number.isNaN(bytes)));
    },
    goal: { atMost: 1 },
  },
];

/** The processor time to offer a message and deliver it. */
function wholeTime(value: ValueOf, who: string, peer: PeerName): number {
  return ["per offer", "per message delivered"]
    .map((of) => value(`Redis processor time ${of}, ${who}`, peer))
    .reduce((sum, time) => sum + time);
}

/**
 * The claims about a contest, from the figures of one round. The ratio is NaN if a figure is missing: a library is
 * absent, or a size was left out or abandoned.
 */
export function claims(contest: string, round: ByPeer<readonly Figure[]>): Figure[] {
  const value = (figure: string, peer: PeerName = "delayline") =>
    round[peer].find(({ name }) => name === figure)?.value ?? NaN;
  return CLAIMS.filter((claim) => claim.contest === contest).map(({ name, ratio, goal }) => ({
    name,
    value: ratio(value),
    unit: "x",
    ...(goal && { goal }),
  }));
}
