/**
 * Runs the tests in test/fault in their long forms: more random cases, more messages, a storm that lasts minutes. And
 * simulates seeds that nobody has run yet, tries all orders of small worlds with more faults in each, and lets TLC check
 * the models' larger configurations.
 *
 *   npm run soak                   # half an hour
 *   npm run soak -- --minutes 5
 *
 * It uses the Redis at REDIS_URL, or finds and starts one. It exits with code 1 if a test fails, or if the tests are not
 * done in time.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";

const MINUTE = 60_000;

/** The tests that have long forms. */
const FOLDERS = ["test/fault", "test/simulation", "test/models"];

/** Random cases per minute of the run: 100,000 in half an hour. */
const CASES_PER_MINUTE = 3_333;

/** Messages of a reliable queue, in each of its storms, per minute of the run: 100,000 in half an hour. */
const MESSAGES_PER_MINUTE = 3_333;

/** The storm's share of the time. It may begin after other tests. */
const STORM_SHARE = 0.5;

/** Seconds between two changes of the number of partitions, per minute of the run: 30 in half an hour. */
const PARTITIONS_SECONDS_PER_MINUTE = 1;

/** Rounds of all faults for a queue in partitions, per minute of the run: 10 in half an hour. */
const PARTITIONS_ROUNDS_PER_MINUTE = 1 / 3;

/** Rounds of the storm over an exclusive queue, of each kind, per minute of the run: 15 in half an hour. */
const EXCLUSIVE_ROUNDS_PER_MINUTE = 1 / 2;

/** Seconds of trouble for attempts, in each of its storms, per minute of the run: 5 minutes in half an hour. */
const ATTEMPTS_SECONDS_PER_MINUTE = 10;

/** Seconds of the storm over schedules, per minute of the run: 5 minutes in half an hour. */
const SCHEDULES_SECONDS_PER_MINUTE = 10;

/** Simulated runs per minute of the run: 6,000 in half an hour, 100,000 in a night. */
const RUNS_PER_MINUTE = 200;

/** The share of the time for sources that are broken on purpose, which the simulator has to find. */
const MUTANTS_SHARE = 0.3;

/** Minutes for the tests without a long form, and some more. */
const MIN_MINUTES = 4;

const { values } = parseArgs({ options: { minutes: { type: "string", default: "30" } } });
const minutes = Number(values.minutes);
if (!(minutes >= MIN_MINUTES)) {
  throw new RangeError(`--minutes must be ${MIN_MINUTES} or more, got "${values.minutes}"`);
}

const lengths = {
  EXHAUSTIVE: "long",
  MODELS: "long",
  ATTEMPTS_SECONDS: String(Math.ceil(minutes * ATTEMPTS_SECONDS_PER_MINUTE)),
  FUZZ_CASES: String(Math.ceil(minutes * CASES_PER_MINUTE)),
  PARTITIONS_SECONDS: String(Math.ceil(minutes * PARTITIONS_SECONDS_PER_MINUTE)),
  PARTITIONS_ROUNDS: String(Math.max(1, Math.floor(minutes * PARTITIONS_ROUNDS_PER_MINUTE))),
  EXCLUSIVE_ROUNDS: String(Math.max(1, Math.floor(minutes * EXCLUSIVE_ROUNDS_PER_MINUTE))),
  SCHEDULES_SECONDS: String(Math.ceil(minutes * SCHEDULES_SECONDS_PER_MINUTE)),
  SIMULATION_RUNS: String(Math.ceil(minutes * RUNS_PER_MINUTE)),
  SIMULATION_FIRST: String(Math.floor(Date.now() / 1000)),
  MUTANTS_MINUTES: String(minutes * MUTANTS_SHARE),
  // A multiple of what its tests divide it by.
  RELIABLE_MESSAGES: String(Math.ceil((minutes * MESSAGES_PER_MINUTE) / 100) * 100),
  STORM_SECONDS: String(Math.ceil(minutes * 60 * STORM_SHARE)),
};
console.log(
  `Runs ${FOLDERS.join(", ")} for up to ${minutes} minutes, with ${JSON.stringify(lengths)}.`,
);
const args = ["run", "--config", "test/vitest.config.ts", ...FOLDERS];
const vitest = spawn("vitest", [...args, `--testTimeout=${minutes * MINUTE}`], {
  env: { ...process.env, ...lengths },
  stdio: "inherit",
});
const timer = setTimeout(() => {
  console.error(`The tests were not done in ${minutes} minutes.`);
  vitest.kill("SIGINT");
}, minutes * MINUTE);
const [code] = (await once(vitest, "exit")) as [number | null];
clearTimeout(timer);
process.exitCode = code === 0 ? 0 : 1;
