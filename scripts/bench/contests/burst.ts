import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "../bench-server.ts";
import { Crew } from "../crew.ts";
import { LateStartError } from "../late-start.ts";
import { workerTimeOf } from "../deliveries.ts";
import { loadPeer, type PeerName } from "../peers/load.ts";
import { Meter } from "../meter.ts";
import { waitsBetween } from "../pings.ts";
import { Program } from "../program.ts";
import type { ProberMethods } from "../programs/prober.ts";
import type { ProducerMethods } from "../programs/producer.ts";
import type { Contest } from "../workload.ts";
import { LATER } from "./later.ts";

/**
 * Many messages fall due at once: how fast does one worker get them, and can other clients still use Redis?
 *
 * A few messages have later deadlines. Offering them shows how long offering the many will take.
 */
export const burst: Contest = {
  name: "burst",
  title: "100,000 messages due at one instant, 1 worker; PINGs from another process",
  async round({ peer, isQuick, patience, progress }) {
    const count = isQuick ? 5000 : COUNTS[peer];
    const { delayedKey } = await loadPeer(peer);
    await using server = await BenchServer.start();
    await using producer = await Program.start<ProducerMethods>("producer");
    const programs = await Promise.all([
      Crew.start({ workerProcesses: 1, concurrency: 50 }),
      Program.start<ProberMethods>("prober"),
    ]);
    await using crew = programs[0];
    await using prober = programs[1];
    await producer.call("open", peer, server.url);

    progress(`offering ${count} messages`);
    await producer.call("offerInBulk", { first: count, count: STANDING, due: LATER }, 1000);
    const again = { first: count + STANDING, count: STANDING, due: LATER };
    const { duration } = await producer.call("offerInBulk", again, 1000);
    const { serverTime } = await server.look(delayedKey);
    const instant = Math.ceil(
      serverTime + ((duration / STANDING) * count * 1.5 + (isQuick ? 1000 : 2500)) * patience,
    );
    const due = { from: instant, to: instant };
    await producer.call("offerInBulk", { first: 0, count, due }, 1000);
    await crew.open(peer, server.url);
    await prober.call("start", server.url);
    const left = instant - (await server.look(delayedKey)).serverTime;
    if (left < 100) throw new LateStartError(100 - left);

    await sleep(left - 50);
    const meter = await Meter.start(server);
    progress("delivering them");
    const giveUp = AbortSignal.timeout(120_000);
    const movedAt = await server.waitUntilLeft(delayedKey, 2 * STANDING, giveUp);
    const taken = await crew.taken(count);
    const { stats, processorTime } = await meter.read();
    const pings = await prober.call("stop");
    const takenAt = taken.flatMap((each) => [...each.takenAt]);
    const lastAt = takenAt.reduce((last, at) => Math.max(last, at), instant);
    await Promise.all([crew.close(), producer.call("close")]);
    const note = count < 100_000 && !isQuick ? `${count.toLocaleString("en")} messages` : undefined;
    const noted = note !== undefined && { note };
    return [
      { name: "lost", value: count - takenAt.length, unit: "", ...noted },
      { name: "made ready", value: perSecond(count, movedAt - instant), unit: "/s", ...noted },
      { name: "taken", value: perSecond(count, lastAt - instant), unit: "/s", ...noted },
      { name: "script time per message", value: stats.scriptTime / count, unit: "us", ...noted },
      {
        name: "Redis processor time per message",
        value: processorTime.total / count,
        unit: "us",
        ...noted,
      },
      {
        name: "worker's processor time per message",
        value: workerTimeOf(taken),
        unit: "us",
        ...noted,
      },
      {
        name: "longest PING",
        value: waitsBetween(pings, instant, lastAt).at(-1) ?? NaN,
        unit: "ms",
        ...noted,
      },
    ];
  },
};

/** Fewer for the libraries that would take too long. */
const COUNTS: Record<PeerName, number> = {
  delayline: 100_000,
  "delayline-reliable": 100_000,
  bullmq: 30_000,
  "bee-queue": 100_000,
  bare: 100_000,
  redisson: 20_000,
  "redisson-java": 20_000,
};

const STANDING = 2000;

function perSecond(count: number, milliseconds: number): number {
  return (count / milliseconds) * 1000;
}
