import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { cli, CliProcess, COMMAND_WORDS } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

test("top --once prints the numbers of every queue, with what finished per minute", async () => {
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  await line.getDelayedQueue("reminders").offer("x", HOUR);
  const orders = line.getReliableQueue<string>("orders");
  const busy = new AbortController();
  const working = (async () => {
    while (!busy.signal.aborted) {
      await orders.offer("x", 0);
      await (await orders.take()).ack();
    }
  })();
  const table = await cli(["top", "--once", "--interval", "500ms"], { url });
  const json = await cli(["top", "--once", "--interval", "500ms", "--json"], { url });
  busy.abort();
  await working;
  expect(table).toMatchObject({ code: 0, stderr: "" });
  expect(table.stdout).toMatch(/^QUEUE +DELAYED .* FINISHED\/MIN {2}STATE v\n\(all 2\) +\d/);
  expect(table.stdout).toMatch(/\nreminders +1 +0 .*in 59 min/);
  const [{ queues }] = json.json as unknown as [{ queues: readonly Record<string, unknown>[] }];
  expect(queues).toMatchObject([{ queue: "orders" }, { queue: "reminders", delayed: 1 }]);
  expect(queues[0]?.["finishedPerMinute"]).toBeGreaterThan(0);
  expect(queues[1]).not.toHaveProperty("finishedPerMinute");
});

test("top tells its outcome by exit codes, and needs a terminal", async () => {
  const { url } = await startOwnServer();
  expect(await cli(["top", "--once", "--interval", "200ms"], { url })).toMatchObject({
    code: 1,
    stdout: "",
    stderr: "There are no queues.\n",
  });
  await newRedis(url).lpush("redisson_delay_queue_timeout:{broken}", "of another type");
  const broken = await cli(["top", "--once", "--interval", "200ms"], { url });
  expect(broken.code).toBe(3);
  expect(broken.stdout).toContain("WRONGTYPE");
  expect((await cli(["top"], { url })).stderr).toContain("give --once");
  expect((await cli(["top"], { url, isTty: true, env: { TERM: "dumb" } })).code).toBe(2);
  expect(
    (await cli(["top", "--once", "--timeout", "200ms"], { url: "redis://127.0.0.1:1" })).code,
  ).toBe(3);
});

test("top --json prints a document per round, until Ctrl-C", async () => {
  const { url } = await startOwnServer();
  const interrupt = new AbortController();
  let said = "";
  const running = cli(["top", "--json", "--interval", "200ms"], {
    url,
    signal: interrupt.signal,
    onStdout: (text) => (said += text),
  });
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer("x", HOUR);
  await eventually(() => said.split("\n").length > 3);
  interrupt.abort();
  const { code, json } = await running;
  expect(code).toBe(130);
  expect(new Set(json.map(({ at }) => at)).size).toBe(json.length);
});

const hasTerminal = existsSync("/usr/bin/script");
if (!hasTerminal) console.warn("not tested: top on a terminal, since there is no script(1)");

test.skipIf(!hasTerminal)(
  "on a terminal top outlives an outage, and gives the terminal back",
  async () => {
    const server = await startOwnServer({ appendOnly: true });
    const line = newLineThatMayFail({ redis: server.url, transfer: false });
    await line.getDelayedQueue("beta").offer("x", HOUR);
    await line.getDelayedQueue("alpha").offer("x", HOUR);
    await line.getDelayedQueue("alpha").offer("y", HOUR);
    const words = `stty cols 100 rows 12; ${COMMAND_WORDS.join(" ")} top --interval 200ms --timeout 1s`;
    const top = new CliProcess(["-qec", words, "/dev/null"], {
      env: { REDIS_URL: server.url, NO_COLOR: "1" },
      words: ["script"],
    });
    /** The screen as it was drawn last, without the codes of the terminal. */
    const screen = () => {
      const last = top.stdout.split("\u001b[H").at(-1) ?? "";
      // oxlint-disable-next-line no-control-regex
      return last.replaceAll(/\u001b\[\??\d*[A-Za-z]/g, "").split(/\r*\n/);
    };
    const order = () => screen().flatMap((text) => /^(?:alpha|beta)\b/.exec(text)?.[0] ?? []);
    /** Whether all of it has arrived. */
    const isDrawn = () => screen().length === 12;
    await eventually(() => order()[1] === "beta" && isDrawn(), { within: 30_000 });
    expect(screen()[3]).toMatch(/^\(all 2\) +3 /);
    // By queue, and back: `>` goes round from the last column to the first.
    top.type(">r");
    await eventually(() => order()[0] === "beta");
    top.type("\u001b[C");
    await eventually(() => order()[0] === "alpha" && (screen()[2] ?? "").includes("DELAYED v"));
    await server.kill();
    await eventually(() => (screen()[1] ?? "").includes("Redis has not answered since"), {
      within: 20_000,
    });
    expect(order()).toEqual(["alpha", "beta"]);
    await server.restart();
    await eventually(() => screen()[1] === "" && isDrawn(), { within: 20_000 });
    expect(screen()[3]).toMatch(/^\(all 2\) +3 /);
    top.type("q");
    const { code, stdout } = await top.ended;
    expect(code).toBe(0);
    expect(stdout.endsWith("\u001b[?7h\u001b[?25h\u001b[?1049l")).toBe(true);
  },
);
