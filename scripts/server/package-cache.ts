import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { findExecutables, findServer } from "../../src/adapters/testing/find-server.ts";

/*
 * On Debian, Ubuntu and their relatives apt can fetch redis-server without root if it writes to our directories only. It
 * downloads the package and the libraries that this machine lacks, and checks their signatures as usual. dpkg unpacks
 * them into a directory, where scripts of ours start the server and redis-cli with LD_LIBRARY_PATH. Nothing is installed.
 *
 * Everything happens in a scratch directory next to the final one, and a rename puts the result there. So the cache
 * holds a complete server or none, and of several processes that fetch at the same time the first one wins.
 */

/** Milliseconds that apt and dpkg may take in all. They need a few seconds. */
const FETCH_TIMEOUT = 120_000;

/**
 * A directory with `redis-server` and `redis-cli` of the distribution's own packages, which the first call fetches into
 * the user's cache (`~/.cache/delayline`).
 *
 * @throws {Error} with a reason, if this system is not like Debian, or the package cannot be fetched.
 */
export async function packagedServer(env: NodeJS.ProcessEnv): Promise<string> {
  const [aptGet] = findExecutables("apt-get", env);
  const [dpkg] = findExecutables("dpkg", env);
  if (aptGet === undefined || dpkg === undefined) {
    throw new Error("apt-get and dpkg are not on PATH, so there is no package to fetch");
  }

  const cache = join(cacheHome(env), "delayline", "redis-server");
  const home = join(cache, await platform());
  if (await runs(home, env)) return join(home, BIN);

  console.error("Fetching redis-server from the distribution's packages, for this user alone ...");
  const scratch = await makeScratch(cache);
  try {
    // The cached server does not run, perhaps because an upgrade of the machine removed a library.
    await rename(home, join(scratch, "broken")).catch(ignore("ENOENT"));

    const root = join(scratch, "root");
    const run = runner(env);
    for (const archive of await download(aptGet, scratch, run)) {
      await run(dpkg, ["-x", archive, root]);
    }
    await writeStarters(root, home);
    await rename(root, home).catch(ignore("ENOTEMPTY", "EEXIST"));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  await findServer({ ...env, PATH: join(home, BIN) });
  return join(home, BIN);
}

/** Downloads redis-server and its dependencies; returns the paths of the `.deb` files. */
async function download(aptGet: string, scratch: string, run: Runner): Promise<string[]> {
  const archives = join(scratch, "archives");
  const lists = join(scratch, "lists");
  await mkdir(join(archives, "partial"), { recursive: true });
  await mkdir(join(lists, "partial"), { recursive: true });

  const options = [
    "-q",
    // apt's locks belong to root. They guard the system's directories, which we only read.
    "-oDebug::NoLocking=true",
    `-oDir::Cache=${scratch}`,
    `-oDir::Cache::Archives=${archives}`,
    "-oAcquire::http::Timeout=20",
  ];
  // redis-tools holds the binary, redis-server a link to it. --reinstall downloads both even if they count as installed
  // although they are not on PATH.
  const install = ["install", "--download-only", "--reinstall", "--no-install-recommends", "--yes"];
  const packages = ["redis-server", "redis-tools"];

  const listed = await attempt(run(aptGet, [...options, ...install, ...packages]));
  if (listed !== undefined) {
    // There are no package lists (a slim container image), or they are older than the mirror. An update may fail for a
    // source that has nothing to do with Redis, so try again in any case.
    const own = [...options, `-oDir::State::Lists=${lists}`];
    const update = ["update", "-oAcquire::Languages=none", "-oAPT::Update::Error-Mode=any"];
    const updated = await attempt(run(aptGet, [...own, ...update]));
    const fetched = await attempt(run(aptGet, [...own, ...install, ...packages]));
    if (fetched !== undefined) {
      const cause = updated ?? fetched;
      throw new Error(`the package redis-server cannot be fetched: ${cause.message}`, { cause });
    }
  }

  const files = await readdir(archives);
  return files.filter((file) => file.endsWith(".deb")).map((file) => join(archives, file));
}

/** Runs a step that may fail; returns its error, or undefined. */
async function attempt(step: Promise<void>): Promise<Error | undefined> {
  return await step.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
}

/** Where the scripts are that start the programs. */
const BIN = "bin";

const PROGRAMS = ["redis-server", "redis-cli"];

/**
 * Writes the scripts that start the programs unpacked below `root`, for when `root` has become `home`. They name
 * `home`, and so also run through a link to them.
 */
async function writeStarters(root: string, home: string): Promise<void> {
  const files = await readdir(root, { recursive: true });
  const libraries = files.filter((file) => /\.so(\.|$)/.test(file));
  const directories = new Set(libraries.map((file) => `$root/${dirname(file)}`));
  await mkdir(join(root, BIN), { recursive: true });
  for (const program of PROGRAMS) {
    const script = `#!/bin/sh
root='${home.replaceAll("'", String.raw`'\''`)}'
LD_LIBRARY_PATH="${[...directories, "$LD_LIBRARY_PATH"].join(delimiter)}"
export LD_LIBRARY_PATH
exec "$root/usr/bin/${program}" "$@"
`;
    await writeFile(join(root, BIN, program), script);
    await chmod(join(root, BIN, program), 0o755);
  }
}

/** Whether the cache holds every program, and the server runs. */
async function runs(home: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const bin = { ...env, PATH: join(home, BIN) };
  if (PROGRAMS.some((program) => findExecutables(program, bin).length === 0)) return false;
  return await findServer(bin).then(
    () => true,
    () => false,
  );
}

/** The user's cache directory, according to the XDG Base Directory Specification. */
function cacheHome(env: NodeJS.ProcessEnv): string {
  const configured = env["XDG_CACHE_HOME"] ?? "";
  // The specification tells us to ignore a relative path.
  return isAbsolute(configured) ? configured : join(env["HOME"] || homedir(), ".cache");
}

/** Names the system that a package was made for, since several may share a home directory. */
async function platform(): Promise<string> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}="?([\\w.-]+)"?$`, "m").exec(release)?.[1];
  const version = field("VERSION_ID") ?? field("VERSION_CODENAME") ?? "rolling";
  return `${field("ID") ?? "linux"}-${version}-${process.arch}`;
}

async function makeScratch(cache: string): Promise<string> {
  try {
    await mkdir(cache, { recursive: true });
    return await mkdtemp(join(cache, "fetch-"));
  } catch (cause) {
    throw new Error(
      `the package redis-server cannot be fetched: ${String(cause)} (XDG_CACHE_HOME names another directory)`,
      { cause },
    );
  }
}

type Runner = (file: string, args: string[]) => Promise<void>;

/** Runs programs within one common time limit. */
function runner(env: NodeJS.ProcessEnv): Runner {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT);
  // apt checks signatures with a shell script, which calls other programs.
  const systemEnv = { ...env, PATH: [env["PATH"], "/usr/bin", "/bin"].join(delimiter) };
  return async (file, args) => {
    try {
      await promisify(execFile)(file, args, { env: systemEnv, signal, maxBuffer: Infinity });
    } catch (cause) {
      if (signal.aborted) throw new Error(`no answer in ${FETCH_TIMEOUT / 1000} s`, { cause });
      throw new Error(complaint(cause), { cause });
    }
  };
}

/** The errors of apt and dpkg in one line, without warnings and progress. */
function complaint(error: unknown): string {
  const stderr = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
  const lines = stderr.split("\n").filter((line) => /^(E|dpkg\S*): /.test(line));
  return lines.length > 0 ? lines.join("; ") : String(error);
}

/** A handler for `catch` that ignores errors with one of these codes. */
function ignore(...codes: string[]): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (!codes.includes(error.code ?? "")) throw error;
  };
}
