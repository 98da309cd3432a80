/** A promise, `opened`, that resolves when `open` is called. */
export class Gate {
  open: () => void = () => {};
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}
