import type { FlowOptions, Lane, PinnedLane, Rate } from "../../index.ts";
import { hasLanes } from "../../inside.ts";
import { formatCount, formatDuration } from "./words.js";

/** A flow in words: `50 messages in 1 s, 5 at once`; `lanes in turns, each 10 messages in 1 s, together 50 messages in 1 s`. */
export function flowInWords(flow: FlowOptions): string {
  const { rate, concurrency, lane = {}, lanes = {}, ahead } = flow;
  if (!hasLanes(flow)) return rate === undefined ? "no limit" : rateInWords(rate);
  const own = Object.keys(lanes).length;
  const each = laneInWords(lane);
  return [
    "lanes in turns",
    ...(each === "" ? [] : [`each ${each}`]),
    ...(own === 0
      ? []
      : [`${formatCount(own, "lane")} with limits of ${own === 1 ? "its" : "their"} own`]),
    ...(rate === undefined ? [] : [`together ${rateInWords(rate)}`]),
    ...(concurrency === undefined ? [] : [`together ${formatCount(concurrency)} in hand`]),
    ...(ahead === undefined ? [] : [`${formatCount(ahead)} ready ahead`]),
  ].join(", ");
}

/** What a lane may, in words: `10 messages in 1 s, 2 in hand, weight 3`; empty without limits. */
export function laneInWords({ rate, concurrency, weight }: Lane): string {
  return [
    ...(rate === undefined ? [] : [rateInWords(rate)]),
    ...(concurrency === undefined ? [] : [`${formatCount(concurrency)} in hand`]),
    ...(weight === undefined ? [] : [`weight ${weight}`]),
  ].join(", ");
}

/** What is pinned of a lane, in words: `paused`, or its limits. */
export function pinInWords(pin: PinnedLane): string {
  if ("paused" in pin) return "paused";
  return laneInWords(pin) || "no limit";
}

function rateInWords({ limit, per, burst }: Rate): string {
  const atOnce = burst === undefined ? "" : `, ${formatCount(burst)} at once`;
  return `${formatCount(limit, "message")} in ${formatDuration(per)}${atOnce}`;
}
