import { escapeControl } from "../../inspect/escape-control.ts";
import type { Sighting } from "../../inspect/sighting.ts";
import { formatDistance } from "../words/durations.ts";
import { payloadLine, sightingJson } from "../printing/message-view.ts";
import type { Session } from "./session.ts";
import type { Column } from "../printing/table.ts";

/**
 * Prints messages as a table, or a JSON object a line; returns how many. `now` is the server's time (epoch ms). A table is
 * printed in pieces, so that the first lines are there while more are read.
 */
export async function printMessages(
  session: Session,
  messages: AsyncIterable<Sighting>,
  now: number,
  withPayload: boolean,
): Promise<number> {
  const { output, isJson } = session;
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
