/** How bad it is. An error stops a queue or loses messages, now or at the next restart; a notice is for information. */
export type Level = "error" | "warning" | "notice";

/** Something that is not as it should be. It holds no payload and no password. */
export interface Finding {
  readonly level: Level;
  /** The name of the check, in kebab case; `docs/operations.md` lists them. */
  readonly check: string;
  /** The queue that it is about; undefined: a server, or all queues. */
  readonly queue?: string;
  /** What was found, with the numbers. */
  readonly what: string;
  /** Why that matters. */
  readonly why: string;
  /** The command that repairs it, or what to do. */
  readonly repair: string;
}
