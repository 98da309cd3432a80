import { messageOf } from "../../failure.ts";
import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { checkPersistence } from "./persistence.ts";

/** All that is to be said about one server, as it describes itself. */
export function* checkServer(server: ServerReport): Generator<Finding> {
  yield* checkPersistence(server);
}

/** A server that cannot be asked. */
export function unreachable(address: string | undefined, error: unknown): Finding {
  return {
    level: "error",
    check: "reachable",
    what: `${address ?? "Redis"} cannot be asked: ${messageOf(error as Error)}`,
    why: "nothing is offered, moved or taken there",
    repair: "look whether the server runs, and at the address, the password, TLS and maxclients",
  };
}
