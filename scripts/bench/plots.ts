import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import type { Curve, Summary } from "./figure.ts";
import { PEER_NAMES, type ByPeer, type PeerName } from "./peers/load.ts";
import type { PeerInfo } from "./peers/peer.ts";
import type { ContestResult } from "./workload.ts";
import { STAGES } from "./workloads/budget.ts";

interface Plot {
  readonly file: string;
  readonly title: string;
  readonly curve: Curve;
  readonly x: string;
  readonly y: string;
}

const DELAYED = "messages delayed (log scale)";
const CLIENTS = "worker clients (log scale)";

const PLOTS: readonly Plot[] = [
  {
    file: "script-time-by-delayed.svg",
    title: "Time that Redis spends in scripts, per message that falls due",
    curve: "script time",
    x: DELAYED,
    y: "microseconds (log scale)",
  },
  {
    file: "lateness-by-delayed.svg",
    title: "Lateness p99 of messages that fall due",
    curve: "lateness",
    x: DELAYED,
    y: "milliseconds (log scale)",
  },
  {
    file: "stall-by-delayed.svg",
    title: "Longest wait of a PING from another process",
    curve: "stall",
    x: DELAYED,
    y: "milliseconds (log scale)",
  },
  {
    file: "commands-by-workers.svg",
    title: "Redis commands per message, 1,000 messages/s",
    curve: "commands",
    x: CLIENTS,
    y: "commands (log scale)",
  },
  {
    file: "processor-time-by-workers.svg",
    title: "Redis processor time per message, 1,000 messages/s",
    curve: "processor time",
    x: CLIENTS,
    y: "microseconds (log scale)",
  },
];

/** From Okabe and Ito: everybody can tell them apart. */
const COLORS: Record<PeerName, string> = {
  delayline: "#0072B2",
  "delayline-reliable": "#56B4E9",
  bullmq: "#D55E00",
  "bee-queue": "#E69F00",
  bare: "#009E73",
  redisson: "#7F7F7F",
  "redisson-java": "#000000",
};

/** Draws every figure measured along an axis. Returns the files. */
export async function drawPlots(
  results: readonly ContestResult[],
  peers: ByPeer<PeerInfo>,
  directory: string,
): Promise<string[]> {
  await mkdir(directory, { recursive: true });
  const files: string[] = [];
  for (const plot of PLOTS) {
    const points = pointsOf(plot.curve, results, peers);
    if (points.length === 0) continue;
    files.push(await draw(specify(plot, points, peers), join(directory, plot.file)));
  }
  return files;
}

/** Draws where lateness comes from, a stack of stages for each load, if that was measured. Returns the files. */
export async function drawStages(
  figures: readonly Summary[],
  directory: string,
): Promise<string[]> {
  const stages = figures.flatMap(({ plot, parts }) =>
    plot?.curve === "stages"
      ? STAGES.map((stage, i) => {
          return { load: `${plot.x.toLocaleString("en")}/s`, stage, i, ms: parts?.[stage] ?? NaN };
        })
      : [],
  );
  if (stages.length === 0) return [];
  await mkdir(directory, { recursive: true });
  return [await draw(stack(stages), join(directory, "lateness-by-stage.svg"))];
}

/** Writes a plot to a file, and returns the file. */
async function draw(spec: TopLevelSpec, file: string): Promise<string> {
  const view = new View(parse(compile(spec).spec), { renderer: "none" });
  await writeFile(file, `${await view.toSVG()}\n`);
  view.finalize();
  return file;
}

/** A median, and the spread around it. */
interface Point {
  readonly peer: string;
  readonly x: number;
  readonly y: number;
  readonly min: number;
  readonly max: number;
}

function pointsOf(
  curve: Curve,
  results: readonly ContestResult[],
  peers: ByPeer<PeerInfo>,
): Point[] {
  return results.flatMap(({ figures }) =>
    PEER_NAMES.flatMap((name) =>
      figures[name].flatMap(({ plot, median: y, min, max }) =>
        plot?.curve === curve && y > 0
          ? [{ peer: peers[name].title, x: plot.x, y, min: Math.max(min, y / 1e3), max }]
          : [],
      ),
    ),
  );
}

function specify(
  { title, x, y }: Plot,
  points: readonly Point[],
  peers: ByPeer<PeerInfo>,
): TopLevelSpec {
  const at = [...new Set(points.map((point) => point.x))];
  const encoding = {
    x: {
      field: "x",
      type: "quantitative",
      title: x,
      scale: { type: "log" },
      axis: { values: at, format: ",d", labelFlush: true },
    },
    color: {
      field: "peer",
      type: "nominal",
      title: null,
      scale: {
        domain: PEER_NAMES.map((name) => peers[name].title),
        range: PEER_NAMES.map((name) => COLORS[name]),
      },
    },
  } as const;
  const yAxis = {
    type: "quantitative",
    title: y,
    scale: { type: "log", nice: false, padding: 12 },
    axis: { format: ",~r", tickCount: 6 },
  } as const;
  return {
    data: { values: [...points] },
    title: { text: title, anchor: "start" },
    height: 280,
    ...STYLE,
    layer: [
      {
        mark: { type: "line", strokeWidth: 2.5, point: { size: 60 } },
        encoding: { ...encoding, y: { field: "y", ...yAxis } },
      },
      {
        mark: { type: "rule", strokeWidth: 1.5 },
        encoding: { ...encoding, y: { field: "min", ...yAxis }, y2: { field: "max" } },
      },
    ],
  };
}

/** One part of a stack. */
interface StackPart {
  readonly load: string;
  readonly stage: string;
  /** Its place in the stack. */
  readonly i: number;
  readonly ms: number;
}

function stack(stages: readonly StackPart[]): TopLevelSpec {
  return {
    data: { values: [...stages] },
    title: { text: "From the call plus the delay to the handler, one worker", anchor: "start" },
    height: { step: 44 },
    ...STYLE,
    mark: { type: "bar", height: 26 },
    encoding: {
      y: { field: "load", type: "nominal", title: null, sort: null },
      x: { field: "ms", type: "quantitative", title: "milliseconds, the median of each stage" },
      color: {
        field: "stage",
        type: "nominal",
        title: null,
        scale: { domain: [...STAGES], range: ["#0072B2", "#BBBBBB", "#E69F00", "#009E73"] },
        legend: { orient: "bottom", columns: 1 },
      },
      order: { field: "i", type: "quantitative" },
    },
  };
}

const STYLE = {
  width: 460,
  background: "white",
  padding: 12,
  config: {
    font: "Helvetica, Arial, sans-serif",
    axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
    legend: { labelFontSize: 12, labelLimit: 400 },
    title: { fontSize: 14 },
    view: { stroke: null },
  },
} as const;
