import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

/** Checks whether messages are on disk, and whether Redis can write there. */
export function* checkPersistence({ address, info, config }: ServerReport): Generator<Finding> {
  const check = "persistence";
  const hasAof = info.get("aof_enabled") === "1";
  const saves = config?.get("save");
  const repair = `turn the append-only file on: ${redisCli(address, "CONFIG SET appendonly yes")}; then keep the setting: ${redisCli(address, "CONFIG REWRITE")}`;
  if (!hasAof && saves === "") {
    yield {
      level: "error",
      check,
      what: `${address} keeps nothing on disk: appendonly is no, and save is empty`,
      why: "messages are in memory only: a restart loses all of them",
      repair,
    };
  } else if (!hasAof) {
    yield {
      level: "warning",
      check,
      what: `${address} has no append-only file${saves === undefined ? "" : `, only snapshots (save ${saves})`}`,
      why: "a crash loses what was offered since the last snapshot, and delivers again what was taken since",
      repair,
    };
  }
  if (hasAof && config?.get("appendfsync") === "no") {
    yield {
      level: "warning",
      check,
      what: `${address} has appendfsync no`,
      why: "a crash of the machine loses what its kernel has not written to disk yet: half a minute or more",
      repair: redisCli(address, "CONFIG SET appendfsync everysec"),
    };
  }
  yield* checkWriting({ address, info, config });
}

/** Checks whether the last writes to disk succeeded. */
function* checkWriting({
  address,
  info,
  config,
}: Pick<ServerReport, "address" | "info" | "config">): Generator<Finding> {
  const check = "persistence";
  const refuses = config?.get("stop-writes-on-bgsave-error") !== "no";
  const saves = config?.get("save") !== "";
  const repair = `free disk space and read Redis's log; then ${redisCli(address, "BGSAVE")} or ${redisCli(address, "BGREWRITEAOF")}`;
  if (info.get("rdb_last_bgsave_status") === "err") {
    yield {
      level: refuses && saves ? "error" : "warning",
      check,
      what: `the last snapshot of ${address} failed`,
      why:
        refuses && saves
          ? "Redis refuses every write until a snapshot succeeds (MISCONF): nothing is offered, moved or taken"
          : "the copy on disk is old, and a replica may fail to synchronize",
      repair,
    };
  }
  if (info.get("aof_last_write_status") === "err") {
    yield {
      level: "error",
      check,
      what: `the last write of ${address} to its append-only file failed`,
      why: "Redis refuses every write until one succeeds (MISCONF)",
      repair,
    };
  }
  if (info.get("aof_last_bgrewrite_status") === "err") {
    yield {
      level: "warning",
      check,
      what: `the last rewrite of the append-only file of ${address} failed`,
      why: "the file grows until the disk is full; then Redis refuses every write",
      repair,
    };
  }
}
