import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The executable files of this name on the PATH of `env`, in the order a shell would try them. */
export function findExecutables(name: string, env: NodeJS.ProcessEnv): string[] {
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, name))
    .filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
