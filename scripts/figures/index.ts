import { readResults } from "../matrix/results.ts";
import { ageOf, hasHistory } from "./history.ts";
import { newestResults } from "./results.ts";

/*
 * `npm run docs:figures`: which figures are older than the code that they measure.
 */

const matrix = readResults().map(({ date, commit }) => ({ name: "matrix", day: date, commit }));
const all = [
  ...[...newestResults().values()].map(({ name, day, commit }) => ({ name, day, commit })),
  // The cells of one run have one commit.
  ...new Map(matrix.map((one) => [one.commit, one])).values(),
];

if (!hasHistory()) {
  console.log(
    "This clone has no history, or a part of it: how old the figures are cannot be told.",
  );
  process.exitCode = 2;
} else {
  console.log(
    `${"figures".padEnd(24)}${"measured".padEnd(12)}${"commit".padEnd(10)}the code since`,
  );
  for (const { name, day, commit } of all) {
    const age = ageOf(name, commit);
    const since =
      age === undefined
        ? "there is no such commit"
        : age.commits === 0
          ? "the same"
          : `${age.commits} commits in ${age.days.toFixed(1)} days`;
    console.log(`${name.padEnd(24)}${day.padEnd(12)}${commit.padEnd(10)}${since}`);
  }
}
