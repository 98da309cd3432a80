import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findServer } from "../../../src/adapters/testing/find-server.ts";
import { freePort } from "../../../src/adapters/testing/server-process.ts";
import { RedisStartError, startRedis } from "../../../src/adapters/testing/index.ts";
import type { StartRedisOptions } from "../../../src/adapters/testing/index.ts";
import { startChild } from "../../helpers/child.ts";
import { eventually } from "../../helpers/eventually.ts";
import { isRunning } from "../../helpers/is-running.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

/** The environment of a user who has not set REDIS_URL. */
const env = { ...process.env, REDIS_URL: "" };

async function startOwn(options: StartRedisOptions = {}) {
  const server = await startRedis({ env, ...options });
  onTestFinished(() => server.stop());
  if (server.pid === undefined) throw new Error("expected a process of our own");
  return Object.assign(server, { pid: server.pid });
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "delayline-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function writeProgram(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}

/** Where a server keeps its data, or would keep it. */
async function directoryOf(url: string): Promise<string> {
  const [, directory] = await newRedis(url).config("GET", "dir");
  return directory ?? "";
}

describe("a server of our own", () => {
  test("replies, identifies itself, and keeps no data", async () => {
    const server = await startOwn();
    const redis = newRedis(server.url);

    expect(await redis.ping()).toBe("PONG");
    expect(await redis.config("GET", "save")).toEqual(["save", ""]);
    expect(await redis.config("GET", "appendonly")).toEqual(["appendonly", "no"]);
    expect(await redis.config("GET", "bind")).toEqual(["bind", "127.0.0.1"]);
    expect(server.url).toBe(`redis://127.0.0.1:${server.port}`);
    expect(server.description).toContain(`${server.version} from `);
    expect(server.description).toContain(`on 127.0.0.1:${server.port}, started for this run`);
  });

  test("is gone after stop, with its directory", async () => {
    const server = await startOwn();
    const directory = await directoryOf(server.url);
    expect(existsSync(directory)).toBe(true);

    await server.stop();
    expect(isRunning(server.pid)).toBe(false);
    expect(existsSync(directory)).toBe(false);
    await server.stop();
  });

  test("is stopped by `await using`", async () => {
    let pid = 0;
    {
      await using server = await startRedis({ env });
      pid = server.pid ?? 0;
      expect(isRunning(pid)).toBe(true);
    }
    expect(isRunning(pid)).toBe(false);
  });

  test("is killed if it does not stop by itself", async () => {
    const server = await startOwn();
    process.kill(server.pid, "SIGSTOP");
    await server.stop();
    expect(isRunning(server.pid)).toBe(false);
  });

  test("cleans up after a killed server", async () => {
    const server = await startOwn();
    const directory = await directoryOf(server.url);
    process.kill(server.pid, "SIGKILL");
    await eventually(() => !existsSync(directory));
    await server.stop();
  });

  test("takes arguments, which win over the defaults", async () => {
    const server = await startOwn({ args: ["--appendonly", "yes", "--maxmemory", "50mb"] });
    const redis = newRedis(server.url);
    expect(await redis.config("GET", "appendonly")).toEqual(["appendonly", "yes"]);
    expect(await redis.config("GET", "maxmemory")).toEqual(["maxmemory", String(50 * 1024 ** 2)]);
  });

  test("may demand a password", async () => {
    const server = await startOwn({ args: ["--requirepass", "sesame"] });
    expect(await newRedis(server.url, { password: "sesame" }).ping()).toBe("PONG");
  });

  test("finds its data again in the caller's directory, which is not removed", async () => {
    const directory = await temporaryDirectory();
    const args = ["--appendonly", "yes"];
    const first = await startOwn({ args, directory });
    await newRedis(first.url).set("kept", "yes");
    await first.stop();

    const second = await startOwn({ args, directory, port: first.port });
    expect(second.port).toBe(first.port);
    expect(await newRedis(second.url).get("kept")).toBe("yes");
    await second.stop();
    expect(await readdir(directory)).toEqual(["appendonlydir"]);
  });

  test("that fails to start is an error with its last log lines", async () => {
    const starting = startRedis({ env, args: ["--no-such-setting", "1"] });
    await expect(starting).rejects.toMatchObject({
      name: "RedisStartError",
      code: "REDIS_START_FAILED",
      message: expect.stringMatching(/ended before it was ready.*no-such-setting/s),
    });
  });

  test("cannot have a port that is in use", async () => {
    const port = await freePort();
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    onTestFinished(() => void other.close());

    await expect(startRedis({ env, port })).rejects.toMatchObject({
      code: "REDIS_START_FAILED",
      message: expect.stringContaining("Address already in use"),
    });
  });

  test("does not mistake another Redis on its port for itself", async () => {
    const { port } = await startOwn();
    await expect(startRedis({ env, port })).rejects.toMatchObject({ code: "REDIS_START_FAILED" });
  });
});

describe("a server does not outlive a program that", () => {
  const program = new URL("../../helpers/programs/hold-redis.ts", import.meta.url);

  async function start(end: string) {
    const child = startChild<{ pid: number; port: number }>(program, { args: [end], env });
    const { pid, port } = await child.next();
    const gone = () => eventually(() => !isRunning(pid), { what: `the server on ${port} is gone` });
    return { child, pid, gone };
  }

  test("returns", async () => {
    const { child, gone } = await start("return");
    expect(await child.exit).toEqual({ code: 0, signal: null });
    await gone();
  });

  test("calls process.exit", async () => {
    const { child, gone } = await start("exit");
    expect(await child.exit).toEqual({ code: 3, signal: null });
    await gone();
  });

  test("throws", async () => {
    const { child, gone } = await start("throw");
    expect(await child.exit).toEqual({ code: 1, signal: null });
    expect(child.stderr).toContain("nobody catches this");
    await gone();
  });

  test.for(["SIGINT", "SIGTERM", "SIGKILL"] as const)("is ended by %s", async (signal) => {
    const { child, pid, gone } = await start("wait");
    expect(isRunning(pid)).toBe(true);
    expect(await child.kill(signal)).toEqual({ code: null, signal });
    await gone();
  });
});

describe("REDIS_URL", () => {
  test("is used as it is: not started, not flushed, not stopped", async () => {
    const redis = newRedis();
    const key = uniqueName("key");
    await redis.set(key, "mine");

    const server = await startRedis({ env: { ...env, REDIS_URL: redisUrl() } });
    expect(server).toMatchObject({ url: redisUrl(), source: "REDIS_URL", pid: undefined });
    expect(server.description).toMatch(
      /^(redis|valkey) \d+\.\d+\.\d+ at REDIS_URL \(.*\), used as it is$/,
    );

    await server.stop();
    expect(await redis.get(key)).toBe("mine");
  });

  test("may hold a password, which is never shown", async () => {
    const own = await startOwn({ args: ["--requirepass", "sesame"] });
    const { port } = own;
    const right = `redis://:sesame@127.0.0.1:${port}`;
    const server = await startRedis({ env: { ...env, REDIS_URL: right } });
    expect(server.url).toBe(right);
    expect(server.description).not.toContain("sesame");

    const wrong = `redis://:open-barley@127.0.0.1:${port}`;
    const error = await startRedis({ env: { ...env, REDIS_URL: wrong } }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "REDIS_UNREACHABLE" });
    expect(String(error)).toContain("WRONGPASS");
    expect(JSON.stringify(error) + String(error)).not.toContain("barley");
  });

  test("that does not reply is an error, and no other server is started instead", async () => {
    const own = await startOwn();
    await own.stop();
    const starting = startRedis({ env: { ...env, REDIS_URL: own.url } });
    await expect(starting).rejects.toMatchObject({
      code: "REDIS_UNREACHABLE",
      message: `the Redis at REDIS_URL (127.0.0.1:${own.port}) does not answer: connect ECONNREFUSED 127.0.0.1:${own.port}`,
    });
  });

  test("must be a URL", async () => {
    const starting = startRedis({ env: { ...env, REDIS_URL: "localhost" } });
    await expect(starting).rejects.toMatchObject({ code: "REDIS_UNREACHABLE" });
  });
});

