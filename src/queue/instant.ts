/**
 * A local time in a time zone.
 *
 * Of two instants that have this time, where clocks are set back, the first one is meant. A time that no clock shows,
 * since they are set forward across it, means the instant at which that happens: 02:30 is 03:00 then.
 */
export interface LocalTime {
  /** Such as `"2026-12-24T09:00"`, also with seconds and milliseconds. */
  readonly local: string;
  /** A name of the IANA database, such as `"Europe/Berlin"`, that the runtime knows. */
  readonly timeZone: string;
}

/** An instant: a Date, epoch milliseconds (fractions are rounded up), or a local time in a time zone. */
export type InstantLike = Date | number | LocalTime;
