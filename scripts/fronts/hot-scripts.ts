import { offerKeyed } from "../../src/lua/delayed/offer-keyed.ts";
import { offer } from "../../src/lua/delayed/offer.ts";
import { remove } from "../../src/lua/delayed/remove.ts";
import { transfer } from "../../src/lua/delayed/transfer.ts";
import { popFromMany } from "../../src/lua/ready/ready.ts";
import { ack, giveBackEntries, handOut, retryLater } from "../../src/lua/reliable/deliveries.ts";
import { reclaim } from "../../src/lua/reliable/reclaim.ts";

/** The scripts that run once for each message, or for a few. */
export const HOT_SCRIPTS = [
  offer,
  offerKeyed,
  remove,
  transfer.list,
  transfer.stream,
  popFromMany,
  handOut,
  ack,
  giveBackEntries,
  retryLater,
  reclaim,
];

/** The names of the functions that a script makes before its body begins. What `rare()` makes does not count. */
export function functionsOf(front: string): string[] {
  const [atOnce = "", later] = front.split("\nfunction rare()\n");
  const names = Array.from(atOnce.matchAll(/^local function (\w+)/gm), ([, name = ""]) => name);
  return later === undefined ? names : [...names, "rare"];
}
