import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { findServer } from "../../src/adapters/testing/find-server.ts";

/** "Downloads" a package. `LISTS=no`: the system has no package lists. `NETWORK=no`: no mirror answers. */
const APT_GET = `#!/bin/sh
touch "$CALLS/$$"
for argument; do
  case "$argument" in
    -oDir::Cache::Archives=*) archives=\${argument#*=} ;;
    -oDir::State::Lists=*) LISTS=own ;;
    update) update=yes ;;
  esac
done
if [ "$NETWORK" = no ]; then echo "E: Failed to fetch" >&2; exit 100; fi
if [ "$LISTS" = no ]; then echo "E: Unable to locate package redis-server" >&2; exit 100; fi
[ "$update" = yes ] || touch "$archives/redis-server_7_all.deb"
`;

/** "Unpacks" a package: a redis-server that needs a library, and a redis-cli. */
const DPKG = `#!/bin/sh
[ "$1" = -x ] && [ -f "$2" ] || exit 2
mkdir -p "$3/usr/bin" "$3/usr/lib"
touch "$3/usr/lib/libneeded.so.1"
cp "$PACKAGED_SERVER" "$3/usr/bin/redis-server"
echo '#!/bin/sh' >"$3/usr/bin/redis-cli"
chmod +x "$3/usr/bin/redis-cli"
`;

/** In truth the real server. */
const PACKAGED_SERVER = `#!/bin/sh
case "$LD_LIBRARY_PATH" in
  */usr/lib*) exec "$REAL_SERVER" "$@" ;;
  *) echo "libneeded.so.1 is missing" >&2; exit 127 ;;
esac
`;

/** A machine without redis-server, and with an apt-get and a dpkg that need no network. */
export class FakeDebian {
  /** The environment of a user of this machine. */
  readonly env: NodeJS.ProcessEnv;
  /** Where the packages are cached. */
  readonly cache: string;
  readonly #calls: string;

  private constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.#calls = join(directory, "calls");
    this.cache = join(directory, "cache", "delayline", "redis-server");
    this.env = {
      ...env,
      PATH: join(directory, "bin"),
      XDG_CACHE_HOME: join(directory, "cache"),
      CALLS: this.#calls,
      PACKAGED_SERVER: join(directory, "packaged-server"),
    };
  }

  /** Sets the machine up; it is removed when the test has finished. */
  static async create(): Promise<FakeDebian> {
    const directory = await mkdtemp(join(tmpdir(), "delayline-fake-debian-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    await mkdir(join(directory, "bin"));
    await mkdir(join(directory, "calls"));
    await writeProgram(join(directory, "bin", "apt-get"), APT_GET);
    await writeProgram(join(directory, "bin", "dpkg"), DPKG);
    await writeProgram(join(directory, "packaged-server"), PACKAGED_SERVER);
    const real = await findServer({ ...process.env, REDIS_URL: "" });
    return new FakeDebian(directory, { ...real.env, REAL_SERVER: real.path });
  }

  /** How often apt-get was called. */
  async callCount(): Promise<number> {
    return (await readdir(this.#calls)).length;
  }
}

async function writeProgram(path: string, script: string): Promise<void> {
  await writeFile(path, script);
  await chmod(path, 0o755);
}
