/**
 * Why Redis refuses a command, or cannot be used: what an error's text means, and the way out. The errors and events of
 * the library, the doctor, the command line and the dashboard take both from here.
 */
import { fieldOf, isError, textField } from "./values/thrown.ts";
import { messageOf } from "./failure.ts";

/** A reason for which Redis refuses commands or cannot be used. */
export interface Cause {
  /** A stable name. */
  readonly kind: CauseKind;
  /** What is the matter, to be read after the server's address or "Redis": "cannot save its data to disk, and ...". */
  readonly what: string;
  /** The way out, as an instruction. It holds no address. */
  readonly repair: string;
}

export type CauseKind = (typeof CAUSES)[number]["kind"];

interface Row {
  readonly kind: string;
  /** Matches the error's code, a space, and its message. */
  readonly pattern: RegExp;
  readonly what: string;
  readonly repair: string;
}

/**
 * Finds the cause of a failure: of an error of ioredis or Node, of one of ours, or of what they have as `cause`. Returns
 * undefined if its text says nothing that is known.
 */
export function causeOf(error: unknown): Cause | undefined {
  if (!isError(error)) return undefined;
  // The cause first: our own texts also name the queue, which may be called anything.
  const inner = causeOf(fieldOf(error, "cause"));
  if (inner !== undefined) return inner;
  const text = `${textField(error, "code") ?? ""} ${messageOf(error)}`;
  return CAUSES.find(({ pattern }) => pattern.test(text));
}

/** Matches the first words of a refusal, also where a text of ioredis or of ours stands before it. */
function reply(words: string): RegExp {
  return new RegExp(`(?:^\\S* |: )(?:${words})(?![A-Z])`);
}

