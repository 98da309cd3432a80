import type { FlowOptions } from "../../../src/index.ts";
import { mayHaveTakenEffect } from "./promises.ts";
import type { Call, Offer, Story } from "./story.ts";

/** A point of the history, by its place and by the server's clock. */
export interface Until {
  readonly index: number;
  /** Epoch ms. */
  readonly now: number;
}

/** The calls that have certainly set a flow. */
export function flowsSet(story: Story): Call[] {
  return story
    .callsOf("setFlow")
    .filter(({ ended, error }) => ended !== undefined && error === undefined);
}

export function flowOf({ args }: Call): FlowOptions {
  return args["flow"] as FlowOptions;
}

/** The lane of a message, of which "" is none. */
export function laneOf({ args }: Offer): string {
  return (args["lane"] as string | undefined) ?? "";
}

/** The lanes of the messages. */
export function lanesIn({ offers }: Story): string[] {
  return [...new Set([...offers.values()].map(laneOf))];
}

/**
 * When a flow certainly held for the last time: another one was set, or it was cleared, or Redis or its clock was changed.
 */
export function endOf(set: Call, story: Story): Until {
  const others = overlapping(set, story).map(({ begun }) => begun);
  return earliest([...others, turned(set, story)]);
}

/** The calls about the flow that may come after this one. Of two that overlap, either may be the later one. */
export function overlapping({ begun: since, number }: Call, story: Story): Call[] {
  return story
    .callsOf("setFlow", "clearFlow")
    .filter((call) => call.number !== number && mayHaveTakenEffect(call))
    .filter(({ ended }) => (ended?.index ?? Infinity) > since.index);
}

/** When Redis or its clock was changed since a call began; never, if it was not. */
export function turned({ begun }: Call, { faults }: Story): Until {
  return earliest(
    faults
      .filter(({ kind }) => kind === "clock-step" || kind === "failover")
      .filter(({ index }) => index > begun.index)
      .map(({ index }) => ({ index, now: Infinity })),
  );
}

export function earliest(all: readonly Until[]): Until {
  return {
    index: Math.min(...all.map(({ index }) => index)),
    now: Math.min(...all.map(({ now }) => now)),
  };
}
