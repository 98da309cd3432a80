import { OfferError, OfferManyError } from "../../errors.ts";
import type { Offering, OfferResult } from "./offering.ts";

/**
 * Makes each of these offers to the queue of this name; returns the results in the same order.
 *
 * @throws {OfferManyError} if Redis did not accept all of them.
 */
export async function offerEach(
  queue: string,
  offerings: readonly Offering[],
  offer: (offering: Offering) => Promise<OfferResult>,
): Promise<OfferResult[]> {
  const results = await Promise.all(
    offerings.map((offering) =>
      offer(offering).catch((error: unknown) => {
        if (error instanceof OfferError) return error;
        throw error;
      }),
    ),
  );
  if (!results.some((result) => result instanceof OfferError)) return results as OfferResult[];
  throw new OfferManyError(queue, results);
}
