import { RedisError } from "../../errors.ts";
import { refusalOf } from "../../failure.ts";
import { TARGET_REFUSAL } from "../../lua/exchanges/putting.ts";
import { REFUSAL } from "../../lua/guarded.ts";

/**
 * Whether Redis has refused a script because of the fact that the caller knows: it holds a newer one, or went back to an
 * earlier one.
 */
export function isRefusedByFact(error: unknown): boolean {
  return error instanceof RedisError && error.reply === REFUSAL;
}

/**
 * If Redis has refused a script because of the fact of the partition that its messages were to land in: what it holds there.
 */
export function heldByTarget(error: unknown): string | undefined {
  if (!(error instanceof RedisError) || error.reply !== TARGET_REFUSAL) return undefined;
  return (error.cause as Error).message.slice(TARGET_REFUSAL.length + 1);
}

/** The refusal, by the partition itself, that {@link isRefusedByFact} knows. */
export function refusedByTarget(doing: string, held: string): RedisError {
  return new RedisError(doing, refusalOf(`${REFUSAL} ${held}`));
}
