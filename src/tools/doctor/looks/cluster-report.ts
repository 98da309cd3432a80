import { parseInfo } from "./server-report.ts";
import type { SiteNode } from "./site.ts";

/** A Cluster, as one of its nodes sees it. */
export interface ClusterReport {
  /** The node that was asked. */
  readonly askedAt: string;
  /** The fields of `CLUSTER INFO`. */
  readonly info: ReadonlyMap<string, string>;
  readonly nodes: readonly ClusterNode[];
}

/** A node, as another node sees it. */
export interface ClusterNode {
  readonly id: string;
  /** "host:port". */
  readonly address: string;
  /** For example `master`, `slave`, `fail`, `fail?`. */
  readonly flags: readonly string[];
  /** The id of a replica's master; undefined for a master. */
  readonly masterId: string | undefined;
  readonly slotCount: number;
}

/** Asks one node about the Cluster. */
export async function readCluster(node: SiteNode): Promise<ClusterReport> {
  const info = await node.ask((redis) => redis.cluster("INFO"));
  const nodes = await node.ask((redis) => redis.cluster("NODES"));
  return {
    askedAt: node.address,
    info: parseInfo(info),
    nodes: (nodes as string)
      .split("\n")
      .filter((line) => line !== "")
      .map(asNode),
  };
}

/** `<id> 10.0.0.7:6379@16379,name myself,master - 0 0 1 connected 0-5460 [1->-other]` */
function asNode(line: string): ClusterNode {
  const [id = "", address = "", flags = "", master, , , , , ...slots] = line.split(" ");
  const slotCount = slots
    .filter((range) => !range.startsWith("["))
    .map((range) => range.split("-").map(Number))
    .reduce((sum, [from = 0, to = from]) => sum + to - from + 1, 0);
  return {
    id,
    address: address.replace(/@.*$/, ""),
    flags: flags.split(",").filter((flag) => flag !== "myself"),
    masterId: master === "-" ? undefined : master,
    slotCount,
  };
}
