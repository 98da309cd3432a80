import { execFile } from "node:child_process";
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { redisUrl } from "./redis.ts";

const run = promisify(execFile);

/** The repository. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Packages that users have installed beside this one, taken from this repository's dependencies. */
const BESIDE = ["msgpackr", "undici-types"];

/**
 * Directories of users who have installed the package: packed by `npm pack`, unpacked into their
 * `node_modules`, next to a version of ioredis that they chose.
 */
export class InstalledPackage implements AsyncDisposable {
  /** The directory that holds everything; deleted at the end. */
  readonly #home: string;

  private constructor(home: string) {
    this.#home = home;
  }

  /** Packs a copy of the repository, since another process may be using, or building, `dist`. */
  static async pack(): Promise<InstalledPackage> {
    const home = await mkdtemp(join(tmpdir(), "delayline-package-"));
    const copy = join(home, "repository");
    await mkdir(copy);
    const left = new Set(["node_modules", "dist", "test"]);
    for (const name of await readdir(root)) {
      if (left.has(name) || name.startsWith(".")) continue;
      await cp(join(root, name), join(copy, name), { recursive: true });
    }
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    await run("npm", ["pack", "--pack-destination", home], { cwd: copy });
    const [tarball = ""] = (await readdir(home)).filter((name) => name.endsWith(".tgz"));
    await run("tar", ["-xzf", tarball], { cwd: home });
    return new InstalledPackage(home);
  }

  /** The directory of a user with these versions of ioredis and of Node's types, by their names in `node_modules`. */
  async user(
    ioredis: "ioredis" | "ioredis5",
    types: "@types/node" | "newest-types-node" = "@types/node",
  ): Promise<User> {
    const directory = await mkdtemp(join(this.#home, `${ioredis}-`));
    const modules = join(directory, "node_modules");
    await mkdir(join(modules, "@types"), { recursive: true });
    // Copied, not linked: Node.js would resolve ioredis from the link's target.
    await cp(join(this.#home, "package"), join(modules, "delayline"), { recursive: true });
    await symlink(join(root, "node_modules", ioredis), join(modules, "ioredis"));
    await symlink(join(root, "node_modules", types), join(modules, "@types/node"));
    for (const name of BESIDE) await symlink(join(root, "node_modules", name), join(modules, name));
    return new User(directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** A user's directory, with the package in its `node_modules`. */
export class User {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  path(file: string): string {
    return join(this.directory, file);
  }

  async write(file: string, text: string): Promise<string> {
    await mkdir(dirname(this.path(file)), { recursive: true });
    await writeFile(this.path(file), text);
    return this.path(file);
  }

  /** Runs one of the user's JavaScript files; returns the JSON that it prints. Anything on stderr is a failure. */
  async run(file: string, ...args: string[]): Promise<unknown> {
    const { stdout, stderr } = await this.execute(this.path(file), ...args);
    if (stderr !== "") throw new Error(`${file} printed to stderr:\n${stderr}`);
    return JSON.parse(stdout);
  }

  /** Runs Node.js with these arguments, on the shared Redis; returns its output. */
  async execute(...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
    const env = { ...process.env, REDIS_URL: redisUrl() };
    return await run(process.execPath, args, { cwd: this.directory, env }).catch(
      ({ stdout, stderr }: { stdout: string; stderr: string }) => {
        throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
      },
    );
  }

  /** Gives the user another package of this repository's dependencies. */
  async link(name: string): Promise<void> {
    await symlink(join(root, "node_modules", name), this.path(`node_modules/${name}`));
  }

  /** Makes `npx delayline` run, as npm does it. */
  async linkCommand(): Promise<void> {
    const manifest = await readFile(this.path("node_modules/delayline/package.json"), "utf8");
    const { bin } = JSON.parse(manifest) as { bin: { delayline: string } };
    await chmod(this.path(join("node_modules/delayline", bin.delayline)), 0o755);
    await mkdir(this.path("node_modules/.bin"), { recursive: true });
    await symlink(join("../delayline", bin.delayline), this.path("node_modules/.bin/delayline"));
  }

  /** Renames a file or a directory. */
  async move(from: string, to: string): Promise<void> {
    await rename(this.path(from), this.path(to));
  }
}
