import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { dashboard } from "../../../src/tools/dashboard/index.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { doctor, onlyOf, paste, pasteAll, commandsOf } from "../../helpers/pasting.ts";
import { newRedis } from "../../helpers/redis.ts";

// Each test breaks a server, runs the doctor, pastes its repair into a shell, and runs the doctor again.

const HOUR = 3_600_000;

/** Expects that the doctor finds nothing wrong. */
async function expectSound(url: string): Promise<void> {
  const { code, findings } = await doctor(url);
  expect(inShort(findings)).toEqual([]);
  expect(code).toBe(0);
}

it("a full disk (MISCONF)", async () => {
  const server = await startOwnServer({
    appendOnly: true,
    args: ["--save", "3600 1", "--dbfilename", "snapshot.rdb"],
  });
  const admin = newRedis(server.url);
  // Its worker may try to take meanwhile, and say that Redis refuses that.
  const line = newLineThatMayFail({ redis: server.url });
  line.getBlockingQueue("orders").subscribe(() => {});
  await line.getDelayedQueue("orders").offer(1, HOUR);
  // Redis cannot put its snapshot where a folder is.
  const [, folder = ""] = await admin.config("GET", "dir");
  const obstacle = join(folder, "snapshot.rdb");
  await rm(obstacle, { force: true });
  await mkdir(join(obstacle, "obstacle"), { recursive: true });
  await admin.bgsave();
  await eventually(async () => (await admin.info()).includes("rdb_last_bgsave_status:err"));

  const { code, findings } = await doctor(server.url);
  expect(inShort(findings)).toEqual(["error persistence"]);
  expect(code).toBe(1);
  expect(findings[0]?.why).toContain("MISCONF");
  const { stderr, stdout } = await cli(["stats"], { url: server.url });
  expect(stdout).toContain("orders");
  expect(stderr).toContain("Redis cannot save its data to disk, and refuses every write");
  await using page = dashboard({ redis: server.url, authorize: () => true });
  expect(await troubleOn(page)).toContain("cannot save its data to disk");

  // The person frees the disk.
  await rm(obstacle, { recursive: true });
  await pasteAll(onlyOf(findings, "persistence"));
  await eventually(async () => (await admin.info()).includes("rdb_last_bgsave_status:ok"));
  await expectSound(server.url);
  expect((await cli(["stats"], { url: server.url })).stderr).toBe("");
});

/** What the stream of events of the page says is wrong. */
async function troubleOn(page: ReturnType<typeof dashboard>): Promise<string> {
  const response = await page(new Request("http://localhost/api/events"));
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString();
    if (text.includes("event: queues")) break;
  }
  return text;
}

it("one long script (BUSY)", async () => {
  const server = await startOwnServer({ appendOnly: true, args: ["--lua-time-limit", "100"] });
  const script = newRedis(server.url);
  const ended = script.eval("while true do end", 0).catch((error: unknown) => error);
  const other = newRedis(server.url, { enableReadyCheck: false });
  await eventually(() =>
    other.ping().then(
      () => false,
      ({ message }: Error) => message.startsWith("BUSY"),
    ),
  );

  const { code, findings } = await doctor(server.url);
  expect(inShort(findings)).toEqual(["error usable"]);
  expect(code).toBe(3);
  expect(findings[0]?.what).toBe(
    `127.0.0.1:${server.port} is busy with one long script or function, and serves nobody meanwhile (BUSY)`,
  );
  const { stderr } = await cli(["stats", "--timeout", "1s"], { url: server.url });
  expect(stderr).toContain("is busy with one long script or function");
  await pasteAll(onlyOf(findings, "usable"));
  await ended;
  await expectSound(server.url);
});

it("a wrong password, or none; the right one is read from REDISCLI_AUTH", async () => {
  const args = ["--requirepass", "it's $ecret", "--appendfsync", "no"];
  const server = await startOwnServer({ appendOnly: true, args });
  const { port } = server;
  const none = await doctor(`redis://127.0.0.1:${port}`);
  expect(inShort(none.findings)).toEqual(["error usable"]);
  expect(none.findings[0]?.what).toContain(
    "asks for a password, and the address has none (NOAUTH)",
  );
  const wrong = await doctor(`redis://default:wrong@127.0.0.1:${port}`);
  expect(wrong.code).toBe(3);
  expect(inShort(wrong.findings)).toEqual(["error usable"]);
  expect(wrong.findings[0]?.what).toContain("rejects the user name or the password (WRONGPASS)");
  expect(wrong.findings[0]?.repair).toContain("correct the user name and the password");

  const url = `redis://default:${encodeURIComponent("it's $ecret")}@127.0.0.1:${port}`;
  const { findings } = await doctor(url);
  expect(inShort(findings)).toEqual(["warning persistence"]);
  expect(findings[0]?.repair).toContain("the password is read from REDISCLI_AUTH");
  expect(JSON.stringify(findings)).not.toContain("ecret");
  await pasteAll(onlyOf(findings, "persistence"), { REDISCLI_AUTH: "it's $ecret" });
  await expectSound(url);
});

