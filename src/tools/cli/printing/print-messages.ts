import { escapeControl } from "../../inspect/escape-control.ts";
import type { Sighting } from "../../inspect/sighting.ts";
import { formatDistance } from "./format-time.ts";
import { payloadLine, sightingJson } from "./message-view.ts";
import type { Output } from "./output.ts";
import type { Column } from "./table.ts";

/**
 * Prints messages as a table, or with `isJson` as one object per line; returns how many. `now` is the server's time
 * (epoch ms). A long table is printed in pieces, so that its first rows appear while the rest is read.
 */
export async function printMessages(
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
  messages: AsyncIterable<Sighting>,
  now: number,
  withPayload: boolean,
): Promise<number> {
  let count = 0;
  let page: Sighting[] = [];
  const flush = async () => {
    if (page.length > 0)
      await output.table(
        COLUMNS,
        page.map((seen) => rowOf(seen, now)),
      );
    page = [];
  };
  for await (const seen of messages) {
    count++;
    if (isJson) await output.json(sightingJson(seen, withPayload));
    else if (withPayload) {
      const line = rowOf(seen, now).map(escapeControl).join("  ");
      await output.print(line, payloadLine(seen.payload));
    } else if (page.push(seen) === PAGE) await flush();
  }
  await flush();
  return count;
}

const COLUMNS: readonly Column[] = [
  { title: "DUE" },
  { title: "ID" },
  { title: "KEY", canShrink: true },
];

function rowOf({ deadline, id, key }: Sighting, now: number): string[] {
  return [formatDistance(deadline, now), id, key ?? "-"];
}

/** Rows per piece. */
const PAGE = 100;
