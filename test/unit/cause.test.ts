import { ReplyError } from "ioredis";
import { describe, expect, test } from "vitest";
import { causeOf, type CauseKind } from "../../src/cause.ts";
import { RedisError } from "../../src/errors.ts";
import { ofMovedSlot, UnansweredError } from "../../src/failure.ts";

/** What Redis, Valkey and a Sentinel reply, and what they mean. */
const REPLIES: readonly (readonly [reply: string, kind: CauseKind | undefined])[] = [
  [
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "disk",
  ],
  ["MISCONF Errors writing to the AOF file: No space left on device", "disk"],
  [
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "busy",
  ],
  ["BUSYGROUP Consumer Group name already exists", undefined],
  ["WRONGPASS invalid username-password pair or user is disabled.", "password"],
  ["ERR invalid password", "password"],
  ["NOAUTH Authentication required.", "no-password"],
  ["NOAUTH HELLO must be called with the client already authenticated", "no-password"],
  ["ERR DB index is out of range", "database"],
  ["ERR invalid DB index", "database"],
  ["ERR SELECT is not allowed in cluster mode", "database"],
  ["NOPERM this user has no permissions to run the 'select' command or its subcommand", "database"],
  ["NOPERM User app has no permissions to run the 'select' command", "database"],
  ["NOPERM User app has no permissions to run the 'evalsha' command", "access"],
  ["NOPERM No permissions to access a key", "access"],
  ["ERR ACL failure in script: User app has no permissions to run the 'xadd' command", "access"],
  ["LOADING Redis is loading the dataset in memory", "loading"],
  ["OOM command not allowed when used memory > 'maxmemory'.", "memory"],
  ["READONLY You can't write against a read only replica.", "replica"],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "no-master"],
  ["NOREPLICAS Not enough good replicas to write.", "few-replicas"],
  ["CLUSTERDOWN Hash slot not served", "cluster-down"],
  ["MOVED 866 127.0.0.1:7001", "cluster"],
  ["TRYAGAIN Multiple keys request during rehashing of slot", "slot"],
  ["ERR Could not find scripting engine 'lua'", "engine"],
  ["CROSSSLOT Keys in request don't hash to the same slot", "cluster"],
  ["ERR max number of clients reached", "connections"],
  ["DENIED Redis is running in protected mode because protected mode is enabled", "protected"],
  ["IDONTKNOW I have no state for that", "sentinel"],
  ["ERR unknown command 'EVALSHA', with args beginning with: 'sha'", "command"],
  ["ERR unknown command `client`, with args beginning with: `ID`", "command"],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", "type"],
  ["ERR value is not an integer or out of range", undefined],
  ["NOGROUP No such key 'a' or consumer group 'b'", undefined],
];

/** Errors of Node, by code and message. */
const FAILURES: readonly (readonly [code: string, message: string, kind: CauseKind | undefined])[] =
  [
    ["ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:6379", "refused"],
    ["ENOTFOUND", "getaddrinfo ENOTFOUND redis.invalid", "name"],
    ["EAI_AGAIN", "getaddrinfo EAI_AGAIN redis", "name"],
    ["ETIMEDOUT", "connect ETIMEDOUT", "silent"],
    ["EHOSTUNREACH", "connect EHOSTUNREACH 10.0.0.1:6379", "silent"],
    ["ENOENT", "connect ENOENT /run/redis.sock", "socket"],
    [
      "EPROTO",
      "0020B1:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:",
      "no-tls",
    ],
    [
      "ECONNRESET",
      "Client network socket disconnected before secure TLS connection was established",
      "no-tls",
    ],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "self-signed certificate", "certificate"],
    ["CERT_HAS_EXPIRED", "certificate has expired", "certificate"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "unable to verify the first certificate", "certificate"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "Hostname/IP does not match certificate's", "certificate"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "tlsv13 alert", "client-certificate"],
    ["", 'Protocol error, got "H" as reply type byte. Please report this.', "protocol"],
    ["", "All sentinels are unreachable and retry is disabled. Last error: x", "sentinels"],
    ["ECONNRESET", "read ECONNRESET", undefined],
  ];

describe("a reply", () => {
  test.each(REPLIES)("%s", (text, kind) => {
    const refusal = Object.assign(new ReplyError(text), { command: { name: "get", args: [] } });
    expect(causeOf(refusal)?.kind).toBe(kind);
    // ioredis 5 copies the refusal of its first command.
    if (!text.startsWith("MOVED") && !text.startsWith("CROSSSLOT")) {
      expect(causeOf(new Error(`Ready check failed: ${text}`))?.kind).toBe(kind);
    }
    expect(causeOf(new RedisError('cannot offer to queue "q"', refusal))?.kind).toBe(kind);
  });
});

test("a Cluster client is not told to become one", () => {
  const moved = new ReplyError("MOVED 866 127.0.0.1:7001");
  expect(causeOf(ofMovedSlot(moved))?.kind).toBe("slot");
  const gaveUp = new Error(`Too many Cluster redirections. Last error: ${String(moved)}`);
  expect(causeOf(gaveUp)?.kind).toBe("slot");
  expect(new RedisError("cannot take", gaveUp).reply).toBe("MOVED");
  expect(new RedisError("cannot take", ofMovedSlot(moved)).reply).toBe("MOVED");
});

describe("a failed connection", () => {
  test.each(FAILURES)("%s %s", (code, message, kind) => {
    const failure = Object.assign(new Error(message), code === "" ? {} : { code });
    expect(causeOf(failure)?.kind).toBe(kind);
    expect(causeOf(new RedisError("cannot reach Redis", failure))?.kind).toBe(kind);
    const late = new UnansweredError(`Redis could not be reached within 5 ms: ${message}`, false);
    if (message.includes(code)) expect(causeOf(late)?.kind).toBe(kind);
  });

  test("of each of several addresses", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED ::1:6379"), { code: "X" });
    expect(causeOf(new AggregateError([refused]))?.kind).toBe("refused");
  });
});

test("a queue's name is not taken for a refusal", () => {
  const refusal = new ReplyError("WRONGTYPE Operation against a key holding the wrong kind");
  expect(causeOf(new RedisError('cannot offer to queue ": OOM "', refusal))?.kind).toBe("type");
});

test("each cause reads on after an address, and its way out is an instruction", () => {
  const causes = REPLIES.map(([text]) => causeOf(new ReplyError(text)));
  for (const cause of causes) {
    if (cause === undefined) continue;
    expect(cause.what).toMatch(/^[a-z].*[^.]$/);
    expect(cause.repair).toMatch(/^[a-z].*[^.]$/);
  }
});

test("what is not an error, and a text that says nothing known, have no cause", () => {
  expect(causeOf("ECONNREFUSED")).toBeUndefined();
  expect(causeOf(undefined)).toBeUndefined();
  expect(causeOf(new Error("boom"))).toBeUndefined();
});
