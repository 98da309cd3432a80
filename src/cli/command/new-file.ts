import { existsSync } from "node:fs";
import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { quoted } from "../printing/output.ts";
import { UsageError } from "../words/usage-error.ts";

/**
 * A file that is there when it is whole, and for its owner alone (mode 600): it is written beside its place, and moved
 * there at the end.
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

  /** @throws {UsageError} if there is a file, and not `mayReplace`, or if none can be made. */
  static async open(path: string, mayReplace: boolean): Promise<NewFile> {
    if (!mayReplace && existsSync(path)) {
      throw new UsageError(`there is a file ${quoted(path)}; say --force to replace it`);
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

  /** Moves it to its place. */
  async finish(): Promise<void> {
    await attempt(this.#path, async () => {
      await this.#file.close();
      await rename(this.#partPath, this.#path);
    });
  }

  /** Leaves nothing behind. After {@link NewFile.finish} it does nothing. */
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
