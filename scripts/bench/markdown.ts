import type { Summary } from "./figure.ts";
import type { Machine } from "./machine.ts";
import { PEER_NAMES, type ByPeer } from "./peers/load.ts";
import type { PeerInfo } from "./peers/peer.ts";
import { format } from "./table.ts";
import type { ContestResult } from "./workload.ts";

/** The origin of the numbers. */
interface Conditions {
  readonly machine: Machine;
  readonly rounds: number;
  readonly isQuick: boolean;
}

/** The machine, and the settings of each library. */
export function heading(peers: ByPeer<PeerInfo>, { machine, rounds, isQuick }: Conditions) {
  const { processor, cores, node, redis } = machine;
  return [
    `${processor}, ${cores} cores, Node ${node}, ${redis}; ` +
      (isQuick
        ? `small numbers, ${rounds} round(s).`
        : `medians of ${rounds} round(s), and spread.`),
    "",
    ...PEER_NAMES.map((name) => `- ${peers[name].title}: ${peers[name].settings}.`),
  ].join("\n");
}

/** A row for each figure, a column for each library. */
export function contestTable(
  { name, title, figures }: ContestResult,
  peers: ByPeer<PeerInfo>,
): string {
  const rows = figures.delayline.map((first, i) => {
    const summaries = PEER_NAMES.map((peer) => figures[peer][i]);
    return [first.name, ...summaries.map((summary) => cell(summary))];
  });
  const header = ["", ...PEER_NAMES.map((peer) => peers[peer].title)];
  const widths = header.map((_, column) =>
    Math.max(3, ...[header, ...rows].map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) => {
    const padded = cells.map((text, column) =>
      column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0),
    );
    return `| ${padded.join(" | ")} |`;
  };
  const rule = widths.map((width, i) =>
    i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [`**${name}**: ${title}`, "", line(header), line(rule), ...rows.map(line)].join("\n");
}

function cell(summary: Summary | undefined): string {
  if (summary === undefined) return "";
  const { median, min, max, unit, values, note } = summary;
  if (Number.isNaN(median)) return note ?? "-";
  const spread =
    values.length > 1 && min !== max ? ` (${format(min, "")} .. ${format(max, "")})` : "";
  return `${format(median, unit)}${spread}${note === undefined ? "" : `, ${note}`}`;
}
