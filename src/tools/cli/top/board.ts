import type { QueueStats } from "../../../index.ts";
import { NUMBERS } from "../../../inside.ts";
import type { Round } from "../../view/samples/sampler.ts";
import { escapeControl } from "../../view/text.ts";
import { formatTable, numberColumn, wrap, type Column } from "../session/output.ts";
import { problemsIn, stateOf } from "../../view/problems.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";
import { worstOf, type Severity } from "../../view/severity.ts";
import { silence, troubleInWords, type Trouble } from "../../view/trouble.ts";

/** One queue on the board, as the last round that could read it has found it. */
export interface BoardRow {
  readonly name: string;
  /** Undefined if its numbers cannot be read; then `error` says why. */
  readonly stats: QueueStats | undefined;
  readonly error: string | undefined;
  /** Messages that finished per minute, in the last ten seconds; undefined where Redis does not tell. */
  readonly finished: number | undefined;
}

/** A column of the board. */
interface BoardColumn {
  readonly column: Column;
  readonly cell: (row: BoardRow) => string;
  /** The total of all queues. */
  readonly total?: (rows: readonly BoardRow[]) => string;
  /** What to sort by, the greatest first. Text sorts the other way round. */
  readonly sortBy: (row: BoardRow) => number | string;
  /** Whether it has anything to show. Defaults to true. */
  readonly isShown?: (rows: readonly BoardRow[]) => boolean;
  /** Those with a number give way on a narrow terminal, the greatest first. */
  readonly givesWay?: number;
}

/** What there is to draw on, and the time on the clock that rounds are added by (ms). */
interface Frame {
  readonly columns: number;
  readonly rows: number;
  readonly hasColours: boolean;
  readonly now: number;
}

/** The throughput of a queue is that of its last ten seconds (ms). */
const SPAN = 10_000;

/**
 * The numbers of all queues: what the last rounds have found, in the order that the user has chosen, as lines of text.
 *
 * Numbers stay on the board while Redis is away, and the board says so.
 */
export class Board {
  readonly #title: string;
  readonly #interval: number;
  #rows: readonly BoardRow[] = [];
  #round: Round | undefined;
  /** When the last round came that could read something, and the time from the one before (ms). */
  #seenAt: number;
  /** When that was on the server's clock (epoch ms). */
  #heardAt: number | undefined;
  #gap: number;
  readonly #finished = new Map<string, { readonly at: number; readonly count: number }[]>();
  #sorted = COLUMNS.length - 1;
  #isReversed = false;
  /** The first row on the screen, and how many there is room for. */
  #first = 0;
  #room = 1;

  /**
   * @param title what is watched.
   * @param options.interval the time between two rounds (ms).
   * @param options.now the time on the clock that rounds are added by (ms).
   */
  constructor(title: string, { interval, now }: { interval: number; now: number }) {
    this.#title = title;
    this.#interval = interval;
    this.#gap = interval;
    this.#seenAt = now;
  }

  /** The queues, by name. */
  get rows(): readonly BoardRow[] {
    return this.#rows;
  }

  /** When the last round ended, on the Redis server's clock (epoch ms). */
  get at(): number | undefined {
    return this.#round?.at;
  }

  /** What is wrong with Redis itself, as the last round has found it. */
  get trouble(): Trouble | undefined {
    return this.#round?.trouble;
  }

  /** Why nothing could be read in the last round, in words; undefined if something could. */
  get failure(): string | undefined {
    const { trouble } = this;
    return trouble?.kind === "silent" ? troubleInWords(trouble, formatInstant) : undefined;
  }

