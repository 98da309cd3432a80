/**
 * Shifts this process's wall clock by `CLOCK_SHIFT` milliseconds. Defaults to 0.
 *
 * Import it before anything that reads the time. The monotonic clock stays right, as on a machine whose wall clock is
 * wrong.
 */
const shift = Number(process.env["CLOCK_SHIFT"] ?? 0);
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
