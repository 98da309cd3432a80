import type { Serializable } from "node:child_process";

/*
 * The program's side of a `Child`. The program receives messages with `process.on("message")`.
 */

/** Sends a message to the parent; resolves when it has been sent. */
export async function tell(message: Serializable): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (process.send === undefined) throw new Error("this program must be started by another one");
    process.send(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
  });
}

/** Closes the channel to the parent, so that a program with nothing left to do can end. */
export function hangUp(): void {
  process.off("disconnect", abandon);
  if (process.connected) process.disconnect();
}

/** From now on the program ends when its parent does. */
export function endWithParent(): void {
  process.once("disconnect", abandon);
  if (!process.connected) abandon();
}

function abandon(): void {
  process.exit(1);
}
