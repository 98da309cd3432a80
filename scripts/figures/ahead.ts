import { format } from "../bench/table.ts";
import { table } from "./tables.ts";
import { newestResults } from "./results.ts";

// Where other libraries are ahead, as the newest figures have it: nobody has to admit it by hand.

/** Differences below this are noise. */
const LEAST = 1.1;

const OURS = ["delayline", "delayline-reliable"];

/** No library, but the least that one can be. */
const LEFT_OUT = ["bare"];

/** A row for each figure in which another library is better than both kinds of Delayline's queues. */
export function aheadTable(): string {
  const contests = [...newestResults().values()].filter(({ name }) => name.startsWith("compare "));
  const rows = contests.flatMap(({ name, columns }) => {
    const ours = columns.filter(({ peer }) => OURS.includes(peer));
    const others = columns.filter(({ peer }) => ![...OURS, ...LEFT_OUT].includes(peer));
    return (ours[0]?.figures ?? []).flatMap(({ name: row, unit }) => {
      const better = (a: number, b: number) => (unit === "/s" ? a > b : a < b);
      const of = (column: (typeof columns)[number]) =>
        column.figures.find((one) => one.name === row);
      const best = (some: typeof columns) =>
        some
          .flatMap((column) => {
            const median = of(column)?.median ?? null;
            return median === null ? [] : [{ title: column.title, median }];
          })
          .toSorted((a, b) => (better(a.median, b.median) ? -1 : 1))[0];
      const [own, other] = [best(ours), best(others)];
      if (own === undefined || other === undefined) return [];
      const factor = unit === "/s" ? other.median / own.median : own.median / other.median;
      if (!(factor >= LEAST)) return [];
      const contest = name.replace("compare ", "");
      return [
        [`${contest}: ${row}`, other.title, format(other.median, unit), format(own.median, unit)],
      ];
    });
  });
  return table(["figure", "ahead", "has", "Delayline has"], rows);
}
