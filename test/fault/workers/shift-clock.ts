/**
 * Sets this process's clock wrong by `CLOCK_SHIFT` milliseconds.
 *
 * To be imported before anything that asks for the time. The monotonic clock is right, as it is on a
 * machine whose wall clock is wrong.
 */
const shift = Number(process.env["CLOCK_SHIFT"]);
const RightDate = Date;

class WrongDate extends RightDate {
  constructor(...args: readonly unknown[]) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Whatever Date takes.
    super(...((args.length === 0 ? [WrongDate.now()] : args) as [number]));
  }

  static override now(): number {
    return RightDate.now() + shift;
  }
}

globalThis.Date = WrongDate as DateConstructor;
