/** The latest instant that a Date can hold (epoch ms). Foreign writers may have written later deadlines. */
export const LAST_DATE = 8.64e15;
