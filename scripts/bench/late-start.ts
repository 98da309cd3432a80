/** The machine is too busy: some messages were still being offered at the first deadline. */
export class LateStartError extends Error {
  constructor(late: number) {
    super(`offering the messages took ${Math.ceil(late)} ms too long`);
  }
}
