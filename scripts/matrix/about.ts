import type { AttackName } from "./cells.ts";

/** What an attack does, for the pages. */
interface About {
  readonly title: string;
  readonly text: string;
}

/** Every attack, in the order of the pages. */
export const ABOUT: Readonly<Record<AttackName, About>> = {
  "workers-killed": {
    title: "Workers killed",
    text: "One of the two workers is killed (SIGKILL) in a handler every half second, and replaced.",
  },
  "producers-killed": {
    title: "Producers killed",
    text: "The producer is killed (SIGKILL) every 0.3 s, and replaced. An offer whose producer died before the reply may be stored or not; the others have to arrive.",
  },
  "workers-stalled": {
    title: "Workers stalled",
    text: "A worker is stopped (SIGSTOP) for 4 s, longer than its lease, and goes on. A plain queue has no leases.",
  },
  "clocks-wrong": {
    title: "Wrong clocks",
    text: "The clock of one worker is an hour ahead, that of the other an hour behind; the producer's is ahead.",
  },
  "connections-cut": {
    title: "Connections cut",
    text: "Redis closes all connections of all clients every 0.25 s. Delays are 0.6 s longer, because an offer that is sent again is recognised only while its first copy waits.",
  },
  "replies-lost": {
    title: "Replies lost",
    text: "Every 60 ms the reply to an offer, a move, a settlement or a wait for messages is lost, and its connection cut. Redis has carried the request out, and the client never learns. Delays are 0.6 s longer.",
  },
  "link-slow": {
    title: "A slow link",
    text: "For eight seconds each connection carries 150 kB a second each way, and loses nothing. One message in 400 has 600 kB: it takes four seconds, and everything behind it waits. Nothing is excused, not even in a plain queue.",
  },
  "scripts-flushed": { title: "Scripts flushed", text: "`SCRIPT FLUSH` every 30 ms." },
  "server-stalled": {
    title: "Server stalled",
    text: "The server is stopped (SIGSTOP) for 5 s, longer than all leases.",
  },
  "server-killed-always": {
    title: "Server killed, always",
    text: "The server is killed (SIGKILL) every 0.7 s and restarted, with `appendfsync always`. Delays are 1.5 s longer.",
  },
  "server-killed-everysec": {
    title: "Server killed, everysec",
    text: "The same with `appendfsync everysec`. The kernel keeps what a killed process has written. The judge excuses nothing here, so a run on a busy disk may show messages twice.",
  },
  "power-lost-everysec": {
    title: "Power lost, everysec",
    text: "The server is killed, and the last second of its append-only file is cut off, as a power loss may do with `appendfsync everysec`. With `always` there is nothing to cut.",
  },
  "server-killed-unsaved": {
    title: "Server killed, nothing saved",
    text: "The server is killed, and restarted without persistence. Queues and groups come back by themselves, messages do not.",
  },
  "master-replaced": {
    title: "Master replaced",
    text: "`SENTINEL FAILOVER`, or `CLUSTER FAILOVER`. The latter hands over the last write, and loses nothing. In this attack and the next two, each master has one replica, and delays are 1.5 s longer.",
  },
  "master-killed": {
    title: "Master killed",
    text: "The master is killed (SIGKILL), and its replica, which was in step, takes over. Most of the delay is the second until the others notice.",
  },
  "master-killed-cut-off": {
    title: "Master killed, replica behind",
    text: "The replica gets nothing for a second, then the master is killed.",
  },
  "partitions-changed": {
    title: "Partitions changed",
    text: "To 6, 3, 5, 2 partitions and again, 0.3 s after each change has ended.",
  },
  "slots-moved": {
    title: "Slots moved",
    text: "The slot of the queue, or of one partition, moves to another master with all its keys, a few at a time, 0.3 s after the last move.",
  },
  "slots-moved-at-once": {
    title: "Slots moved at once",
    text: "The same in one step, as Valkey 9 can: `CLUSTER MIGRATESLOTS`.",
  },
};
