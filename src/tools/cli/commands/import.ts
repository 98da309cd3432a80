import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { addAbortSignal, type Readable } from "node:stream";
import { importQueue } from "../../view/import-queue.ts";
import { parseHead, type ExportHead } from "../../view/record.ts";
import { LIMITS } from "../../../inside.ts";
import { parseCount, UsageError } from "../session/arguments.ts";
import { quoted } from "../session/output.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { confirm, type Session } from "../session/session.ts";
import { formatCount } from "../../view/words.js";

export const importCommand = defineCommand({
  usage: "import [file] [--queue <queue>]",
  help: `Reads the output of delayline export into a queue, from a file or from stdin. Keeps ids,
deadlines, keys, headers, lanes, priorities, attempts and bytes. Messages that were in
flight become ready; dead letters get a new time of death. Does not set a flow.
You can interrupt an import and run it again with the same file: each message is imported
once, even if it has been handled since. A queue that does not exist is created like the
exported one.`,
  words: [0, 1],
  options: {
    ...CHANGING,
    queue: { type: "string", value: "<queue>" },
    partitions: { type: "string", value: "<count>" },
    "as-new": { type: "boolean" },
    "make-reliable": { type: "boolean" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    queue: "imports into this queue; defaults to the name of the exported one",
    partitions:
      "creates this many partitions, or none with 0, if the queue does not exist; defaults to as many as were exported",
    "make-reliable": "makes an existing plain queue reliable if the exported one was",
    "as-new": "imports the file again, even if it was imported before",
  },
  async run(session, [path], values) {
    const { output, io, signal } = session;
    const isStdin = path === undefined || path === "-";
    const input = isStdin ? io.stdin : createReadStream(path);
    addAbortSignal(signal, input);
    const iterator = linesOf(input, path);
    // Some versions of Node do not pass an error of the input on to the reader of its lines.
    const failed = once(input, "error").then(([error]) => {
      throw unreadable(error, path);
    });
    failed.catch(() => {});
    const first = await Promise.race([iterator.next(), failed]);
    const head = parseHeadLine(first.done === true ? "" : first.value, values["as-new"] === true);
    const { queue: name = head.queue, partitions } = values;
    const count =
      partitions === undefined
        ? head.partitions
        : parseCount("--partitions", partitions, 0, LIMITS.partitions);
    const dryRun = values["dry-run"] === true;
    const destination = await findDestination(session, name, dryRun ? 0 : count);
    const becomesReliable = destination?.isPlain === true && head.kind === "reliable";
    if (becomesReliable && values["make-reliable"] !== true) {
      throw new UsageError(
        `queue ${quoted(name)} is plain and the exported one is reliable: its present consumers would receive nothing more; give another --queue, or --make-reliable`,
      );
    }
    const change = `import queue ${quoted(head.queue)} into queue ${quoted(name)} of ${session.addresses.shown}`;
    if (!dryRun) await confirm(session, change, values);
    const queue = destination?.queue ?? (await makePartitions(session, name, count));
    let inserted = 0;
    const importing = importQueue(queue, head, iterator, {
      signal,
      dryRun,
      onProgress: (progress) => {
        inserted = progress.put;
        output.progress(`Imported ${formatCount(inserted, "message")}`);
      },
    }).catch((error: unknown) => {
      if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
      const before = dryRun
        ? "nothing was imported"
        : `${formatCount(inserted, "message")} imported before it`;
      throw new UsageError(`${error.message}; ${before}`, { cause: error });
    });
    const { put, known, isWhole } = await Promise.race([importing, failed]);
    if (!isWhole) {
      output.say(
        "The file is incomplete: its last line is missing, or does not match the number of messages. The export was interrupted, or lines were lost.",
      );
    }
    if (head.flow !== undefined) {
      // From a file: it may be anything.
      output.say(
        `The exported queue has a flow, which is not imported: ${JSON.stringify(head.flow)}`,
      );
    }
    if (session.isJson) await output.json({ queue: name, put, known, isWhole, dryRun });
    else {
      const verb = dryRun ? "Would import" : "Imported";
      const before = known === 0 ? "" : `; skipped ${formatCount(known)} imported earlier`;
      await output.print(
        `${verb} ${formatCount(put, "message")} into queue ${quoted(name)}${before}.`,
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

function parseHeadLine(line: string, isNew: boolean): ExportHead {
  try {
    const head = parseHead(line);
    return isNew ? { ...head, export: randomUUID() } : head;
  } catch (error) {
    throw new UsageError(`line 1: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * The queue to import into; undefined if it must first be created as a partitioned queue. A client that has a queue
 * open as an ordinary one cannot partition it.
 */
async function findDestination(session: Session, name: string, partitions: number) {
  const { signal } = session;
  const inspector = await session.inspector();
  const isKnown = (await inspector.names(signal)).includes(name);
  if (!isKnown && partitions > 0) return undefined;
  const queue = await inspector.open(name, signal);
  // A queue with only ready messages that Java has moved is not among the names.
  const isPlain = queue.deadLetters === undefined && (isKnown || queue.stats.ready > 0);
  return { queue, isPlain };
}

async function makePartitions(session: Session, name: string, partitions: number) {
  const { signal } = session;
  const inspector = await session.inspector();
  await inspector.line.setPartitions(name, partitions, { signal });
  return await inspector.open(name, signal);
}
