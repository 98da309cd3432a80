import { onTestFinished } from "vitest";
import { Child, type ChildOptions } from "../../scripts/child/child.ts";

/**
 * Runs a TypeScript program in a process of its own. The process is killed when the test has finished.
 *
 * @param file such as `new URL("../helpers/programs/hold-redis.ts", import.meta.url)`.
 */
export function startChild<Message = unknown>(file: URL, options?: ChildOptions): Child<Message> {
  const child = new Child<Message>(file, options);
  onTestFinished(async () => {
    await child.kill();
  });
  return child;
}

/** Calls `visit` with each message of a process. Resolves when it has ended, however that was. */
export async function eachMessage<Message>(
  child: Child<Message>,
  visit: (message: Message) => void,
): Promise<void> {
  const next = () => child.next(undefined, Infinity).catch(() => undefined);
  for (let message = await next(); message !== undefined; message = await next()) visit(message);
}
