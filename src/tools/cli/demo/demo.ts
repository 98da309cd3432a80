import { randomBytes } from "node:crypto";
import { startRedis } from "../../../adapters/testing/index.ts";
import { Delayline } from "../../../index.ts";
import { insideClient, layout } from "../../../inside.ts";
import { serveDashboard } from "../../dashboard/index.ts";
import { formatPairs } from "../session/output.ts";
import type { Session } from "../session/session.ts";
import { Crew, titleOf } from "./crew.ts";
import type { Order } from "./order.ts";
import { Story } from "./story.ts";

/**
 * Runs the demo: a Redis, the dashboard, two workers, ten orders, and a story on the terminal. Returns whether every
 * order that fell due was handled. Removes what it has made.
 *
 * @param redis the URL of a Redis to use. Without one, a server on the PATH is started.
 * @param isAlone whether it needs no keys, and ends when every order has met its fate.
 * @throws {RedisStartError} if there is no Redis, or it does not answer.
 */
export async function runDemo(
  session: Session,
  redis: string | undefined,
  isAlone: boolean,
): Promise<boolean> {
  const { io, output, signal } = session;
  await using server = await startRedis({ env: { ...io.env, REDIS_URL: redis } });
  const { url, description, source } = server;
  const isOurs = source === "PATH";
  // Who may see this page may see all queues of that Redis.
  await using board = await serveDashboard({ redis: url, readOnly: !isOurs, payloads: isOurs });
  await using line = new Delayline({ redis: url, transfer: false });
  line.on("error", ({ message }) => output.say(message));
  // Others may use the same Redis, and run a demo there.
  const queue = `demo-${randomBytes(2).toString("hex")}`;
  const story = new Story(output, line.getReliableQueue<Order>(queue));
  let isKept = true;
  try {
    await using crew = new Crew(url, queue, story);
    const workers = await Promise.all([crew.hire(signal), crew.hire(signal)]);
    await output.print(
      ...formatPairs([
        ["Redis", description],
        ["queue", queue],
        ["workers", workers.map(titleOf).join(", ")],
        ["page", board.url],
        ["look", lookAt(session, isOurs ? url : undefined, queue)],
      ]),
      "",
    );
    if (isAlone) isKept = await story.tellAlone(crew, signal);
    else await story.tell(crew, io, signal);
    output.say("The workers finish what they have in their hands ...");
  } finally {
    for (const { client } of insideClient(line).servers) {
      await client.unlink(Object.values(layout.queueKeys(queue)));
    }
  }
  output.say(`The queue is gone${isOurs ? ", and Redis stops" : ""}: nothing is left behind.`);
  return isKept;
}

/** The command that shows where an order is. */
function lookAt({ commandLine }: Session, url: string | undefined, queue: string): string {
  const server = url === undefined ? [] : [["--redis", url] as const];
  return commandLine("get", queue, "order:9", ...server) ?? "";
}
