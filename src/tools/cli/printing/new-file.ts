import { existsSync } from "node:fs";
import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { UsageError } from "../parsing/usage-error.ts";
import { quoted } from "./output.ts";

/**
 * A file that appears only once it is complete, readable by its owner alone (mode 600). It is written under a temporary
 * name in the same directory, and renamed at the end.
 */
export class NewFile {
  readonly #path: string;
  readonly #partPath: string;
  readonly #file: FileHandle;

  private constructor(path: string, partPath: string, file: FileHandle) {
    this.#path = path;
    this.#partPath = partPath;
    this.#file = file;
  }

  /** @throws {UsageError} if the file exists and `mayReplace` is false, or if it cannot be created. */
  static async open(path: string, mayReplace: boolean): Promise<NewFile> {
    if (!mayReplace && existsSync(path)) {
      throw new UsageError(`the file ${quoted(path)} exists; give --force to replace it`);
    }
    const partPath = `${path}.${process.pid}.part`;
    return await attempt(path, async () => {
      return new NewFile(path, partPath, await open(partPath, "wx", 0o600));
    });
  }

  /** @throws {UsageError} if the file system refuses. */
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
    throw new UsageError(`cannot write ${quoted(path)}: ${code}`, { cause: error });
  }
}
