import { networkTime } from "../../../inside.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { Keyboard } from "../session/keyboard.ts";
import type { Session } from "../session/session.ts";
import { Board } from "./board.ts";
import { rounds } from "./rounds.ts";
import { Screen } from "./screen.ts";

/** How often the screen is drawn when nothing comes (ms): what it says of a silent Redis grows old. */
const REDRAW = 1000;

/** Shows the board on the whole terminal, with new numbers every `interval` milliseconds, until `q` or the signal. */
export async function showBoard(session: Session, interval: number): Promise<ExitCode> {
  const { io, output, signal } = session;
  // What Redis says at the beginning belongs on the terminal that stays.
  await session.inspector();
  const board = new Board(session.addresses.shown, { interval, now: networkTime.now() });
  const quit = new AbortController();
  using screen = new Screen(io, () => draw());
  const draw = () => {
    const { columns, rows } = screen;
    const { hasColours } = output;
    screen.draw(board.draw({ columns, rows, hasColours, now: networkTime.now() }));
  };
  const keys: Readonly<Record<string, () => void>> = {
    q: () => quit.abort(),
    "<": () => board.sortBy(-1),
    ">": () => board.sortBy(1),
    r: () => board.turnRound(),
    " ": () => board.scroll(1, "page"),
    [ARROW.left]: () => board.sortBy(-1),
    [ARROW.right]: () => board.sortBy(1),
    [ARROW.up]: () => board.scroll(-1, "row"),
    [ARROW.down]: () => board.scroll(1, "row"),
    [ARROW.pageUp]: () => board.scroll(-1, "page"),
    [ARROW.pageDown]: () => board.scroll(1, "page"),
  };
  using _ = new Keyboard(io, (key) => {
    keys[key]?.();
    draw();
  });
  const timer = networkTime.setInterval(draw, REDRAW);
  try {
    for await (const round of rounds(session, interval, AbortSignal.any([signal, quit.signal]))) {
      board.add(round, networkTime.now());
      draw();
    }
  } finally {
    networkTime.clearInterval(timer);
  }
  return signal.aborted ? EXIT.interrupted : EXIT.done;
}

/** What terminals send for these keys. */
const ARROW = {
  up: "\u001b[A",
  down: "\u001b[B",
  right: "\u001b[C",
  left: "\u001b[D",
  pageUp: "\u001b[5~",
  pageDown: "\u001b[6~",
} as const;
