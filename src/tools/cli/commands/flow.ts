import type { FlowOptions, FlowPreview, Rate } from "../../../index.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";
import { parseCount, parseDuration, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { quoted, type Column, type Output } from "../session/output.ts";
import { confirm } from "../session/session.ts";

export const flow = defineCommand({
  usage: "flow <queue> [--rate <rate>] [--burst <count>] [--clear]",
  help: `Shows at what rate the messages of a queue become ready, and how many wait for
their turn. With --rate it sets the rate for every process, at once and across
restarts.
  delayline due coupons --rate 50/s     what 50 a second would do
  delayline flow coupons --rate 50/s    sets it`,
  words: [1, 1],
  options: {
    rate: { type: "string", value: "<rate>" },
    burst: { type: "string", value: "<count>" },
    clear: { type: "boolean" },
    ...CHANGING,
  },
  optionHelp: {
    rate: "sets the rate: 50/s, 500/m or 10/250ms",
    burst:
      "lets so many messages go at once after a while without any, with --rate; defaults to what falls to 100 ms, at least 1",
    clear: "ends the rate: what waits becomes ready",
    ...CHANGING_HELP,
  },
  async run(session, [name = ""], { rate, burst, clear, ...values }) {
    const wanted = flowOf(rate, burst);
    if (wanted !== undefined && clear)
      throw new UsageError("--rate and --clear exclude each other");
    const { messages } = await session.open(name);
    const { output, isJson, signal } = session;
    if (wanted !== undefined || clear) {
      const doing =
        wanted === undefined
          ? `end the rate of queue ${quoted(name)}`
          : `let ${wordsOf(wanted)} become ready in queue ${quoted(name)}`;
      if (!(await confirm(session, doing, values))) return EXIT.done;
      if (wanted === undefined) await messages.flow.clear({ signal });
      else await messages.flow.set(wanted, { signal });
    }
    const now = await messages.flow.get({ signal });
    const { waiting } = await messages.stats({ signal });
    if (isJson) await output.json({ queue: name, flow: now ?? null, waiting });
    else if (now === undefined) await output.print(`Queue ${quoted(name)} has no rate.`);
    else {
      await output.print(
        `${wordsOf(now)} become ready in queue ${quoted(name)}; ${formatCount(waiting, "message")} waiting.`,
      );
    }
    return EXIT.done;
  },
});

/**
 * The flow that options name; undefined if they name none.
 *
 * @throws {UsageError} that names the option, the rule and the value.
 */
export function flowOf(
  rate: string | undefined,
  burst: string | undefined,
): FlowOptions | undefined {
  if (rate === undefined) {
    if (burst !== undefined) throw new UsageError("--burst needs --rate");
    return undefined;
  }
  const [, limit = "", per = ""] = /^(\d+)\/(.+)$/.exec(rate) ?? [];
  if (limit === "") {
    throw new UsageError(
      `--rate must be such as 50/s, 500/m or 10/250ms, got ${JSON.stringify(rate)}`,
    );
  }
  const length = parseDuration("--rate", /^\d/.test(per) ? per : `1${per}`);
  if (length < 1 || length > DAY || !Number.isInteger(length)) {
    throw new UsageError(`--rate must be within 1ms to 1d, got ${JSON.stringify(rate)}`);
  }
  return {
    rate: {
      limit: parseCount("--rate", limit, 1, MOST),
      per: length,
      ...(burst !== undefined && { burst: parseCount("--burst", burst, 1, MOST) }),
    },
  };
}

/** A flow in words: `50 messages in 1s, at once 5`. */
function wordsOf({ rate, lane, lanes = {}, order }: FlowOptions): string {
  const words = rate === undefined ? [] : [rateInWords(rate)];
  if (lane !== undefined || order !== undefined || Object.keys(lanes).length > 0) {
    words.push(
      lane?.rate === undefined ? "in lanes" : `in lanes of ${rateInWords(lane.rate)} each`,
    );
  }
  const own = Object.keys(lanes).length;
  if (own > 0) words.push(`${formatCount(own, "lane")} with limits of their own`);
  return words.join(", ");
}

function rateInWords({ limit, per, burst }: Rate): string {
  const atOnce = burst === undefined ? "" : `, ${formatCount(burst)} at once`;
  return `${formatCount(limit, "message")} in ${formatDuration(per)}${atOnce}`;
}

/** Prints what becomes ready in each span; leaves out those in which nothing happens. */
export async function printPreview(output: Output, { spans, endsAt }: FlowPreview): Promise<void> {
  const rows = spans
    .filter(({ due, ready, waiting }) => due + ready + waiting > 0)
    .map(({ at, due, ready, waiting }) => [
      formatInstant(at),
      formatCount(due),
      formatCount(ready),
      formatCount(waiting),
    ]);
  if (rows.length > 0) await output.table(COLUMNS, rows);
  const last = spans.at(-1);
  output.say(
    endsAt === undefined
      ? `At the end of these spans ${formatCount(last?.waiting ?? 0, "message")} would wait.`
      : `All would be ready by ${formatInstant(Math.ceil(endsAt))}.`,
  );
}

const COLUMNS: readonly Column[] = [
  { title: "FROM" },
  { title: "DUE", align: "right" },
  { title: "READY", align: "right" },
  { title: "WAITING", align: "right" },
];

const DAY = 86_400_000;

/** The largest count of a rate. */
const MOST = 1_000_000;