  /** Takes over what a round has read, at this time on the caller's clock (ms). */
  add(round: Round, now: number): void {
    this.#round = round;
    if (this.failure !== undefined) return;
    this.#heardAt = round.at;
    this.#gap = Math.max(this.#interval, now - this.#seenAt);
    this.#seenAt = now;
    this.#rows = Array.from(round.samples, ([name, { row, stats }]) => ({
      name,
      stats,
      error: row.error,
      finished: stats && this.#rate(name, stats),
    }));
    for (const name of this.#finished.keys())
      if (!round.samples.has(name)) this.#finished.delete(name);
  }

  /** Sorts by the next column to the right, or by the one to the left. */
  sortBy(step: 1 | -1): void {
    this.#sorted = (this.#sorted + step + COLUMNS.length) % COLUMNS.length;
    this.#isReversed = false;
    this.#first = 0;
  }

  turnRound(): void {
    this.#isReversed = !this.#isReversed;
    this.#first = 0;
  }

  /** Moves the rows that are shown by one, or by as many as the screen shows. */
  scroll(step: 1 | -1, by: "row" | "page"): void {
    this.#first += step * (by === "row" ? 1 : this.#room);
  }

  /** The totals and all queues. */
  table(width: number): string[] {
    return this.#table(this.#ordered(), width);
  }

  /** The board as it fits the frame. */
  draw(frame: Frame): string[] {
    const { columns: width, rows: height, hasColours, now } = frame;
    const bold = (line: string) => (hasColours ? `\u001b[1m${line}\u001b[22m` : line);
    const trouble = wrap(this.#troubleAt(now) ?? "", 0, width);
    const ordered = this.#ordered();
    // Besides: the heading, the titles, the totals, and the keys.
    this.#room = Math.max(1, height - trouble.length - 4);
    this.#first = Math.max(0, Math.min(this.#first, ordered.length - this.#room));
    const end = Math.min(ordered.length, this.#first + this.#room);
    const shown = ordered.slice(this.#first, end);
    const [titles = "", totals = "", ...lines] = this.#table(shown, width);
    const part = shown.length < ordered.length ? `   ${this.#first + 1} to ${end}` : "";
    return [
      bold(this.#heading()),
      ...trouble.map((line) => inColour(line, "error", hasColours)),
      bold(titles),
      totals,
      ...lines.map((line, i) => inColour(line, levelOf(shown[i]), hasColours)),
      ...Array<string>(Math.max(0, this.#room - lines.length)).fill(""),
      `${KEYS}${part}`,
    ];
  }

  #heading(): string {
    const ill = this.#rows.filter((row) => levelOf(row) !== undefined).length;
    const attention = ill === 0 ? "" : `, ${formatCount(ill)} to look at`;
    const count = `${formatCount(this.#rows.length, "queue")}${attention}`;
    const at = this.#round === undefined ? "" : `  ${formatInstant(this.#round.at)}`;
    return escapeControl(`${this.#title}${at}  ${count}`);
  }

  /** What is wrong with Redis itself; undefined if it is well. */
  #troubleAt(now: number): string | undefined {
    const quiet = now - this.#seenAt;
    const { failure, trouble } = this;
    const isLate = quiet >= 2 * this.#gap + 1000;
    if (failure === undefined && !isLate) {
      return trouble && escapeControl(troubleInWords(trouble, formatInstant));
    }
    const said = failure ?? troubleInWords(silence(this.#heardAt, undefined), formatInstant);
    const old = this.#rows.length === 0 ? "" : ` The numbers are ${formatDuration(quiet)} old.`;
    return escapeControl(`${said}${old}`);
  }

  #ordered(): readonly BoardRow[] {
    const { sortBy } = COLUMNS[this.#sorted] as BoardColumn;
    const direction = this.#isReversed ? -1 : 1;
    return this.#rows
      .map((row) => ({ row, by: sortBy(row) }))
      .toSorted((a, b) => direction * compare(a.by, b.by) || compare(a.row.name, b.row.name))
      .map(({ row }) => row);
  }

  /** The head, the totals of all queues, and a line for each of these rows. */
  #table(rows: readonly BoardRow[], width: number): string[] {
    const all = COLUMNS.map((one, i) => ({ ...one, isSorted: i === this.#sorted }));
    const shown = all.filter(
      ({ isShown, isSorted }) => isSorted || isShown?.(this.#rows) !== false,
    );
    for (;;) {
      const columns = shown.map(({ column, isSorted }) =>
        isSorted ? { ...column, title: `${column.title} ${this.#isReversed ? "^" : "v"}` } : column,
      );
      const totals = shown.map(({ total }) => total?.(this.#rows) ?? "");
      const cells = rows.map((row) => shown.map(({ cell }) => cell(row)));
      const lines = formatTable(columns, [totals, ...cells], width);
      const least = shown.reduce((found, one) =>
        (one.givesWay ?? 0) > (found.givesWay ?? 0) ? one : found,
      );
      const fits = lines.every((line) => line.length <= width);
      if (fits || least.givesWay === undefined) return lines;
      shown.splice(shown.indexOf(least), 1);
    }
  }

  /** Messages that finished per minute, as the rounds of the last {@link SPAN} show. */
  #rate(name: string, { finished, serverTime }: QueueStats): number | undefined {
    const seen = this.#finished.get(name) ?? [];
    this.#finished.set(name, seen);
    // A count goes down if the stream was deleted and created again.
    if (finished === undefined || finished < (seen.at(-1)?.count ?? 0)) seen.length = 0;
    if (finished === undefined) return undefined;
    seen.push({ at: serverTime, count: finished });
    while (seen.length > 2 && serverTime - (seen[1]?.at ?? 0) >= SPAN) seen.shift();
    const [first] = seen;
    if (first === undefined || serverTime <= first.at) return undefined;
    return ((finished - first.count) * 60_000) / (serverTime - first.at);
  }
}

const KEYS = "q quit   < > sort   r reverse   up, down, space scroll";

function compare(a: number | string, b: number | string): number {
  if (a === b) return 0;
  if (typeof a === "string" || typeof b === "string") return a < b ? -1 : 1;
  return a > b ? -1 : 1;
}

function inColour(line: string, level: Severity | undefined, hasColours: boolean): string {
  if (!hasColours || level === undefined) return line;
  return `${level === "error" ? "\u001b[31m" : "\u001b[33m"}${line}\u001b[0m`;
}

function levelOf(row: BoardRow | undefined): Severity | undefined {
  if (row?.stats === undefined) return row === undefined ? undefined : "error";
  if (row.error !== undefined) return "error";
  return worstOf(problemsIn(row.stats).map(({ level }) => level));
}

/** How urgent a row is: errors before warnings before the rest. */
function urgencyOf(row: BoardRow): number {
  const level = levelOf(row);
  return level === "error" ? 2 : level === "warning" ? 1 : 0;
}

/** The numbers that are counts of messages or processes. */
type Count =
  "delayed" | "overdue" | "ready" | "inFlight" | "retries" | "dead" | "quarantined" | "dropped";

function countColumn(name: Count, givesWay?: number): BoardColumn {
  return {
    column: numberColumn(NUMBERS[name].label),
    cell: ({ stats }) => (stats === undefined ? "?" : formatCount(stats[name])),
    total: (rows) => formatCount(rows.reduce((sum, { stats }) => sum + (stats?.[name] ?? 0), 0)),
    sortBy: ({ stats }) => stats?.[name] ?? -1,
    ...(givesWay !== undefined && { givesWay }),
  };
}

function ageColumn(name: "oldestReadyAge" | "oldestInFlightAge", givesWay: number): BoardColumn {
  const ageOf = ({ stats }: BoardRow) => stats?.[name];
  return {
    column: numberColumn(NUMBERS[name].label),
    cell: (row) => writeAge(ageOf(row)),
    total: (rows) => {
      const ages = rows.map(ageOf).filter((age) => age !== undefined);
      return writeAge(ages.length === 0 ? undefined : Math.max(...ages));
    },
    sortBy: (row) => ageOf(row) ?? -1,
    givesWay,
  };
}

const writeAge = (age: number | undefined) => (age === undefined ? "-" : formatDuration(age));

const rate = (value: number | undefined) =>
  value === undefined ? "-" : formatCount(Math.round(value));

/** The last one is what the board is sorted by at first. */
const COLUMNS: readonly BoardColumn[] = [
  {
    column: { title: "QUEUE", canShrink: true },
    cell: ({ name }) => name,
    total: (rows) => `(all ${formatCount(rows.length)})`,
    sortBy: ({ name }) => name,
  },
  countColumn("delayed"),
  countColumn("overdue"),
  countColumn("ready"),
  ageColumn("oldestReadyAge", 4),
  countColumn("inFlight"),
  ageColumn("oldestInFlightAge", 5),
  countColumn("retries", 2),
  countColumn("dead"),
  countColumn("quarantined", 6),
  {
    ...countColumn("dropped", 1),
    isShown: (rows) => rows.some(({ stats }) => (stats?.dropped ?? 0) > 0),
  },
  {
    column: numberColumn("finished/min"),
    cell: ({ finished }) => rate(finished),
    total: (rows) => {
      const known = rows.map(({ finished }) => finished).filter((one) => one !== undefined);
      return rate(known.length === 0 ? undefined : known.reduce((sum, one) => sum + one, 0));
    },
    sortBy: ({ finished }) => finished ?? -1,
    givesWay: 3,
  },
  {
    column: { title: "STATE", canShrink: true },
    cell: ({ stats, error }) => error ?? (stats === undefined ? "?" : stateOf(stats)),
    sortBy: urgencyOf,
  },
];
