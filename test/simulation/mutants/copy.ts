import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { edited, type Edit } from "./mutant.ts";

/** A copy of this project in a temporary folder, with some edits of its source. */
export interface Copy extends AsyncDisposable {
  readonly folder: string;
}

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** What the simulator and the tests read. */
const PARTS = ["src", "test", "scripts", "package.json", "tsconfig.json"];

/** Copies the project and applies the edits. The installed packages are linked. */
export async function copyWith(edits: readonly Edit[]): Promise<Copy> {
  const folder = await mkdtemp(join(tmpdir(), "delayline-mutant-"));
  await Promise.all(
    PARTS.map((part) => cp(join(root, part), join(folder, part), { recursive: true })),
  );
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  for (const edit of edits) {
    const file = join(folder, "src", edit.file);
    await writeFile(file, edited(await readFile(file, "utf8"), edit));
  }
  return {
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
