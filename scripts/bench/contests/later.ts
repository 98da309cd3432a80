/** Random delays of one to two hours: such messages stay delayed while they are measured. */
export const LATER = { minDelay: 3_600_000, maxDelay: 7_200_000 };
