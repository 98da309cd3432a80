/** The latest instant that a Date can be (epoch ms). Somebody else may have written any. */
export const LAST_DATE = 8.64e15;
