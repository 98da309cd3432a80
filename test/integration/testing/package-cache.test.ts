import { readdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { pathToServer } from "../../../scripts/server/on-path.ts";
import { findExecutables, findServer } from "../../../src/adapters/testing/find-server.ts";
import { startRedis } from "../../../src/adapters/testing/index.ts";
import type { RedisServer } from "../../../src/adapters/testing/index.ts";
import { FakeDebian } from "../../helpers/fake-debian.ts";
import { newRedis } from "../../helpers/redis.ts";

async function startOn(env: NodeJS.ProcessEnv): Promise<RedisServer> {
  const server = await startRedis({ env: { ...env, PATH: await pathToServer(env) } });
  onTestFinished(() => server.stop());
  return server;
}

test("fetches the distribution's package once", async () => {
  const machine = await FakeDebian.create();
  const first = await startOn(machine.env);
  expect(await newRedis(first.url).ping()).toBe("PONG");
  await first.stop();
  expect(await machine.callCount()).toBe(1);

  const second = await startOn(machine.env);
  expect(await newRedis(second.url).ping()).toBe("PONG");
  expect(await machine.callCount()).toBe(1);
});

test("is filled by several processes at once, and left tidy", async () => {
  const machine = await FakeDebian.create();
  const servers = await Promise.all(Array.from({ length: 4 }, () => startOn(machine.env)));
  expect(new Set(servers.map((server) => server.port)).size).toBe(4);
  expect(await readdir(machine.cache)).toHaveLength(1);
});

test("fetches package lists of its own if the system has none", async () => {
  const machine = await FakeDebian.create();
  const server = await startOn({ ...machine.env, LISTS: "no" });
  expect(await newRedis(server.url).ping()).toBe("PONG");
  expect(await machine.callCount()).toBe(3);
});

test("is filled again if its contents do not run", async () => {
  const machine = await FakeDebian.create();
  const first = await startOn(machine.env);
  await first.stop();
  const [place = ""] = await readdir(machine.cache);
  await writeFile(join(machine.cache, place, "usr", "bin", "redis-server"), "");

  const second = await startOn(machine.env);
  expect(await newRedis(second.url).ping()).toBe("PONG");
  expect(await readdir(machine.cache)).toEqual([place]);
});

test("holds redis-cli too, and is filled again if it does not", async () => {
  const machine = await FakeDebian.create();
  const first = { ...machine.env, PATH: await pathToServer(machine.env) };
  const [cli = ""] = findExecutables("redis-cli", first);
  await rm(cli);

  await pathToServer(machine.env);
  expect(findExecutables("redis-cli", first)).toEqual([cli]);
  expect(await machine.callCount()).toBe(2);
});

test("its server runs through a link, too", async () => {
  const machine = await FakeDebian.create();
  const { path } = await findServer({ ...machine.env, PATH: await pathToServer(machine.env) });
  const link = join(dirname(machine.cache), "valkey-server");
  await symlink(path, link);
  expect(await findServer({ ...machine.env, PATH: dirname(link) })).toMatchObject({ path: link });
});

test("passes on apt's messages, and names what to install", async () => {
  const machine = await FakeDebian.create();
  await expect(pathToServer({ ...machine.env, NETWORK: "no" })).rejects.toThrow(
    /redis-server cannot be fetched: E: Failed to fetch.*apt-get install redis-server/s,
  );
  expect(await readdir(machine.cache)).toEqual([]);
});

test("`startRedis` itself fetches nothing", async () => {
  const machine = await FakeDebian.create();
  await expect(startRedis({ env: machine.env })).rejects.toMatchObject({
    code: "REDIS_NOT_FOUND",
  });
  expect(await machine.callCount()).toBe(0);
});

test("leaves a PATH with a server alone", async () => {
  expect(await pathToServer(process.env)).toBe(process.env["PATH"]);
});
