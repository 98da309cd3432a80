import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { isRunning } from "../../helpers/is-running.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

test("an append-only server has every write after SIGKILL and a restart", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const { pid, port, url } = server;
  await newRedis(url).set("kept", "yes");

  await server.kill();
  expect(isRunning(pid)).toBe(false);

  await server.restart();
  expect(server.port).toBe(port);
  expect(server.pid).not.toBe(pid);
  expect(await newRedis(url).get("kept")).toBe("yes");
});

test("a server without persistence forgets", async () => {
  const server = await startOwnServer();
  await newRedis(server.url).set("kept", "no");
  await server.kill();
  await server.restart();
  expect(await newRedis(server.url).get("kept")).toBeNull();
});

test("clients find a restarted server again", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const redis = newRedis(server.url, { retryStrategy: () => 10 });
  await redis.set("kept", "yes");
  await server.shutDown();
  await server.restart();
  expect(await redis.get("kept")).toBe("yes");
});

test("a paused server replies once it is resumed", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  await redis.ping();

  server.pause();
  await expect(newRedis(server.url, { commandTimeout: 100 }).ping()).rejects.toThrow("timed out");
  const pong = redis.ping();
  server.resume();
  expect(await pong).toBe("PONG");
});

test("stop ends a paused server at once, and removes its data", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const [, directory = ""] = await newRedis(server.url).config("GET", "dir");
  server.pause();
  await server.stop();
  expect(isRunning(server.pid)).toBe(false);
  await eventually(() => !existsSync(directory));
  await server.stop();
});
