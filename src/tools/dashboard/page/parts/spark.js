// @ts-check
import { html, useMemo } from "../../vendor/preact-htm.js";

/** The size of the drawing; styles stretch it. */
const WIDTH = 100;
const HEIGHT = 24;

/**
 * A line without axes, of `values` at equal distances; null stands for an unknown one. It only supports a number beside
 * it, so it is hidden from screen readers. `state`: the slug of the state whose colour it has.
 */
export function Spark({ values, state }) {
  return useMemo(() => drawn(values, state), [values?.join(), state]);
}

/** The fewest values to draw, so that the first few do not look like a long time. */
const FEWEST = 10;

function drawn(all = [], state) {
  // Nothing was read before the first known value.
  const first = all.findIndex((value) => value !== null && value !== undefined);
  const values = all.slice(Math.min(Math.max(first, 0), Math.max(0, all.length - FEWEST)));
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return null;
  const most = Math.max(...known, 1);
  const step = WIDTH / (values.length - 1);
  const runs = runsOf(values).map((run) =>
    run.map(([index, value]) => [
      round(index * step),
      round(HEIGHT - 2 - (value / most) * (HEIGHT - 4)),
    ]),
  );
  const line = runs.map((run) => `M${run.map((point) => point.join(" ")).join("L")}`).join("");
  const area = runs
    .map((run) => {
      const [from, to] = [run[0][0], run.at(-1)[0]];
      return `M${from} ${HEIGHT}L${run.map((point) => point.join(" ")).join("L")}L${to} ${HEIGHT}Z`;
    })
    .join("");
  return html`<svg
    class=${`spark is-${state}`}
    viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <path class="area" d=${area} />
    <path class="line" d=${line} />
  </svg>`;
}

/** The runs of known values, each as pairs of index and value. */
function runsOf(values) {
  const runs = [];
  values.forEach((value, index) => {
    if (value === null || value === undefined) return;
    const isNext = runs.length > 0 && runs.at(-1).at(-1)[0] === index - 1;
    if (isNext) runs.at(-1).push([index, value]);
    else runs.push([[index, value]]);
  });
  return runs;
}

function round(number) {
  return Math.round(number * 10) / 10;
}
