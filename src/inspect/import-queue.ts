import { Arrivals, type Arrival } from "../queue/arrivals.ts";
import { bucketOf } from "../queue/message/message.ts";
import type { Place } from "../queue/places.ts";
import { placesOf } from "../queue/queue-handle.ts";
import { Contents } from "../reliable/contents.ts";
import type { InspectedQueue } from "./inspector.ts";
import { isEnd, parseEnd, parseRecord, type ExportHead, type ParsedRecord } from "./record.ts";

/** How far an import is. */
export interface ImportProgress {
  /** How many messages have been put in by this import. */
  readonly put: number;
  /** How many had been put in before. */
  readonly known: number;
  /**
   * Whether the last line of the export was read, and as many lines stand before it as it says. If not, the export was
   * interrupted, or lines are missing.
   */
  readonly isWhole: boolean;
}

/** Options of {@link importQueue}. */
export interface ImportOptions {
  /** Ends it; what has been put in stays, and the next import goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Whether nothing is put in, and only looked whether every line is legal. Defaults to false. */
  readonly dryRun?: boolean;
  /** Is told after each batch. */
  readonly onProgress?: (progress: ImportProgress) => void;
}

/**
 * Puts what an export has read into a queue: ids, deadlines, keys, headers, attempts and bytes stay. What was in flight is
 * ready again, and dead letters die anew, now.
 *
 * It can be interrupted and begun again with the same lines: each place of the queue remembers the number of the last line of
 * this export (`head.export`) that was put in, and lines up to that are passed over, even if their messages have been
 * handled since. A delayed message or a retry that is there already stays as it is. Do not change the number of partitions
 * meanwhile.
 *
 * Lines go in 25 at a time, one script per place, in their order.
 *
 * @throws {TypeError | RangeError} naming the line, if one is not legal, or stands behind the last one; those before it
 * have been put in.
 * @throws {RedisError} if Redis refuses a batch.
 */
export async function importQueue(
  queue: InspectedQueue,
  head: ExportHead,
  lines: AsyncIterable<string>,
  { signal, dryRun = false, onProgress = () => {} }: ImportOptions = {},
): Promise<ImportProgress> {
  const faces = placesOf(queue.messages);
  if (!dryRun && head.kind === "reliable") await makeGroups(await faces.all(signal), head, signal);
  const iterator = lines[Symbol.asyncIterator]();
  const wards = new Map<string, Ward>();
  const progress = { put: 0, known: 0, isWhole: false };
  const flush = async (ward: Ward) => {
    const batch = ward.take();
    progress.put += dryRun ? batch.rows.length : await ward.put(batch, signal);
    onProgress(progress);
  };
  const flushAll = async () => {
    for (const ward of wards.values()) await flush(ward);
  };
  // By hand, so that what stands behind the end can still be read.
  const rest = { [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) };
  let line = 1;
  for await (const text of rest) {
    line++;
    signal?.throwIfAborted();
    if (text === "") continue;
    if (isEnd(text)) {
      // A line that was made empty counts: its message was left out by intent.
      progress.isWhole = parseEnd(text) === line - 2;
      await flushAll();
      await refuseMore(rest, line);
      return progress;
    }
    const parsed = parse(text, line);
    if (parsed instanceof Error) {
      await flushAll();
      throw parsed;
    }
    const { arrival, id } = parsed;
    // What has no id is spread out, and by its line, so that it goes to the same place each time.
    const place = await faces.of((id && bucketOf(id)) ?? line % 1024, signal);
    let ward = wards.get(place.queue.name);
    if (ward === undefined) {
      ward = await Ward.open(place, `import ${head.export}`, signal);
      wards.set(place.queue.name, ward);
    }
    if (line <= ward.last) progress.known++;
    else if (ward.add(arrival, line)) await flush(ward);
  }
  await flushAll();
  return progress;
}

/** Two exports in one file are no export. */
async function refuseMore(lines: AsyncIterable<string>, end: number): Promise<void> {
  let line = end;
  for await (const text of lines) {
    line++;
    if (text !== "") throw new TypeError(`line ${line}: the export has ended at line ${end}`);
  }
}

/** A place, and what is to be put into it next. */
class Ward {
  readonly last: number;
  readonly #arrivals: Arrivals;
  #rows: Arrival[] = [];
  #bytes = 0;
  #line = 0;

  private constructor(arrivals: Arrivals, last: number) {
    this.#arrivals = arrivals;
    this.last = last;
  }

  static async open(place: Place, source: string, signal?: AbortSignal): Promise<Ward> {
    const arrivals = new Arrivals(place, source);
    return new Ward(arrivals, await arrivals.last(signal));
  }

  /** Adds a line; returns whether the batch is full. */
  add(arrival: Arrival, line: number): boolean {
    this.#rows.push(arrival);
    this.#bytes += arrival.name.length + arrival.value.length;
    this.#line = line;
    return this.#rows.length >= BATCH || this.#bytes >= BATCH_BYTES;
  }

  /** Takes the batch, and begins another. */
  take(): Batch {
    const batch = { rows: this.#rows, line: this.#line };
    [this.#rows, this.#bytes] = [[], 0];
    return batch;
  }

  /** Puts a batch in; returns how many were new. */
  async put({ rows, line }: Batch, signal?: AbortSignal): Promise<number> {
    if (rows.length === 0) return 0;
    return (await this.#arrivals.put(rows, line, signal)) ? rows.length : 0;
  }
}

/** What goes into one place in one script, and the number of its last line. */
interface Batch {
  readonly rows: readonly Arrival[];
  readonly line: number;
}

/** First of all, so that no process takes the queue for a plain one. */
async function makeGroups(
  places: readonly Place[],
  { groups }: ExportHead,
  signal?: AbortSignal,
): Promise<void> {
  for (const { queue } of places) {
    for (const group of groups) await new Contents(queue).makeGroup(group, signal);
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

/** Messages per script, and bytes: some 500 us of Redis's time. */
const BATCH = 25;
const BATCH_BYTES = 65_536;
