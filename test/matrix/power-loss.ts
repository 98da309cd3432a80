import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";

/*
 * A power loss takes what the kernel has not written to the disk yet. With `appendfsync everysec` that is up to a second
 * of the append-only file. A killed process loses none of it, so a test has to cut the file.
 */

/** The length of a server's append-only file. A server that has started without one has a file of its own for writes. */
export async function sizeOfLog(directory: string): Promise<number> {
  return (await stat(await logIn(directory))).size;
}

/** Cuts the file of a dead server to the length that it once had. */
export async function forgetSince(directory: string, size: number): Promise<void> {
  const path = await logIn(directory);
  const current = (await stat(path)).size;
  if (current <= size) throw new Error(`nothing was written since: ${current} of ${size} bytes`);
  await truncate(path, size);
}

async function logIn(directory: string): Promise<string> {
  const files = await readdir(directory, { recursive: true });
  // Redis 7 and later: a base, and the writes since. Before: one file.
  const found = files.filter((file) => /(incr|appendonly)\.aof$/.test(file));
  const [only, ...others] = found;
  if (only === undefined || others.length > 0) throw new Error(`${found.length} files of writes`);
  return join(directory, only);
}
