// What assets.ts serves beside this file of src/tools/view/words.js: the page can import nothing of ours.

export function formatCount(count: number, noun?: string, plural?: string): string;

export function formatDuration(milliseconds: number): string;

export function formatDistance(instant: number, now: number): string;

export function formatRoughDistance(instant: number, now: number): string;
