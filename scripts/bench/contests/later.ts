/** Random delays of one to two hours: such messages stay delayed during the measurement. */
export const LATER = { minDelay: 3_600_000, maxDelay: 7_200_000 };
