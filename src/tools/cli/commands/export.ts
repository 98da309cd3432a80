import { once } from "node:events";
import { existsSync } from "node:fs";
import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { exportQueue } from "../../view/export-queue.ts";
import { MachineError, UsageError } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { quoted, toJson } from "../session/output.ts";
import { formatCount } from "../../view/words.js";

export const exportCommand = defineCommand({
  usage: "export <queue> [file]",
  help: `Writes a queue to a file, or to stdout: one line about the queue, one line of JSON per
message with its payload in base64, and one line at the end. The queue keeps its messages.
An export is not a snapshot: to get each message exactly once, pause the queue and let its
handlers finish first.`,
  words: [1, 2],
  options: { force: { type: "boolean" } },
  optionHelp: { force: "replaces an existing file" },
  async run(session, [name = "", path], { force = false }) {
    const { output, io, signal } = session;
    const queue = await session.open(name);
    const file = path === undefined ? undefined : await NewFile.open(path, force);
    // The first and the last line are not messages.
    let count = -2;
    let unknown = 0;
    let lines: string[] = [];
    const flush = async () => {
      const text = lines.join("");
      lines = [];
      if (file !== undefined) await file.write(text);
      // As bytes: a stream encodes a long string much more slowly.
      else if (!io.stdout.write(Buffer.from(text))) await once(io.stdout, "drain", { signal });
    };
    try {
      for await (const record of exportQueue(queue, { signal, onUnknown: () => unknown++ })) {
        lines.push(`${toJson(record)}\n`);
        if (++count % STEP !== 0 || count <= 0) continue;
        await flush();
        output.progress(`Exported ${formatCount(count, "message")}`);
      }
      await flush();
      await file?.finish();
    } finally {
      await file?.discard();
    }
    output.say(`Exported ${formatCount(count, "message")} of queue ${quoted(name)}.`);
    if (unknown > 0) {
      const left = `${formatCount(unknown, "delayed member")} of unknown layout`;
      session.hint(`Left out ${left}.`, "To learn more", "doctor", name);
    }
    return EXIT.done;
  },
});

/** Lines per write. */
const STEP = 1000;

/**
 * A file that appears only once it is complete, readable by its owner alone (mode 600). It is written under a temporary
 * name in the same directory, and renamed at the end.
 */
class NewFile {
  readonly #path: string;
  readonly #partPath: string;
  readonly #file: FileHandle;

  private constructor(path: string, partPath: string, file: FileHandle) {
    this.#path = path;
    this.#partPath = partPath;
    this.#file = file;
  }

  /**
   * @throws {UsageError} if the file exists and `mayReplace` is false.
   * @throws {MachineError} if it cannot be created.
   */
  static async open(path: string, mayReplace: boolean): Promise<NewFile> {
    if (!mayReplace && existsSync(path)) {
      throw new UsageError(`the file ${quoted(path)} exists; give --force to replace it`);
    }
    const partPath = `${path}.${process.pid}.part`;
    return await attempt(path, async () => {
      return new NewFile(path, partPath, await open(partPath, "wx", 0o600));
    });
  }

  /** @throws {MachineError} if the file system refuses. */
  async write(text: string): Promise<void> {
    await attempt(this.#path, async () => await this.#file.writeFile(text));
  }

  /** Renames the complete file to its path. */
  async finish(): Promise<void> {
    await attempt(this.#path, async () => {
      await this.#file.close();
      await rename(this.#partPath, this.#path);
    });
  }

  /** Removes the incomplete file. Does nothing after {@link NewFile.finish}. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => {});
    await rm(this.#partPath, { force: true });
  }
}

async function attempt<T>(path: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    const { code = "it failed" } = error as NodeJS.ErrnoException;
    throw new MachineError(`cannot write ${quoted(path)}: ${code}`, EXIT.output, { cause: error });
  }
}
