import type { LetterHead } from "../lua/reliable/dead-letters.ts";

/** Which dead letters are meant. A letter has to meet every condition that is given. */
export interface LetterFilter {
  /** The whole reason, or the reason as {@link foldReason} makes it. */
  readonly reason?: string | undefined;
  /** The group that failed to handle the message. */
  readonly group?: string | undefined;
  /** An instant (epoch ms on the server's clock): only letters of messages that died before it. */
  readonly diedBefore?: number | undefined;
  /** The beginning of the business key. */
  readonly prefix?: string | undefined;
  /** Business keys. */
  readonly keys?: ReadonlySet<string> | undefined;
  /** The address of one message. */
  readonly address?: Buffer | undefined;
}

/** Whether a filter chooses a letter. */
export function isChosen(
  head: LetterHead,
  { reason, group, diedBefore, prefix, keys, address }: LetterFilter,
): boolean {
  return (
    (address === undefined || head.address.equals(address)) &&
    (group === undefined || head.group === group) &&
    (diedBefore === undefined || diedAtOf(head) < diedBefore) &&
    (prefix === undefined || (head.key ?? "").startsWith(prefix)) &&
    (keys === undefined || (head.key !== undefined && keys.has(head.key))) &&
    (reason === undefined || head.reason === reason || foldReason(head.reason) === reason)
  );
}

/** When the message died (epoch ms). */
export function diedAtOf({ entryId }: LetterHead): number {
  return Number(entryId.split("-")[0]);
}

/**
 * The reason without what differs from message to message: numbers, hexadecimal words, UUIDs and addresses become `#`. What
 * looks like a code stays: a number of three digits from 100 to 599, as HTTP and SMTP have, and SMTP's longer ones, `5.1.1`.
 * Of several lines, the first counts. So letters with one cause have one folded reason, such as
 * `connect ETIMEDOUT #:#`, `answered 503`.
 */
export function foldReason(reason: string): string {
  const [line = ""] = reason.trimStart().split(/\r?\n/, 1);
  const folded = line
    .slice(0, LONGEST)
    // A UUID or another word of hexadecimal digits, of which one at least is decimal.
    .replaceAll(/\b(?=[\da-f-]*\d)[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi, "#")
    .replaceAll(/\b(?:0x[\da-f]+|(?=[\da-f]*\d)[\da-f]{8,})\b/gi, "#")
    // Numbers with their points, commas and signs: an IPv4 address is one of them.
    .replaceAll(/\d+(?:[.,]\d+)*/g, (number, at: number, all: string) =>
      isCode(all, number, at) ? number : "#",
    );
  return folded.trim();
}

/** Whether a number is a code: a word of its own, which no unit follows and no word with a colon or a hash precedes. */
function isCode(line: string, number: string, at: number): boolean {
  if (!/^(?:[1-5]\d\d|[245]\.\d{1,2}\.\d{1,2})$/.test(number)) return false;
  return (
    /(?:^|[\s("'=[])$/.test(line.slice(0, at)) &&
    !/^(?:[\w#/-]|:\w| ?(?:ms|s|sec|second|min|minute|h|hour|kb|mb|bytes?|%)\b)/i.test(
      line.slice(at + number.length),
    )
  );
}

/** The most characters of a reason that its group goes by. */
const LONGEST = 200;
