import type { CallOptions } from "../../index.ts";
import { ids, type arrivals, type InsidePart } from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { isEnd, parseEnd, parseRecord, type ExportHead, type ParsedRecord } from "./record.ts";

/** How far an import has come. */
export interface ImportProgress {
  /** How many messages this run has imported. */
  readonly put: number;
  /** How many messages it skipped because an earlier run imported them. */
  readonly known: number;
  /**
   * Whether the last line of the export was read, and states the number of lines before it. If not, the export was
   * interrupted, or lines are missing.
   */
  readonly isWhole: boolean;
}

/** Options of {@link importQueue}. */
export interface ImportOptions {
  /** Aborts the import. What was imported stays, and the next run continues from there. */
  readonly signal?: AbortSignal | undefined;
  /** Only checks that every line is valid, and imports nothing. Defaults to false. */
  readonly dryRun?: boolean;
  /** Called after each batch. */
  readonly onProgress?: (progress: ImportProgress) => void;
}

/**
 * Imports the lines of an export into a queue. Keeps ids, deadlines, keys, headers, lanes, priorities, attempts and bytes.
 * Messages that were in flight become ready, and dead letters die at the time of the import. What waited for its turn is due,
 * and waits anew if the queue has lanes. Does not set the flow that the exported queue had.
 *
 * An import can be interrupted and run again with the same lines. Each partition remembers the last line of this export
 * (`head.export`) that it received, and skips lines up to it, even if their messages have been handled since. Delayed
 * messages and retries that exist already stay as they are. Do not change the number of partitions between the runs.
 *
 * Lines go in in order, up to 25 per partition and script.
 *
 * @throws {TypeError | RangeError} that names the line, if a line is invalid or follows the last line of the export.
 * The lines before it have been imported.
 * @throws {RedisError} if Redis refuses a batch.
 */
export async function importQueue(
  queue: InspectedQueue,
  head: ExportHead,
  lines: AsyncIterable<string>,
  { signal, dryRun = false, onProgress = () => {} }: ImportOptions = {},
): Promise<ImportProgress> {
  const call = { signal };
  const { inside } = queue;
  if (!dryRun && head.kind === "reliable") await makeGroups(await inside.parts(call), head, call);
  const iterator = lines[Symbol.asyncIterator]();
  const inlets = new Map<string, Inlet>();
  const progress = { put: 0, known: 0, isWhole: false };
  const flush = async (inlet: Inlet) => {
    const batch = inlet.take();
    progress.put += dryRun ? batch.rows.length : await inlet.put(batch, call);
    onProgress(progress);
  };
  const flushAll = async () => {
    for (const inlet of inlets.values()) await flush(inlet);
  };
  // `for await` closes the iterator that it leaves. This one stays open, to read what follows the end.
  const rest = { [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) };
  let line = 1;
  for await (const text of rest) {
    line++;
    signal?.throwIfAborted();
    if (text === "") continue;
    if (isEnd(text)) {
      // An emptied line counts: its message was removed from the file on purpose.
      progress.isWhole = parseEnd(text) === line - 2;
      await flushAll();
      await refuseRest(rest, line);
      return progress;
    }
    const parsed = parse(text, line);
    if (parsed instanceof Error) {
      await flushAll();
      throw parsed;
    }
    const { arrival, id } = parsed;
    // Messages without ids are spread by line number, so that another run sends them to the same partitions.
    const bucket = (id && ids.bucketOf(id)) ?? line % 1024;
    const at = await inside.arrivals(bucket, `import ${head.export}`, call);
    let inlet = inlets.get(at.name);
    if (inlet === undefined) {
      inlet = new Inlet(at.arrivals, await at.arrivals.last(call));
      inlets.set(at.name, inlet);
    }
    if (line <= inlet.last) progress.known++;
    else if (inlet.add(arrival, line)) await flush(inlet);
  }
  await flushAll();
  return progress;
}

/** Refuses any line after the end: two exports in one file are invalid. */
async function refuseRest(lines: AsyncIterable<string>, end: number): Promise<void> {
  let line = end;
  for await (const text of lines) {
    line++;
    if (text !== "") throw new TypeError(`line ${line}: the export has ended at line ${end}`);
  }
}

/** A partition, and the batch that goes into it next. */
class Inlet {
  readonly last: number;
  readonly #arrivals: arrivals.Arrivals;
  #rows: arrivals.Arrival[] = [];
  #bytes = 0;
  #line = 0;

  /** @param last the line that it received last, of this export. */
  constructor(into: arrivals.Arrivals, last: number) {
    this.#arrivals = into;
    this.last = last;
  }

  /** Adds a line; returns whether the batch is full. */
  add(arrival: arrivals.Arrival, line: number): boolean {
    this.#rows.push(arrival);
    this.#bytes += arrival.name.length + arrival.value.length;
    this.#line = line;
    return this.#rows.length >= BATCH || this.#bytes >= BATCH_BYTES;
  }

  /** Removes and returns the batch. */
  take(): Batch {
    const batch = { rows: this.#rows, line: this.#line };
    [this.#rows, this.#bytes] = [[], 0];
    return batch;
  }

  /** Imports a batch; returns how many of its messages were new. */
  async put({ rows, line }: Batch, call?: CallOptions): Promise<number> {
    if (rows.length === 0) return 0;
    return (await this.#arrivals.put(rows, line, call)) ? rows.length : 0;
  }
}

/** The rows that go into one partition in one script, and the number of the last one's line. */
interface Batch {
  readonly rows: readonly arrivals.Arrival[];
  readonly line: number;
}

/** Creates the consumer groups. They come first, so that no process takes the queue for a plain one. */
async function makeGroups(
  parts: readonly InsidePart[],
  { groups }: ExportHead,
  call?: CallOptions,
): Promise<void> {
  for (const { contents } of parts) {
    for (const group of groups) await contents.makeGroup(group, call);
  }
}

function parse(text: string, line: number): ParsedRecord | TypeError | RangeError {
  try {
    return parseRecord(text);
  } catch (error) {
    const Kind = error instanceof RangeError ? RangeError : TypeError;
    return new Kind(`line ${line}: ${(error as Error).message}`, { cause: error });
  }
}

/** Messages and bytes per script, which then takes Redis some 500 us. */
const BATCH = 25;
const BATCH_BYTES = 65_536;
