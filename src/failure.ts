/**
 * Why a call failed: the meaning of ioredis's errors, and the error of a call that ended without a reply. Only this
 * file knows the names and texts of ioredis's errors.
 */

import { isError, textField } from "./values/thrown.ts";

/**
 * The first word of Redis's reply (`WRONGTYPE`, `OOM`, ...), or undefined if Redis did not reply. Of a Cluster client that
 * gave up after many attempts, the reply to the last one.
 */
export function replyOf(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  const message = textField(error, "message") ?? "";
  if (textField(error, "name") === "ReplyError") return message.split(" ", 1)[0];
  return INNER.exec(message)?.[1];
}

/** The error of a refusal that a script has caught and told: as the one that ioredis makes of a reply. */
export function refusalOf(text: string): Error {
  return Object.assign(new Error(text), { name: "ReplyError" });
}

/**
 * Whether Redis refused the command without any effect, but another node may accept it, or the same node later: during
 * a failover, a migration of slots, or the loading of data.
 */
export function isRefusedForNow(error: unknown): boolean {
  const reply = replyOf(error);
  return reply !== undefined && FOR_NOW.has(reply);
}

/** Whether a node of a Cluster refused a command because another node serves the slot, or is about to. */
export function isRedirection(error: unknown): boolean {
  const reply = replyOf(error);
  return reply === "MOVED" || reply === "ASK";
}

/**
 * The error of a redirection on a connection that a Cluster client keeps to one node. Redis's text alone would mean that
 * the client knows nothing of the Cluster.
 */
export function ofMovedSlot(redirection: Error): Error {
  return new Error(`${ELSEWHERE}${redirection.message}`);
}

/** Whether a Cluster refused a command because a slot is moving from one node to another. The move will end. */
export function isOfMovingSlot(error: unknown): boolean {
  if (replyOf(error) === "TRYAGAIN") return true;
  return isRedirection(error) && (error as Error).name !== "ReplyError";
}

/**
 * Whether a Cluster client gave up searching for the node while nodes were lost. A node whose reply did not come
 * may have carried out the command.
 */
export function isLostInCluster(error: unknown): boolean {
  return isError(error) && textField(error, "message")?.startsWith(REDIRECTIONS) === true;
}

/** Whether ioredis has ended the client, and rejected its commands. */
export function isEnded(error: unknown): boolean {
  return isError(error) && textField(error, "message") === "Connection is closed.";
}

/** Whether the server refused a write because it has become a replica. It keeps its connections. */
export function isFromReplica(error: unknown): boolean {
  return replyOf(error) === "READONLY";
}

/** Whether an established connection was lost, for a reason that the error does not reveal. */
export function isConnectionCut(error: unknown): boolean {
  return isError(error) && CUT.has(textField(error, "code") ?? "");
}

/**
 * Whether a failure affects everything that a client does, not one command or queue: Redis did not reply, serves no
 * client for now, or rejects the client's credentials. `reply` is the first word of the refusal, if there was one.
 */
export function isOfWholeServer(reply: string | undefined): boolean {
  return reply === undefined || FOR_NOW.has(reply) || NOT_LET_IN.has(reply);
}

/** Whether Redis rejects the client's credentials. That lasts until they are corrected. */
export function isNotLetIn(error: unknown): boolean {
  return NOT_LET_IN.has(replyOf(error) ?? "");
}

/**
 * Returns the text of an error with its cause. Where Node tried several addresses, or a Cluster client several nodes,
 * the cause is not in `message`.
 */
export function messageOf(error: Error): string {
  const message = textField(error, "message") ?? "";
  // Of Node's own modules, which in Jest are of another realm.
  if (message === "" && "errors" in error && Array.isArray(error.errors)) {
    return error.errors.map((each: unknown) => messageOf(each as Error)).join("; ");
  }
  const last: unknown = "lastNodeError" in error ? error.lastNodeError : undefined;
  return isError(last) ? `${message} ${last.message}` : message;
}

/** Whether a blocked read ended because its stream was deleted. Later reads get NOGROUP. */
export function isStreamDeleted(error: unknown): boolean {
  return replyOf(error) === "UNBLOCKED" && /no longer exists/.test((error as Error).message);
}

/** Whether ioredis gave up a command after `maxRetriesPerRequest` attempts to connect. */
export function isGivenUp(error: unknown): boolean {
  return isError(error) && textField(error, "name") === "MaxRetriesPerRequestError";
}

/**
 * The server ended a new connection before it had replied to anything: it is going down, or it refuses us without a
 * word. The next attempt to connect may say which.
 */
export class EarlyEndError extends Error {}

/** A call ended without a reply from Redis. */
export class UnansweredError extends Error {
  constructor(
    message: string,
    /** Whether it was sent: Redis may have carried it out then. */
    readonly wasSent: boolean,
    /** `cause`: why the caller aborted it. */
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Whether Redis certainly did not carry out the failed command. No rollback: a script that was refused half-way may
 * have done a part of its work; its error says so ({@link IN_PART}). A refusal does not speak for earlier copies of the
 * command ({@link noteEarlierCopy}).
 */
export function hadNoEffect(error: unknown): boolean {
  if (!isError(error) || ofLaterCopies.has(error)) return false;
  if (error instanceof UnansweredError) return !error.wasSent;
  return replyOf(error) !== undefined && !error.message.includes(IN_PART);
}

/** Notes that Redis may have carried out an earlier copy of the command that has failed with this error. */
export function noteEarlierCopy(error: unknown): void {
  if (isError(error)) ofLaterCopies.add(error);
}

const ofLaterCopies = new WeakSet<Error>();

/** What a script appends to the error of a refusal that came after a part of the work was done. */
export const IN_PART = " (a part of it may be done)";

const CUT: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

const NOT_LET_IN: ReadonlySet<string> = new Set(["WRONGPASS", "NOAUTH"]);

const REDIRECTIONS = "Too many Cluster redirections.";

const ELSEWHERE = "another node of the Cluster serves the slot: ";

/** "Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN Hash slot not served" */
const INNER = new RegExp(`^(?:${REDIRECTIONS} Last error: ReplyError: |${ELSEWHERE})(\\w+)`);

/** Refusals during a failover, a migration of slots, or the loading of data. */
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
 * Whether a failed take may succeed later without help: the connection was lost, or the server is starting, failing
 * over, or busy. `reply` is the first word of the refusal, if there was one.
 */
export function isPassing(reply: string | undefined): boolean {
  return reply === undefined || FOR_NOW.has(reply) || PASSING.has(reply);
}

const PASSING = new Set(["UNBLOCKED", "BUSY", "MAXCLIENTS", "NOREPLICAS", "MISCONF"]);
