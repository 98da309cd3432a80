/** The protocol of Redis (RESP2 and RESP3), cut into commands and replies. */

/** A reply as far as the machine looks into it. Maps and sets are flat lists. */
export type Value = null | number | string | Buffer | ErrorReply | readonly Value[];

export class ErrorReply {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** One reply or push, with its bytes. */
export interface Frame {
  readonly raw: Buffer;
  readonly value: Value;
  /** Whether it answers no command: a published message. With RESP3 also what answers SUBSCRIBE. */
  readonly isPush: boolean;
}

/** Cuts a stream of bytes into whole values. */
export class Cutter {
  #rest: Buffer = Buffer.alloc(0);

  /** Adds bytes, and returns the values that are complete now. */
  add(chunk: Buffer): Frame[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    let at = 0;
    for (;;) {
      const found = parse(bytes, at);
      if (found === undefined) break;
      frames.push({
        raw: bytes.subarray(at, found.end),
        value: found.value,
        isPush: bytes[at] === PUSH,
      });
      at = found.end;
    }
    this.#rest = bytes.subarray(at);
    return frames;
  }
}

/** The words of a command. */
export function wordsOf({ value }: Frame): readonly Buffer[] {
  if (!Array.isArray(value)) throw new TypeError("a client sent something that is not a command");
  return value as readonly Buffer[];
}

export function encode(words: readonly (Buffer | string)[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = typeof word === "string" ? Buffer.from(word) : word;
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF);
  }
  return Buffer.concat(parts);
}

/** The bytes of a reply of one bulk string. */
export function bulk(text: string): Buffer {
  return Buffer.from(`$${Buffer.byteLength(text)}\r\n${text}\r\n`);
}

const CRLF = Buffer.from("\r\n");
const PUSH = ">".charCodeAt(0);

interface Parsed {
  readonly value: Value;
  readonly end: number;
}

/** Returns undefined while bytes are missing. */
function parse(bytes: Buffer, start: number): Parsed | undefined {
  const lineEnd = bytes.indexOf(CRLF, start);
  if (lineEnd < 0) return undefined;
  const end = lineEnd + 2;
  const type = String.fromCharCode(bytes[start] as number);
  const line = bytes.toString("latin1", start + 1, lineEnd);
  switch (type) {
    case "+":
      return { value: line, end };
    case "-":
      return { value: new ErrorReply(line), end };
    case ":":
    case ",":
    case "#":
      return { value: type === "#" ? Number(line === "t") : Number(line), end };
    case "(":
      return { value: line, end };
    case "_":
      return { value: null, end };
    case "$":
    case "=":
    case "!": {
      const length = Number(line);
      if (length < 0) return { value: null, end };
      if (bytes.length < end + length + 2) return undefined;
      const text = bytes.subarray(end, end + length);
      return {
        value: type === "!" ? new ErrorReply(text.toString()) : text,
        end: end + length + 2,
      };
    }
    case "*":
    case "~":
    case ">":
      return parseItems(bytes, end, Number(line));
    case "%":
      return parseItems(bytes, end, Number(line) * 2);
    default:
      throw new TypeError(`a type of reply that the machine does not know: ${type}`);
  }
}

function parseItems(bytes: Buffer, start: number, count: number): Parsed | undefined {
  if (count < 0) return { value: null, end: start };
  const items: Value[] = [];
  let end = start;
  for (let i = 0; i < count; i++) {
    const item = parse(bytes, end);
    if (item === undefined) return undefined;
    items.push(item.value);
    end = item.end;
  }
  return { value: items, end };
}