it("a user who is not the default one, whose delayline commands need a password as well", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const admin = newRedis(server.url);
  await admin.call("ACL", "SETUSER", "bob", "on", ">pa ss", "~*", "&*", "+@all");
  const url = `redis://bob:pa%20ss@127.0.0.1:${server.port}/1`;
  const line = newLine({ redis: url });
  line.getBlockingQueue("orders").subscribe(() => {});
  await line.getDelayedQueue("orders").offer(1, HOUR);
  await line.getDelayedQueue("orders").pause();
  const { findings } = await doctor(url);
  expect(inShort(findings)).toEqual(["warning paused orders"]);
  expect(commandsOf(findings[0]!)).toEqual([
    `npx delayline log orders --redis redis://bob@127.0.0.1:${server.port}/1`,
    `npx delayline resume orders --redis redis://bob@127.0.0.1:${server.port}/1`,
  ]);
  await pasteAll(findings[0]!, { REDISCLI_AUTH: "pa ss" });
  await expectSound(url);
});

it.each([
  ["a policy of eviction", { "maxmemory-policy": "allkeys-lru" }, "eviction"],
  ["too few replicas", { "min-replicas-to-write": "1" }, "replication"],
  ["a short timeout", { timeout: "5" }, "timeout"],
  ["nothing on disk", { appendonly: "no", save: "" }, "persistence"],
  ["tiny buffers", { "client-output-buffer-limit": "pubsub 1000 0 0" }, "output-buffer"],
] as const)("%s", async (_, settings, check) => {
  const server = await startOwnServer({ appendOnly: true });
  const admin = newRedis(server.url);
  for (const [name, value] of Object.entries(settings)) await admin.config("SET", name, value);
  const { findings } = await doctor(server.url);
  expect(findings).toHaveLength(1);
  await pasteAll(onlyOf(findings, check));
  await expectSound(server.url);
});

it("full memory (OOM)", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const admin = newRedis(server.url);
  const used = Number(/used_memory:(\d+)/.exec(await admin.info("memory"))?.[1]);
  await newLine({ redis: server.url, transfer: false }).getDelayedQueue("orders").offer(0, HOUR);
  await admin.config("SET", "maxmemory", Math.ceil(used * 0.95));
  const line = newLineThatMayFail({ redis: server.url });
  line.getBlockingQueue("orders").subscribe(() => {});
  await expect(line.getDelayedQueue("orders").offer(1, HOUR)).rejects.toThrow("OOM");
  const { findings } = await doctor(server.url);
  expect(inShort(findings)).toEqual(["error memory"]);
  expect((await cli(["stats", "orders"], { url: server.url })).stderr).toContain(
    "has used all its memory",
  );
  const [raise = ""] = commandsOf(findings[0]!);
  await paste(raise);
  await expectSound(server.url);
  await line.getDelayedQueue("orders").offer(1, HOUR);
});

it("a replica that was given as the master", async () => {
  const master = await startOwnServer({ args: ["--repl-diskless-sync-delay", "0"] });
  const replica = await startOwnServer({ appendOnly: true });
  const admin = newRedis(replica.url);
  await admin.replicaof("127.0.0.1", master.port);
  await eventually(async () => (await admin.info("replication")).includes("master_link_status:up"));
  const { findings } = await doctor(replica.url);
  expect(inShort(findings)).toEqual(["error replication"]);
  expect(findings[0]?.what).toContain(`is a replica of 127.0.0.1:${master.port}`);
  await pasteAll(onlyOf(findings, "replication"));
  await expectSound(replica.url);
});

it("a replica that never had its master", async () => {
  const replica = await startOwnServer({ appendOnly: true });
  await newRedis(replica.url).replicaof("127.0.0.1", 1);
  const { findings } = await doctor(replica.url);
  expect(findings.map(({ what }) => what).join("\n")).not.toContain("-1 s");
  expect(findings.at(-1)?.what).toContain("has no connection to its master 127.0.0.1:1");
});

it.each([
  ["a missing command", "-zadd", "error access"],
  ["a missing channel", "resetchannels", "error access orders"],
])("%s, which the user may not allow itself", async (_, rule, expected) => {
  const server = await startOwnServer({ appendOnly: true });
  const admin = newRedis(server.url);
  const rules = ["on", ">secret", "~*", "&*", "+@all", "-acl|setuser", "-acl|dryrun", rule];
  await admin.call("ACL", "SETUSER", "worker", ...rules);
  const line = newLine({ redis: server.url });
  line.getBlockingQueue("orders").subscribe(() => {});
  await line.getDelayedQueue("orders").offer(1, HOUR);
  const url = `redis://worker:secret@127.0.0.1:${server.port}`;
  const { findings } = await doctor(url);
  const access = findings.filter(({ level }) => level !== "notice");
  expect(inShort(access)).toEqual([expected]);
  expect(access[0]?.repair).toContain(
    `as an administrator, allow it: \`redis-cli -h 127.0.0.1 -p ${server.port} ACL SETUSER worker `,
  );
  onTestFinished(() => line.close());
  await pasteAll(access[0]!);
  const after = await doctor(url);
  expect(after.findings.filter(({ level }) => level !== "notice")).toEqual([]);
});
