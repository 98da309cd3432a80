/**
 * Why a call has failed: what ioredis's errors mean, and how a call ends that takes too long. This is
 * the one place that knows the names and texts of ioredis's errors.
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

/** Whether ioredis gave up a client, or a command, since it has ended the client. */
export function isEnded(error: unknown): boolean {
  return error instanceof Error && error.message === "Connection is closed.";
}

/** Whether a connection that was there is gone, and nothing says why. */
export function isConnectionCut(error: unknown): boolean {
  return error instanceof Error && "code" in error && CUT.has(String(error.code));
}

/**
 * Whether a failure concerns all that one client does, not one command or queue: there was no reply, or
 * Redis serves nobody for now, or does not let us in. `reply` is the first word of its refusal.
 */
export function isOfWholeServer(reply: string | undefined): boolean {
  return reply === undefined || FOR_NOW.has(reply) || NOT_LET_IN.has(reply);
}

/** Whether Redis does not let a client in, and will not until somebody mends its credentials. */
export function isNotLetIn(error: unknown): boolean {
  return NOT_LET_IN.has(replyOf(error) ?? "");
}

/**
 * What an error says. Where Node has tried several addresses, or a Cluster client several nodes, the
 * cause stands beside the message.
 */
export function messageOf(error: Error): string {
  const { message } = error;
  if (error instanceof AggregateError && message === "") {
    return error.errors.map((each: unknown) => messageOf(each as Error)).join("; ");
  }
  const last: unknown = "lastNodeError" in error ? error.lastNodeError : undefined;
  return last instanceof Error ? `${message} ${last.message}` : message;
}

/** Whether ioredis gave a command up, after as many attempts to connect as the options allow. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.name === "MaxRetriesPerRequestError";
}

/** A call has ended without a reply from Redis. */
export class UnansweredError extends Error {
  constructor(
    message: string,
    /** Whether Redis may have carried it out all the same. */
    readonly wasSent: boolean,
    /** `cause`: why the caller has aborted it. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Whether what has failed was certainly not carried out. */
export function hadNoEffect(error: unknown): boolean {
  return error instanceof UnansweredError ? !error.wasSent : replyOf(error) !== undefined;
}

/** "Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served" */
function lastRedirection(error: unknown): string | undefined {
  if (!isLostInCluster(error)) return undefined;
  return /Last error: ReplyError: (\w+)/.exec((error as Error).message)?.[1];
}

const CUT: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

const NOT_LET_IN: ReadonlySet<string> = new Set(["WRONGPASS", "NOAUTH"]);

const REDIRECTIONS = "Too many Cluster redirections.";

/** Refusals in the course of a failover, a migration of slots, or the loading of data. */
const FOR_NOW: ReadonlySet<string> = new Set([
  "READONLY",
  "LOADING",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "MOVED",
  "ASK",
  "TRYAGAIN",
]);

/**
 * Whether a failure to take may pass by itself: the connection was lost, or the server starts, fails
 * over, or is busy. `reply` is the first word of Redis's refusal, if it is one.
 */
export function isPassing(reply: string | undefined): boolean {
  return reply === undefined || FOR_NOW.has(reply) || PASSING.has(reply);
}

/** Besides those of a failover. */
const PASSING = new Set(["UNBLOCKED", "BUSY", "MAXCLIENTS", "NOREPLICAS", "MISCONF"]);
