import { expect, test } from "vitest";
import {
  EntriesReader,
  readEntry,
  type ReadEntry,
} from "../../../src/reliable/group/entries-reader.ts";

type Fields = readonly string[];

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (parts: readonly string[]) => `*${parts.length}\r\n${parts.join("")}`;
const entriesOf = (entries: readonly (readonly [id: string, fields: Fields])[]) =>
  list(entries.map(([id, fields]) => list([bulk(id), list(fields.map(bulk))])));

const STREAM = bulk("delayline_stream:{orders}");
const PROTOCOLS = {
  RESP2: (entries: string) => `*1\r\n*2\r\n${STREAM}${entries}`,
  RESP3: (entries: string) => `%1\r\n${STREAM}${entries}`,
};
type Protocol = keyof typeof PROTOCOLS;
const both = Object.keys(PROTOCOLS) as Protocol[];

/** Reads chunks as they come, as `Bypass` does. Returns what the last call returned. */
function read(reader: EntriesReader, chunks: readonly Buffer[]): number | undefined {
  let unread = Buffer.alloc(0);
  let end: number | undefined = 0;
  let missing = 0;
  for (const chunk of chunks) {
    unread = Buffer.concat([unread, chunk]);
    missing -= chunk.length;
    if (missing > 0) continue;
    let at = 0;
    while (!reader.isDone) {
      end = reader.read(unread, at);
      if (end === undefined) return undefined;
      if (end < 0) break;
      at = end;
    }
    unread = unread.subarray(at);
    missing = -(end ?? 0);
  }
  return reader.isDone ? unread.length : end;
}

/** Entries as text, which is compared faster than Buffers. */
function shown(entries: readonly ReadEntry[]): string {
  return JSON.stringify(entries, (_, value: unknown) =>
    isBuffer(value) ? Buffer.from(value.data).toString("latin1") : value,
  );
}

function isBuffer(value: unknown): value is { data: number[] } {
  return (value as { type?: unknown } | null | undefined)?.type === "Buffer";
}

const ADDRESS = "deadline and id";
const ENTRIES = [
  ["1764367200000-0", ["a", ADDRESS, "p", "a payload\r\n$3\r\n"]],
  ["1764367200000-1", ["a", ADDRESS, "p", ""]],
  ["1764367200001-12", ["a", ADDRESS, "p", "ÿ".repeat(300), "n", "2", "t", "trailer", "o", "1-1"]],
  ["1-0", ["p", "payload first", "a", ADDRESS]],
  ["1-1", ["a", "short", "p", "foreign"]],
  ["1-2", ["q", ADDRESS, "p", "foreign"]],
  ["1-3", ["alpha", ADDRESS, "p", "foreign"]],
  ["1-4", ["a", ADDRESS, "p", "one", "p", "two"]],
] as const;
const EXPECTED = shown(
  ENTRIES.map(([id, fields]) =>
    readEntry(
      id,
      fields.map((text) => Buffer.from(text)),
    ),
  ),
);

test.each(both)("entries are read as if ioredis had decoded them (%s)", (protocol) => {
  const reader = new EntriesReader();
  expect(read(reader, [Buffer.from(PROTOCOLS[protocol](entriesOf(ENTRIES)))])).toBe(0);
  expect(shown(reader.entries)).toBe(EXPECTED);
});

test.each(both)("a reply may be cut at every byte (%s)", (protocol) => {
  const reply = Buffer.from(PROTOCOLS[protocol](entriesOf(ENTRIES)));
  for (let cut = 1; cut < reply.length; cut++) {
    const reader = new EntriesReader();
    expect(read(reader, [reply.subarray(0, cut), reply.subarray(cut)])).toBe(0);
    expect(shown(reader.entries)).toBe(EXPECTED);
  }
  const reader = new EntriesReader();
  expect(
    read(
      reader,
      Array.from(reply, (byte) => Buffer.from([byte])),
    ),
  ).toBe(0);
  expect(shown(reader.entries)).toBe(EXPECTED);
});

test.each(both)("of a reply that is cut short nothing is missing too much (%s)", (protocol) => {
  const reply = Buffer.from(PROTOCOLS[protocol](entriesOf(ENTRIES)));
  for (let cut = 1; cut < reply.length; cut++) {
    const missing = -(read(new EntriesReader(), [reply.subarray(0, cut)]) as number);
    expect(missing).toBeGreaterThan(0);
    expect(missing).toBeLessThanOrEqual(reply.length - cut);
  }
});

test("of a long payload, it is known at once how much is missing", () => {
  const reply = Buffer.from(
    PROTOCOLS.RESP3(entriesOf([["1-1", ["a", ADDRESS, "p", "x".repeat(1e6)]]])),
  );
  expect(read(new EntriesReader(), [reply.subarray(0, 200)])).toBe(200 - reply.length);
});

test.each([
  ["a null of RESP2", "*-1\r\n"],
  ["a null of RESP3", "_\r\n"],
  ["an error", "-NOGROUP No such key\r\n"],
  ["a number", ":1\r\n"],
  ["a message", ">2\r\n$10\r\ninvalidate\r\n"],
  ["an empty list", "*0\r\n"],
  ["no entries", PROTOCOLS.RESP3("*0\r\n")],
  ["two streams", `*2\r\n*2\r\n${STREAM}*0\r\n*2\r\n${STREAM}*0\r\n`],
  ["an entry that was deleted", PROTOCOLS.RESP2(`*1\r\n*2\r\n${bulk("1-1")}*-1\r\n`)],
  [
    "a second entry of another form",
    PROTOCOLS.RESP3(`*2\r\n${list([bulk("1-1"), list(["a", ADDRESS, "p", ""].map(bulk))])}*3\r\n`),
  ],
  ["a number where a text belongs", PROTOCOLS.RESP3(`*1\r\n*2\r\n:1\r\n*0\r\n`)],
])("%s is no reply for it", (_, reply) => {
  expect(read(new EntriesReader(), [Buffer.from(reply)])).toBeUndefined();
  expect(
    read(
      new EntriesReader(),
      Array.from(reply, (char) => Buffer.from(char)),
    ),
  ).toBeUndefined();
});
