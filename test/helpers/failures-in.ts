// Reads the failed attempts in a trailer, independently of the library's own code.

/** A trailer (latin1) without its failures. */
export interface Told {
  /** The rest: a bare key if there is nothing but a key. */
  readonly t: string;
  /** A line `<attempt>: <reason>` for each failure. */
  readonly f: string;
}

/** Separates a trailer from its failures. Throws if a failure is not dated about now. */
export function toldBy(trailer: string): Told {
  if (!trailer.startsWith("\u00FF\u0001")) return { t: trailer, f: "" };
  const bytes = Buffer.from(trailer, "latin1");
  const [failures, others]: [string[], Buffer[]] = [[], []];
  let key: Buffer | undefined;
  for (let at = 2; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32LE(at + 1);
    const field = bytes.subarray(at + 5, end);
    if (bytes[at] === 4) {
      const when = Number(field.readBigUInt64LE(0));
      if (Math.abs(when - Date.now()) > 60_000) throw new Error(`it failed at ${when}`);
      failures.push(`${field.readUInt32LE(8)}: ${field.toString("utf8", 12)}`);
    } else {
      if (bytes[at] === 1) key = field;
      others.push(bytes.subarray(at, end));
    }
    at = end;
  }
  const isBare = others.length === 0 || (others.length === 1 && key !== undefined);
  const left = isBare ? (key ?? Buffer.alloc(0)) : Buffer.concat([bytes.subarray(0, 2), ...others]);
  return { t: left.toString("latin1"), f: failures.join("\n") };
}