/** The first that matches applies. */
const CAUSES = [
  {
    kind: "disk",
    pattern: reply("MISCONF"),
    what: "cannot save its data to disk, and refuses every write until it can",
    repair:
      "free space on its disk, or correct the permissions there (its log says what fails); it accepts writes again after the next BGSAVE that succeeds",
  },
  {
    kind: "busy",
    pattern: reply("BUSY"),
    what: "is busy with one long script or function, and serves nobody meanwhile",
    repair:
      "end it with SCRIPT KILL or FUNCTION KILL; once it has written (UNKILLABLE), only waiting helps, or SHUTDOWN NOSAVE, which loses what is not on disk",
  },
  {
    kind: "password",
    pattern: reply("WRONGPASS|ERR invalid password"),
    what: "rejects the user name or the password",
    repair:
      "correct the user name and the password of the address (in a URL, encode both with encodeURIComponent)",
  },
  {
    kind: "no-password",
    pattern: reply("NOAUTH"),
    what: "asks for a password, and the address has none",
    repair: "add the user name and the password to the address: redis://user:password@host:6379",
  },
  {
    kind: "database",
    pattern: /SELECT is not allowed in cluster mode/,
    what: "is a node of a Cluster, which has only database 0",
    repair: "leave the number of the database out of the address",
  },
  {
    kind: "database",
    pattern: /NOPERM.* 'select'/,
    what: "does not allow its user to select a database",
    repair: "allow the user +select, or leave the number of the database out of the address",
  },
  {
    kind: "database",
    pattern: /DB index/,
    what: "does not have the database",
    repair: "correct the number of the database in the address, or raise `databases` in redis.conf",
  },
  {
    kind: "access",
    pattern: /\bNOPERM |ACL failure in script|can't run this command or subcommand/,
    what: "does not allow its user a command, a key or a channel",
    repair:
      "give the user the access rules of docs/operations/setting-up.md (ACL SETUSER); `npx delayline doctor` names those that are missing",
  },
  {
    kind: "loading",
    pattern: reply("LOADING"),
    what: "is loading its data, and serves nobody until that is done",
    repair: "wait: calls are sent again meanwhile",
  },
  {
    kind: "memory",
    pattern: reply("OOM"),
    what: "has used all its memory (maxmemory), and refuses what needs more",
    repair: "raise maxmemory (CONFIG SET maxmemory), or delete what fills it (redis-cli --bigkeys)",
  },
  {
    kind: "replica",
    pattern: reply("READONLY"),
    what: "is a replica, and refuses writes",
    repair:
      "give the address of the master, or those of the Sentinels (`sentinels` and `name`); during a failover, wait",
  },
  {
    kind: "no-master",
    pattern: reply("MASTERDOWN"),
    what: "is a replica that has lost its master",
    repair: "start the master, or promote a replica; during a failover, wait",
  },
  {
    kind: "few-replicas",
    pattern: reply("NOREPLICAS"),
    what: "has fewer replicas than min-replicas-to-write demands, and refuses writes",
    repair: "start the missing replicas, or lower min-replicas-to-write",
  },
  {
    kind: "cluster-down",
    pattern: /\bCLUSTERDOWN /,
    what: "is part of a Cluster that does not serve all slots",
    repair: "start the missing masters, or promote their replicas; during a failover, wait",
  },
  {
    kind: "cluster",
    // Not in "Too many Cluster redirections. Last error: ReplyError: MOVED ...".
    pattern: /^\S* (?:MOVED|ASK|CROSSSLOT) /,
    what: "is a node of a Cluster, and the client treats it as a single server",
    repair:
      "pass an ioredis Cluster as `redis` in place of an address; on the command line, add --cluster",
  },
  {
    kind: "slot",
    // Behind the words of a Cluster client: "Last error: ReplyError: MOVED ...".
    pattern: reply("TRYAGAIN|MOVED|ASK"),
    what: "is moving a slot to another node, and serves it only in part meanwhile",
    repair:
      "wait until the move has ended (docs/operations/deploying.md says how to move the slot of a big queue)",
  },
  {
    kind: "connections",
    pattern: /max number of clients|MAXCLIENTS/,
    what: "accepts no more connections (maxclients)",
    repair:
      "close connections that nobody needs (CLIENT LIST shows them), or raise maxclients (CONFIG SET maxclients)",
  },
  {
    kind: "protected",
    pattern: reply("DENIED"),
    what: "is in protected mode, and accepts connections from its own machine only",
    repair:
      "set a password in redis.conf (requirepass or an ACL user), and put it into the address",
  },
  {
    kind: "sentinel",
    pattern: /the address is that of a Sentinel|IDONTKNOW/,
    what: "is a Sentinel, which knows where Redis is and holds no data",
    repair:
      'give the Sentinels and the name of their master: redis: { sentinels: [{ host, port: 26379 }], name: "mymaster" }',
  },
  {
    kind: "sentinels",
    pattern: /All sentinels are unreachable/,
    what: "cannot be found: no Sentinel names a master",
    repair:
      "check the addresses of the Sentinels, and that `name` is the name of the master there (SENTINEL MASTERS)",
  },
  {
    kind: "command",
    pattern: /unknown (?:sub)?command/i,
    what: "does not know a command that is needed",
    repair:
      "remove its rename-command from redis.conf, or use Redis 6.2 or later, or Valkey; a Sentinel, too, knows only its own commands",
  },
  {
    kind: "engine",
    pattern: /Could not find scripting engine/,
    what: "has no Lua, and so cannot run any script",
    repair:
      "load the engine, which is a module of Valkey 9.1 and later (loadmodule in valkey.conf), or use a build that has it",
  },
  {
    kind: "type",
    pattern: reply("WRONGTYPE"),
    what: "holds a value of another type at a key of the queue",
    repair: "another program uses that key: give the queue another name, or delete the key",
  },
  {
    kind: "no-tls",
    pattern: /wrong version number|packet length too long|the TLS handshake|before secure TLS/i,
    what: "does not speak TLS at this port",
    repair: "use redis:// in place of rediss:// (no `tls` option), or the server's TLS port",
  },
  {
    kind: "client-certificate",
    pattern: /CERTIFICATE_REQUIRED|certificate required|HANDSHAKE_FAILURE|BAD_CERTIFICATE/i,
    what: "asks for a client certificate, or refuses the one that it got",
    repair: "give one (tls: { cert, key }), or set tls-auth-clients no in redis.conf",
  },
  {
    kind: "certificate",
    pattern:
      /SELF_SIGNED_CERT|UNABLE_TO_\w*(?:CERT|ISSUER|SIGNATURE)|CERT_\w+|ERR_TLS_CERT_ALTNAME/,
    what: "shows a certificate that this process does not accept",
    repair:
      "give its authority (tls: { ca }), connect by the name in the certificate (or set tls: { servername }), and renew it if it has expired",
  },
  {
    kind: "protocol",
    pattern: /Protocol error/,
    what: "does not speak Redis's protocol",
    repair: "correct host and port: another program listens there",
  },
  {
    kind: "plain",
    pattern: /closed before Redis replied/,
    what: "closes the connection before it replies to anything",
    repair:
      "if this is its TLS port, use rediss:// in place of redis:// (or the option `tls`); otherwise correct host and port, and check maxclients and the log of the server",
  },
  {
    kind: "refused",
    pattern: /ECONNREFUSED/,
    what: "is not there: nothing listens at this address",
    repair: "start the server, or correct host and port",
  },
  {
    kind: "name",
    pattern: /ENOTFOUND|EAI_AGAIN/,
    what: "has a host name that cannot be resolved",
    repair: "correct the host in the address, or check the DNS of this machine",
  },
  {
    kind: "silent",
    pattern: /E(?:TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN)|did not reply in time/,
    what: "does not answer",
    repair: "check host and port, and firewalls between this process and the server",
  },
  {
    kind: "socket",
    pattern: /ENOENT|EACCES/,
    what: "has no socket at this path, or does not let this process open it",
    repair: "correct the path, or the permissions of the socket (unixsocketperm)",
  },
] as const satisfies readonly Row[];
