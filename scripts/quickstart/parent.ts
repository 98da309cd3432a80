/**
 * What the process of a role says to the quickstart, which started it. Imported by such programs
 * only: a process whose parent is gone works for nobody, so from then on it ends.
 */
import type { OrderEvent } from "./role.ts";

/** Says that the work has begun. */
export function ready(): void {
  process.send?.("ready");
}

/** Hands over what has happened to orders. */
export async function report(events: readonly OrderEvent[]): Promise<void> {
  await new Promise((resolve) => process.send?.(events, undefined, undefined, resolve));
}

/** Says that the work is done. */
export function done(): void {
  process.off("disconnect", abandon);
  process.disconnect();
}

function abandon(): void {
  process.exit(1);
}

process.once("disconnect", abandon);
if (!process.connected) abandon();
