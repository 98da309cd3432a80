import { isJavaBuilt } from "../../../test/interop/java-build.ts";
import type { Peer } from "./peer.ts";

export type PeerName = keyof typeof PEERS;

/** A value for each library. */
export type ByPeer<Values> = Readonly<Record<PeerName, Values>>;

/** A program loads only the library that it measures. */
const PEERS = {
  delayline: async () => (await import("./delayline.ts")).delayline,
  "delayline-reliable": async () => (await import("./delayline-reliable.ts")).reliable,
  bullmq: async () => (await import("./bullmq.ts")).bullmq,
  "bee-queue": async () => (await import("./bee-queue.ts")).beeQueue,
  bare: async () => (await import("./redisson.ts")).bare,
  redisson: async () => (await import("./redisson.ts")).redisson,
  "redisson-java": async () => (await import("./redisson-java.ts")).redissonInJava,
} satisfies Record<string, () => Promise<Peer>>;

/** Redisson in Java is included if it has been built (`npm run build:java`). */
export const PEER_NAMES = (Object.keys(PEERS) as PeerName[]).filter(
  (name) => name !== "redisson-java" || isJavaBuilt(),
);

export function loadPeer(name: PeerName): Promise<Peer> {
  return PEERS[name]();
}
