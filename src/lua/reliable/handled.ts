import { fieldsOf } from "../fragments/stream-info.ts";
import { asBuffer, asBuffers, asNumber, asRow, asRows, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A message that a group has handled. */
export interface HandledNote {
  readonly address: Buffer;
  readonly key: string | undefined;
  readonly group: string;
  /** When it was acknowledged (epoch ms). */
  readonly handledAt: number;
  /** Which attempt succeeded. */
  readonly attempt: number;
  /** How long that attempt took (ms); undefined if that is not known. */
  readonly duration: number | undefined;
  /** The process that acknowledged it, as `processName` writes it. */
  readonly process: string;
}

/** Some of the messages that were handled. */
export interface HandledPage {
  readonly notes: readonly HandledNote[];
  /** The entry before which the next page begins; undefined after the last page. */
  readonly next: string | undefined;
}

/**
 * Returns the notes of one message among `limit` before the entry `before`, or from the newest on if that is empty; the
 * newest first. Looks no further back than the entry `from`. The message has the address `wanted` or the business key
 * `key`; the other is empty.
 */
export const handledPage = defineScript({
  name: "handled-page",
  keys: ["handled"],
  args: ["wanted", "key", "before", "from", "limit"],
  needs: [fieldsOf],
  lua: /* lua */ `
local found = {}
local page = redis.call("XREVRANGE", handled, before == "" and "+" or "(" .. before, from, "COUNT", limit)
for _, entry in ipairs(page) do
  local note = fieldsOf(entry[2])
  if wanted ~= "" and note.a == wanted or key ~= "" and note.k == key then
    found[#found + 1] = entry[1]
    found[#found + 1] = entry[2]
  end
end
return { found, #page == tonumber(limit) and page[#page][1] }
`,
  reply: (raw): HandledPage => {
    const { rows, next } = asRow(raw, {
      rows: (all) => asRows(all, { entryId: asText, fields: asBuffers }),
      next: orNothing(asText),
    });
    return { notes: rows.flatMap(({ entryId, fields }) => unpackNote(entryId, fields)), next };
  },
});

/** When the first of the messages that are still noted was handled (epoch ms), and how many are noted; O(1). */
export const handledSince = defineScript({
  name: "handled-since",
  keys: ["handled"],
  args: [],
  lua: /* lua */ `
local first = redis.call("XRANGE", handled, "-", "+", "COUNT", 1)[1]
return { redis.call("XLEN", handled), first and first[1] }
`,
  reply: (raw) => {
    const { count, first } = asRow(raw, { count: asNumber, first: orNothing(asText) });
    return { count, since: first === undefined ? undefined : Number(first.split("-")[0]) };
  },
});

/** Reads a note; nothing for an entry in a foreign format. */
function unpackNote(entryId: string, fields: readonly Buffer[]): HandledNote[] {
  const found = new Map<string, Buffer>();
  for (let i = 0; i + 1 < fields.length; i += 2) {
    found.set(String(fields[i]), asBuffer(fields[i + 1]));
  }
  const address = found.get("a");
  if (address === undefined || address.length < 8 || address.length > 255) return [];
  const [attempt, duration] = [wholeOf(found.get("n")), wholeOf(found.get("d"))];
  const text = (name: string) => found.get(name)?.toString() ?? "";
  return [
    {
      address,
      key: text("k") || undefined,
      group: text("g"),
      handledAt: Number(entryId.split("-")[0]),
      attempt: attempt ?? 1,
      duration,
      process: text("c"),
    },
  ];
}

function wholeOf(bytes: Buffer | undefined): number | undefined {
  const text = bytes?.toString() ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
