import { networkTime } from "../../../inside.ts";
import { parseDuration, UsageError } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import type { Session } from "../session/session.ts";
import { Board } from "../top/board.ts";
import { rounds } from "../top/rounds.ts";
import { showBoard } from "../top/show-board.ts";
import { formatInstant } from "../../view/instants.ts";
import { troubleInWords } from "../../view/trouble.ts";

export const top = defineCommand({
  usage: "top [--once]",
  help: `Shows all queues on the whole terminal, with what is wrong first, until you press q: the numbers
of the dashboard's overview. < and > sort by another column, r reverses the order. What finished
per minute is that of the last ten seconds, in reliable queues. While Redis does not answer, the
last numbers stay, with their age.
Without a terminal give --once, or --json for one document per round.`,
  words: [0, 0],
  options: {
    once: { type: "boolean" },
    interval: { type: "string", value: "<duration>" },
  },
  optionHelp: {
    once: "prints one table and ends, after one interval: the rates need two looks",
    interval:
      "reads the numbers this often, or more rarely if there are many queues; defaults to 2s",
  },
  async run(session, _, { once = false, interval = "2s" }) {
    const pause = Math.max(200, parseDuration("--interval", interval));
    const { isJson, output, io } = session;
    if (once) return await printOnce(session, pause);
    if (isJson) return await printRounds(session, pause);
    if (!output.isTty || io.env["TERM"] === "dumb") {
      throw new UsageError(
        "there is no terminal to draw on: give --once for one table, or --json for one document per round",
      );
    }
    return await showBoard(session, pause);
  },
});

/** Prints the second round: its rates are known. */
async function printOnce(session: Session, interval: number): Promise<ExitCode> {
  const { output, isJson, io, signal } = session;
  const board = new Board("", { interval, now: networkTime.now() });
  let isFirst = true;
  for await (const round of rounds(session, interval, signal)) {
    board.add(round, networkTime.now());
    if (!isFirst || board.failure !== undefined) break;
    isFirst = false;
  }
  signal.throwIfAborted();
  const { failure, trouble, rows } = board;
  if (isJson) await printBoard(session, board);
  else if (failure !== undefined) output.say(failure);
  else if (rows.length === 0) output.say("There are no queues.");
  else await output.print(...board.table(output.isTty ? (io.stdout.columns ?? 80) : Infinity));
  if (trouble !== undefined && failure === undefined && !isJson) {
    output.say(troubleInWords(trouble, formatInstant));
  }
  if (failure !== undefined || rows.some(({ error }) => error !== undefined)) return EXIT.redis;
  return rows.length === 0 ? EXIT.nothing : EXIT.done;
}

/** Prints each round as one document, until the signal. */
async function printRounds(session: Session, interval: number): Promise<ExitCode> {
  const board = new Board("", { interval, now: networkTime.now() });
  for await (const round of rounds(session, interval, session.signal)) {
    board.add(round, networkTime.now());
    await printBoard(session, board);
  }
  return EXIT.interrupted;
}

async function printBoard(
  { output }: Session,
  { at, failure, trouble, rows }: Board,
): Promise<void> {
  const queues = rows.map(({ name: queue, stats, error, finished: finishedPerMinute }) => ({
    queue,
    ...stats,
    finishedPerMinute,
    error,
  }));
  await output.json({ at, failure, trouble, queues });
}
