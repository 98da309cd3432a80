/** The messages were not all in the queue before the first deadline: the machine is too busy. */
export class LateStartError extends Error {
  constructor(late: number) {
    super(`offering the messages took ${Math.ceil(late)} ms too long`);
  }
}
