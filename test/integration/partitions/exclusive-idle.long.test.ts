import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const PARTITIONS = 8;

/** How often each lease is renewed before the commands are counted, and while they are. */
const [BEFORE, BEATS] = [15, 10];

test("a process that waits renews all its leases by one command", async () => {
  const { url } = await startOwnServer();
  const monitor = await newRedis(url).monitor();
  const sent = { renewals: 0, signs: 0, times: 0, others: 0 };
  let renewed = 0;
  monitor.on(
    "monitor",
    (_time: string, [command = "", , count, key = ""]: string[], by: string) => {
      if (by === "lua") return;
      if (/^evalsha$/i.test(command) && key.startsWith("delayline_holder")) {
        sent.renewals += 1;
        // Each has the keys of the lease and of the fact.
        renewed += Number(count) / 2;
      } else if (/^evalsha$/i.test(command) && key.startsWith("delayline_members")) sent.signs += 1;
      else if (/^time$/i.test(command)) sent.times += 1;
      else sent.others += 1;
    },
  );
  const queue = newLine({ redis: url }).getReliableQueue(uniqueName("idle"), {
    partitions: PARTITIONS,
    exclusive: true,
  });
  queue.subscribe(() => {});
  const until = (beats: number) =>
    eventually(() => renewed >= beats * PARTITIONS, { what: `${beats} renewals`, within: 60_000 });
  await until(BEFORE);
  const begun = renewed;
  Object.assign(sent, { renewals: 0, signs: 0, times: 0, others: 0 });
  await until(begun / PARTITIONS + BEATS);
  monitor.disconnect();
  // On a busy machine some leases may come late for the command.
  expect(sent.renewals).toBeLessThan(BEATS * 2);
  expect(sent.signs).toBeLessThan(BEATS * 2);
  // A renewal tells the server's time.
  expect(sent.times).toBeLessThan(2);
  // Four commands a second: blocks that end, questions whether connections live, beats of the consumers.
  expect(sent.renewals + sent.signs + sent.others).toBeLessThan(BEATS * 4);
}, 90_000);
