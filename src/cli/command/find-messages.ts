import type { InspectedQueue } from "../../inspect/inspector.ts";
import { quoted } from "../printing/output.ts";
import type { Session } from "./session.ts";

/** Which of these messages are delayed or retrying, by their ids or keys; says which are not. */
export async function findMessages(
  { output, signal }: Session,
  { name, messages }: InspectedQueue,
  wanted: readonly string[],
): Promise<string[]> {
  const found: string[] = [];
  for (const idOrKey of wanted) {
    if ((await messages.get(idOrKey, { signal })) !== undefined) found.push(idOrKey);
    else
      output.say(`${quoted(idOrKey)} is not delayed in queue ${quoted(name)}; see delayline get`);
  }
  return found;
}
