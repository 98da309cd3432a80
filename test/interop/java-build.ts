import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/*
 * The Java side of these tests, compiled against each version of Redisson. Maven fetches Redisson from Maven Central
 * once per machine, and compiles into target/<version> when a source has changed.
 */

/** The versions of Redisson: the first with today's layout, the last 3.x, and the newest at the time of writing. */
export const REDISSON_VERSIONS = ["3.21.1", "3.52.0", "4.7.0"] as const;

export type RedissonVersion = (typeof REDISSON_VERSIONS)[number];

export const NEWEST_REDISSON = REDISSON_VERSIONS[2];

/** Whether {@link buildJava} has run; it checks that everything is up to date. */
export function isJavaBuilt(): boolean {
  return existsSync(file(NEWEST_REDISSON, "stamp"));
}

/** Compiles missing classes. Returns why that failed, or undefined. */
export async function buildJava(): Promise<string | undefined> {
  const stamp = await digest();
  for (const version of REDISSON_VERSIONS) {
    if (await isBuilt(version, stamp)) continue;
    const failure = await build(version);
    if (failure !== undefined) return failure;
    await writeFile(file(version, "stamp"), stamp);
  }
  // The classes may have been compiled on another machine.
  return (await whyItFailed("java", ["-version"])) === undefined
    ? undefined
    : "there is no java on PATH";
}

/** The class path for this version. */
export async function classpath(version: RedissonVersion): Promise<string> {
  const libraries = await readFile(file(version, "classpath"), "utf8");
  return [file(version, "classes"), libraries.trim()].join(delimiter);
}

const root = fileURLToPath(new URL(".", import.meta.url));
const sources = `${root}src/main/java/interop/`;

function file(version: RedissonVersion, name: "stamp" | "classpath" | "classes"): string {
  return `${root}target/${version}/${name}`;
}

async function digest(): Promise<string> {
  const names = (await readdir(sources)).toSorted().map((name) => `${sources}${name}`);
  const hash = createHash("sha256");
  for (const name of [`${root}pom.xml`, ...names]) hash.update(await readFile(name));
  return hash.digest("hex");
}

async function isBuilt(version: RedissonVersion, stamp: string): Promise<boolean> {
  try {
    if ((await readFile(file(version, "stamp"), "utf8")) !== stamp) return false;
    return (await classpath(version)).split(delimiter).every((path) => existsSync(path));
  } catch {
    return false;
  }
}

async function build(version: RedissonVersion): Promise<string | undefined> {
  if ((await whyItFailed("javac", ["-version"])) !== undefined) return "there is no JDK on PATH";
  if ((await whyItFailed("mvn", ["-version"])) !== undefined) return "there is no Maven on PATH";
  await rm(`${root}target/${version}`, { recursive: true, force: true });
  const doing = `Maven fetches Redisson ${version}, once per machine, and compiles against it`;
  console.log(`${doing} ...`);
  const startedAt = performance.now();
  const progress = setInterval(() => {
    console.log(`${doing}: ${Math.round((performance.now() - startedAt) / 1000)} s so far ...`);
  }, PROGRESS);
  const failure = await whyItFailed("mvn", [
    "--quiet",
    "--batch-mode",
    "--no-transfer-progress",
    "-Dstyle.color=never",
    "-Dmaven.wagon.http.retryHandler.count=3",
    `--file=${root}pom.xml`,
    `-Dredisson.version=${version}`,
    "process-classes",
  ]);
  clearInterval(progress);
  return failure && `Maven cannot build with Redisson ${version}: ${failure}`;
}

/** Milliseconds between two lines that say that Maven is still working. */
const PROGRESS = 10_000;

/** Runs a program. Returns the first line of its error, or undefined if it succeeded. */
export async function whyItFailed(
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    await promisify(execFile)(program, args, { timeout: 300_000 });
    return undefined;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as Error & Partial<Output>;
    const lines = `${stdout}\n${stderr}`.split("\n");
    return lines.find((line) => line.includes("ERROR")) ?? message;
  }
}

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}
