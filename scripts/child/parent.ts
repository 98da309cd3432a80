import type { Serializable } from "node:child_process";

/*
 * What a program says to the process that started it as a `Child`. It hears that process by
 * `process.on("message")`.
 */

/** Sends a message to the parent; resolves when it is on its way. */
export async function tell(message: Serializable): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (process.send === undefined) throw new Error("this program is started by another one");
    process.send(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
  });
}

/** For a program that has nothing more to tell or to hear: it then ends by itself. */
export function hangUp(): void {
  process.off("disconnect", abandon);
  if (process.connected) process.disconnect();
}

/** Ends the program with its parent: a process whose parent is gone works for nobody. */
export function endWithParent(): void {
  process.once("disconnect", abandon);
  if (!process.connected) abandon();
}

function abandon(): void {
  process.exit(1);
}
