// @ts-check
import { html, useEffect, useRef } from "../../vendor/preact-htm.js";
import { UNKNOWN, day, isKnown, minute, second } from "../data/format.js";
import { Table } from "./table.js";

// uPlot draws on a canvas, which screen readers cannot read. So each plot also has a summary and a table.

// uplot.js is a classic script that defines a global.
const { uPlot } = /** @type {{ uPlot: any }} */ (/** @type {unknown} */ (globalThis));

/** In CSS pixels. */
const HEIGHT = 170;
const MIN_WIDTH = 200;

/** In seconds, as uPlot counts. */
const DAY = 86_400;

/** The shortest time span of a plot (ms). */
const MIN_SPAN = 600_000;

/**
 * A plot over time.
 * - `title`, `summary`: what the plot shows, and its content in words
 * - `times`: epoch ms
 * - `series`: `{ label, values, colour }`; null stands for an unknown value, and `colour` is a token of tokens.css
 * - `isBars`: draws bars; each value belongs to the interval between its instant and the next
 * - `scale`: one of data/scale.js
 * - `table`: the same data as texts: the `columns`' labels, and `rows`
 */
export function Plot({ title, summary, times, series, isBars = false, scale, table }) {
  const canvas = useRef();
  const plot = useRef();
  const shape = `${isBars} ${series.map(({ label }) => label).join()}`;
  const data = isBars ? dataOf(times, series) : dataOf(...padded(times, series));
  const latest = useRef();
  latest.current = { data, series, ...scale };

  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = drawn(canvas.current, latest.current, isBars);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    const observer = new ResizeObserver(() => {
      plot.current.setSize({ width: widthOf(canvas.current), height: HEIGHT });
    });
    observer.observe(canvas.current);
    return () => {
      scheme.removeEventListener("change", draw);
      observer.disconnect();
      plot.current.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(latest.current.data));

  return html`<figure class="plot card">
    <figcaption>
      <strong>${title}</strong>
      <span class="quiet">${summary}</span>
    </figcaption>
    <div ref=${canvas} class="canvas" aria-hidden="true"></div>
    <details>
      <summary>${title} as a table</summary>
      <${Table}
        caption=${title}
        hidesCaption
        isPlain
        columns=${table.columns.map((label, index) => ({
          id: label,
          label,
          isNumber: index > 0,
          cell: (row) => row[index],
        }))}
        rows=${table.rows}
        keyOf=${([first]) => first}
      />
    </details>
  </figure>`;
}

function dataOf(times, series) {
  return [times.map((time) => time / 1_000), ...series.map(({ values }) => values)];
}

/** Puts an unknown point in front if the others span less than the shortest time span. */
function padded(times, series) {
  const start = times.at(-1) - MIN_SPAN;
  if (start >= times[0]) return [times, series];
  return [
    [start, ...times],
    series.map(({ label, values }) => ({ label, values: [null, ...values] })),
  ];
}

function drawn(element, { data, series, format, steps, least }, isBars) {
  const colour = colours(
    element,
    series.map((one) => one.colour),
  );
  const axis = {
    stroke: colour.text,
    font: colour.font,
    grid: { stroke: colour.line, width: 1 },
    ticks: { show: false },
  };
  const options = {
    width: widthOf(element),
    height: HEIGHT,
    // A label at the end of an axis is as wide as half of itself beyond it.
    padding: [8, 20, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !isBars } },
    legend: {
      live: true,
      markers: { width: 0, fill: (_, index) => colour[series[index - 1]?.colour] },
    },
    scales: {
      // Makes room for the last bar.
      ...(isBars && {
        x: { range: (_, from, to) => [from, to + (to - from) / (data[0].length - 1)] },
      }),
      y: { range: (_, __, most) => [0, Math.max(least, (most ?? 0) * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        values: (_, splits, __, ___, step) => splits.map((at) => tick(at, step)),
      },
      { ...axis, size: widest, incrs: steps, values: (_, splits) => splits.map(format) },
    ],
    hooks: {
      // Without a pointer there is no value to tell.
      setLegend: [({ root, cursor }) => root.classList.toggle("is-pointed", isKnown(cursor.idx))],
    },
    series: [
      { label: "Time", value: (_, at) => (isKnown(at) ? tick(at, isBars ? 60 : 1) : UNKNOWN) },
      ...series.map(({ label, colour: name }) => ({
        label,
        value: (_, value) => (isKnown(value) ? format(value) : UNKNOWN),
        stroke: colour[name],
        width: isBars ? 0 : 1.75,
        points: { show: data[0].length < 4 },
        ...(isBars && {
          fill: colour[name],
          paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }),
        }),
      })),
    ],
  };
  return new uPlot(options, data, element);
}

/** The width of the widest label of an axis, and some space (CSS pixels). */
function widest({ ctx, axes }, labels, index) {
  if (!labels?.length) return 40;
  ctx.save();
  [ctx.font] = axes[index].font;
  const width = Math.max(...labels.map((label) => ctx.measureText(label ?? "").width));
  ctx.restore();
  return Math.ceil(width / devicePixelRatio) + 16;
}

function tick(at, step) {
  if (step >= DAY) return day(at * 1_000).slice(5);
  return step < 60 ? second(at * 1_000) : minute(at * 1_000);
}

function colours(element, names) {
  const style = getComputedStyle(element);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    ...Object.fromEntries(names.map((name) => [name, named(`--${name}`)])),
    text: named("--quiet"),
    line: named("--line"),
    font: `12px ${style.fontFamily}`,
  };
}

function widthOf(element) {
  return Math.max(MIN_WIDTH, Math.floor(element.clientWidth));
}
