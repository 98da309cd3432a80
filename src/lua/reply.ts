/** A reply of Redis to a script: integers, bulk strings, nil, and arrays of these. */
export type RawReply = number | string | Buffer | null | RawReply[];

/** Reads one value of a reply; throws a `TypeError` if it has another type. */
export type Read<Value> = (raw: RawReply | undefined) => Value;

/** How to read each column of a row, by name, in the order of the reply. */
type Columns = Readonly<Record<string, Read<unknown>>>;

/** A row of a reply. */
type RowOf<C extends Columns> = { readonly [Name in keyof C]: ReturnType<C[Name]> };

/** An integer. ioredis returns it as a string if the caller's client has `stringNumbers: true`. */
export function asNumber(raw: RawReply | undefined): number {
  if (raw === null || raw === undefined || Array.isArray(raw)) throw unexpected(raw);
  return Number(raw);
}

/** An integer: 1 for true. */
export function asFlag(raw: RawReply | undefined): boolean {
  return asNumber(raw) === 1;
}

/** A bulk string. */
export function asBuffer(raw: RawReply | undefined): Buffer {
  if (!Buffer.isBuffer(raw)) throw unexpected(raw);
  return raw;
}

/** A bulk string, decoded as UTF-8. */
export function asText(raw: RawReply | undefined): string {
  return asBuffer(raw).toString();
}

/** An array. */
export function asArray(raw: RawReply | undefined): RawReply[] {
  if (!Array.isArray(raw)) throw unexpected(raw);
  return raw;
}

/** An array of bulk strings. */
export function asBuffers(raw: RawReply | undefined): Buffer[] {
  return asArray(raw).map(asBuffer);
}

/** An array of integers: 1 for true. */
export function asFlags(raw: RawReply | undefined): boolean[] {
  return asArray(raw).map(asFlag);
}

/** A value that may be nil, or missing at the end of a row. */
export function orNothing<Value>(read: Read<Value>): Read<Value | undefined> {
  return (raw) => (raw === null || raw === undefined ? undefined : read(raw));
}

/** An array that is one row. */
export function asRow<C extends Columns>(raw: RawReply | undefined, columns: C): RowOf<C> {
  return rowAt(asArray(raw), 0, columns, Object.keys(columns));
}

/** An array that holds the values of many rows, one row after the other. */
export function asRows<C extends Columns>(raw: RawReply | undefined, columns: C): RowOf<C>[] {
  const values = asArray(raw);
  const names = Object.keys(columns);
  const rows: RowOf<C>[] = [];
  for (let at = 0; at < values.length; at += names.length) {
    rows.push(rowAt(values, at, columns, names));
  }
  return rows;
}

function rowAt<C extends Columns>(
  values: readonly RawReply[],
  at: number,
  columns: C,
  names: readonly string[],
): RowOf<C> {
  const row: Record<string, unknown> = {};
  names.forEach((name, i) => (row[name] = columns[name]?.(values[at + i])));
  return row as RowOf<C>;
}

function unexpected(raw: RawReply | undefined): TypeError {
  return new TypeError(`unexpected reply of a script: ${raw === null ? "nil" : typeof raw}`);
}
