import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { addAbortSignal, type Readable } from "node:stream";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { importQueue } from "../../inspect/import-queue.ts";
import { parseHead, type ExportHead } from "../../inspect/record.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { quoted } from "../printing/output.ts";
import { parseCount } from "../words/parse-count.ts";
import type { Session } from "../command/session.ts";
import { formatCount } from "../printing/table.ts";
import { UsageError } from "../words/usage-error.ts";

export const importCommand = defineCommand({
  usage: "import [file] [--queue <name>]",
  help: `Puts what delayline export has written into a queue, from a file or from stdin: ids,
deadlines, keys, headers, attempts and bytes stay. What was in flight is ready again; dead
letters die anew.
It may be interrupted and run again with the same file: each message is put in once, even if
it has been handled since. A queue that is not there yet becomes what the exported one was.`,
  words: [0, 1],
  options: {
    ...CHANGING,
    queue: { type: "string" },
    partitions: { type: "string" },
    "as-new": { type: "boolean" },
    "make-reliable": { type: "boolean" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    queue: "into this queue; defaults to the name of the exported one",
    partitions: "how many, if it is not there yet, 0 for none; defaults to as many as there were",
    "make-reliable": "lets an export of a reliable queue make a plain queue a reliable one",
    "as-new": "forgets that this file was imported before",
  },
  async run(session, [path], values) {
    const { output, io, signal } = session;
    const isStdin = path === undefined || path === "-";
    const input = isStdin ? io.stdin : createReadStream(path);
    addAbortSignal(signal, input);
    const iterator = linesOf(input, path);
    // Not every Node tells the reader of lines.
    const failed = once(input, "error").then(([error]) => {
      throw unreadable(error, path);
    });
    failed.catch(() => {});
    const first = await Promise.race([iterator.next(), failed]);
    const head = headOf(first.done === true ? "" : first.value, values["as-new"] === true);
    const { queue: name = head.queue, partitions } = values;
    const count =
      partitions === undefined
        ? head.partitions
        : parseCount("--partitions", partitions, 0, MAX_PARTITIONS);
    const dryRun = values["dry-run"] === true;
    const target = await findTarget(session, name, dryRun ? 0 : count);
    const becomesReliable = target?.isPlain === true && head.kind === "reliable";
    if (becomesReliable && values["make-reliable"] !== true) {
      throw new UsageError(
        `queue ${quoted(name)} is plain, and the exported one is reliable: consumers of a plain queue would get nothing more; choose another --queue, or say --make-reliable`,
      );
    }
    const doing = `import queue ${quoted(head.queue)} into queue ${quoted(name)} of ${session.addresses.shown}`;
    if (!dryRun) await session.mayChange(doing, values);
    const queue = target?.queue ?? (await makePartitions(session, name, count));
    let inserted = 0;
    const importing = importQueue(queue, head, iterator, {
      signal,
      dryRun,
      onProgress: (progress) => {
        inserted = progress.put;
        output.progress(`Imported ${formatCount(inserted)} messages`);
      },
    }).catch((error: unknown) => {
      if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
      const before = dryRun
        ? "nothing was put in"
        : `${formatCount(inserted)} message(s) were put in`;
      throw new UsageError(`${error.message}; ${before}`, { cause: error });
    });
    const { put, known, isWhole } = await Promise.race([importing, failed]);
    if (!isWhole) {
      output.say(
        "The file is not whole: its last line is missing, or tells of more or fewer messages. Its export was interrupted, or lines are lost.",
      );
    }
    if (session.isJson) await output.json({ queue: name, put, known, isWhole, dryRun });
    else {
      const verb = dryRun ? "Would import" : "Imported";
      const before = known === 0 ? "" : `; ${formatCount(known)} had been imported before`;
      await output.print(
        `${verb} ${formatCount(put)} message(s) into queue ${quoted(name)}${before}.`,
      );
    }
    return isWhole ? EXIT.done : EXIT.nothing;
  },
});

async function* linesOf(input: Readable, path?: string): AsyncGenerator<string, void, void> {
  try {
    yield* createInterface({ input, crlfDelay: Infinity });
  } catch (error) {
    throw unreadable(error, path);
  }
}

function unreadable(error: unknown, path = "stdin"): UsageError {
  const { code = "it ended too early" } = error as NodeJS.ErrnoException;
  return new UsageError(`cannot read ${quoted(path)}: ${code}`, { cause: error });
}

function headOf(line: string, isNew: boolean): ExportHead {
  try {
    const head = parseHead(line);
    return isNew ? { ...head, export: randomUUID() } : head;
  } catch (error) {
    throw new UsageError(`line 1: ${(error as Error).message}`, { cause: error });
  }
}

/** The queue as it is; undefined where it has to be made in partitions: what is open as an ordinary one cannot be. */
async function findTarget(session: Session, name: string, partitions: number) {
  const { signal } = session;
  const inspector = await session.inspector();
  const isKnown = (await inspector.names(signal)).includes(name);
  if (!isKnown && partitions > 0) return undefined;
  const queue = await inspector.open(name, signal);
  // One with only ready messages is not among the names.
  const isPlain = queue.deadLetters === undefined && (isKnown || queue.stats.ready > 0);
  return { queue, isPlain };
}

/** Makes a queue in partitions. */
async function makePartitions(session: Session, name: string, partitions: number) {
  const { signal } = session;
  const inspector = await session.inspector();
  await inspector.line.setPartitions(name, partitions, { signal });
  return await inspector.open(name, signal);
}
