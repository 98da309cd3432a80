import type { Goal, Summary, Unit } from "./figure.ts";

/** The results of one workload as lines of text. */
export function table(
  { name, title }: { readonly name: string; readonly title: string },
  summaries: readonly Summary[],
): string {
  const lines = summaries.flatMap((summary) => {
    const { unit, median, min, max, values, goal, isMet, parts } = summary;
    const spread =
      values.length > 1 && !Number.isNaN(median)
        ? `${format(min, unit)} .. ${format(max, unit)}`
        : "";
    const row = [
      `  ${summary.name}`.padEnd(46),
      (Number.isNaN(median) ? "not measured" : format(median, unit)).padStart(13),
      spread.padStart(27),
      (goal ? formatGoal(goal, unit) : "").padStart(16),
      isMet === undefined ? "" : isMet ? "  ok" : "  MISSED",
    ];
    const made = Object.entries(parts ?? {}).filter(([, value]) => value >= 0.005);
    const of = made.map(([part, value]) => `${part} ${format(value, unit)}`);
    return [row.join("").trimEnd(), ...wrap(of, 96).map((line) => `      ${line}`)];
  });
  const header = `${"".padEnd(46)}${"median".padStart(13)}${"min .. max".padStart(27)}${"goal".padStart(16)}`;
  return [`${name}: ${title}`, header, ...lines].join("\n");
}

function formatGoal({ atMost, atLeast, inEveryRound }: Goal, unit: Unit): string {
  const bounds = [];
  if (atMost !== undefined) bounds.push(`<= ${format(atMost, unit, 0)}`);
  if (atLeast !== undefined) bounds.push(`>= ${format(atLeast, unit, 0)}`);
  return bounds.join(", ") + (inEveryRound ? " !" : "");
}

/** A number with its unit, rounded to what the measurement supports. */
export function format(value: number, unit: Unit, least?: number): string {
  const digits = Number.isInteger(value) || Math.abs(value) >= 1000 ? 0 : value >= 100 ? 1 : 2;
  const number = value.toLocaleString("en", {
    minimumFractionDigits: least ?? digits,
    maximumFractionDigits: digits,
  });
  return unit === "" || unit === "x" || unit === "/s" ? `${number}${unit}` : `${number} ${unit}`;
}

function wrap(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 2 > width) lines.push(word);
    else lines[lines.length - 1] = `${last}, ${word}`;
  }
  return lines;
}
