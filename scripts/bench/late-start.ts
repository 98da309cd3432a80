/** What had to be in the queue before a deadline was not there in time: the machine has other work. */
export class LateStartError extends Error {
  constructor(late: number) {
    super(`offering what was to fall due took ${Math.ceil(late)} ms too long`);
  }
}
