/**
 * What ioredis's errors mean. This is the one place that knows their names and texts.
 */

/** The first word of Redis's reply (`WRONGTYPE`, `OOM`, ...), or undefined if Redis did not reply. */
export function replyOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  return error.message.split(" ", 1)[0];
}

/**
 * Whether Redis refused the command, did nothing, and another node or a later moment may accept it:
 * during a failover, a migration of slots, or the loading of data.
 */
export function isRefusedForNow(error: unknown): boolean {
  const reply = replyOf(error) ?? lastRedirection(error);
  return reply !== undefined && FOR_NOW.has(reply);
}

/**
 * Whether a Cluster client gave up finding the node while nodes were lost. The command may have been
 * carried out by a node whose reply did not come.
 */
export function isLostInCluster(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith(REDIRECTIONS);
}

/** Whether the caller's own `commandTimeout` is over. ioredis may send the command all the same. */
export function isCommandTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "Command timed out";
}

/** Whether ioredis gave a command up, after as many attempts to connect as the options allow. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.name === "MaxRetriesPerRequestError";
}

/** "Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served" */
function lastRedirection(error: unknown): string | undefined {
  if (!isLostInCluster(error)) return undefined;
  return /Last error: ReplyError: (\w+)/.exec((error as Error).message)?.[1];
}

const REDIRECTIONS = "Too many Cluster redirections.";

/** Refusals in the course of a failover, a migration of slots, or the loading of data. */
export const FOR_NOW: ReadonlySet<string> = new Set([
  "READONLY",
  "LOADING",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "MOVED",
  "ASK",
  "TRYAGAIN",
]);
