import { expect, it } from "vitest";
import { inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { commandsOf, doctor, paste, pasteAll } from "../../helpers/pasting.ts";
import { newRedis } from "../../helpers/redis.ts";
import { spawnSentinel } from "../../helpers/sentinel.ts";

// As broken-servers.test.ts, with a Sentinel and a Cluster.

it("a Sentinel's address", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const port = await spawnSentinel([`sentinel monitor mymaster 127.0.0.1 ${server.port} 1`]);
  const { code, findings } = await doctor(`redis://127.0.0.1:${port}`);
  expect(code).toBe(3);
  expect(inShort(findings)).toEqual(["error usable"]);
  expect(findings[0]?.what).toBe(
    `127.0.0.1:${port} is a Sentinel, which knows where Redis is and holds no data`,
  );
  expect(findings[0]?.repair).toContain('name: "mymaster"');
  expect(findings[0]?.repair).toContain(`The master is 127.0.0.1:${server.port} now`);
  expect(commandsOf(findings[0]!)).toHaveLength(1);
  const said = await paste(`${commandsOf(findings[0]!)[0]} 2>&1`);
  expect(said).toContain("Found nothing wrong.");
});

it("a Cluster some of whose slots belong to nobody", async () => {
  const args = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
  const node = await startOwnServer({ appendOnly: true, args });
  const admin = newRedis(node.url);
  await admin.call("CLUSTER", "ADDSLOTSRANGE", 0, 9999);
  const alone = await doctor(node.url);
  const asSingle = alone.findings.find(({ what }) => what.includes("as a single server"));
  expect(commandsOf(asSingle!)).toEqual([`npx delayline doctor --cluster --redis ${node.url}`]);
  const before = await doctor(node.url, "--cluster");
  const [finding] = before.findings.filter(
    ({ level, check }) => level === "error" && check === "cluster",
  );
  expect(finding?.what).toContain("6384 slots belong to no node");
  await pasteAll(finding!);
  await eventually(async () => (await admin.cluster("INFO")).includes("cluster_state:ok"));
  const { code, findings } = await doctor(node.url, "--cluster");
  expect(inShort(findings)).toEqual(["notice cluster"]);
  expect(code).toBe(0);
});
