/** A number with thousands separators, and if a noun is given, how many of what: `1 message`, `2,000 messages`. */
export function formatCount(count: number, noun?: string, plural?: string): string;

/** A duration (ms) in its two largest units: `3 d 4 h`, `2 min 5 s`, `1.2 s`, `40 ms`, `forever`. */
export function formatDuration(milliseconds: number): string;

/** An instant relative to `now`, both in epoch ms: `in 15 min`, `2 h ago`, `now`, `never`. */
export function formatDistance(instant: number, now: number): string;

export function formatRoughDistance(instant: number, now: number): string;
