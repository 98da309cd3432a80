import { hostname } from "node:os";

/** A process as people know it. */
export interface ProcessName {
  /** The name of its host or container. */
  readonly host: string;
  readonly pid: number;
}

/**
 * Names this process, `host/pid`, in what it writes to Redis, so that people find it even after it has died. Characters
 * of the host's name that would need an escape are left out.
 */
export function processName(): string {
  const host = hostname()
    .replaceAll(/[^\w.-]/g, "")
    .slice(0, LONGEST);
  return `${host === "" ? "localhost" : host}/${process.pid}`;
}

/** Reads what {@link processName} wrote; undefined for any other text. */
export function parseProcessName(text: string): ProcessName | undefined {
  const [, host, pid] = /^([\w.-]{1,63})\/(\d{1,15})$/.exec(text) ?? [];
  return host === undefined ? undefined : { host, pid: Number(pid) };
}

/** The longest label of a host's name. */
const LONGEST = 63;
