// Loads both copies of the package, as a project does that has bundled one of them.
const { Delayline } = await import("delayline");
const testing = await import("delayline/testing");
const load = async (name) =>
  (await import(new URL(`node_modules/delayline/dist/cjs/${name}.js`, import.meta.url))).default;
const [cjs, cjsTesting] = [await load("index"), await load("testing")];
if (Delayline === cjs.Delayline) throw new Error("there is only one copy");

const HOUR = 3_600_000;

async function live(clock, Line) {
  const line = new Line({ redis: process.env["REDIS_URL"] });
  const name = `copies-${process.pid}-${Math.random()}`;
  const queue = line.getReliableQueue(name, { retry: [HOUR] });
  const seen = [];
  const time = () => clock.now.toISOString().slice(11, 16);
  queue.subscribe(
    async (_, { attempt }) => {
      seen.push(`${attempt} at ${time()}`);
      if (attempt === 1) throw new Error("again");
      await clock.sleep("2 hours");
      seen.push(`slept until ${time()}`);
    },
    { onError() {} },
  );
  await queue.offer("message", 60_000);
  await clock.advance("4 hours");
  await queue.clear();
  await line.close();
  return seen;
}

const results = [];
for (const [one, other] of [
  [testing, cjsTesting],
  [cjsTesting, testing],
]) {
  const result = {};
  for (const [name, Line] of Object.entries({ esm: Delayline, cjs: cjs.Delayline })) {
    const clock = await one.testClock({ now: "2026-03-28T08:00:00Z" });
    result.refused = await other.testClock().then(
      () => false,
      () => true,
    );
    result[name] = await live(clock, Line);
    await clock.close();
  }
  results.push(result);
}
console.log(JSON.stringify(results));
