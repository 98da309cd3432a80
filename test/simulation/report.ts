import type { Reduction } from "./machine/machine.ts";
import type { Outcome } from "./machine/simulate.ts";

/** What is wrong with a run, its last events, and how to run it again. */
export function reportOf(outcome: Outcome, reduction: Reduction = {}): string {
  const { world, seed, violations, tail } = outcome;
  const { faults, without, orderlyFrom } = reduction;
  const options = [
    ...(faults === undefined ? [] : ["--faults", ranges(faults)]),
    ...(without === undefined ? [] : ["--without", ranges(without)]),
    ...(orderlyFrom === undefined ? [] : ["--orderly-from", orderlyFrom]),
  ];
  const command = ["npm run simulate -- --world", world, "--seed", seed, ...options, "--trace"];
  return [
    `\n${world}, seed ${seed} fails:`,
    ...violations.map((violation) => `  ${violation}`),
    ...tail.map((line) => `    ${line}`),
    `  ${command.join(" ")}\n`,
  ].join("\n");
}

/** Writes numbers as `0,3-7`; none as `none`. */
function ranges(all: readonly number[]): string {
  const found: [number, number][] = [];
  for (const n of all) {
    const last = found.at(-1);
    if (last?.[1] === n - 1) last[1] = n;
    else found.push([n, n]);
  }
  if (found.length === 0) return "none";
  return found.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
}
