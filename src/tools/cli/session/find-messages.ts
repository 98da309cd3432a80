import type { InspectedQueue } from "../../inspect/inspector.ts";
import { quoted } from "../printing/output.ts";
import type { Session } from "./session.ts";

/** Returns those of the ids and keys that name a delayed or retrying message. Reports the others on stderr. */
export async function findMessages(
  session: Session,
  { name, messages }: InspectedQueue,
  wanted: readonly string[],
): Promise<string[]> {
  const { signal } = session;
  const found: string[] = [];
  for (const idOrKey of wanted) {
    if ((await messages.get(idOrKey, { signal })) !== undefined) found.push(idOrKey);
    else {
      const said = `${quoted(idOrKey)} is not delayed in queue ${quoted(name)}.`;
      session.hint(said, "Where it is", "get", name, idOrKey);
    }
  }
  return found;
}
