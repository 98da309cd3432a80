import type { SiteNode } from "./site.ts";

/** A connection in the reply to `CLIENT LIST`. */
export interface Connection {
  /** The name of the connection; empty if it has none. */
  readonly name: string;
  readonly isBlocked: boolean;
}

/** The connections to some servers; undefined if one of them does not list its connections. */
export async function readClients(nodes: readonly SiteNode[]): Promise<Connection[] | undefined> {
  try {
    const lists = await Promise.all(
      nodes.map((node) => node.ask((redis) => redis.client("LIST") as Promise<string>)),
    );
    return lists.flatMap((list) => list.split("\n").filter(Boolean).map(asConnection));
  } catch {
    return undefined;
  }
}

/**
 * How many of these connections wait, or have waited, for messages at one of the keys: the library's are named after
 * it.
 */
export function takersAt(connections: readonly Connection[], keys: readonly string[]): number {
  return connections.filter(({ name }) => {
    const [, key] = /^delayline:blocking:([^:]+)/.exec(name) ?? [];
    return key !== undefined && keys.includes(decode(key));
  }).length;
}

/**
 * How many are blocked and have no name of this library: connections of Java or other programs. Redis does not say at
 * which key.
 */
export function strangersIn(connections: readonly Connection[]): number {
  return connections.filter(({ name, isBlocked }) => isBlocked && !name.startsWith("delayline:"))
    .length;
}

/** How many connections are subscribed to a channel; undefined if a server does not say. */
export async function listenersOf(
  nodes: readonly SiteNode[],
  channel: string,
): Promise<number | undefined> {
  try {
    const counts = await Promise.all(
      nodes.map(async (node) => {
        const [, number] = await node.ask((redis) => redis.pubsub("NUMSUB", channel));
        return Number(number);
      }),
    );
    return counts.reduce((sum, one) => sum + one, 0);
  } catch {
    return undefined;
  }
}

function asConnection(line: string): Connection {
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S*)`).exec(line)?.[1] ?? "";
  return { name: field("name"), isBlocked: field("flags").includes("b") };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
