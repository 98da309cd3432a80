/** Random delays of one to two hours: what is offered with these stays for as long as it is measured. */
export const LATER = { minDelay: 3_600_000, maxDelay: 7_200_000 };