test.each([
  [{ prot: 7000 }, 'startRedis option must be one of args, port, directory, env, got "prot"'],
  [null, "startRedis options must be an object, got null"],
  ["redis://localhost", "startRedis options must be an object, got string"],
])("%j is refused: a misspelt option would be ignored", async (options, message) => {
  await expect(startRedis(options as never)).rejects.toThrow(new TypeError(message));
});

describe("looking for a server", () => {
  test("finds nothing on an empty PATH, and says what to do", async () => {
    const error = await startRedis({ env: { PATH: "" } }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(RedisStartError);
    expect(error).toMatchObject({ code: "REDIS_NOT_FOUND" });
    for (const hint of [
      "apt-get install redis-server",
      "brew install",
      "docker run",
      "REDIS_URL",
    ]) {
      expect(String(error)).toContain(hint);
    }
  });

  test("skips a server that is too old or does not run, and says so", async () => {
    const bin = await temporaryDirectory();
    await writeProgram(join(bin, "redis-server"), "echo 'Redis server v=6.0.16 sha=00000000:0'");
    await writeProgram(
      join(bin, "valkey-server"),
      "echo 'libjemalloc.so.2 is missing' >&2; exit 127",
    );

    await expect(findServer({ PATH: bin })).rejects.toThrow(
      /redis-server is version 6\.0\.16, but 6\.2.*valkey-server does not run: .*libjemalloc/s,
    );
  });

  test("takes valkey-server if there is no redis-server", async () => {
    const bin = await temporaryDirectory();
    const real = await findServer(env);
    await symlink(real.path, join(bin, "valkey-server"));
    const server = await startOwn({ env: { ...real.env, PATH: bin } });
    expect(server.description).toMatch(/^valkey-server .* from PATH on /);
  });
});
