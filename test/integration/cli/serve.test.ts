import { closeSync, openSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { main } from "../../../src/tools/cli/main.ts";
import { cli, CliProcess } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

test("doctor prints the findings about a queue, and errors mean exit code 1", async () => {
  const name = uniqueName();
  await newRedis().lpush(`redisson_delay_queue_timeout:{${name}}`, "of another type");
  const { code, stdout, stderr } = await cli(["doctor", name]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^error: \S+/m);
  expect(stdout).toContain(name);
  expect(stderr).toMatch(/^Found \d+ errors?(, \d+ warnings?)?(, \d+ notices?)?\.$/m);
  const { json } = await cli(["doctor", name, "--json"]);
  expect(json.filter(({ level }) => level === "error").length).toBeGreaterThan(0);
});

test("doctor of an unreachable Redis is exit code 3, without its password", async () => {
  const { code, stdout, stderr } = await cli(["doctor"], { url: "redis://:s3cret@127.0.0.1:1" });
  expect(code).toBe(3);
  expect(stdout + stderr).not.toContain("s3cret");
});

test("the dashboard serves until Ctrl-C, and on the loopback only", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue(name).offer("x", 3_600_000);
  const interrupt = new AbortController();
  const stdout = new PassThrough();
  const running = main(["dashboard", "--port", "0"], {
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    env: { REDIS_URL: redisUrl() },
    signal: interrupt.signal,
  });
  let said = "";
  stdout.on("data", (bytes) => (said += String(bytes)));
  await eventually(() => said.includes("http"));
  const [url = ""] = /http:\S+/.exec(said) ?? [];
  const response = await fetch(url);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("<html");
  interrupt.abort();
  expect(await running).toBe(130);
  await expect(fetch(url)).rejects.toThrow("fetch failed");
  const open = await cli(["dashboard", "--host", "0.0.0.0", "--port", "0"]);
  expect(open.code).toBe(2);
  expect(open.stderr).toContain("authorize must be given");
});

test("a port in use ends the dashboard with exit code 69", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => void taken.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  // A process of its own: it must end.
  const ended = await new CliProcess(["dashboard", "--port", String(port)]).ended;
  expect(ended).toMatchObject({ code: 69, stdout: "" });
  expect(ended.stderr).toBe(
    `delayline: cannot serve the dashboard at port ${port} of 127.0.0.1: it is in use; give another --port, or 0 for a free one\n`,
  );
});

test("a full disk ends export with exit code 74, whether stdout or the file is on it", async () => {
  const name = uniqueName();
  await newLine().getDelayedQueue(name).offer("x", 3_600_000);
  const full = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(full));
  const ended = await new CliProcess(["export", name], { stdout: full }).ended;
  expect(ended).toMatchObject({
    code: 74,
    stderr: "delayline: cannot write to stdout: ENOSPC\n",
  });
  const { code, stderr } = await cli(["export", name, "/nowhere/orders.jsonl"]);
  expect([code, stderr]).toEqual([74, 'delayline: cannot write "/nowhere/orders.jsonl": ENOENT\n']);
});
