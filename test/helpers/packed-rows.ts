/** The values of packed rows, the argument of a script, as texts. */
export function valuesIn(packed: unknown): string[] {
  const rows = packed as Buffer;
  const values: string[] = [];
  for (let at = 0; at < rows.length;) {
    const end = at + 4 + rows.readUInt32BE(at);
    values.push(rows.toString("utf8", at + 4, end));
    at = end;
  }
  return values;
}
