import { isError } from "../values/thrown.ts";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Redis } from "ioredis";
import { EarlyEndError, isConnectionCut, UnansweredError } from "../failure.ts";
import { networkTime } from "../time/runtime.ts";

/**
 * A connection was refused although Redis replied: its database does not exist or is not allowed, or the server is a
 * Sentinel. That lasts until it is corrected.
 */
export class HandshakeError extends UnansweredError {
  constructor(message: string) {
    super(message, false);
  }
}

/** Asks for `INFO`. Only if it succeeds, ioredis becomes ready, and sends what waits. */
const READY_CHECK = "_readyCheck";

/** What ioredis 5 and 6 call between connecting and "ready". */
interface Handshake {
  select(database: number): Promise<unknown>;
  [READY_CHECK](callback: OnChecked): void;
}

type OnChecked = (error: Error | null, info?: Readonly<Record<string, string>>) => void;

/**
 * Watches over the handshake of one of our own connections, each time it connects. Returns the same client.
 *
 * A connection carries nothing unless the server has the database that the address names, and is not a Sentinel. By
 * itself, ioredis only emits the refusal of a SELECT, becomes ready all the same, and sends what waits, and what it sends
 * again, to database 0. Here such a connection emits a {@link HandshakeError}, never becomes ready, and is ended like one
 * that was lost.
 *
 * A handshake that the server does not answer is reported as an `error` that says so: ioredis only reports that a
 * connection was cut, or after ten seconds that it timed out.
 *
 * Costs no command: it reads replies that ioredis waits for anyway.
 */
export function watchHandshake(client: Redis): Redis {
  refuseUnlessSelected(client);
  reportSilence(client);
  reportEarlyEnd(client);
  return client;
}

function refuseUnlessSelected(client: Redis): void {
  const { options } = client;
  const handshake = client as unknown as Handshake;
  const select = handshake.select.bind(client);
  const readyCheck = handshake[READY_CHECK].bind(client);
  // ioredis has to call the check always. Without the user's consent, it does not ask for INFO.
  const mayAsk = options.enableReadyCheck;
  options.enableReadyCheck = true;
  /** The socket on which a SELECT was refused last. */
  let refused: { readonly stream: Socket; readonly reason: HandshakeError } | undefined;

  handshake.select = async (database) => {
    const stream = client.stream;
    try {
      return await select(database);
    } catch (error) {
      refused = { stream, reason: noDatabase(database, error) };
      return undefined;
    }
  };
  handshake[READY_CHECK] = (callback) => {
    const stream = client.stream;
    const onChecked: OnChecked = (error, info = {}) => {
      // The second is what Valkey calls it.
      const isSentinel = (info["redis_mode"] ?? info["server_mode"]) === "sentinel";
      const database = refused?.stream === stream ? refused.reason : undefined;
      const reason = isSentinel ? new HandshakeError(SENTINEL) : database;
      if (error !== null || reason === undefined) {
        callback(error, info);
      } else if (client.stream === stream && client.status === "connect") {
        client.emit("error", reason);
        client.disconnect(true);
      }
    };
    if (mayAsk) readyCheck(onChecked);
    else onChecked(null);
  };
}

/** The error of a connection whose database does not exist, or is not allowed to its user. */
export function noDatabase(database: number, error: unknown): HandshakeError {
  const why = isError(error) ? error.message : String(error);
  return new HandshakeError(`database ${database} cannot be selected: ${why}`);
}

const SENTINEL = "the address is that of a Sentinel";

/** Emits an error when a server has accepted a connection, and does not answer the TLS handshake. */
function reportSilence(client: Redis): void {
  if (client.options.tls == null) return;
  let timer: NodeJS.Timeout | undefined;
  const report = () => {
    const { status, stream } = client as { status: string; stream: Socket | undefined };
    if (status !== "connecting" || !(stream instanceof TLSSocket)) return;
    if (stream.connecting || stream.destroyed) return;
    client.emit("error", new Error(`no answer to the TLS handshake within ${TLS_ANSWER} ms`));
  };
  client.on("connecting", () => (timer = networkTime.setTimeout(report, TLS_ANSWER).unref()));
  for (const event of ["connect", "close"]) client.on(event, () => networkTime.clearTimeout(timer));
}

/** Milliseconds. Only a report: a slow server may still answer. */
const TLS_ANSWER = 1500;

/** Emits an error when the server ends a new connection before it has replied to anything. */
function reportEarlyEnd(client: Redis): void {
  client.on("connect", () => {
    const stream = client.stream;
    const report = () => {
      // We have ended it ourselves.
      if (stream.writableEnded) return;
      stop();
      const after = stream instanceof TLSSocket ? "after the TLS handshake, " : "";
      client.emit(
        "error",
        new EarlyEndError(`the connection was closed ${after}before Redis replied`),
      );
    };
    const onError = (error: Error) => {
      if (isConnectionCut(error)) report();
    };
    const stop = () => {
      stream.off("end", report);
      stream.off("error", onError);
    };
    // Before Node ends our side in turn.
    stream.prependListener("end", report);
    stream.on("error", onError);
    stream.once("data", stop);
  });
}
