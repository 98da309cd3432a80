import { RedisError } from "../../errors.ts";
import { REFUSAL } from "../../lua/guarded.ts";

/**
 * Whether Redis has refused a script because of the fact that the caller knows: it holds a newer one, or went back to an
 * earlier one.
 */
export function isRefusedByFact(error: unknown): boolean {
  return error instanceof RedisError && error.reply === REFUSAL;
}
